"""A launch by nbxrt is, byte for byte, the launch that Triton's own launcher in C makes of the same call."""

from __future__ import annotations

import ctypes

import kernels
import triton
import triton.language as tl
from arrays import array
from triton.backends.amd.compiler import HIPBackend
from triton.backends.compiler import GPUTarget
from triton.tools.tensor_descriptor import TensorDescriptor

import nbxrt


class TritonsOwn:
    """Triton's own launcher and utilities, with a device and a stream that torch is not asked for."""

    def __init__(self, vendor) -> None:
        if vendor == "cuda":
            from triton.backends.nvidia.driver import CudaLauncher as Launcher
            from triton.backends.nvidia.driver import CudaUtils as Utils
        else:
            from triton.backends.amd.driver import HIPLauncher as Launcher
            from triton.backends.amd.driver import HIPUtils as Utils
        self.utils, self.launcher_cls, self.vendor = Utils(), Launcher, vendor

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32) if self.vendor == "cuda" else GPUTarget("hip", "gfx942", 64)


def compared(case, vendor, simulate, stub, monkeypatch):
    """One launch by both ways: what each driver was given.

    A process takes one vendor: Triton's launcher in C looks for the library that is loaded.
    """
    simulation, runtime = simulate(vendor)

    def make(dtype="float32", offset=0):
        return array(runtime, 1 << 16, dtype, offset=offset)

    kernel, grid, given, named = CASES[case](kernels, make)
    for _each in range(4):  # compiled, found by its key, by its values, and once more
        compiled = kernel[grid](*given, **named)
    runtime.sync()
    mine, *again = simulation.launches()
    assert [mine] * 3 == again
    assert nbxrt.triton.stats()["fallbacks"] == {}
    nbxrt.triton.uninstall()
    stub.stub_expect(len(mine.arguments), (ctypes.c_int * 64)(*map(len, mine.arguments)))
    stub.stub_forget()
    if not hasattr(HIPBackend, "_torch_available"):  # before 3.8 it imports torch, which is not here
        monkeypatch.setattr(HIPBackend, "is_within_2gb", staticmethod(lambda array: array.ptr_range() < 2**31))
    triton.runtime.driver.set_active(TritonsOwn(vendor))
    own = kernel[grid](*given, **named)
    assert own.kernel == compiled.kernel
    facts = (mine.stream, mine.grid, mine.block, mine.shared_memory, mine.arguments, mine.attributes)
    return facts, _read(stub.stub_launch().decode())


def _read(text: str) -> tuple:
    extents, arguments, attributes = text.split("|")
    x, y, z, *block, shared, stream = map(int, extents.split())
    values = tuple(bytes.fromhex(value) for value in arguments.split(",") if value)
    asked = tuple(tuple(map(int, each.split(":"))) for each in attributes.split(",") if each)
    return int(stream), (x, y, z), tuple(block), int(shared), values, asked


#: Triton compiles kernels with such parameters from then on.
VERSION = tuple(map(int, triton.__version__.split(".")[:2]))
KEYWORD_ONLY = VERSION >= (3, 9)

CASES = {
    "pointers and an integer": lambda k, a: (k.add, (7,), (a(), a(), a(), 1000), {"BLOCK": 128}),
    "an integer of 1": lambda k, a: (k.add, (7,), (a(), a(), a(), 1), {"BLOCK": 128}),
    "an odd address": lambda k, a: (k.add, (7, 2, 3), (a(offset=1), a(), a(), 16), {"BLOCK": 64}),
    "64 bits": lambda k, a: (k.add, (1,), (a(), a(), a(), 2**40), {"BLOCK": 64}),
    "64 bits, unsigned": lambda k, a: (k.add, (1,), (a(), a(), a(), 2**63 + 16), {"BLOCK": 64}),
    "a negative integer": lambda k, a: (k.add, (1,), (a(), a(), a(), -(2**31)), {"BLOCK": 64}),
    "scalars of all kinds": lambda k, a: (k.scalars, (1,), (a(), 5, -7, True, 2.5, 2**35), {}),
    "annotated integers": lambda k, a: (k.annotated, (1,), (a(), 100, 200, -300, 40000, -5, 6, -(2**40), 2**63), {}),
    "floats": lambda k, a: (k.floats, (1,), (a(), 0.1, 0.1, 0.1, 0.1, 0.1), {}),
    "large floats": lambda k, a: (k.floats, (1,), (a(), 1e300, 1.5, 3e38, 1e300, 1e300), {}),
    "floats that are odd": lambda k, a: (
        k.floats, (1,), (a(), float("nan"), -0.0, float("-inf"), -0.0, float("nan")), {},
    ),
    "integers for floats": lambda k, a: (k.floats, (1,), (a(), 1.5, 2, -3, 1, 2**24 + 1), {}),
    "truth for integers": lambda k, a: (k.annotated, (1,), (a(), True, False, True, 1, 1, True, 1, True), {}),
    "constants for values": lambda k, a: (
        k.scalars, (1,), (a(), tl.constexpr(5), tl.constexpr(True), 2, tl.constexpr(2.5), 3), {},
    ),
    "options beside arguments": lambda k, a: (
        k.add, (7,), (a(), a()), {"num_stages": 2, "BLOCK": 128, "n": 17, "num_warps": 2, "out": a()},
    ),
    "a tuple": lambda k, a: (k.tuples, (1,), (a(), (3, 2.5), 7), {}),
    "a tuple with a 1": lambda k, a: (k.tuples, (1,), (a(), (1, 16), 7), {}),
    "no specialisation": lambda k, a: (k.unspecialised, (1,), (a(), 1), {}),
    "no specialisation on alignment": lambda k, a: (k.unaligned, (1,), (a(), 32), {}),
    "None": lambda k, a: (k.optional, (1,), (a(), None, 5), {}),
    "an optional pointer": lambda k, a: (k.optional, (1,), (a(), a(), 5), {}),
    "defaults": lambda k, a: (k.defaults, (1,), (a(),), {}),
    "keywords": lambda k, a: (k.defaults, (1,), (), {"out": a(), "scale": 0.5, "n": 9}),
    **({"keyword-only": lambda k, a: (k.keyword_only, (1,), (a(),), {"n": 9})} if KEYWORD_ONLY else {}),
    "a tensor descriptor": lambda k, a: (
        k.copy_block, (1,), (TensorDescriptor(a(), [16, 64], [64, 1], [16, 64]), a()), {},
    ),
    "tensor descriptors": lambda k, a: (
        k.copy_blocks, (1,),
        (
            TensorDescriptor(a("float16"), [300, 512], [512, 1], [32, 64], "nan"), 5,
            TensorDescriptor(a("float16"), [40, 30], [64, 1], [32, 64]),
        ), {},
    ),
    **(
        {
            "a rounding tensor descriptor": lambda k, a: (
                k.copy_block, (1,),
                (TensorDescriptor(a(), [16, 64], [64, 1], [16, 64], round_f32_to_tf32=True), a()), {},
            ),
        }
        if VERSION >= (3, 7)
        else {}
    ),
    "no arguments": lambda k, a: (k.nothing, (3, 2, 1), (), {}),
    "eight warps": lambda k, a: (k.add, (2,), (a(), a(), a(), 1000), {"BLOCK": 1024, "num_warps": 8}),
    "clusters": lambda k, a: (k.add, (2,), (a(), a(), a(), 1000), {"BLOCK": 128, "num_ctas": 2}),
    "a cooperative grid": lambda k, a: (
        k.add, (2,), (a(), a(), a(), 1000), {"BLOCK": 128, "launch_cooperative_grid": True},
    ),
    "a programmatic launch": lambda k, a: (k.add, (2,), (a(), a(), a(), 1000), {"BLOCK": 128, "launch_pdl": True}),
    "shared memory": lambda k, a: (
        k.multiply, (2, 2), (a("float16"), a("float16"), a(), 256, 256, 256, 256, 1, 256, 1, 256, 1),
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    ),
    "a grid by a function": lambda k, a: (
        k.add, lambda meta: (triton.cdiv(1000, meta["BLOCK"]),), (a(), a(), a(), 1000), {"BLOCK": 128},
    ),
}  # fmt: skip


#: What AMD's compiler does not take, or its launcher only from its own driver.
OF_NVIDIA = ("clusters", "a cooperative grid", "a programmatic launch")
