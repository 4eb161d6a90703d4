"""Descriptions for people: a backend file as frozen values, and every fault of one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nbxrt import descriptions, errors

if TYPE_CHECKING:
    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.model import Backend


def describe(name: str | os.PathLike[str]) -> Backend:
    """The description of a backend with all that it extends, by name or by the path of its file.

    Raises: BackendNotFoundError for an unknown name; DescriptionError with every fault of the file.
    """
    from nbxrt.catalogue import loading

    return loading.backend(*descriptions.source(name))


def validate(path: str | os.PathLike[str]) -> tuple[Diagnostic, ...]:
    """Every fault of a backend file, in order of place; empty when there is none. Bad content never raises.

    Raises: ArgumentTypeError for what is no path.
    """
    from nbxrt.catalogue import inheritance

    if not isinstance(path, (str, os.PathLike)):
        raise errors.wrong_type("`validate`", "the path of a file", path)
    return inheritance.validate_file(path)
