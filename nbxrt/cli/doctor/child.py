"""The doctor's child process: started, listened to, and started again without the backend that ended it.

Loading a vendor's runtime, counting and describing its devices happens there, started with sys.executable. A runtime
that aborts or hangs then costs one backend's answers and not the report, and no context outlives the question.
"""

from __future__ import annotations

import signal
from typing import Any

from nbxrt import childprocess


def probed(patience: float = childprocess.PATIENCE) -> dict[str, Any]:
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
    ended = childprocess.run("nbxrt.cli.doctor.probe", skip, patience)
    return childprocess.answers(ended.output), _ending(ended)


def _ending(ended: childprocess.Ended) -> str:
    if ended.code is None:
        return ended.reason
    if ended.signal:
        try:
            name = signal.Signals(ended.signal).name
        except ValueError:
            name = f"signal {ended.signal}"
        return f"the process was ended by {name}"
    return f"the process ended with code {ended.code}" + (f" ({ended.complaint})" if ended.complaint else "")


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
