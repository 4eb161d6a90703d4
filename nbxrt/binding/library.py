"""One library of a backend in this process: its symbols, its version, its first use, and what its status codes mean."""

import ctypes
import os

from nbxrt import errors, locks
from nbxrt.binding import asking, loader, search
from nbxrt.binding.layout import as_tuple
from nbxrt.binding.machine import realpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from nbxrt.binding.machine import Machine
    from nbxrt.binding.objc import Messages

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
        machine: "Machine",
    ) -> None:
        self.role = role
        self.path = path
        self.candidates = candidates
        self._description = description
        self._machine = machine
        self._data = description["libraries"][role]
        self._status = self._data["status"]
        self._contract = contract
        self._others = others
        self._handle = handle
        self._keeping_gil = ctypes.PyDLL(None, handle=handle._handle)  # noqa: SLF001
        self._lock = locks.RLock()
        self._version: Version | None = None
        self._started_in = 0
        self._messages: Messages | None = None
        self.kind_of_code = {code: kind for kind, codes in self._status["kinds"].items() for code in codes}

    @property
    def choice(self) -> "search.Candidate":
        """The candidate that was chosen."""
        return next(candidate for candidate in self.candidates if candidate.verdict == "chosen")

    def untried(self) -> "list[search.Candidate]":
        """The candidates that the search did not get to, found by looking: nothing is loaded."""
        beside = _beside(self._data, self._others)
        name = self._description["name"]
        return search.untried(name, self.role, self._data, self._machine, self.candidates, beside)

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
            except asking.LACKING:
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
        return any(asking.has(self._handle, symbol) for symbol in symbols)

    @property
    def messages(self) -> "Messages":
        """Messages by this library, which is the Objective-C runtime."""
        with self._lock:
            if self._messages is None:
                from nbxrt.binding.objc import Messages  # only where a backend sends messages

                self._messages = Messages(self._handle, self._machine.processor)
            return self._messages

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
        number = self._asked(spec, "version")
        return decode_version(number, self._data["digits"]) if number and number > 0 else ()

    @property
    def driver_version(self) -> "Version":
        """The version of the driver that the library sees; () when it sees none, or its file names no way to ask."""
        spec = self._data["driver_version"]
        if spec is None or not self.exports(spec[0]):
            return ()
        number = self._asked(spec, "version")
        return decode_version(number, self._data["driver_digits"]) if number and number > 0 else ()

    def _asked(self, spec: "tuple[Any, ...]", name: str, code: int = 0) -> "int | None":
        """What a call answers, by itself or in the cell of that name; None where its status is no success."""
        status, results = self.call(spec, code)
        answer: int = results["code" if spec[3][0] == "code" else name]
        return answer if status == self._status["success"] else None

    def _version_of_file(self) -> "Version":
        names = [os.path.basename(self.path), os.path.basename(realpath(self.path))]
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

    def forget_start(self) -> None:
        """Let the next `start` make the first call again: somebody else has undone it."""
        with self._lock:
            self._started_in = 0

    def renew_lock(self) -> None:
        """Make the lock anew, in a process that was forked."""
        self._lock = locks.RLock()

    def enter(self) -> bool:
        """Give the calling thread a context; False when the file names no way, or the way failed."""
        spec = self._data["enter"]
        if spec is None:
            return False
        library = self._others(spec[1]) if spec[1] else self
        status, _results = library.call(spec)
        return bool(status == library._status["success"])  # noqa: SLF001

    @property
    def uuid_prefixes(self) -> "tuple[str, ...]":
        """What this library writes before a UUID, for each kind of device that it knows by UUID."""
        prefixes: tuple[str, ...] = self._data["uuid_prefixes"]
        return prefixes

    @property
    def can_enter(self) -> bool:
        return self._data["enter"] is not None

    def has_context(self, device: int) -> "bool | None":
        """Whether a device has a context, which is not made by asking; None where the file names no way to ask."""
        spec = self._data["has_context"]
        if spec is None or not self.exports(spec[0]):
            return None
        self.start()
        active = self._asked(spec, "active", device)
        return None if active is None else bool(active)

    def stop(self) -> None:
        """Make the library's last call, when it has one and was started here."""
        with self._lock:
            if self._data["close"] is not None and self._started_in == os.getpid():
                self._started_in = 0
                self.call(self._data["close"])

    # calls of the role itself: not hot, so they are interpreted

    def call(self, spec: "tuple[Any, ...]", code: int = 0) -> "tuple[int, dict[str, Any]]":
        """Make a call that the role describes: (status, results by name). Out cells are zeroed before."""
        function, _symbol = self.function(spec[0], None, ())
        answer, results = asking.ask(function, spec, code)
        return (answer if spec[3][0] == "status" else self._status["success"]), results

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

    def explain(self, code: int) -> "tuple[str, str]":
        """(what the backend's file says of a status code, its hint), each empty when it says nothing."""
        for codes, driver, says, hint in self._status["explains"]:
            is_meant = code in codes or (self._status["negated"] and -code in codes)
            if is_meant and (not driver or driver == self._driver_is()):
                return self._filled(says), self._filled(hint)
        return "", ""

    def _filled(self, text: str) -> str:
        """A text of the backend's file with the versions put in that it speaks of."""
        for word in ("version", "driver_version"):
            place = "{" + word.removesuffix("_version") + "}"
            if place in text:
                version = getattr(self, word)
                text = text.replace(place, as_tuple(version) if version else "(not known)")
        return text

    def _driver_is(self) -> str:
        """How the driver stands to this library: the words of `explains`, or an empty string."""
        driver = self.driver_version
        if not driver:
            return "missing"
        return "older" if _padded(driver) < _padded(self.version) else ""

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
        kind: str = "",
        words: str = "",
    ) -> errors.DeviceError:
        """The error that a status means, its facts filled in; the thread's stored error is cleared.

        `kind` is given where the caller knows better what the code means here, and `words` where the failure has some
        of its own.
        """
        kind = kind or self.kind(code)
        _wider, sticky, raises, says = self._contract["errors"].get(kind, (None, False, None, ""))
        name, text = self.error_name(code), self.error_text(code)
        explanation, advised = self.explain(code)
        if not sticky:
            self.clear()
        given = ", ".join(f"{key}={errors.shown(value)}" for key, value in (arguments or {}).items())
        meaning = words or explanation or text or ("" if code else says)
        status = f": {name or 'status'} ({code})" if code else ""
        said = f"`{operation}` failed{status}" + (f": {meaning}" if meaning else "")
        where = f"`{symbol}({given})` of {self.path}" + (f", device {device}" if device >= 0 else "")
        if raises == "DriverError":
            from nbxrt.binding import copies  # only when something is wrong with the driver already

            about, advice = copies.explain(self._description, self._machine)
            notes, hint = [*notes, *about], hint or advice
        lines = [said, f"  in {where}", *(f"  {note}" for note in notes)]
        hint = hint or advised
        if sticky:
            hint = hint or "the context is lost: restart the process"
        return getattr(errors, raises or "DeviceError")(  # type: ignore[no-any-return]
            "\n".join(lines),
            hint=hint or ("" if not says or meaning else says),
            operation=operation,
            symbol=symbol,
            library=self.path,
            code=code,
            name=name,
            text=text,
            explanation=explanation,
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
    if role in _OPENS_BY_NAME:
        _open_first(description, role, machine, others)
    for file in data["loads_first"].get(machine.system, ()):
        loader.load(file, "local", machine)
    beside = _beside(data, others)
    handle, path, candidates = search.find(description["name"], role, data, machine, beside)
    if handle is None:
        raise not_found(description, role, candidates)
    library = Library(handle, path, candidates, description, role, contract, others, machine)
    warn_of_choice(library.choice)
    return library


#: The library that one of a role opens by itself, by its name: it may lie where the loader need not look.
_OPENS_BY_NAME = {"runtime": "driver", "collectives": "management"}


def _open_first(
    description: "Mapping[str, Any]", opener: str, machine: "Machine", others: "Callable[[str], Library]"
) -> None:
    """Load what a library would open by itself in another copy than the one that is right, or not find."""
    for role, data in description["libraries"].items():
        is_out_of_sight = role == _OPENS_BY_NAME[opener] and search.is_below_a_root(data, machine)
        if is_out_of_sight or (opener == "runtime" and _must_come_first(description["name"], role, data, machine)):
            try:
                others(role)
            except errors.LibraryNotFoundError:  # its own first use will say why
                continue


def _must_come_first(backend: str, role: str, data: "Mapping[str, Any]", machine: "Machine") -> bool:
    """Whether a variable names the copy of a library, or the loader would meet one that is taken last of all."""
    if role == "runtime" or not data.get("telling"):
        return False
    if machine.variable(f"NBXRT_{backend}_{role}".upper()):
        return True
    last = {folder for folder, _says, comes_last in data["telling"] if comes_last}
    return any(last & set(part.split("/")) for part in machine.started_with("LD_LIBRARY_PATH").split(":"))


def _beside(data: "Mapping[str, Any]", others: "Callable[[str], Library]") -> "search.Candidate | None":
    """The choice for the role that this library belongs with; None where there is none."""
    if not data.get("beside"):
        return None
    try:
        return others(data["beside"]).choice
    except errors.LibraryNotFoundError:
        return None


def not_found(
    description: "Mapping[str, Any]", role: str, candidates: "list[search.Candidate]"
) -> errors.LibraryNotFoundError:
    """The error for a library that could not be loaded, with every candidate and its reason."""
    data = description["libraries"][role]
    unusable = [each for each in candidates if each.verdict in ("broken", "refused") and not each.is_foreign]
    kind = errors.LibraryBrokenError if unusable else errors.LibraryNotFoundError
    first = unusable[0] if unusable else None
    said = f"no {description['title']} `{role}` library could be loaded"
    if first is not None:
        said = f"the {description['title']} `{role}` library {first.path} ({first.step}) {_because(first)}"
    rows = "\n".join(f"  {candidate!r}" for candidate in candidates)
    place = f"  --> {errors.place(description, data['line'])}, `libraries.{role}`"
    hint = data["hint"]
    if candidates and candidates[0].step.startswith("NBXRT_"):
        hint += f"; {candidates[0].step} is set, so nothing else was tried: correct it, or unset it"
    return kind(f"{said}\n{place}\n{rows}", hint=hint, backend=description["name"], candidates=candidates)


def _because(candidate: "search.Candidate") -> str:
    return candidate.reason if candidate.verdict == "broken" else f"is refused: {candidate.reason}"


def warn_of_choice(chosen: "search.Candidate") -> None:
    """Say what the user should know of the choice, if there is anything."""
    if chosen.warning:
        errors.warn(chosen.warning)


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
