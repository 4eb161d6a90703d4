"""What a vendor's headers declare, as the system's C++ compiler understands them.

A program is written that prints the type of each function, the value of each constant, the place of each field; every
question stands in a line of its own, so that an error of the compiler is the answer to one of them. The headers are
preprocessed as C, which is what ctypes calls: in C++ they may overload a function with conveniences of their own. The
program is compiled as C++, which can tell a type's parts, and run; nothing of the vendor's is called or linked.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Programs that compile C++, tried in this order when CXX does not name one.
COMPILERS = ("c++", "g++", "clang++")
_PREPROCESS = ("-x", "c", "-std=gnu11", "-E")
#: Words of C that C++ lacks, or has as keywords where C declares them.
_WORDS = (
    "_Bool=bool", "restrict=__restrict", "_Noreturn=", "_Static_assert=static_assert", "_Alignas=alignas",
    "_Alignof=alignof", "wchar_t=nbxrt_wchar_t",
)  # fmt: skip
_COMPILE = ("-std=c++17", "-w", "-O0", "-fpermissive", "-fno-diagnostics-color", *(f"-D{word}" for word in _WORDS))
_ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<said>.*)$", re.MULTILINE)
_PROGRAM, _PREPROCESSED = "probe.c", "probe.cpp"
#: Compiling again without the lines that are wrong ends after so many rounds; one is usual.
_ROUNDS = 8


class HeaderError(errors.NbxrtError):
    """A header that does not compile, or no compiler; `output` is what the compiler said."""

    reference = "header"
    output = ""


@attrs.frozen
class Headers:
    """The headers to read: their files, folders for what they include, and macros that are defined before them."""

    files: tuple[Path, ...]
    include: tuple[Path, ...] = ()
    define: tuple[str, ...] = ()


@attrs.frozen
class Question:
    """One thing to ask of the headers: the C++ statement that prints the answer under `key`, and a name to undefine.

    A macro of the name of a function makes another function of it: the exported one is what is asked about.
    """

    key: str
    statement: str
    undefine: str = ""


def function(symbol: str) -> Question:
    """The type of a function."""
    return Question(symbol, f'nbxrt_probe::function<decltype(&::{symbol})>("{symbol}");', symbol)


def number(key: str, expression: str) -> Question:
    """The value of a constant expression."""
    return Question(key, f'nbxrt_probe::number("{key}", (long long)({expression}));')


def size(key: str, name: str) -> Question:
    """The size of a type."""
    return number(key, f"sizeof({name})")


def field(key: str, name: str, member: str) -> Question:
    """Offset and type of a member, which may lie in a member: `location.type`."""
    place = f"__builtin_offsetof({name}, {member})"
    return Question(key, f'nbxrt_probe::field<decltype((({name} *)0)->{member})>("{key}", {place});')


def answers(headers: Headers, questions: Sequence[Question]) -> dict[str, Any]:
    """The answer to each question by its key; of one that the compiler refuses, `{"refused": what it says}`.

    Raises: HeaderError.
    """
    program = compiler()
    refused: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as work:
        for _round in range(_ROUNDS):
            asked = [question for question in questions if question.key not in refused]
            found = _faults(program, headers, asked, Path(work))
            if not found:
                return _run(Path(work)) | refused
            refused |= found
    raise HeaderError("the compiler refuses more each time that it is asked less", hint="set CXX to another compiler")


def compiler() -> list[str]:
    """The C++ compiler and its arguments: what CXX says, else the first of COMPILERS on the PATH.

    Raises: HeaderError.
    """
    wanted = os.environ.get("CXX", "").split()
    names = tuple(wanted[:1]) or COMPILERS
    for name in names:
        if found := shutil.which(name):
            return [found, *wanted[1:]]
    said = f"CXX names `{names[0]}`, which is not there" if wanted else f"none of {', '.join(COMPILERS)} is on the PATH"
    raise HeaderError(
        f"a header is read by a C++ compiler: {said}",
        hint="install one (`apt install g++`, `dnf install gcc-c++`, `xcode-select --install`), or set CXX",
    )


def _faults(program: Sequence[str], headers: Headers, questions: Sequence[Question], work: Path) -> dict[str, Any]:
    """Compile; what is wrong with each question. Raises: HeaderError for what is wrong with a header."""
    text, at = _source(headers, questions)
    (work / _PROGRAM).write_text(text, "utf-8")
    folders = dict.fromkeys(path.absolute() for path in (*(file.parent for file in headers.files), *headers.include))
    searched = [f"-I{folder}" for folder in folders]
    done = _compiled([*program, *_PREPROCESS, *searched, _PROGRAM, "-o", _PREPROCESSED], work)
    if done.returncode == 0:
        done = _compiled([*program, *_COMPILE, _PREPROCESSED, "-o", "probe"], work)
    if done.returncode == 0 and (work / "probe").exists():
        return {}
    found: dict[str, Any] = {}
    for error in _ERROR.finditer(done.stderr):
        key = at.get(int(error["line"])) if error["file"] == _PROGRAM else None
        if key is None and not found:
            raise _unusable(error, headers, done.stderr)
        if key is not None:
            found.setdefault(key, {"refused": error["said"]})
    if not found:
        said = (done.stderr.strip().splitlines() or ["no reason"])[-1]
        hint = "set CXX to GCC or Clang"
        raise HeaderError(f"the compiler `{' '.join(program)}` fails: {said}", hint=hint, output=done.stderr)
    return found


def _compiled(command: Sequence[str], work: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "LC_ALL": "C"}  # its errors are read
    return subprocess.run(  # noqa: S603  # the compiler
        command, cwd=work, env=environ, capture_output=True, text=True, check=False, errors="replace"
    )


def _source(headers: Headers, questions: Sequence[Question]) -> tuple[str, dict[int, str]]:
    """The program, and the key of the question in each of its lines that has one."""
    lines = ["// Written by nbxrt.verifying."]
    lines += [f"#define {macro.replace('=', ' ', 1)}" for macro in headers.define]
    lines += ['extern "C" {', *(f'#include "{file.absolute()}"' for file in headers.files), "}"]
    lines += [f"#undef {question.undefine}" for question in questions if question.undefine]
    probe = resources.files("nbxrt.verifying").joinpath("probe.hpp").read_text("utf-8")
    lines += [*probe.splitlines(), "int main() {"]
    at = {}
    for question in questions:
        lines.append(question.statement)
        at[len(lines)] = question.key
    return "\n".join([*lines, "}", ""]), at


def _unusable(error: re.Match[str], headers: Headers, output: str) -> HeaderError:
    is_missing = "No such file" in error["said"] or "not found" in error["said"]
    names = ", ".join(file.name for file in headers.files)
    return HeaderError(
        f"{names} cannot be compiled: {error['file']}:{error['line']}: {error['said']}",
        hint="give the folder that holds it with --include" if is_missing else _NEEDS,
        output=output,
    )


_NEEDS = (
    "a header may need another before it (--header twice), or a macro (`define` under `headers` in the backend file); "
    "it is read as C, so name the vendor's header for C rather than one for C++ alone"
)


def _run(work: Path) -> dict[str, Any]:
    done = subprocess.run([str(work / "probe")], capture_output=True, text=True, check=True)  # noqa: S603  # just made
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row.pop("key"): row for row in rows}


def spelled(answer: Mapping[str, Any]) -> str:
    """A function's type as the compiler writes it."""
    found = re.search(r"\[(?:with )?T = (.*)\]$", answer.get("spelled", ""))
    return found[1] if found else ""
