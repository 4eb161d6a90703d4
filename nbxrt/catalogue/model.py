"""A backend file as frozen values: what `describe(name)` gives, and what compiling.py turns into plain tuples.

Expects data that validation.py has accepted; it structures and fills in defaults, and checks nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from nbxrt.catalogue import model_steps
from nbxrt.catalogue.model_steps import Devices, Entry, Steps
from nbxrt.catalogue.policies import POLICIES

if TYPE_CHECKING:
    from collections.abc import Mapping

PLATFORMS = ("linux", "windows", "macos")

Version = tuple[int, ...]
#: An argument of a C call: its form, then what that form needs. compiling.py lists the forms.
Argument = tuple[Any, ...]


@frozen
class Range:
    """Where a variant applies: versions from `since` (included) to `before` (not included), and platforms."""

    since: Version | None = None
    before: Version | None = None
    platforms: tuple[str, ...] | None = None


@frozen
class Call:
    """A C call as the file wrote it: symbols (the first exported one counts), arguments as written, what it returns."""

    symbols: tuple[str, ...]
    args: tuple[Any, ...] | None = None
    returns: Any = "status"
    library: str | None = None


@frozen
class Variant:
    """One way to do an operation: `form` is call, value, same, policy or steps; the other fields are that form's.

    Steps and policies may be for one `model` of device; empty: for all.
    """

    form: str
    applies: Range = Range()
    call: Call | None = None
    steps: Steps | None = None
    value: Any = None
    model: str = ""
    result: Mapping[str, Any] = field(factory=dict)
    ignores: tuple[str, ...] = ()


@frozen
class Operation:
    """How the backend does one operation of the contract; `line` is where its file says so."""

    name: str
    variants: tuple[Variant, ...]
    line: int | str = 0


@frozen
class Absence:
    """Why an operation is not offered; `line` is where its file says so."""

    reason: str
    line: int | str = 0


@frozen
class LibraryName:
    """A file name of a library on each platform, and the major version it stands for (None: the name does not say)."""

    major: int | None
    files: Mapping[str, str]


@frozen
class SearchStep:
    """One step of a library search: `kind` is a key of binding/search.py's table."""

    kind: str
    where: tuple[str, ...] = ()
    folders: Mapping[str, tuple[str, ...]] = field(factory=dict)


@frozen
class Identity:
    """What tells a vendor's library from another's of the same file name; `equals` is the answer to the probe."""

    exports: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    linked_to: tuple[str, ...] = ()
    not_linked_to: tuple[str, ...] = ()
    not_under: tuple[str, ...] = ()
    probe: Call | None = None
    equals: int | str = 0


@frozen
class TellingFolder:
    """A folder whose name says what a library in it is; `last` ones are taken when there is no other copy."""

    folder: str
    says: str
    last: bool = False


@frozen
class Explanation:
    """What codes mean beyond the library's own words, for a `driver` that is missing or older; empty: for any."""

    codes: tuple[int, ...]
    says: str
    driver: str = ""
    hint: str = ""


@frozen
class Status:
    """What a library's status codes mean, and which functions say it in words."""

    success: int = 0
    negated: bool = False
    clear: Call | None = None
    name: Call | None = None
    text: Call | None = None
    kinds: Mapping[str, tuple[int, ...]] = field(factory=dict)
    explains: tuple[Explanation, ...] = ()


@frozen
class Role:
    """One library of a backend: where it is found, how it is asked and entered, and what its codes mean."""

    name: str
    same_as: str | None = None
    names: tuple[LibraryName, ...] = ()
    search: tuple[SearchStep, ...] = ()
    identity: Identity | None = None
    telling: tuple[TellingFolder, ...] = ()
    beside: str = ""
    hint: str = ""
    mode: str = "local"
    types: Mapping[str, str] = field(factory=dict)
    version: Call | None = None
    digits: tuple[int, ...] = ()
    driver_version: Call | None = None
    driver_digits: tuple[int, ...] = ()
    uuid_prefixes: tuple[str, ...] = ()
    loads_first: Mapping[str, tuple[str, ...]] = field(factory=dict)
    init: Call | None = None
    init_tolerates: tuple[str, ...] = ()
    enter: Call | None = None
    has_context: Call | None = None
    close: Call | None = None
    status: Status = Status()
    line: int | str = 0


@frozen
class Structure:
    """One layout of a C structure: fields are (offset, type) or (offset, type, bytes)."""

    bytes: int
    fields: Mapping[str, tuple[Any, ...]] = field(factory=dict)
    constants: Mapping[str, int] = field(factory=dict)
    applies: Range = Range()


@frozen
class Message:
    """A message that objects of a class answer; an `optional` one not on every system."""

    encoding: str
    optional: bool = False


@frozen
class Enumeration:
    """The vendor's numbers of the contract's words, or bits of its flags, in one range of versions."""

    words: Mapping[str, int]
    applies: Range = Range()


@frozen
class Interop:
    """How other libraries know the vendor's memory and streams: numbers, and names of protocols."""

    dlpack: Mapping[str, int] = field(factory=dict)
    streams: Mapping[str, int] | None = None
    array_interface: str = ""
    stream_protocol: str = ""


@frozen
class Evidence:
    """How some operations are known, and from where; `operations` may name groups, and is empty for all the rest."""

    kind: str
    source: str
    operations: tuple[str, ...] = ()


@frozen
class PolicyParts:
    """What a policy needs from this vendor: steps by part, in all their variants, and plain values."""

    parts: Mapping[str, tuple[Variant, ...]] = field(factory=dict)
    values: Mapping[str, Any] = field(factory=dict)


@frozen
class Backend:
    """One backend file, whole."""

    name: str
    title: str
    contract: int
    abi: str
    platforms: tuple[str, ...]
    priority: int
    kind: str = "gpu"
    handles: str = "native"
    triton_keys: tuple[str, ...] = ()
    triton_target: str | None = None
    interop: Interop | None = None
    triton_architecture: tuple[Any, ...] = ()
    expandable: Mapping[str, int] = field(factory=dict)
    launch: Mapping[str, Any] | None = None
    binaries: Mapping[str, Any] = field(factory=dict)
    visibility: tuple[str, ...] = ()
    device_required: bool = False
    presence: Mapping[str, Any] = field(factory=dict)
    libraries: Mapping[str, Role] = field(factory=dict)
    structs: Mapping[str, tuple[Structure, ...]] = field(factory=dict)
    messages: Mapping[str, Mapping[str, Message]] = field(factory=dict)
    enums: Mapping[str, tuple[Enumeration, ...]] = field(factory=dict)
    needs: Mapping[str, str] = field(factory=dict)
    devices: Devices | None = None
    state: Mapping[str, Entry] = field(factory=dict)
    policies: Mapping[str, PolicyParts] = field(factory=dict)
    operations: Mapping[str, Operation] = field(factory=dict)
    absent: Mapping[str, Absence] = field(factory=dict)
    headers: Mapping[str, Any] = field(factory=dict)
    evidence: tuple[Evidence, ...] = ()
    file: str = ""
    override: bool = False


def structure(data: Mapping[str, Any], *, file: str = "", line: Any = lambda _path: 0) -> Backend:
    """The model of validated `data`; `file` is the name to show.

    `line(path)` tells the line of a key; `FILE:LINE` for one that stands in a file that this one extends.
    """
    presence = dict(data.get("presence", {}))
    triton = data.get("triton", {})
    return Backend(
        name=data["name"],
        title=data["title"],
        contract=data["contract"],
        abi=data["abi"],
        platforms=tuple(data["platforms"]),
        priority=data["priority"],
        kind=data.get("kind", "gpu"),
        handles=data.get("handles", "native"),
        triton_keys=tuple(triton.get("keys", ())),
        triton_target=triton.get("target"),
        interop=Interop(**data["interop"]) if "interop" in data else None,
        triton_architecture=tuple(triton.get("architecture", ())),
        expandable=dict(data.get("expandable", {})),
        launch=data.get("launch"),
        binaries=dict(data.get("binaries", {})),
        visibility=tuple(presence.pop("visibility", ())),
        device_required=presence.pop("required", False),
        presence=presence,
        libraries={name: _role(name, role, line) for name, role in data["libraries"].items()},
        structs={name: tuple(map(_layout, _listed(layouts))) for name, layouts in data.get("structs", {}).items()},
        messages={name: _messages(methods) for name, methods in data.get("messages", {}).items()},
        enums={name: _enumeration(words) for name, words in data.get("enums", {}).items()},
        needs=dict(data.get("needs", {})),
        devices=model_steps.devices(data.get("devices")),
        state=model_steps.entries(data.get("state"), line),
        policies={name: _policy(name, each) for name, each in (data.get("policies") or {}).items()},
        operations={
            name: Operation(name, tuple(map(_variant, _listed(forms))), line(("operations", name)))
            for name, forms in data["operations"].items()
        },
        absent={name: Absence(reason, line(("absent", name))) for name, reason in data.get("absent", {}).items()},
        headers=dict(data.get("headers", {})),
        evidence=tuple(
            Evidence(entry["kind"], entry["source"], tuple(entry.get("for", ()))) for entry in data.get("evidence", ())
        ),
        file=file,
        override=data.get("override", False),
    )


def version(written: Any) -> Version | None:
    """A version as numbers: `"12.10"` is (12, 10), 12 is (12,)."""
    return None if written is None else tuple(int(part) for part in str(written).split("."))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _range(data: Mapping[str, Any]) -> Range:
    platforms = data.get("platform")
    return Range(
        version(data.get("since")),
        version(data.get("before")),
        None if platforms is None else tuple(_listed(platforms)),
    )


def _call(data: Any) -> Call | None:
    if data is None:
        return None
    args = data.get("args")
    return Call(
        tuple(_listed(data["call"])),
        None if args is None else tuple(args),
        data.get("returns", "status"),
        data.get("library"),
    )


def _variant(data: Any) -> Variant:
    if isinstance(data, str):
        return Variant("call", call=Call((data,)))
    applies = _range(data)
    if "call" in data:
        return Variant(
            "call",
            applies,
            call=_call(data),
            result=data.get("result", {}),
            ignores=tuple(data.get("ignores", ())),
        )
    if "steps" in data:
        return Variant(
            "steps",
            applies,
            steps=Steps(model_steps.steps(data["steps"]), data.get("library", ""), tuple(data.get("only_default", ()))),
            model=data.get("model", ""),
            result=data.get("result", {}),
            ignores=tuple(data.get("ignores", ())),
        )
    form = next(form for form in ("value", "same", "policy") if form in data)
    return Variant(form, applies, value=data[form], model=data.get("model", ""), ignores=tuple(data.get("ignores", ())))


def _policy(name: str, data: Mapping[str, Any]) -> PolicyParts:
    """A policy's parts, which are forms as operations are, and its plain values."""
    parts = POLICIES[name].parts
    return PolicyParts(
        {key: tuple(map(_variant, _listed(each))) for key, each in data.items() if key in parts},
        {key: tuple(each) if isinstance(each, list) else each for key, each in data.items() if key not in parts},
    )


def _role(name: str, data: Mapping[str, Any], line: Any) -> Role:
    here = line(("libraries", name))
    if "same_as" in data:
        return Role(name, same_as=data["same_as"], line=here)
    init = data.get("init")
    return Role(
        name,
        names=tuple(
            LibraryName(entry.get("major"), {p: entry[p] for p in PLATFORMS if p in entry})
            for entry in data.get("names", ())
        ),
        search=tuple(map(_step, data.get("search", ()))),
        identity=_identity(data.get("identity")),
        telling=tuple(TellingFolder(**entry) for entry in data.get("telling") or ()),
        beside=data.get("beside") or "",
        hint=data.get("hint", ""),
        mode=data.get("mode", "local"),
        types=dict(data.get("types", {})),
        version=_version_call(data.get("version")),
        digits=tuple((data.get("version") or {}).get("digits", ())),
        driver_version=_version_call(data.get("driver_version")),
        driver_digits=tuple((data.get("driver_version") or {}).get("digits", ())),
        uuid_prefixes=tuple(data.get("uuid_prefixes") or ()),
        loads_first={system: tuple(files) for system, files in (data.get("loads_first") or {}).items()},
        init=_call(init),
        init_tolerates=tuple((init or {}).get("tolerates", ())),
        enter=_call(data.get("enter")),
        has_context=_call(data.get("has_context")),
        close=_call(data.get("close")),
        status=_status(data.get("status", {})),
        line=here,
    )


def _identity(data: Mapping[str, Any] | None) -> Identity | None:
    if not data:
        return None
    probe = data.get("probe")
    lists = ("exports", "lacks", "linked_to", "not_linked_to", "not_under")
    return Identity(
        **{key: tuple(data.get(key, ())) for key in lists},
        probe=_call(probe),
        equals=probe["equals"] if probe else 0,
    )


def _version_call(data: Any) -> Call | None:
    call = _call(data)
    if call is None or call.args is not None:
        return call
    usual = () if call.returns == "code" else ({"out": "version", "type": data.get("type", "int")},)
    return evolve(call, args=usual)


def _status(data: Mapping[str, Any]) -> Status:
    return Status(
        success=data.get("success", 0),
        negated=data.get("negated", False),
        clear=_call(data.get("clear")),
        name=_call(data.get("name")),
        text=_call(data.get("text")),
        kinds={word: tuple(_listed(codes)) for word, codes in data.get("kinds", {}).items()},
        explains=tuple(map(_explanation, data.get("explains") or ())),
    )


def _explanation(data: Mapping[str, Any]) -> Explanation:
    return Explanation(tuple(_listed(data["code"])), data["says"], data.get("driver", ""), data.get("hint", ""))


def _step(data: Any) -> SearchStep:
    if isinstance(data, str):
        return SearchStep(data)
    kind = next(kind for kind in ("package", "environment", "root", "finder") if kind in data)
    if kind == "finder":
        return SearchStep(kind, (data["finder"], data["call"], data["of"], data.get("answer", "")))
    where = [*_listed(data[kind]), *_listed(data.get("distribution", []))]
    return SearchStep(kind, tuple(where), _folders(data.get("folder", ".")))


def _folders(data: Any) -> dict[str, tuple[str, ...]]:
    if isinstance(data, dict):
        return {platform: tuple(_listed(folder)) for platform, folder in data.items()}
    return {platform: tuple(_listed(data)) for platform in PLATFORMS}


def _layout(data: Mapping[str, Any]) -> Structure:
    fields = {name: tuple(spec) for name, spec in data.get("fields", {}).items()}
    return Structure(data["bytes"], fields, dict(data.get("constants", {})), _range(data))


def _messages(data: Mapping[str, Any]) -> dict[str, Message]:
    return {
        selector: Message(said) if isinstance(said, str) else Message(said["encoding"], said.get("optional", False))
        for selector, said in data.items()
    }


def _enumeration(data: Any) -> tuple[Enumeration, ...]:
    if isinstance(data, list):
        return tuple(Enumeration(dict(entry["words"]), _range(entry)) for entry in data)
    return (Enumeration(dict(data)),)
