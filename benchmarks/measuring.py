"""What the benchmarks share: measuring variants in turn, and printing them with their ratios.

The first of two variants that are measured looks slower, so every round goes through all of them and the next round
goes through them backwards. The clock of a machine may change between rounds: variants of one round are neighbours in
time and see the same one, so `ratio` compares them round by round.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def in_turn(variants: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each variant measured of itself, round by round; every other round runs backwards."""
    names = list(variants)
    measured: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in names if turn % 2 else reversed(names):
            measured[name].append(variants[name]())
    return measured


def nanoseconds(call: Callable[[], object], times: int) -> float:
    """Time of one call, from many."""
    turns = range(times)
    start = time.perf_counter_ns()
    for _turn in turns:
        call()
    return (time.perf_counter_ns() - start) / times


def median(values: list[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def ratio(ours: list[float], theirs: list[float]) -> float:
    """What `in_turn` found of one variant as a part of another: the middle one of the ratios within each round."""
    return median([mine / its for mine, its in zip(ours, theirs, strict=True)])


def environment(**changes: str) -> dict[str, str]:
    """The environment of a fresh interpreter that finds nbxrt here and keeps its bytecode."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), environ.get("PYTHONPATH"))))
    return environ | changes


def process_ms(program: str) -> float:
    """Wall time of a fresh interpreter that runs the program. Raises: CalledProcessError when it fails."""
    start = time.perf_counter_ns()
    subprocess.run([sys.executable, "-c", program], env=environment(), check=True, capture_output=True)
    return (time.perf_counter_ns() - start) / 1e6


def said_by_process(program: str) -> list[float]:
    """The numbers that a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), check=True, capture_output=True, text=True
    )
    return list(map(float, done.stdout.split()))


def show(title: str, rows: Mapping[str, float], unit: str, digits: int = 2) -> None:
    """Print figures under a title."""
    print(f"\n{title}")
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"  {name:<{width}}  {value:10.{digits}f} {unit}".rstrip())
