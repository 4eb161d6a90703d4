"""A child process that runs a function of nbxrt, for what may end the process or must leave nothing behind in this one.

A vendor's runtime that aborts, hangs or breaks later forks then costs an answer and nothing else.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from typing import Any

#: Seconds after which a child that uses devices is given up: the first use of eight cards without persistence takes
#: about twenty.
PATIENCE = 90.0

#: Seconds after which it is looked whether a child has ended whose output stays open.
_LOOK = 1.0
#: Seconds in which a child that was killed ends, unless the kernel keeps it in a call.
_DYING = 2.0

# The child imports from where this process does, zips included, and not from its working folder.
_START = "import sys; sys.path[:] = eval(sys.argv.pop(1)); import {module} as room; room.main()"


class Ended:
    """How a child ended: `code` is None where it never started or was given up; `output` is what it had answered."""

    __slots__ = ("code", "complaint", "output", "reason")

    def __init__(self, code: "int | None", output: bytes = b"", complaint: str = "", reason: str = "") -> None:
        self.code = code
        self.output = output
        #: The last line that it wrote to its standard error.
        self.complaint = complaint
        #: Why there is no code.
        self.reason = reason

    @property
    def signal(self) -> int:
        """The signal that ended it, or 0."""
        return -self.code if self.code is not None and self.code < 0 else 0


def run(module: str, arguments: "Sequence[str]", patience: float) -> Ended:
    """Run `main()` of a module of nbxrt with these arguments, and wait at most `patience` seconds for its end."""
    import subprocess

    if getattr(sys, "frozen", False):  # it would be started again, and run as it does for its user
        return Ended(None, reason="this is a frozen application, which has no Python to start a child process with")
    if not sys.executable:
        return Ended(None, reason="Python does not know its own executable, so that no child process could be started")
    paths = ascii([each for each in sys.path if isinstance(each, str)])  # the others are nothing to Python's imports
    command = [sys.executable, "-c", _START.format(module=module), paths, *arguments]
    try:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603  # ourselves
    except OSError as error:
        return Ended(None, reason=f"no child process could be started: {error.strerror}")
    try:
        output, complaint = _heard(child, patience)
        if child.returncode is None:
            child.kill()
            output, complaint = _heard(child, _DYING)
            return Ended(None, output, reason=f"no answer within {patience:.0f} s")
    finally:
        for stream in filter(None, (child.stdout, child.stderr)):
            stream.close()
    return Ended(child.returncode, output, complaint.decode(errors="replace").strip().rpartition("\n")[2])


def _heard(child: "subprocess.Popen[bytes]", patience: float) -> "tuple[bytes, bytes]":
    """What a child writes until it ends, or for so many seconds; `returncode` is None where it has not ended.

    Its end is what counts, and not that of its output: a library may have started a process that keeps that open.
    """
    import subprocess
    import time

    until = time.monotonic() + patience
    while True:
        try:
            return child.communicate(timeout=max(0.0, min(_LOOK, until - time.monotonic())))
        except subprocess.TimeoutExpired as late:
            if child.poll() is not None or time.monotonic() >= until:
                return late.stdout or b"", late.stderr or b""


def answering() -> "Callable[[dict[str, Any]], None]":
    """What a child writes an answer with, a line of JSON each; what a library prints goes to standard error."""
    import json

    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)

    def write(answer: "dict[str, Any]") -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    return write


def answers(output: bytes) -> "list[dict[str, Any]]":
    """The answers in a child's output; a last line that was cut off does not count."""
    import json

    return [json.loads(line) for line in output.split(b"\n")[:-1]]
