"""Running a kernel of Triton's: on the device, or interpreted where there is none."""

from __future__ import annotations

import array
from importlib.util import find_spec
from typing import TYPE_CHECKING

import nbxrt
from nbxrt import errors

if TYPE_CHECKING:
    from nbxrt import Runtime

#: Elements that are added; the interpreter takes a few milliseconds for them.
COUNT = 50_000
_BLOCK = 16384


def tried(runtime: Runtime) -> tuple[str, bool]:
    """What came of it, in words, and whether it is as it should be. Where Triton cannot run it, that is no fault."""
    if find_spec("triton") is None or find_spec("numpy") is None:
        return "not run: Triton and NumPy are not both installed", True
    try:
        nbxrt.triton.install(runtime)
    except errors.CapabilityError as error:
        return f"not run: {error.summary}", True
    try:
        return _run(runtime)
    except Exception as error:  # noqa: BLE001  # whatever Triton's compiler says: the bytes were moved all the same
        return f"NOT right: {type(error).__name__}: {error}", False
    finally:
        nbxrt.triton.uninstall()


def _run(runtime: Runtime) -> tuple[str, bool]:
    import triton

    from nbxrt.cli.demo.kernels import add

    numbers = array.array("f", range(COUNT))
    with nbxrt.use(runtime):
        x, out = nbxrt.asarray(numbers), nbxrt.zeros(COUNT)
        add[(-(-COUNT // _BLOCK),)](x, x, out, COUNT, BLOCK=_BLOCK)
        got = array.array("f", out.tobytes())
    is_right = all(each == 2 * number for each, number in zip(got, numbers, strict=True))
    where = "interpreted" if runtime.kind == "cpu" else f"on {runtime.name}"
    said = f"{COUNT} numbers added by a kernel of Triton {triton.__version__}, {where}"
    return f"{said}: {'every one right' if is_right else 'NOT right'}", is_right
