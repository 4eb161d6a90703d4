"""What OpenCL's drivers do that a caller does not expect, and what nbxrt makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tier("all"), pytest.mark.needs("opencl")]

BY_ADDRESS = pytest.mark.parametrize("driver", ["pocl", "intel"])
DRIVERS = pytest.mark.parametrize("driver", ["pocl", "intel", "pocl-buffers", "intel-buffers"])


@DRIVERS
def test_a_count_that_is_left_untouched_is_0(run: Callable[..., Any], driver: str) -> None:
    """Asked for GPUs, where there is none, drivers answer -1 and leave the number as it was."""
    found = run(
        driver,
        """
        import pathlib, tempfile
        library = ctypes.CDLL("libOpenCL.so.1")
        platform, count = ctypes.c_void_p(), ctypes.c_uint(77)
        library.clGetPlatformIDs(1, ctypes.byref(platform), None)
        code = library.clGetDeviceIDs(platform, ctypes.c_uint64(4), 0, None, ctypes.byref(count))
        from nbxrt.catalogue.sources import data_folder
        text = (data_folder("backends") / "opencl.yaml").read_text("utf-8")
        file = pathlib.Path(tempfile.mkdtemp()) / "gpus.yaml"
        file.write_text(text.replace("{uint64: 14}", "{uint64: 4}").replace("name: opencl", "name: gpus", 1))
        rt = nbxrt.open(str(file))
        try: rt.malloc(64)
        except nbxrt.NoDeviceError as error: raised = [error.code, error.kind, error.symbol]
        said(code=code, count=count.value, devices=rt.device_count(), raised=raised, why=rt.why_no_device().code)
        """,
    )

    assert (found["code"], found["count"]) == (-1, 77)
    assert found["devices"] == 0
    assert found["raised"] == [-1, "no_device", "clGetDeviceIDs"]
    assert found["why"] == -1


def test_a_loader_without_a_driver_is_no_device_with_its_reason(run: Callable[..., Any]) -> None:
    found = run(
        "none",
        """
        rt = nbxrt.open("opencl")
        try: rt.stream_create()
        except nbxrt.NoDeviceError as error: raised = [error.code, error.kind, error.summary]
        report = nbxrt.detect()["opencl"]
        said(devices=rt.device_count(), raised=raised, device=report.device, reason=report.device_reason)
        """,
    )

    assert found["devices"] == 0
    assert found["raised"][:2] == [-1001, "no_driver"]
    assert found["device"] == "no"
    assert "the runtime counts 0: `the list of devices` failed: status (-1001)" in found["reason"]


@DRIVERS
def test_a_driver_for_the_processor_is_no_gpu_and_is_opened_by_name_alone(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        """
        import os
        report = nbxrt.detect()["opencl"]
        best = nbxrt.open().name
        nbxrt.reset()
        try: named = nbxrt.gpu_backend()
        except nbxrt.BackendNotFoundError: named = ""
        nbxrt.reset()
        os.environ["NBX_GPU_BACKEND"] = "opencl"
        forced = [nbxrt.gpu_backend(), nbxrt.open().name]
        del os.environ["NBX_GPU_BACKEND"]
        nbxrt.reset()
        opened = nbxrt.open("opencl")
        said(device=report.device, reason=report.device_reason, best=best, named=named, forced=forced,
             opened=opened.name, in_force=nbxrt.gpu_backend(), gpus=opened.gpu_count(), devices=opened.device_count())
        """,
    )

    assert (found["device"], found["reason"]) == ("no", "the runtime counts 1, and none of them is a GPU")
    assert "opencl" not in (found["best"], found["named"])
    assert found["forced"] == ["opencl", "opencl"]
    assert (found["opened"], found["in_force"], found["gpus"], found["devices"]) == ("opencl", "opencl", 0, 1)


@DRIVERS
def test_releasing_memory_waits_for_the_work_that_uses_it(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        """
        rt = nbxrt.open("opencl")
        stream, done = rt.stream_create(), []
        for turn in range(20):
            address = rt.malloc(16 << 20)
            for value in range(4): rt.memset_async(address, value, 16 << 20, stream)
            rt.free(address)
            done.append(rt.stream_query(stream))
        said(done=done)
        """,
    )

    assert found["done"] == [True] * 20


@DRIVERS
def test_a_stream_without_work_says_that_it_has_finished_every_time(run: Callable[..., Any], driver: str) -> None:
    """A marker that is made to ask said so 23 to 62 times of 200."""
    found = run(
        driver,
        """
        rt = nbxrt.open("opencl")
        stream, address = rt.stream_create(), rt.malloc(64)
        answers = []
        for turn in range(200):
            rt.memset_async(address, 1, 64, stream)
            rt.stream_sync(stream)
            answers.append(rt.stream_query(stream))
        said(answers=sum(answers), kept=len(rt._binder.policy("queues").records[stream].in_flight))
        """,
    )

    assert found == {"answers": 200, "kept": 0}


@DRIVERS
def test_sizes_that_nobody_has_are_out_of_memory_and_0_bytes_are_nothing(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        """
        rt = nbxrt.open("opencl")
        offered = [name for name in ("malloc", "malloc_host", "malloc_managed") if rt.supports(name)]
        codes = []
        for nbytes in (1 << 50, 1 << 63, 2**64 - 1):
            for operation in offered:
                try: getattr(rt, operation)(nbytes)
                except nbxrt.OutOfMemoryError as error: codes.append(error.code)
        nothing = [getattr(rt, name)(0) for name in offered]
        nothing += [rt.memset(1, 2, 0), rt.memcpy(1, 2, 0, "default"), rt.free(0)]
        said(codes=codes, nothing=nothing, offered=len(offered))
        """,
    )

    assert found["offered"] == (1 if driver.endswith("buffers") else 3)
    assert len(found["codes"]) == 3 * found["offered"]
    assert set(found["codes"]) <= {-4, -5, -6, -61}
    assert found["nothing"] == [0] * found["offered"] + [None] * 3


@DRIVERS
def test_code_that_does_not_build_says_what_the_compiler_said(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        """
        rt = nbxrt.open("opencl")
        try: rt.module_load(b"__kernel void f(__global uint *a) { a[0] = no_such_name; }")
        except nbxrt.DeviceError as error: said(kind=error.kind, symbol=error.symbol, message=error.message)
        """,
    )

    assert (found["kind"], found["symbol"]) == ("no_binary", "clBuildProgram")
    assert "no_such_name" in found["message"]


@DRIVERS
def test_arguments_are_told_apart_by_what_the_kernel_says_of_them(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        '''
        rt = nbxrt.open("opencl")
        module = rt.module_load(b"""
            __kernel void f(__global ulong *out, ulong number, __constant uint *table, __local uint *shared) {
                size_t i = get_local_id(0);
                shared[i] = table[0] + i;
                barrier(CLK_LOCAL_MEM_FENCE);
                if (i == 0) out[0] = number + shared[1];
            }""")
        function = rt.module_get_function(module, "f")
        out, table = rt.malloc(4096), rt.malloc(64)
        rt.memset(table, 0, 64)
        number = out                    # the same 64 bits: once an address, once a value
        c = ctypes
        arguments = (c.c_uint64(out + 256), c.c_uint64(number), c.c_uint64(table), c.c_uint(16))
        rt.launch_kernel(function, (1, 1, 1), (4, 1, 1), 0, 0, arguments)
        rt.sync()
        answer = c.c_uint64()
        rt.memcpy(c.addressof(answer), out + 256, 8, "device_to_host")
        refused = []
        for given in ((c.c_uint64(out),), c.addressof(answer)):
            try: rt.launch_kernel(function, (1, 1, 1), (4, 1, 1), 0, 0, given)
            except nbxrt.NbxrtError as error: refused.append([type(error).__name__, error.summary])
        rt.module_unload(module)
        try: rt.launch_kernel(function, (1, 1, 1), (4, 1, 1), 0, 0, arguments)
        except nbxrt.NbxrtError as error: refused.append([type(error).__name__, error.summary])
        said(right=answer.value == number + 1, refused=refused)
        ''',
    )

    assert found["right"]
    assert [kind for kind, _said in found["refused"]] == [
        "ArgumentValueError", "CapabilityError", "ArgumentValueError",
    ]  # fmt: skip
    assert "the kernel takes 4 arguments, not 1" in found["refused"][0][1]
    assert "argument 3 is memory of a block, whose size arguments that were packed before" in found["refused"][1][1]
    assert "unloaded already" in found["refused"][2][1]


def test_an_unknown_stream_is_refused_before_the_driver_would_follow_it(run: Callable[..., Any]) -> None:
    """A loader takes what a handle points to for a table of functions, and jumps there."""
    found = run(
        "pocl",
        """
        rt = nbxrt.open("opencl")
        stream, address = rt.stream_create(), rt.malloc(64)
        rt.stream_destroy(stream)
        refused = []
        for call in (lambda: rt.stream_sync(stream), lambda: rt.memset_async(address, 1, 64, stream),
                     lambda: rt.stream_destroy(stream), lambda: rt.event_sync(12345), lambda: rt.free(address + 1)):
            try: call()
            except nbxrt.ArgumentValueError as error: refused.append(error.summary)
        said(refused=refused)
        """,
    )

    assert len(found["refused"]) == 5
    assert all("unknown, or destroyed already" in each for each in found["refused"][:4])


@pytest.mark.parametrize("driver", ["pocl", "pocl-buffers"])
def test_six_threads_work_at_the_same_time(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        """
        import threading
        rt = nbxrt.open("opencl")
        faults = []
        def work(number):
            try:
                stream, event = rt.stream_create(), rt.event_create()
                for turn in range(40):
                    address = rt.malloc(4096)
                    rt.memset_async(address, number, 4096, stream)
                    rt.event_record(event, stream)
                    rt.event_sync(event)
                    target = ctypes.create_string_buffer(4096)
                    rt.memcpy(ctypes.addressof(target), address, 4096, "device_to_host")
                    if target.raw != bytes([number]) * 4096: faults.append(number)
                    rt.free(address)
                rt.event_destroy(event)
                rt.stream_destroy(stream)
            except Exception as error: faults.append(repr(error))
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        said(faults=faults, left=len(rt._binder.addresses))
        """,
    )

    assert found == {"faults": [], "left": 0}


@DRIVERS
def test_a_fill_that_goes_beyond_the_end_never_reaches_the_driver(run: Callable[..., Any], driver: str) -> None:
    """Drivers for processors write on."""
    found = run(
        driver,
        """
        rt = nbxrt.open("opencl")
        address, gone, refused = rt.malloc(4096), rt.malloc(64), []
        rt.free(gone)
        for at, nbytes in ((address, 4097), (address + 4000, 97), (address, 1 << 40), (address + 4096, 1), (gone, 1)):
            for call in (lambda: rt.memset(at, 1, nbytes), lambda: rt.memset_async(at, 1, nbytes, 0)):
                try: call()
                except nbxrt.ArgumentValueError as error: refused.append(error.summary)
        rt.memset(address, 1, 4096)
        rt.memset(address + 4000, 1, 96)
        rt.sync()
        said(refused=refused)
        """,
    )

    assert len(found["refused"]) == 10
    assert "4097 bytes at" in found["refused"][0]
    assert "go beyond the end of the allocation" in found["refused"][0]


@BY_ADDRESS
def test_a_copy_onto_itself_is_the_callers_fault_by_name(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        """
        rt = nbxrt.open("opencl")
        address = rt.malloc(256)
        try: rt.memcpy(address + 16, address, 64, "device_to_device")
        except nbxrt.DeviceError as error: raised = [error.code, error.kind]
        said(raised=raised)
        """,
    )

    assert found["raised"] == [-8, "invalid_value"]
