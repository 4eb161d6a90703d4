"""The errors of nbxrt. Each carries its facts as attributes; the sentence is made of them last.

NbxrtError (RuntimeError)
├── DescriptionError            a backend file is wrong: every fault with file, line and column
├── BackendNotFoundError        no backend of that name, or none that this process can use
├── LibraryNotFoundError        no candidate for a library is there
│   └── LibraryBrokenError      a library exists and cannot be used
├── CapabilityError             the backend does not offer the operation
│   ├── SymbolNotFoundError     the library does not export it
│   └── UntestedVersionError    the library's version is outside every range that the file states
├── ArgumentError               an argument is wrong; nothing was called
│   ├── ArgumentTypeError       (TypeError)
│   └── ArgumentValueError      (ValueError)
│       ├── ArgumentIndexError  (IndexError)
│       ├── DeviceIndexError    (IndexError)
│       ├── SizeError           a size that no memory has
│       ├── UnknownPolicyError  no policy of that name
│       ├── LimitError          a limit under what is held
│       └── PointerError        an address that is not of this account's memory
│           ├── DoubleFreeError     it was freed already
│           └── InteriorPointerError    it lies inside a block
├── ExchangeError               memory cannot be exchanged with another library or process in this way (BufferError)
└── DeviceError                 a call failed: operation, symbol, code, name, text, device
    ├── NoDeviceError           there is no device to use (also a BackendNotFoundError)
    ├── DriverError             driver and runtime do not fit together, or the driver is not the real one
    ├── OutOfMemoryError        (MemoryError)
    └── CommunicatorError       another rank is lost, or the collectives library failed: a new communicator is needed
        └── CommunicatorTimeoutError    (TimeoutError)
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from nbxrt.catalogue.diagnostics import Diagnostic


class NbxrtError(RuntimeError):
    """Root of all errors that nbxrt raises on its own account.

    `reference` is a stable kebab-case name that the documentation explains; `hint` says what to do next, or is empty.
    """

    reference = "nbxrt"

    def __init__(self, message: str, *, hint: str = "", **facts: "Any") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.__dict__.update(facts)

    def __str__(self) -> str:
        return f"{self.message}\n\nhint: {self.hint}" if self.hint else self.message

    @property
    def summary(self) -> str:
        """What it says, without its details: the first line."""
        return self.message.split("\n", 1)[0]

    def __reduce__(self) -> "tuple[Any, ...]":
        return _revive, (type(self), self.args, self.__dict__)


def _revive(kind: "type[NbxrtError]", args: "tuple[Any, ...]", facts: "dict[str, Any]") -> NbxrtError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class DescriptionError(NbxrtError):
    """A backend file cannot be used; `diagnostics` holds every fault found in it, in order of place."""

    reference = "description"

    def __init__(self, diagnostics: "Sequence[Diagnostic]") -> None:
        super().__init__("\n\n".join(str(diagnostic) for diagnostic in diagnostics), diagnostics=tuple(diagnostics))
        self.diagnostics: tuple[Diagnostic, ...]


class BackendNotFoundError(NbxrtError):
    """No backend of that name, or none that this process can use; `report` says why for each."""

    reference = "backend-not-found"


class LibraryNotFoundError(NbxrtError):
    """No candidate for a library was found; `candidates` lists every place looked at, with its reason."""

    reference = "library-not-found"


class LibraryBrokenError(LibraryNotFoundError):
    """A library exists and cannot be used; `candidates` says which file and why."""

    reference = "library-broken"


class CapabilityError(NbxrtError):
    """The backend does not offer this operation; `reason` quotes its file."""

    reference = "capability"


class SymbolNotFoundError(CapabilityError):
    """The library does not export the symbol that the operation needs."""

    reference = "symbol-not-found"


class UntestedVersionError(CapabilityError):
    """The library's version is outside every range that the backend file states for this operation."""

    reference = "untested-version"


class ArgumentError(NbxrtError):
    """An argument is not acceptable; nothing was called. `operation`, `parameter` and `value` say which."""

    reference = "argument"


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is of the wrong type."""

    reference = "argument-type"


class ArgumentValueError(ArgumentError, ValueError):
    """An argument is of the right type and outside what is allowed."""

    reference = "argument-value"


class ArgumentIndexError(ArgumentValueError, IndexError):
    """An index of an array is out of range."""

    reference = "argument-index"


class DeviceIndexError(ArgumentValueError, IndexError):
    """There is no device of that ordinal; `count` is the number of devices."""

    reference = "device-index"


class SizeError(ArgumentValueError):
    """A size is negative, or more than any device has."""

    reference = "size"


class UnknownPolicyError(ArgumentValueError):
    """There is no policy of allocation of that name."""

    reference = "unknown-policy"


class LimitError(ArgumentValueError):
    """A limit is lower than what is held already: `held` bytes."""

    reference = "limit"


class PointerError(ArgumentValueError):
    """An address is not one that the account of memory gave out."""

    reference = "pointer"


class ExchangeError(NbxrtError, BufferError):
    """Memory cannot be handed to another library, or taken from it, in the way that was asked for."""

    reference = "exchange"


class DoubleFreeError(PointerError):
    """The memory at this address was freed already."""

    reference = "double-free"


class InteriorPointerError(PointerError):
    """The address lies inside a block; `address` is where the block begins, `nbytes` its size."""

    reference = "interior-pointer"


class DeviceError(NbxrtError):
    """A call into the vendor's library failed.

    `operation`, `symbol` and `library` say which call; `code`, `name` and `text` are the library's own words for the
    status, `explanation` the backend file's or empty, `kind` the contract's (`schema/operations.yaml`, `errors`) or
    empty; `device` is the thread's current one, or -1 when it could not be asked. `sticky` is true when the context is
    lost and only a new process helps.
    """

    reference = "device"
    operation = symbol = library = name = text = explanation = kind = ""
    code: "int | None" = None
    device = -1
    sticky = False


class NoDeviceError(DeviceError, BackendNotFoundError):
    """There is no device that this process can use."""

    reference = "no-device"


class DriverError(DeviceError):
    """Driver and runtime do not fit together, or the driver is not the real one."""

    reference = "driver"


class OutOfMemoryError(DeviceError, MemoryError):
    """There is not enough memory for the request."""

    reference = "out-of-memory"


class CommunicatorError(DeviceError):
    """A communicator is of no more use: a rank has left or died, or its library failed. It was aborted.

    `rank` and `size` say whose end of which communicator, `operation` what was called last, and `missing` which ranks
    did not take part, as far as this host can tell. A new communicator can be made.
    """

    reference = "communicator"
    rank = -1
    size = 0
    missing: "tuple[int, ...]" = ()


class CommunicatorTimeoutError(CommunicatorError, TimeoutError):
    """A collective was not finished in time; the communicator was aborted. `seconds` is how long was waited."""

    reference = "communicator-timeout"
    seconds = 0.0

    def __new__(cls, *_args: "Any", **_facts: "Any") -> "CommunicatorTimeoutError":  # noqa: PYI034
        return TimeoutError.__new__(cls)  # of OSError's shape, which the root's own maker does not know


def place(description: "Mapping[str, Any]", line: "int | str") -> str:
    """Where a description says something: a line of its own file, or `FILE:LINE` of one that it extends."""
    if isinstance(line, str):
        return line
    return f"{description['file']}:{line}" if line else str(description["file"])


def again(error: NbxrtError) -> NbxrtError:
    """The same error as a new object, to raise one that is kept: the old one's traceback would grow."""
    fresh = _revive(type(error), error.args, dict(error.__dict__))
    fresh.__cause__ = error.__cause__
    return fresh


def shown(value: "Any") -> str:
    """A value as messages quote it: its `repr`, cut where it is long."""
    try:
        said = repr(value)
    except Exception:  # noqa: BLE001  # the message is about something else; Python itself says no very long integers
        bits = f" of {value.bit_length()} bits" if isinstance(value, int) else ""
        return f"<{type(value).__name__}{bits}>"
    return said if len(said) <= 60 else said[:57] + "…"


def wrong_type(function: str, wanted: str, given: "Any", hint: str = "") -> ArgumentTypeError:
    """The error for an argument of a type that a function does not take."""
    return ArgumentTypeError(
        f"{function} takes {wanted}, not {type(given).__name__} {shown(given)}",
        hint=hint,
        operation=function,
        value=given,
    )


def integer(function: str, wanted: str, given: "Any", hint: str = "") -> int:
    """An int of anything with `__index__`, bool excepted. Raises: ArgumentTypeError."""
    if given.__class__ is int:
        return given  # type: ignore[no-any-return,unused-ignore]
    try:
        if not isinstance(given, bool):
            return int(given.__index__())
    except (AttributeError, TypeError):
        pass
    raise wrong_type(function, wanted, given, hint)


def boolean(function: str, parameter: str, given: "Any") -> bool:
    """True or False themselves, since a word for no is true. Raises: ArgumentTypeError."""
    if given is True or given is False:
        return given
    raise wrong_type(function, f"True or False for `{parameter}`", given)


def file_path(function: str, path: "Any") -> str:
    """The path of a file as text. Raises: ArgumentTypeError; ArgumentValueError for a path that no system takes."""
    import os

    if not isinstance(path, (str, os.PathLike)):
        raise wrong_type(function, "the path of a file", path)
    text = os.fsdecode(os.fspath(path))
    if "\0" in text:
        raise ArgumentValueError(f"{function} takes the path of a file, not {shown(text)}", value=path)
    return text


def nearest(word: str, known: "Sequence[str]") -> str:
    """The known word closest in spelling to `word`, or an empty string."""
    import difflib  # only when something is wrong already

    close = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.65)
    return close[0] if close else ""


def warn(said: str) -> None:
    """Warn, at the line outside nbxrt that led here: the only one that the user can change."""
    import sys
    import warnings  # only when something is odd already

    level, frame = 2, sys._getframe(1)  # noqa: SLF001  # what `warnings` itself counts
    while frame.f_back is not None and _is_ours(frame.f_globals):
        frame, level = frame.f_back, level + 1
    warnings.warn(said, RuntimeWarning, stacklevel=level)


def _is_ours(variables: "dict[str, Any]") -> bool:
    """Whether code is nbxrt's by its globals; what nbxrt generates has no `__name__` there."""
    return str(variables.get("__name__", "nbxrt")).partition(".")[0] == "nbxrt"
