"""What a file is, before the loader sees it: read, never loaded."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraries import make_library, patched
from nbxrt.binding import dependencies, elf, examine, loader
from nbxrt.binding.machine import Machine

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="ELF libraries"),
    pytest.mark.needs("cc"),
]

HERE = Machine(environ={}, root="", paths=[])


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    needed = make_library(folder / "libneeded.so.3", "int needed(void) { return 1; }")
    return make_library(folder / "libtoy.so.1", soname="libtoy.so.1", needs=(needed,))


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("caches")


class TestFaults:
    """Why a file cannot be loaded, in words, without an exception and without waiting."""

    def test_a_good_library_has_no_fault(self, library: Path) -> None:
        assert examine.fault(str(library), HERE) == ""

    def test_a_pipe_is_not_opened(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "libtoy.so.1")

        assert examine.fault(str(tmp_path / "libtoy.so.1"), HERE) == "is not a regular file"

    def test_the_other_byte_order_is_named(self, library: Path, tmp_path: Path) -> None:
        other = tmp_path / "libtoy.so.1"
        other.write_bytes(library.read_bytes())
        patched(other, 5, b"\x02" if sys.byteorder == "little" else b"\x01")

        assert "-endian, and this is" in examine.fault(str(other), HERE)

    def test_a_file_that_is_gone_is_said_to_be(self, tmp_path: Path) -> None:
        assert examine.fault(str(tmp_path / "none"), HERE) == "does not exist"

    def test_every_shorter_length_is_a_fault(self, library: Path, tmp_path: Path) -> None:
        whole = library.read_bytes()
        short = tmp_path / "libtoy.so.1"
        loaded = _end_of_segments(whole)

        for length in {*range(200), *range(200, loaded, 997), loaded - 1}:
            short.write_bytes(whole[:length])
            assert examine.fault(str(short), HERE), length

    def test_zeros_from_anywhere_before_the_end_of_what_the_loader_reads_are_a_fault(
        self, library: Path, tmp_path: Path
    ) -> None:
        """As of a download into a file that had its size already: the loader would end the process."""
        whole = library.read_bytes()
        holed = tmp_path / "libtoy.so.1"
        headers = 64 + 56 * len(_segments(whole))
        at = next(offset for kind, offset, _size in _segments(whole) if kind == 2)

        for start in {*range(headers, at, 499), at, at + 48}:
            holed.write_bytes(whole[:start] + bytes(len(whole) - start))
            assert examine.fault(str(holed), HERE).startswith("is damaged"), start

    @pytest.mark.parametrize("at", [39, 47])  # the top of the offsets of both tables
    def test_an_offset_beyond_any_file_is_an_answer(self, library: Path, tmp_path: Path, at: int) -> None:
        content = bytearray(library.read_bytes())
        content[at] = 128
        damaged = tmp_path / "libtoy.so.1"
        damaged.write_bytes(content)

        assert isinstance(examine.fault(str(damaged), HERE), str)
        assert isinstance(elf.needed(str(damaged)), list)

    @given(st.data())
    def test_a_damaged_header_is_an_answer_and_no_exception(self, library: Path, data: st.DataObject) -> None:
        damaged = library.with_name("damaged.so")
        content = bytearray(library.read_bytes())
        for _each in range(data.draw(st.integers(1, 6))):
            content[data.draw(st.integers(4, 400))] = data.draw(st.integers(0, 255))
        damaged.write_bytes(content)

        assert isinstance(examine.fault(str(damaged), HERE), str)
        assert isinstance(elf.needed(str(damaged)), list)
        elf.exported(str(damaged), ["mark"])


def _cut_off(library: Path) -> Path:
    library.write_bytes(library.read_bytes()[:9000])
    return library


def _segments(data: bytes) -> list[tuple[int, int, int]]:
    """(kind, offset, size in the file) of each program header."""
    (table,) = struct.unpack_from("<Q", data, 32)
    entry, count = struct.unpack_from("<HH", data, 54)
    rows = [struct.unpack_from("<IIQQQQ", data, table + entry * index) for index in range(count)]
    return [(kind, offset, size) for kind, _flags, offset, _address, _physical, size in rows]


def _end_of_segments(data: bytes) -> int:
    return max(offset + size for kind, offset, size in _segments(data) if kind == 1)


class TestReading:
    """What a library says of itself, compared with pyelftools."""

    def test_names_and_dependencies_are_those_of_the_dynamic_section(self, library: Path) -> None:
        assert elf.soname(str(library)) == "libtoy.so.1"
        assert "libneeded.so.3" in elf.needed(str(library))

    @pytest.mark.needs("pyelftools")
    @pytest.mark.parametrize("style", ["sysv", "gnu"])
    def test_exports_are_those_that_a_full_reader_finds(self, tmp_path: Path, style: str) -> None:
        from elftools.elf import elffile

        path = make_library(tmp_path / f"lib{style}.so", flags=(f"-Wl,--hash-style={style}",))
        with path.open("rb") as file:
            symbols = list(elffile.ELFFile(file).get_section_by_name(".dynsym").iter_symbols())
        defined = {each.name for each in symbols if each.name and each["st_shndx"] != "SHN_UNDEF"}

        found = elf.exported(str(path), {each.name for each in symbols} | {"neverExported"})

        assert found == defined

    def test_what_is_no_library_has_nothing_to_say(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("text")

        assert elf.soname(str(tmp_path / "text")) == ""
        assert elf.needed(str(tmp_path / "none")) == []
        assert elf.exported(str(tmp_path / "text"), ["mark"]) is None


class TestDependencies:
    """A10 and A12 for what a library needs: the missing one is named with the one that needs it."""

    def test_a_missing_dependency_of_a_dependency_is_named_with_both(self, tmp_path: Path) -> None:
        deep = make_library(tmp_path / "deep/libdeep.so.7", "int deep(void) { return 1; }")
        middle = make_library(
            tmp_path / "lib/libmiddle.so.2", "int middle(void) { return 1; }", needs=(deep,), flags=("-Wl,-z,origin",)
        )
        top = make_library(tmp_path / "lib/libtop.so.1", needs=(middle,), flags=("-Wl,-rpath,$ORIGIN",))
        deep.unlink()

        assert dependencies.chain(str(top), "libdeep.so.7", HERE) == ["libmiddle.so.2"]
        assert dependencies.chain(str(middle), "libdeep.so.7", HERE) == []
        assert dependencies.chain(str(top), "libunheard.so", HERE) == []

    @pytest.fixture
    def top(self, tmp_path: Path) -> Path:
        """A library that needs lib/libmiddle.so.2, which needs lib/libdeep.so.7."""
        beside = ("-Wl,-rpath,$ORIGIN",)
        deep = make_library(tmp_path / "lib/libdeep.so.7", "int deep(void) { return 1; }")
        source = "int middle(void) { return 1; }"
        middle = make_library(tmp_path / "lib/libmiddle.so.2", source, needs=(deep,), flags=beside)
        return make_library(tmp_path / "lib/libtop.so.1", needs=(middle,), flags=beside)

    def test_what_is_whole_has_no_fault(self, top: Path) -> None:
        assert dependencies.fault(str(top), HERE) == ""

    def test_a_dependency_that_is_cut_off_is_named_with_those_that_need_it(self, top: Path) -> None:
        deep = _cut_off(top.with_name("libdeep.so.7"))

        said = dependencies.fault(str(top), HERE)

        assert said.startswith(f"needs libmiddle.so.2, which needs libdeep.so.7: {deep} is truncated: ")

    def test_a_copy_for_another_machine_is_passed_over_as_the_loader_does(self, top: Path, tmp_path: Path) -> None:
        shutil.copytree(top.parent, tmp_path / "foreign")
        patched(tmp_path / "foreign/libdeep.so.7", 4, b"\x01")
        machine = Machine(environ={"LD_LIBRARY_PATH": str(tmp_path / "foreign")}, root="", paths=[])

        assert dependencies.fault(str(top), machine) == ""

    def test_libraries_that_need_each_other_in_a_circle_come_to_an_end(self, top: Path) -> None:
        make_library(top.with_name("libdeep.so.7"), needs=(top,), flags=("-Wl,-rpath,$ORIGIN",))

        assert dependencies.fault(str(top), HERE) == ""


class TestLoadersWords:
    """A27, A22: the messages of the loaders of glibc, musl and Windows, put right where they mislead."""

    @pytest.mark.parametrize(
        ("said", "means"),
        [
            (
                "libneeded.so.3: cannot open shared object file: No such file or directory",
                "needs libneeded.so.3, which the loader does not find",
            ),
            (
                "Error loading shared library libneeded.so.3: No such file or directory (needed by /x/libtoy.so.1)",
                "needs libneeded.so.3, which the loader does not find",
            ),
            (
                "libtoy.so.1: cannot open shared object file: No such file or directory",
                "unknown to the system's loader",
            ),
            (
                "Error loading shared library libtoy.so.1: No such file or directory",
                "unknown to the system's loader",
            ),
            (
                "/x/libtoy.so.1: failed to map segment from shared object",
                "cannot be mapped: is its file system mounted noexec?",
            ),
            (
                "Could not find module '/x/libtoy.so.1' (or one of its dependencies). Try using the full path",
                "libtoy.so.1 cannot be loaded, or a library that it needs is missing",
            ),
            ("[WinError 193] %1 is not a valid Win32 application", "is built for another processor"),
            (
                "dlopen(/x/libtoy.so.1, 0x0006): tried: '/x/libtoy.so.1' (mach-o file, but is an incompatible "
                "architecture (have 'x86_64', need 'arm64'))",
                "is built for another processor",
            ),
            ("/x/libtoy.so.1: undefined symbol: other", "undefined symbol: other"),
        ],
    )
    def test_a_message_is_put_right(self, said: str, means: str) -> None:
        assert loader.reason("/x/libtoy.so.1", said) == means

    @pytest.mark.parametrize(
        ("system", "why", "is_unknown"),
        [
            ("linux", "unknown to the system's loader", True),
            ("linux", "cannot allocate memory in static TLS block", False),
            ("linux", "needs libz.so.1, which the loader does not find", False),
            ("windows", "nvcuda.dll cannot be loaded, or a library that it needs is missing", True),
            ("windows", "is built for another processor", False),
            ("macos", "is built for another processor", False),
        ],
    )
    def test_a_name_without_a_file_is_told_from_a_file_that_does_not_fit(
        self, system: str, why: str, is_unknown: bool
    ) -> None:
        assert loader.is_unknown(why, Machine(system=system, environ={}, root="", paths=[])) is is_unknown

    @pytest.mark.parametrize("path", ["", " "], ids=repr)
    def test_an_empty_name_is_not_given_to_the_loader_which_would_open_the_process_itself(self, path: str) -> None:
        """A20."""
        assert loader.load(path, "local", HERE) == (None, "empty name")


class TestLoaderCache:
    """A09: the cache is read as a file, damaged or not; no program is started for it."""

    def test_it_agrees_with_the_systems_own_reader(self) -> None:
        if not Path(loader.CACHE).exists() or shutil.which("/sbin/ldconfig") is None:
            pytest.skip("there is no loader cache here")
        said = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
        wanted: dict[str, list[str]] = {}
        for line in said.splitlines():
            if " => " in line:
                wanted.setdefault(line.split()[0], []).append(line.rpartition(" => ")[2])

        assert wanted
        assert loader.cached(HERE, list(wanted)) == wanted

    @given(st.integers(0, 400), st.binary(max_size=80))
    def test_a_damaged_cache_is_an_answer_and_no_exception(self, caches: Path, cut: int, tail: bytes) -> None:
        root = caches / "root"
        (root / "etc").mkdir(parents=True, exist_ok=True)
        strings = b"\0libtoy.so.1\0/usr/lib/libtoy.so.1\0"
        rows = struct.pack("=iIIIQ", 0x0303, 73, 85, 0, 0)
        cache = b"glibc-ld.so.cache1.1" + struct.pack("=II", 1, len(strings)) + bytes(20) + rows + strings
        (root / "etc/ld.so.cache").write_bytes(cache[:cut] + tail)

        found = loader.cached(Machine(environ={}, root=str(root), paths=[]), ["libtoy.so.1"])

        assert found is None or isinstance(found, dict)
