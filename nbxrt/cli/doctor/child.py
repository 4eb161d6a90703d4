"""The doctor's child process: started, listened to, and started again without the backend that ended it.

Loading a vendor's runtime, counting and describing its devices happens there, started with sys.executable. A runtime
that aborts or hangs then costs one backend's answers and not the report, and no context outlives the question.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

#: Seconds after which a probe is given up. The first use of eight cards without persistence takes about twenty.
PATIENCE = 90.0

# The child imports from where this process does, zips included, and not from its working folder.
_START = "import sys; sys.path[:] = sys.argv.pop(1).split('\\n'); from nbxrt.cli.doctor import probe; probe.main()"


def probed(patience: float = PATIENCE) -> dict[str, Any]:
    """What the probe found: `backends`, `opens`, `warnings`, and `crash` when detection itself ended the process.

    A probe that has not answered in full after `patience` seconds is given up.
    """
    found: dict[str, Any] = {"backends": {}, "opens": {"name": "", "reason": ""}, "warnings": [], "crash": ""}
    skip: list[str] = []
    while True:
        answers, ending = _run(skip, patience)
        stage = _take_in(found, answers)
        if stage is None:
            return found
        backend = stage.get("backend", "")
        if not backend or backend in skip:
            found["crash"] = f"{ending} during {stage['stage']}"
            return found
        found["backends"][backend]["crash"] = f"{ending} while it was asked for its {stage['stage']}"
        skip.append(backend)


def _run(skip: list[str], patience: float) -> tuple[list[dict[str, Any]], str]:
    """The answers of one probe, and how it ended, in words."""
    if not sys.executable:
        return [], "Python does not know its own executable, so that no child process could be started"
    command = [sys.executable, "-c", _START, "\n".join(sys.path), *skip]
    try:
        done = subprocess.run(command, capture_output=True, timeout=patience, check=False)  # noqa: S603  # ourselves
    except subprocess.TimeoutExpired as error:
        return _answers(error.stdout or b""), f"no answer within {patience:.0f} s"
    except OSError as error:
        return [], f"no child process could be started: {error.strerror}"
    return _answers(done.stdout), _ending(done.returncode, done.stderr)


def _answers(output: bytes) -> list[dict[str, Any]]:
    """The whole lines; the last one may have been cut off."""
    return [json.loads(line) for line in output.split(b"\n")[:-1]]


def _ending(code: int, stderr: bytes) -> str:
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"the process was ended by {name}"
    last = stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return f"the process ended with code {code}" + (f" ({last})" if last else "")


def _take_in(found: dict[str, Any], answers: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Add the answers to what was found: None when they are complete, else the stage at which they end."""
    stage: dict[str, Any] | None = {"stage": "its start"}
    for answer in answers:
        if "stage" in answer:
            stage = answer
        elif "detected" in answer:
            for report in answer.pop("detected"):
                found["backends"].setdefault(report["name"], report)
            found.update(answer)
        elif "backend" in answer:
            found["backends"][answer.pop("backend")].update(answer)
        elif "end" in answer:
            stage = None
    return stage
