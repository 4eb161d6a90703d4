"""`nbxrt new`: a first draft of a backend file, made after a backend that is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nbxrt import descriptions
from nbxrt.cli import cforms, files
from nbxrt.cli.console import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@click.command("new")
@click.argument("name")
@click.option("--like", metavar="BACKEND|FILE", required=True, help="The backend to begin with.")
@click.option("--prefix", metavar="PREFIX", help="What the vendor's names begin with; NAME when left out.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it to FILE.", metavar="FILE"
)
def command(name: str, like: str, prefix: str | None, output: Path | None) -> None:
    """Print a first draft of a backend file, or write it to a file.

    It is complete and valid. Each operation stands with its meaning and the C signature that is assumed, names are
    derived from the prefix, and CHECK marks what the author must compare with the vendor's headers.
    """
    _refuse_bad_names(name, prefix)
    if output is not None and output.exists():
        raise click.UsageError(f"{output} is there already: remove it, or name another file")
    text = drafted(name, like, prefix or name)
    if files.give(text, output):
        marks = text.count("CHECK")
        Writer(stderr=True).line(f"wrote {output}: {marks} places to check, each marked CHECK")


def _refuse_bad_names(name: str, prefix: str | None) -> None:
    for word, what in ((name, "NAME"), (prefix or name, "--prefix")):
        if not _NAME.fullmatch(word):
            raise click.UsageError(
                f"`{word}` is no {what}: it begins with a letter, and is of lower-case letters, digits and `_`"
            )
    if name in descriptions.names():
        raise click.UsageError(f"there is a backend `{name}` already")


def drafted(name: str, like: str, prefix: str) -> str:
    """The text of the draft. Raises: BackendNotFoundError, DescriptionError for a base that cannot be used."""
    from nbxrt.catalogue import contract as contracts
    from nbxrt.catalogue import writing

    contract = contracts.load()
    draft = writing.draft(_base(like), name, prefix, contract)
    return writing.rendered(draft, contract, _signatures(draft.data, contract.operations))


def _base(like: str) -> Any:
    """What the file of the backend to begin with says, with all that it extends."""
    from nbxrt import errors
    from nbxrt.catalogue import loading, sources

    if descriptions.is_path(like):
        source, found = loading.selected(like)
    else:
        found = sources.find()
        if like not in found.sources:
            close = errors.nearest(like, list(found.sources))
            hint = f"did you mean `{close}`?" if close else f"known: {', '.join(found.sources)}"
            raise errors.BackendNotFoundError(f"there is no backend `{like}`", hint=hint)
        source = found.select(like)
    document = loading.whole(source, found).document
    assert document is not None  # noqa: S101  # there was no fault
    return document.data


def _signatures(data: Mapping[str, Any], operations: Mapping[str, Any]) -> Callable[[str], list[str]]:
    """The C declarations of an operation in a file, or of the contract's usual form when it is not bound."""
    from nbxrt.catalogue.compiling import compile_backend
    from nbxrt.catalogue.model import structure

    contract = dict(descriptions.contract())
    usual = {name: name for name, operation in operations.items() if operation.c is not None}
    plain = {role: {"search": ["system"]} for role in set(contract["groups"].values())}
    bound = compile_backend(structure(data), contract)["operations"]
    unbound = compile_backend(structure({**data, "libraries": plain, "operations": usual}), contract)["operations"]

    def signatures(name: str) -> list[str]:
        operation = bound.get(name, unbound.get(name))
        role = contract["groups"][contract["operations"][name]["group"]]
        return [] if operation is None else list(cforms.variants(operation, role))

    return signatures
