"""Whether a device of a backend can be used: found out by using one, in a child process."""

import sys

from nbxrt import childprocess, errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nbxrt.runtime import Runtime

#: What people call an end by these signals; they have the same numbers on every system that has them.
_WORDS = {4: "stopped by an illegal instruction", 6: "aborted", 9: "killed", 11: "crashed"}


class Usability:
    """`usable` is `yes`, `no` or `unknown`, with its reason; `count` is the number of devices, None when not told."""

    __slots__ = ("count", "reason", "usable")

    def __init__(self, usable: str, reason: str, count: "int | None" = None) -> None:
        self.usable = usable
        self.reason = reason
        self.count = count


def ask(backend: str, patience: float = childprocess.PATIENCE) -> Usability:
    """Use the first device of a backend that lets itself be used, in a child process. Nothing is raised."""
    ended = childprocess.run("nbxrt.usability", [backend], patience)
    answers = childprocess.answers(ended.output)
    if answers and "usable" in answers[-1]:
        return Usability(**answers[-1])
    count = answers[-1]["count"] if answers else None
    if ended.code is None:
        return Usability("no" if ended.output or "answer" in ended.reason else "unknown", ended.reason, count)
    if ended.signal:
        return Usability("no", f"{_WORDS.get(ended.signal, 'ended')} (signal {ended.signal})", count)
    said = f": {ended.complaint}" if ended.complaint else ""
    return Usability("no", f"the process ended with code {ended.code}{said}", count)


def main() -> None:
    """The child's part: count the devices, and use one."""
    from nbxrt import runtime

    write = childprocess.answering()
    try:
        opened = runtime.opened(sys.argv[1])
        count = opened.gpu_count()
        write({"count": count})
        found = _use_one(opened, count)
    except errors.NbxrtError as error:
        found = Usability("no", error.summary)
    write({"usable": found.usable, "reason": found.reason, "count": found.count})


def _use_one(runtime: "Runtime", count: int) -> Usability:
    passed_over: list[str] = []
    for device in range(count):
        try:
            runtime.set_device(device)
            runtime.free(runtime.malloc(1))
        except errors.NbxrtError as error:
            passed_over.append(f"device {device}: {why(error)}")
        else:
            return Usability("yes", "; ".join([f"device {device} was used", *passed_over]), count)
    none = runtime.why_no_device() if not count else None
    others = "there is no GPU among its devices" if runtime.device_count() else "there is no device"
    return Usability("no", none.summary if none else "; ".join(passed_over) or others, count)


def why(error: errors.NbxrtError) -> str:
    """Why a device could not be used, in one line."""
    if getattr(error, "kind", "") != "device_unavailable":
        return error.summary
    explanation = getattr(error, "explanation", "")
    return f"busy ({getattr(error, 'code', '')})" + (f": {explanation}" if explanation else "")
