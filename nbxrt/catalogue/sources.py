"""Where descriptions come from: the data that ships with nbxrt, and the files that a user names.

Never the current directory and never a hidden folder: a description decides which library is loaded, so it is code in
effect. A file is read here only as far as its name and whether it takes another one's place. What installed packages
offer is found in packages.py, and asked only for names that nothing else has.
"""

from __future__ import annotations

import os
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

from nbxrt.catalogue import reading
from nbxrt.catalogue.diagnostics import Diagnostic
from nbxrt.errors import DescriptionError, NbxrtError

if TYPE_CHECKING:
    import sys
    from collections.abc import Callable, Iterator, Mapping

    from nbxrt.catalogue.document import Document

    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

PATH_VARIABLE = "NBXRT_BACKEND_PATH"
EXPLICIT = "given by path"
BUILT_IN = "built in"

_OUR_PROJECT = re.compile(r"""^name\s*=\s*["']nbxrt["']""", re.MULTILINE)


@attrs.frozen
class Source:
    """A file that describes a backend: its name, the file, how messages show it, and who named it.

    `diagnostics` says why it cannot be used; a file that nobody selects harms nobody. `document` is the file as it was
    read to find its name, None for a built-in file, which has the name that its own file name says. `replaced` is the
    file whose place it takes, and `cause` what went wrong in a package that offers it.
    """

    name: str
    file: Path | Traversable
    shown: str
    origin: str
    override: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
    document: Document | None = attrs.field(default=None, eq=False, repr=False)
    extends: str = attrs.field(default="", eq=False)
    replaced: Source | None = attrs.field(default=None, eq=False, repr=False)
    cause: Exception | None = attrs.field(default=None, eq=False, repr=False)

    def usable(self) -> Source:
        """The source itself. Raises: DescriptionError when it cannot be used, from what caused that."""
        if self.diagnostics:
            raise DescriptionError(self.diagnostics) from self.cause
        return self

    @property
    def claims(self) -> bool:
        """Whether the file says that it takes the place of another of its name, or builds on it."""
        return self.override or self.extends == self.name

    @property
    def is_users(self) -> bool:
        """Whether the user named the file, rather than nbxrt or an installed package."""
        return self.origin in (PATH_VARIABLE, EXPLICIT)


@attrs.frozen
class Missing:
    """A path that was named and holds no description."""

    path: str
    origin: str
    reason: str

    def __str__(self) -> str:
        return f"`{self.path}` in {self.origin}: {self.reason}"


@attrs.frozen
class Found:
    """The file in force for each name, in the order in which the names were found, and what was named but not there."""

    sources: Mapping[str, Source]
    missing: tuple[Missing, ...] = ()

    def select(self, name: str) -> Source:
        """The file in force for a name. Raises: KeyError for an unknown name, DescriptionError for an unusable file."""
        return self.sources[name].usable()

    def given(self, path: Path) -> Source:
        """The file that was given by path. Raises: KeyError when none was."""
        for source in self.sources.values():
            if source.origin == EXPLICIT and source.file == path:
                return source
        raise KeyError(path)


def data_folder(kind: Literal["backends", "schema"], package: Traversable | None = None) -> Traversable:
    """The folder of data files: inside the installed package, or at the top of the checkout that holds it.

    Raises: NbxrtError when an installation lost its data.
    """
    package = package or resources.files("nbxrt")
    inside = package / kind
    if inside.is_dir():
        return inside
    if isinstance(package, Path) and _is_our_checkout(package.parent):
        return package.parent / kind
    message = f"the installation of nbxrt has no folder `{kind}`"
    raise NbxrtError(message, hint="install nbxrt again")


def find(explicit: Path | None = None, environment: Mapping[str, str] = os.environ) -> Found:
    """The files in force: built in, then those of `NBXRT_BACKEND_PATH`, then an explicit one.

    A later file takes the place of an earlier one of the same name if it says `override: true` or extends it; otherwise
    it is kept as unusable, with both files named. An explicit file needs no leave: nobody gives a path by accident.
    """
    sources: dict[str, Source] = {}
    missing: list[Missing] = []
    for find_files in _ORIGINS:
        for found in find_files(environment):
            if isinstance(found, Missing):
                missing.append(found)
            else:
                sources[found.name] = _settled(found, sources.get(found.name))
    if explicit is not None:
        given = source_of(explicit, EXPLICIT)
        sources[given.name] = attrs.evolve(given, replaced=_replaced_by(given, sources.get(given.name)))
    return Found(sources, tuple(missing))


def _settled(later: Source, earlier: Source | None) -> Source:
    """Which of two sources of a name is in force, and what it stands before.

    One that says so stands before the other, whichever was found first. Where neither does, the later is unusable.
    """
    if earlier is None:
        return later
    if later.claims or later.diagnostics or _is_same_file(later.file, earlier.file):
        return attrs.evolve(later, replaced=_replaced_by(later, earlier))
    if earlier.claims and (earlier.replaced is None or earlier.replaced.claims):
        return attrs.evolve(earlier, replaced=_settled(later, earlier.replaced))
    message = f"`{later.name}` is the name of another backend already, from {earlier.shown} ({earlier.origin})"
    hint = "give this file another `name`, or say `override: true` in it"
    return attrs.evolve(later, replaced=earlier, diagnostics=(_at_name(later, message, hint),))


def _replaced_by(later: Source, earlier: Source | None) -> Source | None:
    """The source that a later one of the same name stands before; a file named twice stands before itself once."""
    while earlier is not None and _is_same_file(later.file, earlier.file):
        earlier = earlier.replaced
    return earlier


def _at_name(source: Source, message: str, hint: str) -> Diagnostic:
    if source.document is None or not isinstance(source.document.data, dict) or "name" not in source.document.data:
        return Diagnostic(source.shown, 1, 1, 1, "name-taken", message, hint=hint)
    return source.document.diagnostic(("name",), "name-taken", message, hint=hint)


def _is_same_file(one: Path | Traversable, other: Path | Traversable) -> bool:
    return isinstance(one, Path) and isinstance(other, Path) and os.path.realpath(one) == os.path.realpath(other)


def _is_our_checkout(folder: Path) -> bool:
    """Whether our own pyproject.toml stands there: some other project's `backends` folder is not ours to read."""
    try:
        return _OUR_PROJECT.search((folder / "pyproject.toml").read_text("utf-8")) is not None
    except OSError:
        return False


def _built_in(_environment: Mapping[str, str]) -> Iterator[Source]:
    for file in sorted(data_folder("backends").iterdir(), key=lambda each: each.name):
        if file.name.endswith(".yaml"):
            yield Source(file.name[: -len(".yaml")], file, f"backends/{file.name}", BUILT_IN)


def _from_path(environment: Mapping[str, str]) -> Iterator[Source | Missing]:
    for part in filter(None, map(str.strip, environment.get(PATH_VARIABLE, "").split(os.pathsep))):
        for found in files_at(Path(part), PATH_VARIABLE):
            yield attrs.evolve(found, reason=found.reason + _misread(part)) if isinstance(found, Missing) else found


# Who may name files, the weakest first.
_ORIGINS: tuple[Callable[[Mapping[str, str]], Iterator[Source | Missing]], ...] = (_built_in, _from_path)


def _misread(part: str) -> str:
    """What was probably meant by a path in a variable, where it is not there."""
    if part.startswith("~"):
        return ": `~` stands for no home folder here"
    if part[0] in "\"'":
        return ": quotes are a part of the name here"
    if any(other in part for other in ",;" if other != os.pathsep):
        return f": paths are separated by `{os.pathsep}`"
    return ""


def files_at(path: Path, origin: str) -> Iterator[Source | Missing]:
    """The file at a path, or the `*.yaml` files of a folder."""
    try:
        files = sorted(path.glob("*.yaml")) if os.path.isdir(path) else [path]
        exists = os.path.exists(path)
    except OSError as error:
        yield Missing(str(path), origin, (error.strerror or "unreadable").lower())
        return
    if not exists:
        yield Missing(str(path), origin, "there is no such file or folder")
    elif not files:
        yield Missing(str(path), origin, "the folder holds no `*.yaml` file")
    else:
        yield from (source_of(file, origin) for file in files)


def source_of(file: Path, origin: str) -> Source:
    """What a file says about itself; one that cannot be read goes by its file name."""
    scanned = reading.scan(file, str(file))
    data: Any = scanned.document.data if scanned.document is not None else None
    said = data if isinstance(data, dict) else {}
    name, base = said.get("name"), said.get("extends")
    base = base if isinstance(base, str) else ""
    return Source(
        name if isinstance(name, str) else base or file.stem,
        file,
        str(file),
        origin,
        said.get("override") is True,
        scanned.diagnostics,
        scanned.document,
        base,
    )
