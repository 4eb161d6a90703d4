"""Compiling ahead of time, files of kernels, and launching them with no Triton in the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import kernels
import numpy as np
import pytest
import triton
from arrays import array

import nbxrt

ADD = {"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16", "n": "i32", "BLOCK": 256}
PROGRAM = """
import json, sys
sys.path[:0] = [{here!r}]
sys.modules["triton"] = None
import binaries, nbxrt
from nbxrt.simulation import build
simulation = build("cuda", {folder!r}, cache={folder!r} + "/cache")
simulation.on_image(binaries.module_text)
simulation.set_attribute("compute_capability_major", 9)
simulation.set_attribute("compute_capability_minor", 0)
with nbxrt.use(simulation.open()):
    x = nbxrt.zeros(1024)
    kernel = nbxrt.load_kernel({file!r})
    kernel[(4,)](x, x, out=x, n=1000)
    nbxrt.current_device().sync()
(launch,) = simulation.launches()
print(json.dumps([launch.grid, launch.block, [each.hex() for each in launch.arguments], x.ptr]))
"""


@pytest.fixture(autouse=True)
def no_driver(monkeypatch):
    monkeypatch.setattr(triton.runtime.driver, "_active", None)
    monkeypatch.setattr(triton.runtime.driver, "_default", None)


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90", "hip:gfx942", "hip:gfx90a", "hip:gfx1100"])
def test_any_target_is_compiled_for_with_no_driver(target):
    compiled = nbxrt.triton.compile(kernels.add, ADD, target=target, num_warps=8)

    assert compiled.binary[:4] == b"\x7fELF"
    assert (compiled.name, compiled.target, compiled.metadata["num_warps"]) == ("add", target, 8)
    assert compiled.metadata["warp_size"] == (64 if target in ("hip:gfx942", "hip:gfx90a") else 32)
    assert triton.runtime.driver._active is None
    assert "torch" not in sys.modules


def test_a_text_says_the_same():
    by_text = nbxrt.triton.compile(kernels.add, "*fp32:16, *fp32:16, *fp32:16, i32, 256", target="cuda:90")

    assert by_text.binary == nbxrt.triton.compile(kernels.add, ADD, target="cuda:90").binary


def test_a_kernel_that_is_compiled_ahead_is_the_one_that_a_launch_compiles(simulate):
    _simulation, runtime = simulate()
    x = array(runtime, 1024)
    launched = kernels.add[(4,)](x, x, x, 1000, BLOCK=256)

    assert nbxrt.triton.compile(kernels.add, ADD, target="cuda:90").binary == launched.kernel


def test_a_saved_kernel_runs_with_no_triton(tmp_path):
    file = tmp_path / "add.kernel"
    nbxrt.triton.compile(kernels.add, ADD, target="cuda:90").save(file)
    program = PROGRAM.format(here=str(Path(__file__).parents[1]), folder=str(tmp_path), file=str(file))

    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    grid, block, arguments, address = json.loads(said)
    pointer = address.to_bytes(8, "little").hex()
    assert (grid, block) == ([4, 1, 1], [128, 1, 1])
    assert arguments[:4] == [pointer] * 3 + [(1000).to_bytes(4, "little").hex()]


@pytest.fixture
def saved(tmp_path):
    file = tmp_path / "add.kernel"
    nbxrt.triton.compile(kernels.add, ADD, target="cuda:90").save(file)
    return file


def test_a_damaged_file_is_refused(saved):
    content = bytearray(saved.read_bytes())
    for change, says in (
        (len(content) - 9, "its checksum is another one"),
        (20, "damaged"),
        (3, "is no compiled kernel"),
    ):
        damaged = content.copy()
        damaged[change] ^= 1
        saved.write_bytes(damaged)
        with pytest.raises(nbxrt.ArgumentValueError, match=says):
            nbxrt.load_kernel(saved)


def test_what_cannot_be_saved_leaves_nothing(tmp_path):
    (tmp_path / "folder").mkdir()

    with pytest.raises(OSError, match="folder"):
        nbxrt.triton.compile(kernels.add, ADD, target="cuda:90").save(tmp_path / "folder")

    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_memory_of_a_saved_kernel_waits_for_torchs_stream_where_torch_is_in_use(saved, simulate, monkeypatch):
    simulation, runtime = simulate()
    device, other = nbxrt.Device(0, runtime=runtime), runtime.stream_create()
    accelerator = types.SimpleNamespace(
        is_initialized=lambda: True, current_stream=lambda _device: types.SimpleNamespace(cuda_stream=other)
    )
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=accelerator))
    kernel = nbxrt.load_kernel(saved)
    x = nbxrt.empty(1024, device=device)
    address = x.ptr

    with nbxrt.use(runtime):
        kernel[(4,)](x, x, x, 5)
    del x
    again = nbxrt.empty(1024, device=device)

    assert simulation.pending() > 0
    assert again.ptr != address


@pytest.mark.parametrize(("vendor", "target", "threads"), [("cuda", "cuda:90", 128), ("hip", "hip:gfx942", 256)])
def test_a_compiled_kernel_that_says_no_size_of_a_warp_has_that_of_the_device(vendor, target, threads, simulate):
    """H06."""
    simulation, runtime = simulate(vendor)
    x, compiled = array(runtime, 1024), nbxrt.triton.compile(kernels.add, ADD, target=target)
    del compiled.metadata["warp_size"]

    with nbxrt.use(runtime):
        compiled[(1,)](x, x, x, 5)
    runtime.sync()

    assert [launch.block for launch in simulation.launches()] == [(threads, 1, 1)]


def test_another_architecture_is_refused_by_name(saved, simulate):
    simulation, runtime = simulate()
    simulation.set_attribute("compute_capability_major", 8)
    x = array(runtime, 1024)

    with nbxrt.use(runtime), pytest.raises(nbxrt.CapabilityError) as caught:
        nbxrt.load_kernel(saved)[(4,)](x, x, x, 5)

    assert "`add` was compiled for `cuda:90`, and device 0 is `cuda:80`" in str(caught.value)


def test_a_grid_that_the_device_does_not_take_is_refused(saved, simulate):
    simulation, runtime = simulate()
    x = array(runtime, 1024)

    with nbxrt.use(runtime), pytest.raises(nbxrt.ArgumentValueError, match="the grid's z of `add` is 65536"):
        nbxrt.load_kernel(saved)[(4, 1, 65536)](x, x, x, 5)
    runtime.sync()

    assert simulation.launches() == []


def test_another_backend_is_refused_by_name(saved, simulate):
    _simulation, runtime = simulate("hip")
    x = array(runtime, 1024)

    with (
        nbxrt.use(runtime),
        pytest.raises(nbxrt.CapabilityError, match=r"was compiled for `cuda:90`, and <nbxrt.Runtime hip"),
    ):
        nbxrt.load_kernel(saved)[(4,)](x, x, x, 5)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda k, x: k(x, x, x), TypeError, "missing the argument `n`"),
        (lambda k, x: k(x, x, x, 5, BLOCK=64), TypeError, "compiled as the constant 256"),
        (lambda k, x: k(x, x, x, 5, 6), TypeError, "takes 4 arguments, and 5 are given"),
        (
            lambda k, x: k(x, x, x, 2**32),
            ValueError,
            "argument `n` of `add` is passed as `i32`, and 4294967296 does not",
        ),
        (lambda k, x: k(x, x, x, 2**31), ValueError, "`n` of `add` is passed as `i32`, and 2147483648 does not fit"),
        (lambda k, x: k(x, x, x, -(2**31) - 1), ValueError, "passed as `i32`, and -2147483649 does not fit"),
        (lambda k, x: k(x, x, x, 10**9999), ValueError, "passed as `i32`, and <int of 33216 bits> does not fit"),
        (lambda k, x: k(x, x, x, np.int64(2**31)), ValueError, "is passed as `i32`, and .*2147483648.* does not fit"),
        (lambda k, x: k(x, x, x, n="5"), TypeError, "argument `n` of `add` is passed as `i32`"),
        (
            lambda k, x: k(x, x[1:], x, 5),
            ValueError,
            "argument `y` of `add` is at an address that is no multiple of 16",
        ),
        (lambda k, x: k(x, "x", x, 5), TypeError, "argument `y` of `add` is str"),
        (
            lambda k, x: k(x, x, x.view("int32"), 5),
            TypeError,
            "`out` of `add` is an array of int32, and it was compiled",
        ),
    ],
)
def test_wrong_arguments_are_refused_by_name(call, error, says, saved, simulate):
    simulation, runtime = simulate()
    x = array(runtime, 1024)

    with nbxrt.use(runtime), pytest.raises(error, match=says):
        call(nbxrt.load_kernel(saved)[(4,)], x)

    runtime.sync()
    assert simulation.launches() == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"signature": {**ADD, "z": "i32"}}, "`add` has no parameter `z`"),
        ({"signature": {"x": "*fp32"}}, "the signature of `add` lacks `y`"),
        ({"signature": {**ADD, "n": "i33"}}, "the parameter `n` of `add`: `i33` is no type"),
        ({"signature": {**ADD, "y": "*fp99"}}, "the parameter `y` of `add`: `fp99` is no type"),
        ({"target": "hip:90"}, "the compiler for `hip` does not know the architecture `90`\n"),
        ({"signature": {**ADD, "x": "*fp32:8"}}, "can promise multiples of 16, not of `8`"),
        ({"target": "cuda"}, "`cuda` is no target"),
        ({"target": "tpu:5"}, "the installed Triton does not compile for `tpu`"),
        ({"num_warp": 4}, "`num_warp` is no option of the compiler for `cuda`"),
    ],
)
def test_what_cannot_be_compiled_is_refused_by_name(change, says):
    given = {"signature": ADD, "target": "cuda:90"} | change

    with pytest.raises(nbxrt.NbxrtError) as caught:
        nbxrt.triton.compile(kernels.add, **given)

    assert says in str(caught.value)


def test_the_command_line_compiles_for_several_targets(tmp_path):
    command = [
        sys.executable, "-m", "nbxrt", "compile", f"{Path(__file__).parent / 'kernels.py'}:add",
        "--signature", "*fp32:16, *fp32:16, *fp32:16, i32, 256",
        "--target", "cuda:90", "--target", "hip:gfx942", "-o", tmp_path / "out",
    ]  # fmt: skip

    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})

    assert done.returncode == 0, done.stderr
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == ["add.cuda-90.kernel", "add.hip-gfx942.kernel"]
    assert {nbxrt.load_kernel(tmp_path / "out" / file).target for file in files} == {"cuda:90", "hip:gfx942"}


@pytest.mark.parametrize(
    ("kernel", "says"),
    [("kernels", "MODULE:KERNEL"), ("no_such_module:add", "no_such_module"), ("{file}:nothing", "nothing")],
)
def test_the_command_line_says_what_is_no_kernel(kernel, says, tmp_path):
    written = kernel.format(file=Path(__file__).parent / "kernels.py")
    command = [
        sys.executable,
        "-m",
        "nbxrt",
        "compile",
        written,
        "--signature",
        "",
        "--target",
        "cuda:90",
        "-o",
        tmp_path,
    ]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("hip:gfxnope", "256", "out"), "the compiler for `hip` does not know the architecture `gfxnope`"),
        (("cuda:90", "100", "out"), "Triton does not compile it for cuda:90: at "),
        (("cuda:90", "256, 1", "out"), "has 5 parameters, and the signature 6"),
        (("cuda:90", "256", "/sys/out"), "Could not open file '/sys/out'"),
        (
            ("cuda:90", "256", "out", "--num-warps", "3"),
            "the compiler for `cuda` refuses the options: num_warps must be",
        ),
    ],
)
def test_the_command_line_tells_what_cannot_be_compiled_in_a_few_words(given, says, tmp_path):
    target, block, output, *more = given
    signature = f"*fp32, *fp32, *fp32, i32, {block}"
    kernel = f"{Path(__file__).parent / 'kernels.py'}:add"
    command = [sys.executable, "-m", "nbxrt", "compile", kernel, "--signature", signature, "--target", target, "-o"]

    done = subprocess.run([*command, tmp_path / output, *more], capture_output=True, text=True, check=False)

    assert done.returncode in (1, 2)
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
