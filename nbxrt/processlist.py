"""What the driver says of the processes that use a device, and of this one among them.

It is the management library that is asked, and only informatively: what cannot be known is None with its reason, and
nothing is raised for it. Nothing here gives a device a context, and no program is started.
"""

import os

from nbxrt import errors, management
from nbxrt.binding.machine import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.runtime import Runtime

#: The bytes of a process that the library lists and has no number for; the contract says so.
_NOT_REPORTED = 2**64 - 1
#: What the pid namespace of the machine itself is called, on every Linux (PROC_PID_INIT_INO).
_OUTERMOST = "pid:[4026531836]"


class ProcessMemory:
    """Bytes that the driver attributes to this process on a device; None with the reason where it cannot be known."""

    __slots__ = ("nbytes", "reason")

    def __init__(self, nbytes: "int | None", reason: str = "") -> None:
        self.nbytes = nbytes
        self.reason = reason

    def __repr__(self) -> str:
        return f"<nbxrt process memory: {f'{self.nbytes} bytes' if self.nbytes is not None else self.reason}>"


class DeviceProcess:
    """A process that uses a device: the id by which the driver knows it, and bytes, None where it does not report."""

    __slots__ = ("nbytes", "pid")

    def __init__(self, pid: int, nbytes: "int | None") -> None:
        self.pid = pid
        self.nbytes = nbytes

    def __repr__(self) -> str:
        return f"<nbxrt process {self.pid}: {'not reported' if self.nbytes is None else f'{self.nbytes} bytes'}>"


class DeviceProcesses(tuple[DeviceProcess, ...]):  # noqa: SLOT001  # a tuple takes no named slots
    """The processes that use a device, as the driver lists them; `reason` says why it is empty, or what to mind."""

    reason: str = ""


def process_memory(device: "Any" = None) -> "int | None":
    """Bytes that the driver attributes to this process on a device; None where it cannot be known.

    `device` is an index, or what has one as `set_device` takes it; the current device when left out.
    `process_memory_report` says why it is None.
    Raises: TypeError for what is no device.
    """
    return process_memory_report(device).nbytes


def process_memory_report(device: "Any" = None) -> ProcessMemory:
    """The same as `process_memory`, with the reason.

    Raises: TypeError for what is no device.
    """
    rows, nodes, reason = _listed(device, "process_memory_report")
    if rows is None:
        return ProcessMemory(None, reason)
    machine = Machine()
    namespace = _namespace(machine)
    if namespace and (doubt := _doubt([pid for pid, _nbytes in rows], nodes, machine)):
        return ProcessMemory(None, f"{namespace}, and {doubt}")
    own = [nbytes for pid, nbytes in rows if pid == os.getpid()]
    if not own:
        said = f"process {os.getpid()} is not among those that the driver lists"
        return ProcessMemory(None, f"{said}: it does not use this device, or they are of another pid namespace")
    if _NOT_REPORTED in own:
        return ProcessMemory(None, "not reported by this driver model")
    return ProcessMemory(sum(own))


def processes(device: "Any" = None) -> DeviceProcesses:
    """The processes that use a device, with the bytes attributed to each; empty with a reason where it is not known.

    The ids are the driver's: in a container they may be those of the host. `device` as for `process_memory`.
    Raises: TypeError for what is no device.
    """
    rows, _nodes, reason = _listed(device, "processes")
    found = DeviceProcesses(
        DeviceProcess(pid, None if nbytes == _NOT_REPORTED else nbytes) for pid, nbytes in rows or ()
    )
    namespace = _namespace(Machine()) if found else ""
    found.reason = reason or (f"{namespace}: these ids may be of another" if namespace else "")
    return found


def _listed(device: "Any", what: str) -> "tuple[list[tuple[int, int]] | None, tuple[str, ...], str]":
    """(rows of process id and bytes, patterns of the device nodes, "") or (None, (), why not)."""
    from nbxrt.detection import gpu_runtime
    from nbxrt.device import index_of

    index = None if device is None else index_of(device, what)
    try:
        runtime = gpu_runtime()
        rows = _rows(runtime, runtime.get_device() if index is None else index)
    except errors.NbxrtError as error:
        return None, (), "; ".join(filter(None, (error.summary, error.hint)))
    rule = runtime.description["presence"].get("linux")
    return rows, rule[1] if rule else (), ""


def _rows(runtime: "Runtime", device: int) -> "list[tuple[int, int]]":
    rows: list[tuple[int, int]] = runtime.monitor_processes(management.monitor(runtime, device).handle)
    return rows


def _namespace(machine: Machine) -> str:
    """How it is known that this process lives in a pid namespace of its own; empty when nothing says so."""
    if machine.system != "linux":
        return ""
    ids = _ids(machine)
    if len(ids) > 1:
        return f"this process is in a pid namespace (NSpid {' '.join(ids)})"
    try:
        name = os.readlink(machine.under("/proc/self/ns/pid"))
    except OSError:
        return ""
    return "" if name == _OUTERMOST else f"this process is in a pid namespace ({name})"


def _ids(machine: Machine) -> "list[str]":
    """This process's ids, from the outermost namespace that the system shows to its own."""
    try:
        with open(machine.under("/proc/self/status"), encoding="utf-8", errors="replace") as file:
            return next((line.split()[1:] for line in file if line.startswith("NSpid:")), [])
    except OSError:
        return []


def _doubt(listed: "list[int]", nodes: "tuple[str, ...]", machine: Machine) -> str:
    """Why the listed ids cannot be taken for those of this process's namespace; empty when nothing speaks against it.

    Some drivers list a process by the id that it has for the one who asks, and leave out those that have none; others
    list the ids of the machine itself. A driver of the second kind lists this process by an id that is nobody's here,
    once the process uses a device: so ours among others that are all somebody's is of the first kind.
    """
    if not listed:
        return "the driver lists no process for it"
    if len(_ids(machine)) > 1:
        return "the driver may list processes by their ids outside it"
    if os.getpid() not in listed:
        return f"the driver lists other processes, none of them by this one's id {os.getpid()}"
    strangers = [pid for pid in listed if not os.path.isdir(machine.under(f"/proc/{pid}"))]
    if strangers:
        known = ", ".join(map(str, strangers[:3]))
        return f"the driver lists processes that are not in it ({known}), by their ids outside it"
    if not _uses_a_device(nodes, machine):
        return f"this process uses no device yet, so that the one listed as {os.getpid()} may be another outside it"
    return ""


def _uses_a_device(nodes: "tuple[str, ...]", machine: Machine) -> bool:
    """Whether a device node is mapped into this process, as it is for a context and, by some runtimes, for a count."""
    from fnmatch import fnmatchcase

    patterns = [machine.under(node) for node in nodes]
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
            mapped = {line.rstrip("\n").partition("/")[2] for line in file if "/" in line}
    except OSError:
        return False
    return any(fnmatchcase(f"/{path}", pattern) for path in mapped for pattern in patterns)
