"""What goes into a C call and what comes out of it, form by form, against libraries made for the purpose."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from toys import open_toy

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("cc")


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Opens a toy runtime; afterwards nothing of it is in force."""
    yield lambda c="", **changes: open_toy(tmp_path, monkeypatch, c, **changes)
    nbxrt.reset()


class TestWidths:
    """A25: all 64 bits survive, both ways."""

    C = """
        static size_t seen; static void *freed;
        int wideMalloc(void **out, size_t n) { seen = n; *out = (void *)0x7f1234567000; return 0; }
        int wideFree(void *p) { freed = p; return 0; }
        size_t seenBytes(void) { return seen; } void *seenAddress(void) { return freed; }
    """

    def test_addresses_and_sizes_keep_all_their_bits(self, toy: Any) -> None:
        rt = toy(self.C, operations={"malloc": "wideMalloc", "free": "wideFree"})
        library = ctypes.CDLL(rt.library().path)
        library.seenBytes.restype = library.seenAddress.restype = ctypes.c_size_t

        address = rt.malloc(2**40 + 1)
        rt.free(address)

        assert address == 0x7F1234567000
        assert library.seenBytes() == 2**40 + 1
        assert library.seenAddress() == 0x7F1234567000

    def test_no_function_is_left_with_the_types_that_ctypes_assumes(self, toy: Any) -> None:
        rt = toy()

        untyped = [
            name
            for name in rt.contract["operations"]
            if rt.supports(name) and (function := getattr(rt, rt.table()[name])) and function.argtypes is None
        ]

        assert untyped == []


class TestResults:
    def test_an_out_parameter_that_is_not_written_reads_as_zero(self, toy: Any) -> None:
        rt = toy("int lazy(void **out, size_t n) { return 0; }", operations={"malloc": "lazy"})
        first = toy  # the pool's slot is used again: what an earlier call left must not show

        assert [rt.malloc(8), rt.malloc(8)] == [0, 0]
        assert first is toy

    def test_a_failed_call_leaves_nothing_for_the_next_one(self, toy: Any) -> None:
        c = """
            static int calls;
            int odd(void **out, size_t n)
            { calls++; if (calls == 2) return 2; if (calls < 3) *out = (void *)0xabc; return 0; }
        """
        rt = toy(c, operations={"malloc": "odd"})

        assert rt.malloc(8) == 0xABC
        with pytest.raises(nbxrt.OutOfMemoryError):
            rt.malloc(8)
        assert rt.malloc(8) == 0

    def test_a_returned_pointer_is_the_result_and_null_means_out_of_memory(self, toy: Any) -> None:
        form = {"call": "give", "args": ["nbytes"], "returns": {"pointer": "address"}}
        rt = toy("void *give(size_t n) { return n > 100 ? 0 : (void *)0x123450; }", operations={"malloc": form})

        assert rt.malloc(100) == 0x123450
        with pytest.raises(nbxrt.OutOfMemoryError) as caught:
            rt.malloc(101)
        assert (caught.value.operation, caught.value.symbol, caught.value.code) == ("malloc", "give", 2)

    def test_a_returned_value_can_be_the_result(self, toy: Any) -> None:
        form = {"call": "howMany", "args": [], "returns": {"result": "count"}}
        rt = toy("int howMany(void) { return 5; }", operations={"device_count": form})

        assert rt.device_count() == 5

    def test_a_returned_value_has_the_type_that_the_file_says(self, toy: Any) -> None:
        form = {"call": "fact", "args": ["device", "attribute"], "returns": {"result": "value", "type": "int64"}}
        enums = {"device_attribute": {"warp_size": 2}}
        rt = toy(
            "long long fact(int d, int a) { return 1ll << 40; }", operations={"device_attribute": form}, enums=enums
        )

        assert rt.device_attribute("warp_size", 0) == 1 << 40

    def test_a_result_can_be_made_of_the_returned_value(self, toy: Any) -> None:
        form = {
            "call": "state",
            "args": ["event"],
            "returns": {"result": "state", "type": "uint8"},
            "result": {"done": {"of": "state", "equals": 1}},
        }
        c = "unsigned char state(void *event) { return event == (void *)8; }"
        rt = toy(c, operations={"event_query": form})

        assert (rt.event_query(8), rt.event_query(16)) == (True, False)

    def test_several_results_make_a_tuple_in_the_contracts_order(self, toy: Any) -> None:
        form = {"call": "info", "args": [{"out": "total"}, {"out": "free"}]}
        c = "int info(size_t *total, size_t *free) { *total = 1000; *free = 10; return 0; }"
        rt = toy(c, operations={"mem_get_info": form})

        assert rt.mem_get_info() == (10, 1000)

    def test_a_status_may_come_out_of_a_parameter(self, toy: Any) -> None:
        form = {"call": "fill", "args": ["address", "value", "nbytes", {"error": "int"}], "returns": "nothing"}
        c = "void fill(void *p, int v, size_t n, int *error) { memset(p, v, n); *error = v == 9 ? 1 : 0; }"
        rt = toy(c, operations={"memset": form})
        address = rt.malloc(16)

        rt.memset(address, 1, 16)
        with pytest.raises(nbxrt.DeviceError, match=r"TOY_OTHER \(1\)"):
            rt.memset(address, 9, 16)
        rt.free(address)

    def test_something_that_came_out_can_be_compared_to_make_a_result(self, toy: Any) -> None:
        form = {
            "call": "state",
            "args": ["event", {"out": "state", "type": "int"}],
            "result": {"done": {"of": "state", "equals": 1}},
        }
        c = "int state(void *e, int *s) { *s = e == (void *)0xe1 ? 1 : 0; return 0; }"
        rt = toy(c, operations={"event_query": form})

        assert rt.event_query(0xE1) is True
        assert rt.event_query(0xE2) is False

    def test_not_ready_is_an_answer_and_leaves_no_stored_error(self, toy: Any) -> None:
        c = "int query(void *s) { if (s) { last = 600; return 600; } return 0; }"
        rt = toy(c, operations={"stream_query": "query"})

        assert rt.stream_query(0) is True
        assert rt.stream_query(0x51) is False
        assert rt.get_last_error() == 0

    def test_text_and_bytes_come_out_of_buffers(self, toy: Any) -> None:
        c = """
            int name(char *out, int n, int d) { snprintf(out, n, "toy %d", d); return 0; }
            int uuid(unsigned char *out, int d) { for (int i = 0; i < 16; i++) out[i] = i + d; return 0; }
        """
        rt = toy(c, operations={"device_name": "name", "device_uuid": "uuid"})

        assert rt.device_name(1) == "toy 1"
        assert rt.device_uuid(0) == bytes(range(16))


class TestStructures:
    def test_a_structure_travels_by_value_and_comes_back_whole(self, toy: Any) -> None:
        c = """
            struct handle { char bytes[64]; };
            int get(struct handle *h, void *p) { memset(h, 0x5a, 64); memcpy(h, &p, 8); return 0; }
            int set(void **out, struct handle h) { memcpy(out, &h, 8); return h.bytes[63] == 0x5a ? 0 : 1; }
        """
        operations = {
            "ipc_get_mem_handle": {
                "call": "get",
                "args": [{"struct": "handle", "out": "handle"}, "address"],
                "ignores": ["nbytes"],
            },
            "ipc_open_mem_handle": {
                "call": "set",
                "args": [{"out": "address"}, {"struct": "handle", "by_value": "handle"}],
                "ignores": ["nbytes"],
            },
        }
        rt = toy(c, operations=operations, structs={"handle": {"bytes": 64}})

        handle = rt.ipc_get_mem_handle(0x7F0000001000, 64)

        assert (type(handle), len(handle)) == (bytes, 64)
        assert rt.ipc_open_mem_handle(handle, 64) == 0x7F0000001000
        with pytest.raises(nbxrt.ArgumentValueError, match="`handle` must be 64 bytes, not 63"):
            rt.ipc_open_mem_handle(handle[:-1], 64)

    def test_a_small_structure_by_value_travels_in_registers_and_a_larger_one_by_pointer_with_constants(
        self, toy: Any
    ) -> None:
        c = """
            struct location { int type; int id; };
            struct prop { int type; int kinds; struct location where; void *meta; char rest[8]; };
            int prefetch(void *p, size_t n, struct location l, unsigned flags, void *s)
            { return l.type == 1 && l.id == 1 && !flags ? 0 : 1; }
            int create(void **out, size_t n, const struct prop *p, unsigned long long flags)
            { *out = (void *)(size_t)(p->where.id + 0x100);
              return p->type == 1 && p->where.type == 1 && !p->meta ? 0 : 1; }
        """
        operations = {
            "mem_prefetch": {
                "call": "prefetch",
                "args": [
                    "address",
                    "nbytes",
                    {"struct": "location", "by_value": {"id": "device"}},
                    {"uint": 0},
                    "stream",
                ],
            },
            "mem_create": {
                "call": "create",
                "args": [
                    {"out": "allocation"},
                    "nbytes",
                    {"struct": "prop", "by_pointer": {"id": "device"}},
                    {"uint64": 0},
                ],
                "ignores": ["sharing"],
                "library": "runtime",
            },
        }
        structs = {
            "location": {"bytes": 8, "fields": {"type": [0, "int"], "id": [4, "int"]}, "constants": {"type": 1}},
            "prop": {
                "bytes": 32,
                "fields": {"type": [0, "int"], "location": [8, "int"], "id": [12, "int"]},
                "constants": {"type": 1, "location": 1},
            },
        }
        rt = toy(c, operations=operations, structs=structs)

        rt.mem_prefetch(0x1000, 64, 1, 0)

        assert rt.mem_create(64, 1) == 0x101

    def test_an_out_structure_has_room_for_its_largest_variant(self, toy: Any) -> None:
        c = """
            struct attributes { int type; int device; void *dev; void *host; char rest[64]; };
            int version(int *v) { *v = 12000; return 0; }
            int attributes(struct attributes *a, void *p)
            { memset(a, 0x33, sizeof *a); a->type = 2; a->device = 1; a->dev = p; a->host = 0; return 0; }
        """
        fields = {"type": [0, "int"], "device": [4, "int"], "dev": [8, "pointer"], "host": [16, "pointer"]}
        out = {"memory": "type", "device": "device", "device_address": "dev", "host_address": "host"}
        rt = toy(
            c,
            operations={"pointer_attributes": {"call": "attributes", "args": [{"struct": "a", "out": out}, "address"]}},
            structs={
                "a": [
                    {"before": "13.0", "bytes": 24, "fields": fields},
                    {"since": "13.0", "bytes": 88, "fields": fields},
                ]
            },
            enums={"memory_type": {"unregistered": 0, "host": 1, "device": 2, "managed": 3}},
            role={"version": {"call": "version", "digits": [1000, 10]}},
        )

        assert rt.pointer_attributes(0x4000) == ("device", 1, 0x4000, 0)

    def test_a_structure_by_value_has_the_size_of_the_librarys_version(self, toy: Any) -> None:
        c = """
            struct place { int type; int id; };
            int version(int *v) { *v = 1000; return 0; }
            int fill(struct place p, void *a, int value, size_t n)
            { return p.type == 1 && p.id == 7 && n == 64 ? 0 : 1; }
        """
        fields = {"type": [0, "int"], "id": [4, "int"]}
        args = [{"struct": "place", "by_value": {"id": "value"}}, "address", "value", "nbytes"]
        rt = toy(
            c,
            operations={"memset": {"call": "fill", "args": args}},
            structs={
                "place": [
                    {"since": 1, "before": 2, "bytes": 8, "fields": fields, "constants": {"type": 1}},
                    {"since": 2, "bytes": 24, "fields": fields, "constants": {"type": 1}},
                ]
            },
            role={"version": {"call": "version", "digits": [1000, 10]}},
        )

        rt.memset(0x1000, 7, 64)

    def test_a_field_may_be_named_by_a_keyword_of_the_language(self, toy: Any) -> None:
        c = """
            struct place { int from; int in; };
            int granularity(size_t *out, const struct place *p) { *out = p->from * 100 + p->in; return 0; }
        """
        args = [{"out": "nbytes"}, {"struct": "place", "by_pointer": {"in": "device"}}]
        rt = toy(
            c,
            operations={"mem_granularity": {"call": "granularity", "args": args, "library": "runtime"}},
            structs={"place": {"bytes": 8, "fields": {"from": [0, "int"], "in": [4, "int"]}, "constants": {"from": 3}}},
        )

        assert rt.mem_granularity(1) == 301

    def test_a_list_of_rows_is_asked_for_again_with_more_room(self, toy: Any) -> None:
        c = """
            struct row { unsigned pid; unsigned long long used; };
            int rows(void *m, unsigned *count, struct row *rows)
            { if (*count < 100) { *count = 100; return 7; }
              for (int i = 0; i < 100; i++) { rows[i].pid = i; rows[i].used = 1ull << 40; } *count = 100; return 0; }
        """
        args = ["monitor", {"count": "uint"}, {"rows": "row", "as": "processes", "fields": ["pid", "used"]}]
        rt = toy(
            c,
            operations={"monitor_processes": {"call": "rows", "args": args, "library": "runtime"}},
            structs={"row": {"bytes": 16, "fields": {"pid": [0, "uint"], "used": [8, "uint64"]}}},
            status={"kinds": {"insufficient_size": 7, "out_of_memory": 2, "invalid_handle": 400}},
        )

        assert rt.monitor_processes(5) == [(pid, 1 << 40) for pid in range(100)]


class TestArguments:
    def test_constants_order_and_repetition_are_the_files(self, toy: Any) -> None:
        c = """
            int copy(size_t a, void *d, size_t b, const void *s, unsigned flag)
            { memmove(d, s, b); return a == b && flag == 7 ? 0 : 1; }
        """
        form = {"call": "copy", "args": ["nbytes", "dst", "nbytes", "src", {"uint": 7}], "ignores": ["kind"]}
        rt = toy(c, operations={"memcpy": form})
        there, here = ctypes.create_string_buffer(4), ctypes.create_string_buffer(b"abc")

        rt.memcpy(ctypes.addressof(there), ctypes.addressof(here), 4, "default")

        assert there.value == b"abc"

    def test_a_words_number_is_the_backends_own(self, toy: Any) -> None:
        c = """
            static int seen; int kind(void) { return seen; }
            int copy(void *d, const void *s, size_t n, int k) { seen = k; return 0; }
        """
        rt = toy(c, operations={"memcpy": "copy"})
        seen = ctypes.CDLL(rt.library().path).kind

        rt.memcpy(8, 8, 1, "device_to_host")
        by_word = seen()
        rt.memcpy(8, 8, 1, 2)
        by_number = seen()

        assert (by_word, by_number) == (12, 12)

    def test_booleans_become_the_backends_bits(self, toy: Any) -> None:
        c = """
            static unsigned seen; unsigned bits(void) { return seen; }
            int make(void **e, unsigned f) { seen = f; *e = (void *)0xe1; return 0; }
        """
        rt = toy(
            c,
            operations={"event_create_flags": "make"},
            enums={"event_flags": {"not_timing": 2, "blocking": 1}},
        )
        bits = ctypes.CDLL(rt.library().path).bits

        rt.event_create_flags()
        assert bits() == 0
        rt.event_create_flags(timing=False, blocking=True)
        assert bits() == 3
        with pytest.raises(nbxrt.CapabilityError, match="has no flag for `interprocess`"):
            rt.event_create_flags(interprocess=True)

    def test_a_pci_address_can_travel_as_one_integer(self, toy: Any) -> None:
        c = "int find(unsigned long long bdf, void **m) { *m = (void *)bdf; return 0; }"
        form = {
            "call": "find",
            "args": [{"pci": "pci_bus_id", "bits": [3, 5, 8, 48]}, {"out": "monitor"}],
            "library": "runtime",
        }
        rt = toy(c, operations={"monitor_by_pci_bus_id": form})

        assert rt.monitor_by_pci_bus_id("0001:3b:02.1") == (1 << 16) | (0x3B << 8) | (2 << 3) | 1
        with pytest.raises(nbxrt.ArgumentValueError, match=r"must be like 0000:3b:00\.0"):
            rt.monitor_by_pci_bus_id("3b")

    def test_kernel_arguments_become_an_array_of_pointers(self, toy: Any) -> None:
        c = """
            static double sum;
            int launch(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void *s, void **args, void **extra)
            { sum = *(int *)args[0] + *(double *)args[1] + gx * 100 + gy * 10 + bz; return extra ? 1 : 0; }
            double total(void) { return sum; }
        """
        rt = toy(c, operations={"launch_kernel": {"call": "launch", "library": "runtime"}})
        total = ctypes.CDLL(rt.library().path).total
        total.restype = ctypes.c_double

        rt.launch_kernel(0xF, (3, 2), (64,), 0, 0, [ctypes.c_int(4), ctypes.c_double(0.5)])

        assert total() == 4 + 0.5 + 300 + 20 + 1
        with pytest.raises(nbxrt.ArgumentTypeError, match=r"`arguments` \[1\] must be a ctypes value, not int"):
            rt.launch_kernel(0xF, (1,), (1,), 0, 0, [ctypes.c_int(4), 5])
        with pytest.raises(nbxrt.ArgumentValueError, match="`grid` must have no extent of 0"):
            rt.launch_kernel(0xF, (0, 1), (1,), 0, 0, [])


class TestChecks:
    """Bad input never reaches the vendor."""

    C = """
        static int calls; int count(void) { return calls; }
        int counted(void **out, size_t n) { calls++; *out = (void *)8; return 0; }
    """

    @pytest.mark.parametrize("nbytes", [-1, 2**64, True, False, 1.0, "8", None, b"8", [8]], ids=repr)
    def test_a_size_that_is_none_is_refused_before_any_call(self, toy: Any, nbytes: Any) -> None:
        rt = toy(self.C, operations={"malloc": "counted"})

        with pytest.raises(nbxrt.ArgumentError, match="`malloc`: `nbytes` must be") as caught:
            rt.malloc(nbytes)

        assert isinstance(
            caught.value, TypeError if not isinstance(nbytes, int) or isinstance(nbytes, bool) else ValueError
        )
        assert ctypes.CDLL(rt.library().path).count() == 0

    def test_anything_with_index_is_a_size(self, toy: Any) -> None:
        class Eight:
            def __index__(self) -> int:
                return 8

        assert toy(self.C, operations={"malloc": "counted"}).malloc(Eight()) == 8

    def test_zero_bytes_call_nobody(self, toy: Any) -> None:
        rt = toy(self.C, operations={"malloc": "counted"})

        assert rt.malloc(0) == 0
        assert rt.free(0) is None
        rt.memcpy(0, 0, 0, "default")
        assert ctypes.CDLL(rt.library().path).count() == 0

    @pytest.mark.parametrize("kind", ["host_to_devise", 5, -1, True, 1.0, None], ids=repr)
    def test_an_unknown_direction_is_refused(self, toy: Any, kind: Any) -> None:
        with pytest.raises(nbxrt.ArgumentError, match="`memcpy`: `kind` must be"):
            toy().memcpy(8, 8, 1, kind)

    def test_a_null_handle_is_refused(self, toy: Any) -> None:
        rt = toy()

        with pytest.raises(nbxrt.ArgumentValueError, match="`event_sync`: `event` must not be 0"):
            rt.event_sync(0)
        with pytest.raises(nbxrt.ArgumentValueError, match="`stream_destroy`: `stream` must not be 0"):
            rt.stream_destroy(0)

    @pytest.mark.parametrize("index", [2, -1, 2**31], ids=repr)
    def test_a_device_that_is_not_there_is_refused_with_index_and_count(self, toy: Any, index: int) -> None:
        rt = toy()

        with pytest.raises(nbxrt.DeviceIndexError, match=f"`device` is {index}, and there are 2 devices"):
            rt.set_device(index)
        assert rt.get_device() == 0

    def test_a_word_that_the_backend_lacks_is_refused_by_name(self, toy: Any) -> None:
        rt = toy(
            "int attribute(int *v, int a, int d) { *v = a; return 0; }",
            operations={"device_attribute": "attribute"},
            enums={"device_attribute": {"warp_size": 87}},
        )

        assert rt.device_attribute("warp_size", 0) == 87
        assert rt.device_attribute(99, 0) == 99
        with pytest.raises(nbxrt.CapabilityError, match="`integrated` is not offered"):
            rt.device_attribute("integrated", 0)
        with pytest.raises(nbxrt.ArgumentValueError, match="did you mean `warp_size`"):
            rt.device_attribute("warp_sice", 0)


class TestFailures:
    def test_an_error_says_what_where_and_why_and_leaves_no_stored_error(self, toy: Any) -> None:
        rt = toy("int full(void **out, size_t n) { last = 2; return 2; }", operations={"malloc": "full"})

        with pytest.raises(nbxrt.OutOfMemoryError) as caught:
            rt.malloc(4096)

        error = caught.value
        assert isinstance(error, MemoryError)
        assert (error.operation, error.symbol, error.code, error.name, error.kind, error.device) == (
            "malloc", "full", 2, "TOY_OUT_OF_MEMORY", "out_of_memory", 0,
        )  # fmt: skip
        assert "`malloc` failed: TOY_OUT_OF_MEMORY (2)" in str(error)
        assert f"`full(nbytes=4096)` of {rt.library().path}, device 0" in str(error)
        assert rt.get_last_error() == 0

    def test_a_tolerated_status_is_success_and_is_cleared(self, toy: Any) -> None:
        c = "int enable(int peer, unsigned flags) { last = 704; return 704; }"
        rt = toy(
            c,
            operations={"device_enable_peer_access": "enable"},
            status={"kinds": {"already_enabled": 704, "out_of_memory": 2, "invalid_handle": 400}},
        )

        rt.device_enable_peer_access(1)

        assert rt.get_last_error() == 0

    def test_no_device_counts_zero_and_every_code_of_the_family_does(self, toy: Any) -> None:
        c = "int none(int *count) { *count = 77; return 35; }"
        kinds = {"no_device": [100, 101], "no_driver": 35, "out_of_memory": 2, "invalid_handle": 400}
        rt = toy(c, operations={"device_count": "none"}, status={"kinds": kinds})

        assert rt.device_count() == 0

    def test_codes_may_come_back_negated(self, toy: Any) -> None:
        rt = toy(
            "int full(void **out, size_t n) { return -702; }",
            operations={"malloc": "full"},
            status={"negated": True, "kinds": {"out_of_memory": 702}},
        )

        with pytest.raises(nbxrt.OutOfMemoryError, match=r"\(-702\)"):
            rt.malloc(1)

    def test_an_absent_operation_quotes_the_file(self, toy: Any) -> None:
        rt = toy()

        with pytest.raises(
            nbxrt.CapabilityError, match="`graph_launch` is not offered by Toy: the toy has none"
        ) as caught:
            rt.graph_launch(1, 0)

        assert "toy.yaml:" in str(caught.value)
        assert not rt.supports("graph_launch")

    def test_an_optional_symbol_that_is_missing_is_said_when_it_is_called(self, toy: Any) -> None:
        rt = toy(operations={"malloc_async": "toyMallocAsync"})

        assert not rt.supports("malloc_async")
        with pytest.raises(
            nbxrt.SymbolNotFoundError, match=r"`malloc_async` .* `toyMallocAsync` is not exported by .*libtoy"
        ):
            rt.malloc_async(8, 0)
        assert rt.malloc(8)

    def test_a_required_symbol_that_is_missing_fails_when_the_backend_is_opened(self, toy: Any) -> None:
        with pytest.raises(nbxrt.SymbolNotFoundError, match="`toyNone` is not exported"):
            toy(operations={"memset": "toyNone"})

    def test_the_first_exported_symbol_is_taken(self, toy: Any) -> None:
        rt = toy("int query_v2(void *s) { return 0; }", operations={"stream_query": {"call": ["query_v3", "query_v2"]}})

        assert rt.stream_query(0) is True


class TestVersions:
    C = """
        int version(int *v) { const char *set = getenv("TOY_VERSION"); *v = set ? atoi(set) : 12090; return 0; }
        int three(void *p, size_t n, int d, void *s) { return 3; }
        int four(void *p, size_t n, int d, unsigned f, void *s) { return 4; }
    """
    FORMS = (
        {"before": "12.10", "since": "11.0", "call": "three"},
        {
            "since": "12.10",
            "before": "14.0",
            "call": "four",
            "args": ["address", "nbytes", "device", {"uint": 0}, "stream"],
        },
    )

    def open(self, toy: Any) -> nbxrt.Runtime:
        rt: nbxrt.Runtime = toy(
            self.C,
            operations={"mem_prefetch": list(self.FORMS)},
            role={"version": {"call": "version", "digits": [1000, 10]}},
        )
        return rt

    @pytest.mark.parametrize(("version", "code"), [(11000, 3), (12090, 3), (12100, 4), (13050, 4)])
    def test_the_variant_of_the_librarys_version_is_called(
        self, toy: Any, monkeypatch: pytest.MonkeyPatch, version: int, code: int
    ) -> None:
        monkeypatch.setenv("TOY_VERSION", str(version))

        with pytest.raises(nbxrt.DeviceError) as caught:
            self.open(toy).mem_prefetch(8, 8, 0, 0)

        assert caught.value.code == code

    @pytest.mark.parametrize("version", [10020, 14000])
    def test_a_version_outside_every_range_is_refused_by_name(
        self, toy: Any, monkeypatch: pytest.MonkeyPatch, version: int
    ) -> None:
        monkeypatch.setenv("TOY_VERSION", str(version))

        with pytest.raises(nbxrt.UntestedVersionError, match=r"since 11.0 before 12.10 or since 12.10 before 14.0"):
            self.open(toy).mem_prefetch(8, 8, 0, 0)

    @pytest.mark.parametrize(("version", "code"), [(10020, 3), (14000, 4)])
    def test_the_nearest_range_is_taken_with_a_warning_where_the_user_allows_it(
        self, toy: Any, monkeypatch: pytest.MonkeyPatch, version: int, code: int
    ) -> None:
        monkeypatch.setenv("TOY_VERSION", str(version))
        monkeypatch.setenv("NBXRT_ALLOW_UNTESTED", "1")
        rt = self.open(toy)

        with pytest.warns(RuntimeWarning, match="the nearest is taken"), pytest.raises(nbxrt.DeviceError) as caught:
            rt.mem_prefetch(8, 8, 0, 0)

        assert caught.value.code == code


class TestFirstUse:
    """A library that asks for a call before all others gets it once a process, when an operation is called."""

    C = """
        static int started; static __thread int context;
        int init(unsigned flags) { started++; return started == 1 ? 0 : 9; }
        int starts(void) { return started; }
        int makeContext(void *p) { context = 1; return 0; }
        int driverRecord(void *e, void *s) { if (!started) return 3; return context ? 0 : 201; }
    """

    def open(self, toy: Any) -> nbxrt.Runtime:
        driver = {
            "names": [{"linux": "libtoy.so.1"}],
            "search": ["system"],
            "init": {"call": "init", "args": [{"uint": 0}], "tolerates": ["already_initialized"]},
            "enter": {"call": "makeContext", "library": "runtime", "args": [None]},
            "status": {"success": 0, "kinds": {"invalid_context": 201, "already_initialized": 9, "not_initialized": 3}},
        }
        rt: nbxrt.Runtime = toy(
            self.C,
            operations={"event_record": {"call": "driverRecord", "library": "driver"}},
            libraries={"driver": driver},
        )
        return rt

    @pytest.fixture(autouse=True)
    def same_library(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NBXRT_TOY_DRIVER", str(tmp_path / "libtoy.so.1"))

    def test_the_first_call_is_made_at_first_use_and_once(self, toy: Any) -> None:
        rt = self.open(toy)
        starts = ctypes.CDLL(rt.library().path).starts
        record = rt.event_record

        before = starts()
        record(0xE1, 0)
        rt.event_record(0xE1, 0)

        assert (before, starts()) == (0, 1)

    def test_a_bad_argument_does_not_start_the_library(self, toy: Any) -> None:
        rt = self.open(toy)
        starts = ctypes.CDLL(rt.library().path).starts

        with pytest.raises(TypeError):
            rt.event_record("event", 0)
        with pytest.raises(nbxrt.errors.ArgumentValueError):
            rt.event_record(2**64, 0)

        assert starts() == 0
        assert rt.event_record(0xE1, 0) is None
        assert starts() == 1

    def test_a_driver_call_works_on_a_thread_without_a_context(self, toy: Any) -> None:
        rt = self.open(toy)
        outcomes: list[Any] = []

        def record() -> None:
            try:
                outcomes.append(rt.event_record(0xE1, 0))
            except nbxrt.NbxrtError as error:
                outcomes.append(error)

        for _ in range(3):
            thread = threading.Thread(target=record)
            thread.start()
            thread.join()

        assert outcomes == [None, None, None]


class TestThreads:
    def test_a_blocking_call_lets_other_threads_run(self, toy: Any) -> None:
        c = """
            volatile int is_over;
            int slow(void) { for (int n = 0; !is_over && n < 30000; n++) usleep(1000); return 0; }
            int finish(int device) { (void)device; is_over = 1; return 0; }
        """
        rt = toy(c, operations={"sync": "slow", "set_device": "finish"})
        waiting = threading.Thread(target=rt.sync)
        waiting.start()
        for _turn in range(20):  # there would be none were the interpreter's lock kept, and the call would be over
            time.sleep(0.002)
        waits = waiting.is_alive()
        rt.set_device(0)
        waiting.join()

        assert waits

    def test_results_are_not_torn_between_threads(self, toy: Any) -> None:
        c = "int echo(void **out, size_t n) { *out = (void *)(n << 12); return 0; }"
        rt = toy(c, operations={"malloc": "echo"})
        wrong: list[Any] = []

        def call(start: int) -> None:
            sizes = range(start, start + 20_000)
            wrong.extend(nbytes for nbytes in sizes if rt.malloc(nbytes) != nbytes << 12)

        threads = [threading.Thread(target=call, args=(number * 1_000_000 + 1,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert wrong == []

    def test_threads_may_use_operations_for_the_first_time_at_once(self, toy: Any) -> None:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)  # the race shows with short turns only
        faults: list[BaseException] = []

        def first_uses(rt: nbxrt.Runtime) -> None:
            try:
                for name in rt.contract["operations"]:
                    getattr(rt, name)
            except Exception as error:  # noqa: BLE001  # it must reach the thread that checks
                faults.append(error)

        opened = toy()
        try:
            for number in range(10):
                fresh = nbxrt.Runtime({**opened.description, "name": f"toy{number}"}, opened.contract)
                fresh._binder._libraries.update(opened._binder._libraries)
                threads = [threading.Thread(target=first_uses, args=(fresh,)) for _ in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        finally:
            sys.setswitchinterval(interval)

        assert faults == []

    def test_a_finalizer_may_make_the_same_call_in_between(self, toy: Any) -> None:
        c = "int echo(void **out, size_t n) { *out = (void *)(n << 12); return 0; }"
        rt = toy(c, operations={"malloc": "echo"})

        class Holder:
            def __del__(self) -> None:
                rt.malloc(7)

        gc.disable()
        try:
            for nbytes in range(1, 2000):
                holder = Holder()
                holder.self = holder  # type: ignore[attr-defined]
                del holder
                gc.collect(0)
                assert rt.malloc(nbytes) == nbytes << 12
        finally:
            gc.enable()


class TestRuntime:
    def test_generated_functions_show_their_source_and_documentation(self, toy: Any) -> None:
        import inspect

        rt = toy()

        assert "def malloc(nbytes):" in inspect.getsource(rt.malloc)
        assert rt.malloc.__doc__.startswith("Allocates memory on the current device")
        assert rt.malloc.__code__.co_filename == "<nbxrt toy.malloc>"

    def test_calls_can_be_followed_and_an_error_quotes_the_last_ones(
        self, toy: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        rt = toy()

        with nbxrt.trace():
            rt.malloc(16)
            with pytest.raises(nbxrt.DeviceError) as caught:
                rt.stream_destroy(0x99)
        rt.malloc(16)

        said = capsys.readouterr().err.splitlines()
        assert len(said) == 2
        assert said[0].startswith("nbxrt: toy.malloc(16) -> 0x")
        assert "last calls:" in str(caught.value)

    def test_nothing_is_printed_and_nothing_raises_when_the_interpreter_ends(self, toy: Any) -> None:
        rt = toy()
        program = f"""
            import nbxrt
            class Block:
                def __init__(self, rt): self.free, self.address = rt.free, rt.malloc(64)
                def __del__(self): self.free(self.address)
            rt = nbxrt.open({rt.description["file"]!r})
            block = Block(rt); block.self = block
            raise SystemExit(3)
        """

        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            env=dict(os.environ),
            check=False,
        )

        assert (done.returncode, done.stderr) == (3, "")


class TestPrepared:
    """Calls whose arguments are checked and converted once."""

    C = """
        static size_t seen; static int times;
        int keptFree(void *p) { seen = (size_t)p; return ++times == 3 ? 1 : 0; }
        size_t keptAddress(void) { return seen; } int keptTimes(void) { return times; }
    """

    def test_each_call_is_the_vendors_with_what_was_given(self, toy: Any) -> None:
        rt = toy(self.C, operations={"free": "keptFree"})
        library = ctypes.CDLL(rt.library().path)
        library.keptAddress.restype = ctypes.c_size_t
        free = rt.prepared("free", 0x7F1234567000)

        free()
        free()

        assert (library.keptAddress(), library.keptTimes()) == (0x7F1234567000, 2)
        with pytest.raises(nbxrt.DeviceError, match=f"(?s)`free` failed.*address={0x7F1234567000}"):
            free()

    def test_arguments_are_refused_when_it_is_made(self, toy: Any) -> None:
        rt = toy(self.C, operations={"free": "keptFree"})

        with pytest.raises(nbxrt.errors.ArgumentTypeError, match="`free`: `address` must be an integer"):
            rt.prepared("free", "there")

    def test_an_operation_with_a_result_gives_it(self, toy: Any) -> None:
        rt = toy()

        assert rt.prepared("device_count")() == rt.device_count()

    def test_calls_that_are_followed_are_followed_so_too(self, toy: Any, capsys: pytest.CaptureFixture[str]) -> None:
        rt = toy(self.C, operations={"free": "keptFree"})
        before = rt.revision

        with nbxrt.trace():
            rt.prepared("free", 0x1000)()
            assert rt.revision != before

        assert capsys.readouterr().err.startswith("nbxrt: toy.free(4096) -> ")

    def test_calls_that_something_stands_before_are_to_be_asked_for_anew(self, toy: Any) -> None:
        rt = toy(self.C, operations={"free": "keptFree"})
        before, freed = rt.revision, []

        rt.wrap("free", lambda free: lambda address: freed.append(address) or free(address))
        rt.prepared("free", 0x1000)()

        assert rt.revision != before
        assert freed == [0x1000]

    def test_a_switch_of_the_device_is_noticed_at_each_call(self, toy: Any) -> None:
        rt = toy()
        switch = rt.prepared("set_device", 0)
        rt.current.index = 1  # as nbxrt has it after a switch of its own

        switch()

        assert rt.current.index is None
