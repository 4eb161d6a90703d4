"""What each operation must do, as one suite of checks: for the host, for simulations, for real devices.

    report = nbxrt.conformance.run(nbxrt.open())
    print(report)

A check works, or it is absent (an operation that it needs is not offered), skipped or wrong, each with its reason. The
suite uses little memory, releases what it made, also where it failed, and resets nothing.
"""

from nbxrt.conformance.image import ModuleImage
from nbxrt.conformance.junit import junit
from nbxrt.conformance.opening import opened
from nbxrt.conformance.report import Outcome, Report, Row
from nbxrt.conformance.suite import Run, checks, groups, run

__all__ = ["ModuleImage", "Outcome", "Report", "Row", "Run", "checks", "groups", "junit", "opened", "run"]
