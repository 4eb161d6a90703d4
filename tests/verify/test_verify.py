"""A backend file beside a header and a library: what agrees, what does not, and what nobody can tell."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import nbxrt
import toys
from libraries import for_machine, make_library
from nbxrt import verifying
from nbxrt.verifying import Result, Row, State

pytestmark = [
    pytest.mark.needs("cxx"),
    pytest.mark.needs("pyelftools"),
    pytest.mark.skipif(sys.platform != "linux", reason="ELF libraries, and the headers of a Linux toolchain"),
]

HEADER = """
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef enum { toySuccess = 0, toyBadValue = 1, toyNoMemory = 2, toyBadHandle = 400 } toyError_t;
typedef enum { toyHostToHost = 10, toyHostToDevice = 11, toyDeviceToHost = 12 } toyCopyKind;
#define toyDeviceToDevice 13
typedef struct toyStream_st *toyStream_t;
typedef struct toyEvent_st *toyEvent_t;
typedef struct { int type; struct { int id; double weight; } owner; void *address; } toyPointer_t;
toyError_t toyDeviceCount(int *count);
toyError_t toySetDevice(int device);
toyError_t toyGetDevice(int *device);
toyError_t toySync(void);
toyError_t toyMalloc(void **address, size_t nbytes);
toyError_t toyFree(void *address);
toyError_t toyCopy(void *to, const void *from, size_t nbytes, toyCopyKind kind);
toyError_t toyCopyAsync(void *to, const void *from, size_t nbytes, toyCopyKind kind, toyStream_t stream);
toyError_t toyFill(void *address, int value, size_t nbytes);
toyError_t toyStreamCreate(toyStream_t *stream);
toyError_t toyStreamDestroy(toyStream_t stream);
toyError_t toyStreamSync(toyStream_t stream);
toyError_t toyEventCreate(toyEvent_t *event);
toyError_t toyEventDestroy(toyEvent_t event);
toyError_t toyEventRecord(toyEvent_t event, toyStream_t stream);
toyError_t toyEventSync(toyEvent_t event);
toyError_t toyLastError(void);
toyError_t toyAbout(toyPointer_t *about, const void *address);
const char *toyName(toyError_t code);
#ifdef __cplusplus
}
template <class T> toyError_t toyMalloc(T **address, size_t nbytes);
#endif
"""
LIBRARY = toys.PLAIN + "int toyAbout(void *about, const void *address) { return 0; }"

ABOUT = {
    "call": "toyAbout",
    "args": [
        {"struct": "toyPointer_t", "out": {"memory": "type", "device": "owner_id", "device_address": "address",
                                           "host_address": "address"}},
        "address",
    ],
}  # fmt: skip
STRUCT = {"bytes": 32, "fields": {"type": [0, "int"], "owner_id": [8, "int"], "address": [24, "pointer"]}}
NAMES = {
    "enums": {
        "memcpy_kind": {"host_to_host": "toyHostToHost", "device_to_host": "toyDeviceToHost",
                        "device_to_device": "toyDeviceToDevice", "default": "toyDefault"},
    },
    "codes": {"runtime": {"success": "toySuccess", "out_of_memory": "toyNoMemory", "invalid_handle": "toyBadHandle"}},
    "structs": {"toyPointer_t": {"owner_id": "owner.id"}},
}  # fmt: skip


def _toy(folder: Path, **changes: Any) -> Path:
    changes["operations"] = {"pointer_attributes": ABOUT, **changes.get("operations", {})}
    changes.setdefault("structs", {"toyPointer_t": STRUCT})
    changes["enums"] = {"memory_type": {"host": 0, "device": 1}, **changes.get("enums", {})}
    return toys.write(folder, headers={**NAMES, **changes.pop("headers", {})}, **changes)


def _header(folder: Path, *changes: tuple[str, str]) -> Path:
    text = HEADER
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file = folder / "toy_runtime.h"
    file.write_text(text, "utf-8")
    return file


def _verified(folder: Path, *changes: tuple[str, str], **of_file: Any) -> Result:
    return verifying.verify(_toy(folder, **of_file), headers=[_header(folder, *changes)])


def _row(result: Result, subject: str) -> Row:
    return next(row for row in result.rows if row.subject == subject)


def _faults(result: Result) -> dict[str, tuple[str, ...]]:
    return {row.subject: row.faults for row in result.faults}


@pytest.fixture(scope="module")
def agreed(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The toy beside its header."""
    return _verified(tmp_path_factory.mktemp("toy"))


def test_what_agrees_with_the_header_is_ok_and_the_header_is_read_as_c(agreed: Result) -> None:
    assert _faults(agreed) == {}
    assert agreed.ok
    assert _row(agreed, "operations.malloc").declared == ("toyMalloc: toyError_t (*)(void**, long unsigned int)",)
    assert _row(agreed, "structs.toyPointer_t").state is State.OK


def test_each_row_says_where_the_file_says_so(tmp_path: Path) -> None:
    result = _verified(tmp_path)

    lines = (tmp_path / "toy.yaml").read_text("utf-8").splitlines()
    row = _row(result, "operations.malloc")
    assert lines[int(row.line) - 1].strip() == "malloc: toyMalloc"


#: A change of the header, the part of the file that it contradicts, and what is said.
CONTRADICTIONS = {
    "a parameter more": (
        ("toyFree(void *address)", "toyFree(void *address, int flags)"),
        "operations.free", "`toyFree` takes 2 parameters in the header, and 1 in the file",
    ),
    "a narrower parameter": (
        ("toyFill(void *address, int value, size_t nbytes)", "toyFill(void *address, int value, unsigned nbytes)"),
        "operations.memset",
        "`toyFill` parameter 3 is a 32-bit unsigned integer in the header, and a 64-bit unsigned integer in the file; "
        "it is `type: uint`",
    ),
    "another sign": (
        ("toySetDevice(int device)", "toySetDevice(unsigned device)"),
        "operations.set_device",
        "`toySetDevice` parameter 1 is a 32-bit unsigned integer in the header, and a 32-bit signed "
        "integer in the file; it is `type: uint`",
    ),
    "a number for a pointer": (
        ("toyStreamSync(toyStream_t stream)", "toyStreamSync(unsigned long long stream)"),
        "operations.stream_sync",
        "`toyStreamSync` parameter 1 is a 64-bit unsigned integer in the header, and a pointer in the file; "
        "it is `type: uint64`",
    ),
    "a wider cell": (
        ("toyDeviceCount(int *count)", "toyDeviceCount(size_t *count)"),
        "operations.device_count",
        "`toyDeviceCount` parameter 1 is a pointer to a 64-bit unsigned integer in the header, and a pointer to a "
        "32-bit signed integer in the file; it is `type: uint64`",
    ),
    "no result": (
        ("toyError_t toySync(void)", "void toySync(void)"),
        "operations.sync", "`toySync` returns nothing in the header, and a 32-bit signed integer in the file",
    ),
    "a data object": (
        ("toyError_t toyEventRecord(toyEvent_t event, toyStream_t stream)", "extern int toyEventRecord"),
        "operations.event_record",
        "`toyEventRecord` is a data object in the header, not a function: name the function's own symbol",
    ),
    "another name": (
        ("toyEventSync", "toyEventWait"), "operations.event_sync", "no header declares `toyEventSync`",
    ),
    "another number": (
        ("toyDeviceToHost = 12", "toyDeviceToHost = 21"),
        "enums.memcpy_kind", "`device_to_host` is 12 here, and `toyDeviceToHost` is 21",
    ),
    "another macro": (
        ("#define toyDeviceToDevice 13", "#define toyDeviceToDevice 0x1f"),
        "enums.memcpy_kind", "`device_to_device` is 13 here, and `toyDeviceToDevice` is 31",
    ),
    "another code": (
        ("toyNoMemory = 2", "toyNoMemory = 12"),
        "libraries.runtime.status", "`out_of_memory` is 2 here, and `toyNoMemory` is 12",
    ),
    "a place further on": (
        ("{ int id; double weight; }", "{ double weight; int id; }"),
        "structs.toyPointer_t", "`owner_id` is at byte 8 here, and at 16 in the header",
    ),
    "a member more": (
        ("} toyPointer_t", "int flags; } toyPointer_t"),
        "structs.toyPointer_t", "has 32 bytes here, and 40 in the header",
    ),
    "a member less": (
        ("owner; void *address;", "owner; void *place;"),
        "structs.toyPointer_t",
        "`toyPointer_t` has no member `address`: name the one of `address` under `headers.structs`",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def contradicted(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The toy beside a header with all of these changes."""
    return _verified(tmp_path_factory.mktemp("toy"), *(change for change, _subject, _said in CONTRADICTIONS.values()))


@pytest.mark.parametrize(("subject", "said"), [each[1:] for each in CONTRADICTIONS.values()], ids=CONTRADICTIONS)
def test_what_the_header_has_otherwise_is_wrong(contradicted: Result, subject: str, said: str) -> None:
    assert said in _faults(contradicted)[subject]
    assert not contradicted.ok


def test_what_the_header_has_as_before_stays_right(contradicted: Result) -> None:
    subjects = {subject for _change, subject, _said in CONTRADICTIONS.values()}
    assert set(_faults(contradicted)) == {
        *subjects,
        "operations.pointer_attributes",
    }  # it takes the larger one


def test_a_macro_of_a_functions_name_does_not_hide_the_function_that_is_exported(tmp_path: Path) -> None:
    macro = "int toySync_v2(int a, int b);\n#define toySync toySync_v2\n"

    result = _verified(tmp_path, ("const char *toyName", f"{macro}const char *toyName"))

    assert _row(result, "operations.sync").state is State.OK


def test_a_number_whose_name_no_header_has_is_unverified_where_the_rest_agrees(agreed: Result) -> None:
    assert _row(agreed, "enums.memcpy_kind").state is State.OK
    row = _row(agreed, "enums.memcpy_kind.default")
    assert (row.state, row.by, row.notes) == (State.UNVERIFIED, (), ("no header has `toyDefault`",))


def test_a_number_and_a_code_that_the_file_does_not_name_are_unverified(agreed: Result) -> None:
    word, code = _row(agreed, "enums.memcpy_kind.host_to_device"), _row(agreed, "libraries.runtime.status.not_ready")
    assert (word.state, word.notes) == (
        State.UNVERIFIED,
        ("the file does not say under `headers` what 11 is called",),
    )
    assert (code.state, code.notes) == (
        State.UNVERIFIED,
        ("the file does not say under `headers` what 600 is called",),
    )


def test_an_enum_of_which_nothing_is_named_is_one_row(agreed: Result) -> None:
    row = _row(agreed, "enums.memory_type")

    assert row.state is State.UNVERIFIED
    assert row.notes == ("the file does not name them under `headers`",)


def test_a_number_may_be_several_bits_of_the_header(tmp_path: Path) -> None:
    names = {"enums": {"memcpy_kind": {"default": "toyHostToHost | toyDeviceToHost"}}}

    result = verifying.verify(toys.write(tmp_path, headers=names), headers=[_header(tmp_path)])

    assert _row(result, "enums.memcpy_kind").state is State.OK


PIN = (
    "toyError_t toyLastError(void);",
    "toyError_t toyLastError(void);\n#define toyPinShared 4\n#define toyPinMapped 8\n"
    "toyError_t toyPin(void *address, size_t nbytes, unsigned flags, unsigned reserved);",
)


def _pinning(folder: Path, flags: int, *names: str) -> Result:
    """The toy with a call that passes a number, and the names that it has for it."""
    call = {"call": "toyPin", "args": ["address", "nbytes", {"uint": flags}, {"uint": 0}]}
    return _verified(folder, PIN, operations={"host_register": call}, headers={"constants": {"toyPin": [*names]}})


def test_a_number_in_a_call_is_compared_with_the_headers_by_its_name(tmp_path: Path) -> None:
    result = _pinning(tmp_path, 12, "toyPinShared | toyPinMapped")

    assert _faults(result) == {}
    assert _row(result, "headers.constants.toyPin").state is State.OK


def test_a_number_in_a_call_that_none_of_its_names_is_is_wrong(tmp_path: Path) -> None:
    result = _pinning(tmp_path, 2, "toyPinShared")

    assert _faults(result) == {"headers.constants.toyPin": ("nothing gives it `toyPinShared`, which is 4",)}


@pytest.mark.tier("all")
def test_among_named_numbers_one_without_a_name_is_wrong_where_it_stands(tmp_path: Path) -> None:
    steps = [{"call": "toyPin", "args": ["address", "nbytes", {"uint": flags}, {"uint": 0}]} for flags in (4, 2)]
    operations = {"host_register": {"steps": steps}}

    result = _verified(tmp_path, PIN, operations=operations, headers={"constants": {"toyPin": "toyPinShared"}})

    said = "`toyPin` is given 2, which none of its names under `headers` is"
    assert _faults(result) == {"operations.host_register": (said,)}


@pytest.mark.tier("all")
def test_a_name_of_a_number_that_no_header_has_is_unverified(tmp_path: Path) -> None:
    result = _pinning(tmp_path, 4, "toyPinShared", "toyPinFast")

    row = _row(result, "headers.constants.toyPin")
    assert (row.state, row.notes) == (State.UNVERIFIED, ("no header has `toyPinFast`",))


@pytest.mark.tier("all")
def test_numbers_that_are_written_into_a_structure_are_compared_too(tmp_path: Path) -> None:
    structs = {"toyPointer_t": {**STRUCT, "constants": {"type": 4}}}
    headers = {"constants": {"toyPointer_t": "toyPinShared"}}

    right = _verified(tmp_path, PIN, structs=structs, headers=headers)
    wrong = _verified(tmp_path, PIN, structs=structs, headers={"constants": {"toyPointer_t": "toyPinMapped"}})

    assert _row(right, "headers.constants.toyPointer_t").state is State.OK
    assert "headers.constants.toyPointer_t" in _faults(wrong)


def test_a_name_is_of_a_function_that_the_file_calls(tmp_path: Path) -> None:
    with pytest.raises(nbxrt.DescriptionError, match="the file calls no `toyPinn` and has no such structure"):
        _verified(tmp_path, headers={"constants": {"toyPinn": "toyPinShared"}})


@pytest.mark.tier("all")
def test_what_a_file_has_replaced_leaves_the_names_of_the_other_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pinning(tmp_path, 4, "toyPinShared")
    monkeypatch.setenv("NBXRT_BACKEND_PATH", str(tmp_path / "toy.yaml"))
    child = tmp_path / "child.yaml"
    pin = "{call: toyPin, args: [address, nbytes, {uint: 16}, {uint: 0}]}"
    child.write_text(f"contract: 1\nname: child\nextends: toy\noperations: {{host_register: {pin}}}\n", "utf-8")

    result = verifying.verify(child, headers=[tmp_path / "toy_runtime.h"])

    assert _faults(result) == {}


def test_of_an_operation_in_steps_every_call_is_checked(tmp_path: Path) -> None:
    steps = [{"call": "toySync", "args": []}, {"call": "toyNever", "args": []}]

    result = _verified(tmp_path, operations={"sync": {"steps": steps}})

    assert _faults(result)["operations.sync"] == ("no header declares `toyNever`",)


def test_a_role_without_a_header_is_unverified_and_never_ok(tmp_path: Path) -> None:
    library = {"names": [{"linux": "libtoymodule.so"}], "search": ["system"], "status": {"success": 0}}

    result = _verified(
        tmp_path, libraries={"driver": library}, operations={"module_unload": "toyUnload"},
    )  # fmt: skip

    row = _row(result, "operations.module_unload")
    assert (row.state, row.notes) == (State.UNVERIFIED, ("no header of `driver` was given",))


def test_of_several_symbols_one_that_is_declared_is_enough(tmp_path: Path) -> None:
    result = _verified(tmp_path, operations={"sync": {"call": ["toySync_v2", "toySync"]}})

    assert _row(result, "operations.sync").state is State.OK


def test_macros_of_the_file_are_defined_before_the_header(tmp_path: Path) -> None:
    header = _header(tmp_path, ("#include <stddef.h>", "#include <stddef.h>\n#ifndef TOY_C\n#error choose\n#endif"))
    file = toys.write(tmp_path, headers={"define": ["TOY_C=1"]})

    assert verifying.verify(file, headers=[header]).ok


def test_a_header_may_need_a_folder_for_what_it_includes(tmp_path: Path) -> None:
    header = _header(tmp_path, ("#include <stddef.h>", '#include "toy/types.h"'))
    (tmp_path / "include" / "toy").mkdir(parents=True)
    (tmp_path / "include" / "toy" / "types.h").write_text("#include <stddef.h>\n", "utf-8")

    with pytest.raises(verifying.HeaderError, match=r"toy/types\.h") as caught:
        verifying.verify(_toy(tmp_path), headers=[header])

    assert caught.value.hint == "give the folder that holds it with --include"
    assert verifying.verify(_toy(tmp_path), headers=[header], include=[tmp_path / "include"]).ok


# Libraries


def test_symbols_are_read_from_the_library_and_nothing_is_loaded(tmp_path: Path) -> None:
    library = make_library(tmp_path / "libtoy.so.1", LIBRARY, flags=("-lpthread",))

    result = verifying.verify(_toy(tmp_path), libraries=[library])

    assert result.ok
    assert _row(result, "operations.malloc").by == ("libtoy.so.1",)
    assert str(library) not in Path("/proc/self/maps").read_text("utf-8")


def test_a_symbol_that_the_library_lacks_is_wrong(tmp_path: Path) -> None:
    library = make_library(tmp_path / "libtoy.so.1", toys.PLAIN, flags=("-lpthread",))

    result = verifying.verify(_toy(tmp_path), libraries=[library])

    assert _faults(result) == {"operations.pointer_attributes": ("libtoy.so.1 does not export `toyAbout`",)}


def test_a_symbol_that_is_data_is_no_function(tmp_path: Path) -> None:
    library = make_library(tmp_path / "libtoy.so.1", toys.PLAIN + "int toyAbout = 7;", flags=("-lpthread",))

    result = verifying.verify(_toy(tmp_path), libraries=[library])

    said = (
        "`toyAbout` is a data object in libtoy.so.1, not a function: name the function's own symbol, "
        "or give the operation a reason under `absent`"
    )
    assert _faults(result) == {"operations.pointer_attributes": (said,)}


def test_a_library_of_another_processor_is_read_and_named(tmp_path: Path) -> None:
    library = for_machine(make_library(tmp_path / "libtoy.so.1", LIBRARY, flags=("-lpthread",)), 183)

    result = verifying.verify(_toy(tmp_path), libraries=[library])

    assert result.ok
    assert result.notes[0].startswith("libtoy.so.1 is built for aarch64, and this is ")


def test_the_files_name_tells_the_version(tmp_path: Path) -> None:
    library = make_library(
        tmp_path / "libtoy.so.2.4", LIBRARY + "int toySync_v2(void) { return 0; }", flags=("-lpthread",)
    )
    names = [{"major": 1, "linux": "libtoy.so.1"}, {"major": 2, "linux": "libtoy.so.2"}]
    sync = [{"before": 2, "call": "toyNever"}, {"since": 2, "call": "toySync_v2"}]
    file = _toy(tmp_path, role={"names": names}, operations={"sync": sync}, platforms=["linux"])

    result = verifying.verify(file, libraries=[library])

    assert result.versions == {"runtime": "2"}
    assert result.ok


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"/* GNU ld script */", "is neither an ELF file nor a DLL"),
        (b"\x7fELF\x02\x01\x01", "is damaged"),
    ],
)
def test_what_is_no_library_is_said_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "libtoy.so.1").write_bytes(content)

    with pytest.raises(verifying.SymbolsError, match=said) as caught:
        verifying.verify(_toy(tmp_path), libraries=[tmp_path / "libtoy.so.1"])

    assert caught.value.hint


def test_a_library_without_section_headers_is_read_as_the_loader_does(tmp_path: Path) -> None:
    library = make_library(tmp_path / "libtoy.so.1", LIBRARY)
    content = bytearray(library.read_bytes())
    content[40:48], content[60:64] = bytes(8), bytes(4)  # e_shoff, e_shnum and e_shstrndx
    library.write_bytes(content)

    assert verifying.verify(_toy(tmp_path), libraries=[library]).ok

    library.write_bytes(content[: len(content) // 2])
    with pytest.raises(verifying.SymbolsError, match="is damaged"):
        verifying.verify(_toy(tmp_path), libraries=[library])


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "libtoy.so.1")

    with pytest.raises(verifying.SymbolsError, match="is not a regular file"):
        verifying.verify(_toy(tmp_path), libraries=[tmp_path / "libtoy.so.1"])


def test_another_vendors_library_and_header_are_told_apart(tmp_path: Path) -> None:
    library = make_library(tmp_path / "libother.so", "int other(void) { return 0; }")
    (tmp_path / "other.h").write_text("int other(void);\n", "utf-8")

    with pytest.raises(verifying.SymbolsError, match="exports none of the functions of Toy"):
        verifying.verify(_toy(tmp_path), libraries=[library])
    with pytest.raises(verifying.HeaderError, match="declares none of the functions of Toy"):
        verifying.verify(_toy(tmp_path), headers=[tmp_path / "other.h"])


# Faults of what it works with


def test_a_header_that_does_not_compile_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(verifying.HeaderError, match=r"toy_runtime\.h:\d+: ") as caught:
        _verified(tmp_path, ("toyError_t toySync(void);", "toyError_t toySync(void"))

    assert caught.value.hint


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "nowhere-c++")

    with pytest.raises(verifying.HeaderError, match=r"CXX names `nowhere-c\+\+`, which is not there") as caught:
        _verified(tmp_path)

    assert "install one" in caught.value.hint


def test_a_compiler_that_makes_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "true --quietly")

    with pytest.raises(verifying.HeaderError, match=r"the compiler `.*true --quietly` fails: no reason"):
        _verified(tmp_path)


def test_a_compiler_may_stand_behind_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "env c++ -Wall")  # as `ccache c++` does

    assert _verified(tmp_path).ok


def test_a_version_that_the_file_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(nbxrt.ArgumentValueError, match="has no `runtime` of major 9"):
        verifying.verify("cuda", headers=[_header(tmp_path)], version="9")
