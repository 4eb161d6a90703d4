"""A simulated library at hand, or a stand-in: its faults, and the record of what was called."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nbxrt import errors

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping, Sequence

#: Things beside operations and symbols that can fail: making a context, a piece of a stream's work, any call.
BESIDE = ("context", "work", "*")

#: The control functions of every library: what they return, and what they take.
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "fail": (ctypes.c_int, (ctypes.c_char_p,)),
    "sleep": (ctypes.c_int, (ctypes.c_char_p,)),
    "mend": (None, ()),
    "clear_log": (None, ()),
    "log": (ctypes.c_size_t, (ctypes.c_char_p, ctypes.c_size_t)),
}


class Call(NamedTuple):
    """One call of a vendor function: what it was, who made it, with which arguments, and what it answered.

    `operation` is the contract's, or ROLE.CALL; `device` the thread's current one before it; `kind` the contract's word
    for `status`, which is the vendor's number. Arguments are by parameter; constants by their place: `argument2`.
    """

    operation: str
    symbol: str
    process: int
    thread: int
    device: int
    arguments: dict[str, int | str]
    kind: str
    status: int


class Controlled:
    """A library that can be told to fail, and that tells what was called. It is loaded at the first use of that."""

    #: What can fail by its name: operations, and the vendor's functions or messages.
    operations: Collection[str] = ()
    symbols: Sequence[str] = ()
    _controls = "runtime"  # the role whose library has the control functions

    def __init__(
        self,
        description: Mapping[str, Any],
        contract: Mapping[str, Any],
        paths: Mapping[str, Path],
        signatures: Mapping[str, tuple[Any, tuple[Any, ...]]],
    ) -> None:
        self.name: str = description["name"]
        self.description = description
        self.contract = contract
        #: The library's file by role. One file may serve several.
        self.paths: Mapping[str, Path] = dict(paths)
        self._signatures = {**_SIGNATURES, **signatures}
        self._loading = threading.RLock()  # guards what follows until it is set
        self._loaded: ctypes.CDLL | None = None

    def fail(
        self, operation: str, nth: int = 1, kind: str = "unknown", *, onward: bool = False, device: int | None = None
    ) -> None:
        """Let the nth call from now on answer with an error of that kind; with `onward`, every call from the nth.

        `operation` is an operation, a symbol, `context` (a context is made), `work` (a stream comes to a piece of work)
        or `*`; `device` limits it to calls on that device. A kind after which the context is lost loses it.
        """
        known = (*sorted(self.operations), *self.symbols, *BESIDE)
        role_calls = ("version", "driver_version", "init", "enter", "has_context", "close", "clear", "name", "text")
        if operation not in known and operation.partition(".")[2] not in role_calls:
            raise self._cannot_fail(operation, known)
        if kind not in self.contract["errors"]:
            close = errors.nearest(kind, list(self.contract["errors"]))
            raise errors.ArgumentValueError(f"`{kind}` is no error", hint=f"did you mean `{close}`?" if close else "")
        where = "" if device is None else f"@{device}"
        if self._control("fail", f"{operation}{where}:{nth}{'+' if onward else ''}:{kind}".encode()):
            raise errors.ArgumentValueError(f"`nth` must be at least 1, not {nth}, and there is room for 64 faults")

    def _cannot_fail(self, operation: str, known: Sequence[str]) -> errors.ArgumentValueError:
        if operation in self.contract["operations"]:
            said = f"`{operation}` is no call of its own in {self.description['title']}"
            return errors.ArgumentValueError(said, hint="name one of the functions that it calls")
        close = errors.nearest(operation, known)
        hint = f"did you mean `{close}`?" if close else ""
        return errors.ArgumentValueError(f"`{operation}` is nothing that can fail", hint=hint)

    def mend(self) -> None:
        """Forget all faults and delays, also of calls that sleep, and give lost contexts back."""
        self._control("mend")

    def sleep(self, operation: str, microseconds: int) -> None:
        """Let every call of an operation or symbol take that long before it does anything."""
        self._control("sleep", f"{operation}:{microseconds}".encode())

    def log(self) -> list[Call]:
        """The calls since the last `clear`, the newest 65,536 of them."""
        return [_call(line) for line in self._text("log")]

    def clear(self) -> None:
        """Empty the log and the launches."""
        self._control("clear_log")

    # the library

    def _control(self, name: str, *arguments: Any) -> Any:
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
                self._settle()
        return getattr(self._loaded, f"nbxrt_sim_{name}")(*arguments)

    def _load(self) -> ctypes.CDLL:
        library = ctypes.CDLL(str(self.paths[self._controls]))
        if not hasattr(library, "nbxrt_sim_fail"):
            raise errors.CapabilityError(
                f"the stand-in for {self.description['title']} has neither faults nor a log",
                backend=self.name,
                hint="`nbxrt.simulation.build` makes a library from the backend file that has them",
            )
        for function, (returns, takes) in self._signatures.items():
            typed = getattr(library, f"nbxrt_sim_{function}")  # kept by the library, unlike an item of it
            typed.restype, typed.argtypes = returns, list(takes)
        return library

    def _settle(self) -> None:
        """What is set when the library was loaded."""

    def _text(self, name: str) -> list[str]:
        """The lines of a text; it may grow while it is asked for."""
        size = 1
        while True:
            buffer = ctypes.create_string_buffer(size)
            length = int(self._control(name, buffer, size))
            if length < size:
                return buffer.value.decode(errors="replace").splitlines()
            size = length + 4096


def read_log(path: str | os.PathLike[str]) -> list[Call]:
    """The calls that processes have written to the file that NBXRT_SIM_LOG names; none when there is no file."""
    file = Path(path)
    return [_call(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def _call(line: str) -> Call:
    process, thread, operation, symbol, device, kind, status, said = line.split("\t")
    pairs = (pair.partition("=") for pair in said.split())
    arguments = {name: int(value) if value.lstrip("-").isdigit() else value for name, _equals, value in pairs}
    return Call(operation, symbol, int(process), int(thread), int(device), arguments, kind, int(status))
