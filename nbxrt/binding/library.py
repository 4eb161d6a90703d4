"""One library of a backend in this process: its symbols, its version, its first use, and what its status codes mean."""

import ctypes
import os
import threading

from nbxrt import errors
from nbxrt.binding import search
from nbxrt.binding.layout import C_TYPES, CELL_TYPES, as_tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from nbxrt.binding.machine import Machine

    Version = tuple[int, ...]


class Library:
    """A loaded library of one role. `path` is its file, `candidates` every place that was looked at before it."""

    def __init__(
        self,
        handle: ctypes.CDLL,
        path: str,
        candidates: "list[search.Candidate]",
        description: "Mapping[str, Any]",
        role: str,
        contract: "Mapping[str, Any]",
        others: "Callable[[str], Library]",
    ) -> None:
        self.role = role
        self.path = path
        self.candidates = candidates
        self._data = description["libraries"][role]
        self._status = self._data["status"]
        self._contract = contract
        self._others = others
        self._handle = handle
        self._keeping_gil = ctypes.PyDLL(None, handle=handle._handle)  # noqa: SLF001
        self._lock = threading.RLock()
        self._version: Version | None = None
        self._started_in = 0
        self.kind_of_code = {code: kind for kind, codes in self._status["kinds"].items() for code in codes}

    def function(
        self, symbols: "Sequence[str]", returns: "Any", arguments: "Sequence[Any]", *, keep_gil: bool = False
    ) -> "tuple[Any, str]":
        """The first of the symbols that the library exports, typed, and its name.

        Raises: SymbolNotFoundError.
        """
        library = self._keeping_gil if keep_gil else self._handle
        for symbol in symbols:
            try:
                function = library[symbol]
            except AttributeError:
                continue
            function.restype = returns
            function.argtypes = list(arguments)
            return function, symbol
        wanted = " or ".join(f"`{symbol}`" for symbol in symbols)
        raise errors.SymbolNotFoundError(
            f"{wanted} is not exported by {self.path}", symbols=tuple(symbols), library=self.path
        )

    def exports(self, symbols: "Sequence[str]") -> bool:
        """Whether the library exports one of the symbols."""
        return any(_has(self._handle, symbol) for symbol in symbols)

    # version

    @property
    def version(self) -> "Version":
        """The library's version as numbers, (12, 9); the major in its file's name when it does not answer; else ()."""
        if self._version is None:
            self._version = self._ask_version() or self._version_of_file()
        return self._version

    def _ask_version(self) -> "Version":
        spec = self._data["version"]
        if spec is None or not self.exports(spec[0]):
            return ()
        status, results = self.call(spec)
        if status != self._status["success"]:
            return ()
        number = results["version"]
        return decode_version(number, self._data["digits"]) if number > 0 else ()

    def _version_of_file(self) -> "Version":
        names = [os.path.basename(self.path), os.path.basename(os.path.realpath(self.path))]
        for major, files in self._data["names"]:
            if major is not None and any(os.path.basename(file) in names for file in files.values()):
                return (major,)
        return ()

    # first use

    @property
    def needs_start(self) -> bool:
        """Whether the library asks for a call before all others that has not been made in this process."""
        return self._data["init"] is not None and self._started_in != os.getpid()

    def start(self) -> None:
        """Make the library's first call, once a process.

        Raises: DeviceError or what its status means.
        """
        with self._lock:
            if not self.needs_start:
                return
            status, _results = self.call(self._data["init"])
            kind = self.kind(status)
            if status != self._status["success"] and kind not in self._data["init_tolerates"]:
                symbol = self._data["init"][0][0]
                raise self.failure(status, "first use of the library", symbol)
            self._started_in = os.getpid()

    def enter(self) -> bool:
        """Give the calling thread a context; False when the file names no way, or the way failed."""
        spec = self._data["enter"]
        if spec is None:
            return False
        library = self._others(spec[1]) if spec[1] else self
        status, _results = library.call(spec)
        return bool(status == library._status["success"])  # noqa: SLF001

    @property
    def can_enter(self) -> bool:
        return self._data["enter"] is not None

    def stop(self) -> None:
        """Make the library's last call, when it has one and was started here."""
        with self._lock:
            if self._data["close"] is not None and self._started_in == os.getpid():
                self._started_in = 0
                self.call(self._data["close"])

    # calls of the role itself: not hot, so they are interpreted

    def call(self, spec: "tuple[Any, ...]", code: int = 0) -> "tuple[int, dict[str, Any]]":
        """Make a call that the role describes: (status, results by name). Out cells are zeroed before."""
        symbols, _role, arguments, returns, _usual = spec
        types, values = [], []
        cells: dict[str, Any] = {}
        for argument in arguments:
            kind, value = _prepare(argument, code, cells)
            types.append(kind)
            values.append(value)
        restype = {"status": ctypes.c_int, "code": ctypes.c_int, "text": ctypes.c_char_p}.get(returns[0])
        function, _symbol = self.function(symbols, restype, types)
        answer = function(*values)
        results = {name: cell.value for name, cell in cells.items()}
        if returns[0] == "text":
            results["text"] = answer
            return self._status["success"], results
        return (answer if returns[0] == "status" else self._status["success"]), results

    # status

    @property
    def success(self) -> int:
        """The status of a call that did what it was to do."""
        return int(self._status["success"])

    def kind(self, code: int) -> str:
        """The contract's word for a status code, or an empty string."""
        kind = self.kind_of_code.get(code)
        if kind is None and self._status["negated"]:
            kind = self.kind_of_code.get(-code)
        return kind or ""

    def codes(self, kind: str) -> "tuple[int, ...]":
        """Every code that means `kind`, or something narrower."""
        families = self._contract["errors"]
        codes = [code for code, own in self.kind_of_code.items() if kind in (own, families[own][0])]
        return tuple(codes + ([-code for code in codes] if self._status["negated"] else []))

    def clear(self) -> None:
        """Clear the error that the library keeps for this thread, if it keeps one."""
        if self._status["clear"] is not None and self.exports(self._status["clear"][0]):
            self.call(self._status["clear"])

    def error_name(self, code: int) -> str:
        """The library's own name of a status code, or an empty string."""
        return self._words("name", code)

    def error_text(self, code: int) -> str:
        """The library's own sentence for a status code; else the contract's; else an empty string."""
        kind = self.kind(code)
        return self._words("text", code) or (self._contract["errors"][kind][3] if kind else "")

    def _words(self, which: str, code: int) -> str:
        spec = self._status[which]
        if spec is None or not self.exports(spec[0]):
            return ""
        _status, results = self.call(spec, code)
        return (results.get("text") or b"").decode(errors="replace")

    def failure(
        self,
        code: int,
        operation: str,
        symbol: str,
        arguments: "Mapping[str, Any] | None" = None,
        device: int = -1,
        notes: "Sequence[str]" = (),
        hint: str = "",
    ) -> errors.DeviceError:
        """The error that a status means, its facts filled in; the thread's stored error is cleared."""
        kind = self.kind(code)
        _wider, sticky, raises, says = self._contract["errors"].get(kind, (None, False, None, ""))
        name, text = self.error_name(code), self.error_text(code)
        if not sticky:
            self.clear()
        given = ", ".join(f"{key}={_short(value)}" for key, value in (arguments or {}).items())
        said = f"`{operation}` failed: {name or 'status'} ({code})" + (f": {text}" if text else "")
        where = f"`{symbol}({given})` of {self.path}" + (f", device {device}" if device >= 0 else "")
        lines = [said, f"  in {where}", *(f"  {note}" for note in notes)]
        if sticky:
            hint = hint or "the context is lost: restart the process"
        return getattr(errors, raises or "DeviceError")(  # type: ignore[no-any-return]
            "\n".join(lines),
            hint=hint or ("" if not says or text else says),
            operation=operation,
            symbol=symbol,
            library=self.path,
            code=code,
            name=name,
            text=text,
            kind=kind,
            device=device,
            sticky=sticky,
        )


def open_library(
    description: "Mapping[str, Any]",
    role: str,
    machine: "Machine",
    contract: "Mapping[str, Any]",
    others: "Callable[[str], Library]",
) -> Library:
    """Find and load the library of a role.

    Raises: LibraryNotFoundError, or LibraryBrokenError when a copy exists and cannot be used.
    """
    data = description["libraries"].get(role)
    if data is None:
        raise errors.LibraryNotFoundError(f"{description['file']} has no `{role}` library", candidates=[])
    handle, path, candidates = search.find(description["name"], role, data, machine)
    if handle is None:
        raise not_found(description, role, candidates)
    warn_of_choice(candidates)
    return Library(handle, path, candidates, description, role, contract, others)


def not_found(
    description: "Mapping[str, Any]", role: str, candidates: "list[search.Candidate]"
) -> errors.LibraryNotFoundError:
    """The error for a library that could not be loaded, with every candidate and its reason."""
    data = description["libraries"][role]
    unusable = [candidate for candidate in candidates if candidate.verdict in ("broken", "refused")]
    kind = errors.LibraryBrokenError if unusable else errors.LibraryNotFoundError
    first = unusable[0] if unusable else None
    said = f"no {description['title']} `{role}` library could be loaded"
    if first is not None:
        said = f"the {description['title']} `{role}` library {first.path} ({first.step}) {_because(first)}"
    rows = "\n".join(f"  {candidate!r}" for candidate in candidates)
    place = f"  --> {description['file']}:{data['line']}, `libraries.{role}`"
    return kind(f"{said}\n{place}\n{rows}", hint=data["hint"], backend=description["name"], candidates=candidates)


def _because(candidate: "search.Candidate") -> str:
    return candidate.reason if candidate.verdict == "broken" else f"is refused: {candidate.reason}"


def warn_of_choice(candidates: "list[search.Candidate]") -> None:
    """Warn when a version that the file does not know was taken because the user allowed it."""
    chosen = candidates[-1]
    if chosen.verdict == "chosen" and chosen.reason != "loaded":
        import warnings  # only when something is odd already

        warnings.warn(f"{chosen.path}: {chosen.reason}", RuntimeWarning, stacklevel=2)


def decode_version(number: int, divisors: "Sequence[int]") -> "Version":
    """12090 by [1000, 10] is (12, 9)."""
    parts = []
    for divisor in divisors:
        parts.append(number // divisor)
        number %= divisor
    return tuple(parts)


def applies(version: "Version", since: "Version | None", before: "Version | None") -> bool:
    """Whether a version lies in a range; 13 is 13.0, and an unknown version lies only in a range without bounds."""
    if not version:
        return since is None and before is None
    return (since is None or _padded(version) >= _padded(since)) and (
        before is None or _padded(version) < _padded(before)
    )


def _padded(version: "Version") -> "Version":
    """Versions of equal length compare as people mean them: (13,) is not before (13, 0)."""
    return (*version, 0, 0, 0)[:4]


def said_range(since: "Version | None", before: "Version | None") -> str:
    """A range in words."""
    words = [f"since {as_tuple(since)}"] if since else []
    return " ".join(words + ([f"before {as_tuple(before)}"] if before else [])) or "any version"


def _prepare(argument: "tuple[Any, ...]", code: int, cells: "dict[str, Any]") -> "tuple[Any, Any]":
    form = argument[0]
    if form == "const":
        return C_TYPES[argument[1]], argument[2]
    if form == "param":
        return C_TYPES[argument[2]], code
    if form == "out":
        cells[argument[1]] = CELL_TYPES[argument[2]]()
        return ctypes.c_void_p, ctypes.addressof(cells[argument[1]])
    return ctypes.c_void_p, None


def _has(handle: ctypes.CDLL, symbol: str) -> bool:
    try:
        handle[symbol]
    except AttributeError:
        return False
    return True


def _short(value: "Any") -> str:
    said = repr(value)
    return said if len(said) <= 60 else said[:57] + "…"
