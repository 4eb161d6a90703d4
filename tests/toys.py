"""A vendor of no name: a C library and the backend file for it, made by a test for one feature of the format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import nbxrt
from libraries import make_library

if TYPE_CHECKING:
    import pytest

_CONTRACT = yaml.safe_load((Path(__file__).parents[1] / "schema" / "operations.yaml").read_text("utf-8"))

#: What a runtime must offer, in the plainest C: enough for a backend to open.
PLAIN = r"""
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <pthread.h>
static __thread int last;
static int device_count_value = 2;
static __thread int current;
int toyDeviceCount(int *count) { *count = device_count_value; return 0; }
int toySetDevice(int device) { current = device; return 0; }
int toyGetDevice(int *device) { *device = current; return 0; }
int toySync(void) { return 0; }
int toyMalloc(void **out, size_t n) { *out = malloc(n); return *out ? 0 : (last = 2); }
int toyFree(void *p) { free(p); return 0; }
int toyCopy(void *d, const void *s, size_t n, int kind) { memmove(d, s, n); return kind == 77 ? 1 : 0; }
int toyCopyAsync(void *d, const void *s, size_t n, int kind, void *stream) { memmove(d, s, n); return 0; }
int toyFill(void *p, int v, size_t n) { memset(p, v, n); return 0; }
int toyStreamCreate(void **out) { *out = (void *)0x51; return 0; }
int toyStreamDestroy(void *s) { return s == (void *)0x51 ? 0 : (last = 400); }
int toyStreamSync(void *s) { return 0; }
int toyEventCreate(void **out) { *out = (void *)0xe1; return 0; }
int toyEventDestroy(void *e) { return e == (void *)0xe1 ? 0 : (last = 400); }
int toyEventRecord(void *e, void *s) { return 0; }
int toyEventSync(void *e) { return 0; }
int toyLastError(void) { int was = last; last = 0; return was; }
const char *toyName(int code) { return code == 2 ? "TOY_OUT_OF_MEMORY" : code == 400 ? "TOY_BAD_HANDLE" : "TOY_OTHER"; }
"""

_OPERATIONS = {
    "device_count": "toyDeviceCount",
    "set_device": "toySetDevice",
    "get_device": "toyGetDevice",
    "sync": "toySync",
    "malloc": "toyMalloc",
    "free": "toyFree",
    "memcpy": "toyCopy",
    "memcpy_async": "toyCopyAsync",
    "memset": "toyFill",
    "stream_create": "toyStreamCreate",
    "stream_destroy": "toyStreamDestroy",
    "stream_sync": "toyStreamSync",
    "event_create": "toyEventCreate",
    "event_destroy": "toyEventDestroy",
    "event_record": "toyEventRecord",
    "event_sync": "toyEventSync",
    "get_last_error": "toyLastError",
}


def description(**changes: Any) -> dict[str, Any]:
    """The toy's backend file as data; `operations`, `role` and `status` are merged in, other keys replace."""
    operations = {**_OPERATIONS, **changes.pop("operations", {})}
    for name in changes.pop("without", ()):
        del operations[name]
    status = {
        "success": 0,
        "clear": {"call": "toyLastError", "returns": "code"},
        "name": {"call": "toyName", "returns": "text"},
        "kinds": {"out_of_memory": 2, "invalid_handle": 400, "no_device": 100, "not_ready": 600, "invalid_value": 1},
        **changes.pop("status", {}),
    }
    role = {
        "names": [{"linux": "libtoy.so.1", "macos": "libtoy.dylib"}],
        "search": ["system"],
        "status": status,
        **changes.pop("role", {}),
    }
    absent = {name: "the toy has none" for name in _CONTRACT["operations"] if name not in operations}
    return {
        "contract": 1,
        "name": "toy",
        "title": "Toy",
        "abi": "c",
        "platforms": ["linux", "macos"],
        "priority": 500,
        "libraries": {"runtime": role, **changes.pop("libraries", {})},
        "enums": {
            "memcpy_kind": dict.fromkeys(_CONTRACT["enums"]["memcpy_kind"]["words"], 0)
            | {"host_to_host": 10, "host_to_device": 11, "device_to_host": 12, "device_to_device": 13, "default": 14},
            **changes.pop("enums", {}),
        },
        "operations": operations,
        "absent": absent | changes.pop("absent", {}),
        **changes,
    }


def write(folder: Path, **changes: Any) -> Path:
    """The toy's backend file."""
    file = folder / "toy.yaml"
    file.write_text(yaml.safe_dump(description(**changes), sort_keys=False), "utf-8")
    return file


def open_toy(folder: Path, monkeypatch: pytest.MonkeyPatch, c: str = "", **changes: Any) -> nbxrt.Runtime:
    """The runtime of a toy whose library has the plain functions and those of `c`."""
    library = make_library(folder / "libtoy.so.1", PLAIN + c, flags=("-lpthread",))
    monkeypatch.setenv("NBXRT_TOY_RUNTIME", str(library))
    return nbxrt.open(write(folder, **changes))
