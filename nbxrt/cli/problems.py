"""How an error of nbxrt is told on the command line, and the exit code that it means."""

from __future__ import annotations

from nbxrt import errors
from nbxrt.cli.console import Writer

FINE, FINDINGS, MISUSE = 0, 1, 2


def exit_code(error: errors.NbxrtError) -> int:
    """2 for what the user named wrongly, 1 for what was found wrong."""
    misnamed = isinstance(error, (errors.BackendNotFoundError, errors.ArgumentError)) or _is_no_file(error)
    return MISUSE if misnamed and not isinstance(error, errors.NoDeviceError) else FINDINGS


def _is_no_file(error: errors.NbxrtError) -> bool:
    """Whether a backend file was named that is not there, or that cannot be read."""
    faults = error.diagnostics if isinstance(error, errors.DescriptionError) else ()
    return any(fault.reference == "unreadable-file" for fault in faults)


def tell(error: errors.NbxrtError) -> None:
    """The error on standard error, as `error[reference]: message` and `hint: …`; no traceback."""
    writer = Writer(stderr=True)
    if isinstance(error, errors.DescriptionError):
        writer.line(str(error))  # every fault in it says its own reference
    else:
        writer.line(f"error[{error.reference}]: {error}")
