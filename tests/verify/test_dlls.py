"""Libraries for Windows, read as files on another system: NVIDIA's own, and ones linked here."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

import toys
from nbxrt import verifying

pytestmark = [pytest.mark.tier("all"), pytest.mark.needs("pefile")]

ARM64 = 0xAA64


def _dll(folder: Path, functions: list[str], data: str = "toyData") -> Path:
    """A DLL that exports functions and one object."""
    code = "".join(f"    .globl {name}\n{name}:\n    ret\n" for name in functions)
    exports = " ".join([*(f"-export:{name}" for name in functions), f"-export:{data},data"])
    source = (
        f"    .text\n{code}    .data\n    .globl {data}\n{data}:\n    .long 7\n"
        f'    .section .drectve\n    .ascii " {exports}"\n'
    )
    (folder / "toy.s").write_text(source, "utf-8")
    for command in (
        ("x86_64-w64-mingw32-as", "toy.s", "-o", "toy.o"),
        ("x86_64-w64-mingw32-ld", "-shared", "toy.o", "-o", "toy.dll"),
    ):
        subprocess.run(command, cwd=folder, check=True)
    return folder / "toy.dll"


def _symbols(*without: str) -> list[str]:
    operations = toys.description()["operations"]
    return [*dict.fromkeys([*operations.values(), "toyName"]).keys() - {*without}]


@pytest.mark.needs("mingw")
def test_functions_are_those_that_the_dll_exports_from_its_code(tmp_path: Path) -> None:
    library = _dll(tmp_path, _symbols())

    result = verifying.verify(toys.write(tmp_path), libraries=[library])

    assert result.faults == ()
    assert {row.by for row in result.rows if row.subject.startswith("operations.")} == {("toy.dll",)}


@pytest.mark.needs("mingw")
def test_a_function_that_is_not_there_and_one_that_is_data_are_told_apart(tmp_path: Path) -> None:
    library = _dll(tmp_path, _symbols("toyMalloc", "toyFree"), data="toyMalloc")

    result = verifying.verify(toys.write(tmp_path), libraries=[library])

    assert {row.subject: row.faults for row in result.faults} == {
        "operations.malloc": (
            "`toyMalloc` is a data object in toy.dll, not a function: name the function's own symbol, "
            "or give the operation a reason under `absent`",
        ),
        "operations.free": ("toy.dll does not export `toyFree`",),
    }


@pytest.mark.needs("mingw")
def test_a_dll_of_another_processor_is_read_and_named(tmp_path: Path) -> None:
    library = _dll(tmp_path, _symbols())
    content = bytearray(library.read_bytes())
    header = struct.unpack_from("<I", content, 0x3C)[0]
    struct.pack_into("<H", content, header + 4, ARM64)
    library.write_bytes(content)

    result = verifying.verify(toys.write(tmp_path), libraries=[library])

    assert result.ok
    assert result.notes[0].startswith("toy.dll is built for aarch64, and this is ")


@pytest.mark.needs("mingw")
def test_a_dll_that_was_cut_off_is_said_in_one_line(tmp_path: Path) -> None:
    library = _dll(tmp_path, _symbols())
    library.write_bytes(library.read_bytes()[:200])

    with pytest.raises(verifying.SymbolsError, match=r"toy\.dll is damaged: ") as caught:
        verifying.verify(toys.write(tmp_path), libraries=[library])

    assert caught.value.hint == "get the library again"


@pytest.mark.needs("headers")
def test_nvidias_runtime_for_windows_has_every_function_of_the_file(wheels: Path) -> None:
    library = wheels / "cuda-12-windows" / "nvidia" / "cuda_runtime" / "bin" / "cudart64_12.dll"

    result = verifying.verify("cuda", libraries=[library])

    assert result.versions["runtime"] == "12"
    assert result.faults == ()
    assert result.counts["ok"] > 60
