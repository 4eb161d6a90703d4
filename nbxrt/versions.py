"""Which version of each library a description is read for, where no library is there to be asked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.binding.library import applies

if TYPE_CHECKING:
    from collections.abc import Mapping

    Description = Mapping[str, Any]
    Version = tuple[int, ...]


def by_role(description: Description, wanted: str | Mapping[str, str] | None = None) -> dict[str, Version]:
    """The version of each role that has a library of its own: the runtime's is wanted, or versions by role, or none.

    Raises: ArgumentValueError for a role or a version that the file does not have.
    """
    wanted = {"runtime": wanted} if isinstance(wanted, str) else dict(wanted or {})
    own = [role for role, data in description["libraries"].items() if "same_as" not in data]
    if unknown := set(wanted) - set(own):
        raise errors.ArgumentValueError(f"{description['title']} has no library of its own for {', '.join(unknown)}")
    versions: dict[str, Version] = {}
    for role in own:
        versions[role] = _version(description, role, wanted.get(role), versions.get("runtime", ()))
    return versions


def _version(description: Description, role: str, wanted: str | None, runtime: Version) -> Version:
    """What is wanted; else the runtime's version where the role goes by the same numbers; else its best major."""
    data = description["libraries"][role]
    majors = [major for major, _files in data["names"] if major is not None]
    if wanted is not None:
        if not re.fullmatch(r"\d+(\.\d+)*", wanted):
            raise errors.ArgumentValueError(f"a version is numbers with dots, not {wanted!r}")
        version = tuple(map(int, wanted.split(".")))
        if majors and version[0] not in majors:
            known = ", ".join(map(str, majors))
            raise errors.ArgumentValueError(f"{description['file']} has no `{role}` of major {version[0]}, but {known}")
        return version
    if not majors:
        return runtime if data["version"] else ()
    if runtime and runtime[0] in majors:
        return runtime
    return next(((major,) for major in majors if _is_laid_out(description, role, (major,))), (majors[0],))


def _is_laid_out(description: Description, role: str, version: Version) -> bool:
    """Whether the file knows every structure that the role's operations use, in that version."""
    return all(
        any(applies(version, since, before) for since, before, *_layout in description["structs"][argument[1]])
        for _line, variants in description["operations"].values()
        for form, _since, _before, _platforms, what, _results in variants
        if form == "call" and what[1] == role
        for argument in what[2]
        if argument[0] == "rows" or argument[0].startswith("struct")
    )
