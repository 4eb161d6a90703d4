"""Running the checks: which there are, and what becomes of each."""

from __future__ import annotations

import time
import traceback
from importlib import import_module
from typing import TYPE_CHECKING

from nbxrt import errors
from nbxrt.conformance.bench import Bench
from nbxrt.conformance.checking import Check, Skipped, Wrong, first_line
from nbxrt.conformance.report import Outcome, Report, Row

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from nbxrt.conformance.image import ModuleImage
    from nbxrt.runtime import Runtime

#: The modules that hold the checks, in the order in which they run. Most are named after a group of the contract;
#: `surface` is what holds for every operation.
MODULES = (
    "surface", "device", "memory", "pinned", "managed", "pool", "stream", "event", "error", "graph", "virtual_memory",
    "module", "peer", "ipc", "management", "collective",
)  # fmt: skip

#: Statuses by which a device says that it does not offer what the library offers.
DECLINED = ("not_supported", "not_permitted")


def checks(groups: Collection[str] | None = None) -> tuple[Check, ...]:
    """Every check of the groups, in order; without groups, all.

    Raises: ArgumentValueError for a group that is not there.
    """
    known = [
        value
        for module in MODULES
        for value in vars(import_module(f"nbxrt.conformance.{module}")).values()
        if isinstance(value, Check)
    ]
    names = list(dict.fromkeys(one.group for one in known))
    for group in groups or ():
        if group not in names:
            close = errors.nearest(group, names)
            raise errors.ArgumentValueError(
                f"`{group}` is no group of checks: {', '.join(names)}", hint=f"did you mean `{close}`?" if close else ""
            )
    return tuple(one for one in known if groups is None or one.group in groups)


def groups() -> tuple[str, ...]:
    """The groups that checks belong to, in order."""
    return tuple(dict.fromkeys(one.group for one in checks()))


class Run:
    """A run on one device, check by check; after a check that loses the context, the rest is skipped.

    The calling thread's current device is the run's from its beginning to `end`, and then what it was before.
    Raises: DeviceIndexError.
    """

    def __init__(self, runtime: Runtime, device: int | None = None, module_image: ModuleImage | None = None) -> None:
        self.runtime = runtime
        self.image = module_image
        self.devices = _count(runtime)
        self._before = _current(runtime, self.devices)
        self.device = self._before if device is None else device
        self._lost = ""
        if self.devices:
            runtime.set_device(self.device)

    def row(self, one: Check) -> Row:
        """Make a check, which never raises: whatever it meets is in the row."""
        bench = Bench(self.runtime, self.device, self.devices, self.image)
        start = time.perf_counter()
        outcome, detail = (Outcome.SKIPPED, self._lost) if self._lost else judged(one, bench)
        if bench.lost and not self._lost:
            self._lost = f"the context was lost in `{one.name}`"
        return Row(one.group, one.name, one.needs, outcome, detail, time.perf_counter() - start)

    def end(self) -> None:
        """Give the thread its device back."""
        if self.devices:
            self.runtime.set_device(self._before)

    def report(self, rows: Sequence[Row]) -> Report:
        """The rows, with what they were made on."""
        return Report(
            backend=self.runtime.name,
            title=self.runtime.title,
            device=self.device,
            device_name=_device_name(self.runtime, self.device, self.devices),
            versions=_versions(self.runtime),
            libraries=_libraries(self.runtime),
            rows=tuple(rows),
        )


def run(
    runtime: Runtime,
    groups: Collection[str] | None = None,
    device: int | None = None,
    *,
    module_image: ModuleImage | None = None,
) -> Report:
    """Run the checks of some groups, or all, on one device: the calling thread's current one when none is named.

    Afterwards the thread's current device is what it was before. A check that fails never stops the run, unless the
    context is lost: then the rest is skipped.
    Raises: ArgumentValueError for an unknown group; DeviceIndexError.
    """
    chosen = checks(groups)
    made = Run(runtime, device, module_image)
    try:
        rows = [made.row(one) for one in chosen]
    finally:
        made.end()
    return made.report(rows)


def _count(runtime: Runtime) -> int:
    try:
        count: int = runtime.device_count()
    except errors.DeviceError:
        return 0
    return count


def _current(runtime: Runtime, devices: int) -> int:
    """The thread's current device; 0 where a wrong backend answers one that is not there."""
    current = runtime.get_device() if devices else 0
    return current if current in range(devices) else 0


def judged(one: Check, bench: Bench) -> tuple[Outcome, str]:
    """What becomes of a check: it is made only where everything that it needs is there."""
    for operation in one.needs:
        if reason := _why_not(bench, operation):
            return Outcome.ABSENT, reason
    if one.devices > bench.devices:
        return Outcome.SKIPPED, f"needs {_devices(one.devices)}, and there {_are(bench.devices)}"
    outcome, detail = _made(one, bench)
    faults = _left_behind(bench)
    if faults and outcome is not Outcome.WRONG:
        return Outcome.WRONG, "\n".join(faults)
    return outcome, "\n".join([detail, *faults]) if faults else detail


def _devices(number: int) -> str:
    return "a device" if number == 1 else f"{number} devices"


def _are(number: int) -> str:
    return "is 1" if number == 1 else f"are {number}" if number else "is none"


def _why_not(bench: Bench, operation: str) -> str:
    """Why an operation cannot be used on this device, or an empty string."""
    runtime = bench.runtime
    if not runtime.supports(operation):
        try:
            getattr(runtime, operation)()
        except errors.NbxrtError as error:
            return first_line(error)
        return f"`{operation}` is not supported, and calling it raises nothing"
    if bench.devices and not runtime.supports(operation, bench.device):
        attribute = runtime.description["needs"].get(operation)
        return f"`{operation}`: " + (f"the device's `{attribute}` is 0" if attribute else "not for the device's model")
    return ""


def _made(one: Check, bench: Bench) -> tuple[Outcome, str]:
    try:
        return Outcome.WORKS, one.body(bench) or ""
    except Skipped as reason:
        return Outcome.SKIPPED, str(reason)
    except Wrong as fault:
        return Outcome.WRONG, str(fault)
    except errors.CapabilityError as error:
        return Outcome.ABSENT, first_line(error)
    except errors.DeviceError as error:
        bench.lost = error.sticky
        expected = bench.runtime.contract["operations"].get(error.operation, {"errors": ()})["errors"]
        if error.kind in DECLINED and error.kind in expected:
            return Outcome.SKIPPED, first_line(error)
        return Outcome.WRONG, f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001  # whatever a check raises is a finding
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome.WRONG, f"{type(error).__name__}: {error}\n  in {last.name}, line {last.lineno}: {last.line}"


def _left_behind(bench: Bench) -> list[str]:
    """What a check leaves behind that it must not: things that cannot be released, and a stored error."""
    faults = [f"not released: {fault}" for fault in bench.clear()] if bench.devices else []
    try:
        code = bench.stored_error() if bench.devices else 0
        if code:
            faults.append(f"the thread's stored error is {code} {bench.runtime.error_name(code)} after the check")
            bench.runtime.get_last_error()
    except errors.NbxrtError as error:
        faults.append(str(error))
    return faults


def _device_name(runtime: Runtime, device: int, devices: int) -> str:
    if not devices:
        return "no device"
    try:
        name: str = runtime.device_name(device)
    except errors.NbxrtError:
        return f"device {device}"
    return name


def _versions(runtime: Runtime) -> dict[str, str]:
    versions = {}
    for role in runtime.description["libraries"]:
        try:
            versions[role] = ".".join(map(str, runtime.version(role)))
        except errors.LibraryNotFoundError:
            continue
    return versions


def _libraries(runtime: Runtime) -> dict[str, str]:
    libraries = {}
    for role in runtime.description["libraries"]:
        try:
            libraries[role] = runtime.library(role).path
        except errors.LibraryNotFoundError:
            continue
    return libraries
