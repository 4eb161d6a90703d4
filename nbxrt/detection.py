"""Which backends this process can use: a report, the name of the best GPU backend, and its runtime.

Three levels, each with its own word: the *library* loads, a *device* is there, and it is *usable*.
The operating system is asked for devices first, the vendor's runtime only when that cannot tell, so that naming a
backend touches no driver and a later fork is safe. Whether a device is usable only using it tells: that is asked for
explicitly, and done in a child process.
"""

import os
import sys

from nbxrt import descriptions, errors, presence, runtime, tritonpin
from nbxrt.binding import search
from nbxrt.binding.machine import Machine
from nbxrt.memory.primitives import DeviceMemory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


#: The variable that forces a backend.
FORCE = "NBX_GPU_BACKEND"


class BackendReport:
    """What was found of one backend: `library`, `device` and `usable` are `yes`, `no` or `unknown`, with reasons.

    `library` may also be `broken`; `usable` is `unknown` where it was not asked for. `count` is the number of devices
    where the runtime was asked, else None. `candidates` lists every place where the runtime library was looked for;
    `error` is what opening the backend raised, or None.
    """

    __slots__ = (
        "candidates", "count", "device", "device_reason", "error", "kind", "library", "library_reason", "name", "path",
        "seen", "title", "usable", "usable_reason",
    )  # fmt: skip

    def __init__(self, name: str, title: str, kind: str) -> None:
        self.name = name
        self.title = title
        self.kind = kind
        self.library = "no"
        self.library_reason = ""
        self.path = ""
        self.device = "no"
        self.device_reason = ""
        self.usable = "unknown"
        self.usable_reason = "not asked"
        self.count: int | None = None
        self.seen = False  # the operating system shows a card
        self.candidates: list[Any] = []
        self.error: errors.NbxrtError | None = None

    def __repr__(self) -> str:
        used = "" if self.usable_reason == "not asked" else f", usable {self.usable} ({self.usable_reason})"
        return (
            f"{self.name}: library {self.library} ({self.library_reason}), "
            f"device {self.device} ({self.device_reason}){used}"
        )

    @property
    def has_device(self) -> bool:
        """Whether the library loads and a device is there that was not found unusable."""
        return self.library == "yes" and self.device == "yes" and self.usable != "no"


class Detection:
    """What was found of every backend, in order of detection. `str()` of it is the report that people read.

    `missing` are the places that NBXRT_BACKEND_PATH names and that hold no backend file, with reasons.
    """

    def __init__(self, backends: "tuple[BackendReport, ...]") -> None:
        self.backends = backends
        self.missing = descriptions.missing()

    def __str__(self) -> str:
        return "\n".join(f"  {line}" for line in (*map(repr, self.backends), *self.missing))

    def __repr__(self) -> str:
        return f"<nbxrt.Detection {', '.join(backend.name for backend in self.usable) or 'no device'}>"

    def __getitem__(self, name: str) -> BackendReport:
        for backend in self.backends:
            if backend.name == name:
                return backend
        raise KeyError(name)

    @property
    def usable(self) -> "tuple[BackendReport, ...]":
        """The GPU backends whose library loads and whose device is there, less those that were found unusable."""
        return tuple(backend for backend in self.backends if backend.kind == "gpu" and backend.has_device)

    def is_available(self) -> bool:
        """Whether a GPU backend has a device."""
        return bool(self.usable)


#: The last report in which a device was found, and the names it was made of. Guarded by the runtime's lock.
_last: "tuple[list[str], Detection] | None" = None


def detect(*, usable: bool = False) -> Detection:
    """What this process can use, backend by backend. Never raises.

    Libraries are loaded, and the operating system is asked for devices; a vendor's function is called only where that
    cannot tell. With `usable=True` a device of each backend is also used, in a child process for each: that may take
    seconds, and a runtime that crashes does not harm this process.
    A report in which a device was found is kept until `reset()`. One without a device, or with `usable`, is not.
    """
    return _detect_by_use() if usable else _detect_by_looking()


def _detect_by_looking() -> Detection:
    global _last  # noqa: PLW0603
    with runtime.lock:
        names = descriptions.names()
        if _last is not None and _last[0] == names:
            return _last[1]
        found = Detection(tuple(map(_report, names)))
        _last = (names, found) if found.usable else None
        return found


def _detect_by_use() -> Detection:
    """What `detect` finds, where the runtimes are asked in child processes alone."""
    from nbxrt import usability

    with runtime.lock:
        reports = tuple(_report(name, ask=False) for name in descriptions.names())
    for report in reports:
        if report.library != "yes" or report.device == "no":
            report.usable = "no"
            report.usable_reason = report.library_reason if report.library != "yes" else report.device_reason
            continue
        found = usability.ask(report.name)
        report.usable, report.usable_reason, report.count = found.usable, found.reason, found.count
        if found.count is not None:
            told, report.device = report.device, "yes" if found.count else "no"
            if report.device != told:  # what the operating system shows is not why
                report.device_reason = f"the runtime counts {found.count}" if found.count else found.reason
    return Detection(reports)


def _report(name: str, *, ask: bool = True) -> BackendReport:
    """One backend's report; with `ask`, the runtime counts the devices where the system cannot tell."""
    try:
        description = descriptions.load(name)
    except errors.NbxrtError as error:
        report = BackendReport(name, name, "gpu")
        report.library, report.library_reason, report.error = "broken", error.summary, error
        return report
    report = BackendReport(name, description["title"], description["kind"])
    machine = Machine()
    _look_for_device(report, description, machine)
    if machine.system not in description["platforms"]:
        report.library_reason = report.device_reason
        return report
    try:
        _look_for_library(report)
        _look_for_driver(report, description, machine)
        if ask and report.library == "yes" and report.device == "unknown":
            _ask_runtime(report)
    except RuntimeWarning as warning:  # the user made warnings errors: opening this backend raises it too
        report.library, report.library_reason = "broken", str(warning)
    return report


def _look_for_device(report: BackendReport, description: "Mapping[str, Any]", machine: Machine) -> None:
    there, report.device_reason = presence.device_there(description, machine)
    report.device = {True: "yes", False: "no", None: "unknown"}[there]
    report.seen = bool(there)
    hiding = [variable for variable in description["visibility"] if variable in machine.environ]
    if there and hiding:
        said = ", ".join(f"{variable}={machine.environ[variable]!r}" for variable in hiding)
        report.device, report.device_reason = "unknown", f"{report.device_reason}; {said} may hide it"
    forbidden = presence.forbidden(description, machine) if there else []
    if forbidden:
        report.device, report.device_reason = "unknown", "; ".join([report.device_reason, *forbidden])


def _look_for_library(report: BackendReport) -> None:
    try:
        opened = runtime.opened(report.name)
        library = opened.library("runtime")
    except errors.NbxrtError as error:
        report.error = error
        report.candidates = getattr(error, "candidates", [])
        missing = type(error) is errors.LibraryNotFoundError
        absent = missing or isinstance(error, errors.CapabilityError)  # a file that does not offer enough to be opened
        report.library = "no" if absent else "broken"
        report.library_reason = "not found" if missing else error.summary
        return
    report.library, report.path, report.candidates = "yes", library.path, library.candidates
    report.library_reason = library.path


def _look_for_driver(report: BackendReport, description: "Mapping[str, Any]", machine: Machine) -> None:
    """Where a card is there and the driver's library is not, as in containers, only the runtime can tell."""
    data = description["libraries"].get("driver", {})
    if report.library != "yes" or report.device != "yes" or "search" not in data:
        return
    if not search.is_in_sight(report.name, "driver", data, machine):
        report.device, report.device_reason = "unknown", f"{report.device_reason}; no library of the driver is found"


def _ask_runtime(report: BackendReport) -> None:
    try:
        opened = runtime.opened(report.name)
        report.count = opened.device_count()
        gpus = report.count if opened.description["devices"] is None else opened.gpu_count()
        opened.has_gpu = bool(gpus)
    except errors.NbxrtError as error:
        report.device, report.device_reason, report.error = "no", error.summary, error
        return
    seen = f" ({report.device_reason})" if report.seen else ""
    report.device = "yes" if gpus else "no"
    others = ", and none of them is a GPU" if report.count and not gpus else ""
    report.device_reason = f"the runtime counts {report.count}{others}{seen}"
    why = _why_none(report.name) if not report.count else None
    if why is not None:
        report.device_reason, report.error = f"{report.device_reason}: {why.summary}", why


def _why_none(name: str) -> "errors.NbxrtError | None":
    try:
        return runtime.opened(name).why_no_device()
    except errors.NbxrtError as error:
        return error


def forced_name() -> str:
    """The backend that NBX_GPU_BACKEND forces, or an empty string; space around the name does not count."""
    return os.environ.get(FORCE, "").strip()


def _forced() -> str:
    """The forced backend, known to exist."""
    name = forced_name()
    if name and not descriptions.is_known(name):
        raise descriptions.unknown(name, f"{FORCE}={os.environ[FORCE]!r}")
    return name


def gpu_backend(*, require_device: bool = False) -> str:
    """The name of the GPU backend: the one in force, else the forced one, else the best that is here.

    A backend with a device is better than one whose library merely loads. One of kind `cpu` is answered only where it
    was forced or opened by name. Libraries may be loaded; the vendor's driver is called only where the operating system
    cannot tell whether a device is there. `require_device` makes a backend without a device an error.

    Raises: BackendNotFoundError with the whole report; NoDeviceError with `require_device`; ArgumentTypeError.
    """
    errors.boolean("`gpu_backend`", "require_device", require_device)
    with runtime.lock:
        name = _named()
        if require_device:
            _require_device(name)
        tritonpin.pin(name)
        return name


def _named() -> str:
    in_force = runtime.in_force()
    if in_force is not None and (in_force.kind == "gpu" or runtime.chosen_by_name()):
        return in_force.name
    forced = _forced()
    if forced:
        return forced
    return _choose().name


def _choose() -> BackendReport:
    """The first GPU backend with a device, else the first whose library loads.

    Backends after one whose device the operating system shows are not looked at.
    Raises: BackendNotFoundError.
    """
    reports: list[BackendReport] = []
    for name, row in descriptions.overview().items():
        if row[1] == "cpu":
            continue
        report = _missing(name)
        if report is None and _is_decided_before(name, reports):
            break
        reports.append(report or _report(name, ask=False))
        if reports[-1].has_device:
            break
    _warn_of_broken(reports)
    loading = [report for report in reports if report.library == "yes"]
    possible = [report for report in loading if report.device != "no"]
    for report in possible:
        # Cards that a variable may hide are counted by the runtime only where that decides between vendors.
        if report.device == "unknown" and (not report.seen or len(possible) > 1):
            _ask_runtime(report)
        if report.device != "no":
            return report
    for report in loading:
        if not descriptions.load(report.name)["device_required"]:
            return report
    found = Detection(tuple(reports))
    raise errors.BackendNotFoundError(
        f"no GPU backend is usable here\n{found}",
        hint="`nbxrt doctor` explains each; NBX_GPU_BACKEND=host runs on host memory",
        report=found,
    )


def _is_decided_before(name: str, reports: "list[BackendReport]") -> bool:
    """Whether cards are there that a variable may hide, so that this backend's library need not be loaded.

    Their runtime is asked, but only where there is such a library.
    """
    hidden = [report for report in reports if report.seen and report.device == "unknown" and report.library == "yes"]
    if not hidden or not _is_in_sight(name):
        return False
    for report in hidden:
        _ask_runtime(report)
    return any(report.device == "yes" for report in hidden)


def _is_in_sight(name: str) -> bool:
    try:
        description = descriptions.load(name)
    except errors.NbxrtError:
        return False
    machine = Machine()
    is_for_here = machine.system in description["platforms"]
    return is_for_here and search.is_in_sight(name, "runtime", description["libraries"]["runtime"], machine)


def _missing(name: str) -> "BackendReport | None":
    """The report of a built-in backend that is nothing without a device, where the system shows none.

    Its description is not read, nor its library looked for: there are many vendors, and a machine has few of them.
    """
    needed = descriptions.needing_a_device(name)
    if needed is None:
        return None
    there, reason = presence.device_there(needed, Machine())
    if there is not False:
        return None
    report = BackendReport(name, needed["title"], needed["kind"])
    report.library_reason, report.device_reason = "not looked for", reason
    return report


def _warn_of_broken(reports: "list[BackendReport]") -> None:
    for report in reports:
        if report.library == "broken":
            errors.warn(f"{report.title}: {report.library_reason}")


def _require_device(name: str) -> None:
    in_force = runtime.in_force()
    if in_force is not None and in_force.name == name:  # it may have been opened by its file's path
        if not in_force.device_count():
            raise errors.NoDeviceError(f"{in_force.title} has no device here: it counts 0", backend=name)
        return
    report = _report(name)
    if not report.has_device:
        reason = report.device_reason if report.library == "yes" else report.library_reason
        raise errors.NoDeviceError(f"{report.title} has no device here: {reason}", report=report, backend=name)


def best() -> str:
    """The backend that `open()` takes: the forced one, a GPU backend with a device, the first `cpu` one that loads.

    A GPU backend without a device is taken only where no `cpu` one loads.
    Raises: BackendNotFoundError.
    """
    forced = _forced()
    if forced:
        return forced
    try:
        chosen = _choose()
    except errors.BackendNotFoundError:
        chosen = None
    if chosen is not None and chosen.device != "no":
        return chosen.name
    for name, (_priority, kind, _platforms, _triton) in descriptions.overview().items():
        if kind == "cpu" and _report(name, ask=False).library == "yes":
            return name
    return (chosen or _choose()).name


def gpu_runtime() -> "runtime.Runtime":
    """The runtime of the GPU backend in force, opened if it was not.

    Raises: BackendNotFoundError with the whole report; LibraryNotFoundError, LibraryBrokenError.
    """
    in_force = runtime.in_force()
    if in_force is not None and (in_force.kind == "gpu" or runtime.chosen_by_name()):
        return in_force
    with runtime.lock:
        found = runtime.opened(gpu_backend())
        runtime.put_in_force(found, bool(forced_name()))
        return found


def backend_table() -> "Mapping[str, Any]":
    """`gpu_runtime().table()`: for each operation the name of the runtime's attribute that is its C function.

    Raises: as `gpu_runtime`.
    """
    return gpu_runtime().table()


def device_memory() -> "DeviceMemory":
    """The memory operations of `gpu_runtime()`, and nothing else of it. Ask each time: the runtime may have changed.

    Raises: as `gpu_runtime`.
    """
    return DeviceMemory(gpu_runtime())


def reset() -> None:
    """Forget what was found, opened and set, and put the environment back as it was. Loaded libraries stay loaded."""
    global _last  # noqa: PLW0603
    from nbxrt.device import invalidate_current_device_cache

    installing = sys.modules.get("nbxrt.launch.installing")
    if installing is not None:
        installing.uninstall()
    with runtime.lock:
        _last = None
        runtime.forget()
        tritonpin.unpin()
        invalidate_current_device_cache()
