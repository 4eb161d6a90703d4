"""What a library search is after, and each place where it looked: names, majors, verdicts."""

import os

from nbxrt.binding.machine import realpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from nbxrt.binding.machine import Machine

#: A path longer than this is shown by its two ends.
_LONGEST_SHOWN = 300


class Candidate:
    """One place where a library was looked for: the step, the path or name, the verdict and the reason in words.

    Verdicts: `chosen`, `broken` (it exists and cannot be used), `refused` (another major, another vendor's, or a stub),
    `missing`, `skipped` (the step does not apply), `untried` (another was chosen before its turn came).
    """

    __slots__ = ("base", "is_file", "is_foreign", "kept_as", "major", "path", "reason", "step", "verdict", "warning")

    def __init__(
        self,
        step: str,
        path: str,
        verdict: str = "untried",
        reason: str = "",
        major: "int | None" = None,
        *,
        base: str = "",
        is_file: bool = False,
        kept_as: str = "",
    ) -> None:
        self.step = step
        self.path = path if len(path) <= _LONGEST_SHOWN or is_file else f"{path[:140]}…{path[-140:]}"
        self.verdict = verdict
        self.reason = reason
        self.major = major
        #: The folder that the step started from: a prefix, a root, an entry of Python's path.
        self.base = base
        #: Whether `path` is a file, rather than a name for the system's loader or a place without the library.
        self.is_file = is_file
        #: The loader's name of a copy in this process whose file is gone since, so that it cannot be read; else empty.
        self.kept_as = kept_as
        #: Whether it is another vendor's library, which says nothing of this vendor's.
        self.is_foreign = False
        #: What a person should hear although the candidate was chosen, or empty.
        self.warning = ""

    def __repr__(self) -> str:
        return f"{self.step:<12} {self.path:<40} {self.verdict}: {self.reason}"


class Wanted:
    """The library that is looked for: its role, file names on this system best first, and the majors they stand for.

    It also keeps what the search learns on its way: the files it has met, names that the loader must not be asked for,
    and what is odd about the environment.
    """

    __slots__ = (
        "_fold", "backend", "beside", "data", "machine", "majors", "met", "names", "oddities", "role", "unsafe",
        "untested",
    )  # fmt: skip

    def __init__(
        self, backend: str, role: str, data: "Any", machine: "Machine", beside: "Candidate | None" = None
    ) -> None:
        self.backend = backend
        self.role = role
        self.data = data
        self.machine = machine
        #: The chosen candidate of the role that this one should come from the same place as.
        self.beside = beside
        #: (file name, major or None)
        self.names = tuple(
            (files[machine.system].strip(), major) for major, files in data["names"] if machine.system in files
        )
        self.majors = tuple(major for _file, major in self.names if major is not None)
        #: A file's name as its system compares it: the loader of Windows may give it back in capitals.
        self._fold: Callable[[str], str] = str.lower if machine.system == "windows" else str
        self.untested = machine.variable("NBXRT_ALLOW_UNTESTED") == "1"
        self.met: set[str] = set()
        self.unsafe: set[str] = set()
        self.oddities: list[str] = []

    @property
    def variable(self) -> str:
        """The variable that names an exact file for this role."""
        return f"NBXRT_{self.backend}_{self.role}".upper()

    @property
    def said_names(self) -> str:
        return ", ".join(name for name, _major in self.names)

    def expand(self, text: str) -> str:
        """The text with the machine, and the major of the library beside which this one belongs, filled in."""
        text = text.replace("{machine}", self.machine.processor)
        major = self.beside.major if self.beside is not None else None
        return text.replace("{major}", str(major)) if major is not None else text

    def is_new(self, path: str) -> bool:
        """Whether the file was not met before, under this name or by a link."""
        real = realpath(path)
        if real in self.met:
            return False
        self.met.add(real)
        return True

    def major_of(self, path: str) -> "int | None":
        """The major that a file's name, the name of the file that it links to, or its soname stands for."""
        real = realpath(path)
        major = self._first_major((os.path.basename(path), os.path.basename(real)))
        if major is None and self.machine.system == "linux" and self.majors and os.path.isfile(real):
            from nbxrt.binding import elf  # only for a file whose name does not say its version

            return self._first_major((elf.soname(real),))
        return major

    def _first_major(self, names: "Iterable[str]") -> "int | None":
        for name in map(self._fold, names):
            for file, major in self.names:
                if name == self._fold(file) and major is not None:
                    return int(major)
            number = numbers(name.partition(".so.")[2] or (name.endswith(".dll") and name) or "")
            if number:
                return number[0 if ".so." in name else -1]
        return None

    def has_name(self, name: str) -> bool:
        """Whether a file's name is one of the library's, in whatever version."""
        name = self._fold(name)
        return any(_same_library(name, self._fold(file)) for file, _major in self.names)

    def accepts(self, path: str) -> "tuple[bool, int | None]":
        """Whether the file's major is one that the backend file lists, and the major."""
        major = self.major_of(path)
        return major is None or not self.majors or major in self.majors, major

    def refusal(self, major: "int | None") -> str:
        return f"major {major} is not among {', '.join(map(str, self.majors))}"


def numbers(name: str) -> "list[int]":
    """The numbers in a name: `libx.so.12.4` has 12 and 4."""
    return [int(part) for part in "".join(each if each.isdigit() else " " for each in name).split()]


def newest_first(name: str) -> "tuple[list[int], str]":
    """A sort key: numbers compare as numbers, 12.10 before 12.9 before 9."""
    return [-number for number in numbers(name)], name


def _same_library(name: str, file: str) -> bool:
    """Whether two file names differ in version alone: `libx.so.12` and `libx.so.11.0`.

    Packaging tools add a hash, as in `libx-0a1b2c3d.so.12`; it does not count.
    """
    stem, dot, _version = os.path.basename(file).partition(".so")
    if not dot:
        return _without_digits(name) == _without_digits(os.path.basename(file))
    other, dot, version = name.partition(".so")
    stem_agrees = other == stem or (other.startswith(stem + "-") and _is_hash(other[len(stem) + 1 :]))
    return bool(dot) and stem_agrees and not version.strip("0123456789.")


def _is_hash(text: str) -> bool:
    return len(text) >= 6 and not text.strip("0123456789abcdef")


def _without_digits(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdigit())
