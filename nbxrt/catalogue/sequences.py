"""Whether steps hold together: every name is bound before it is used, every parameter used, every result given.

What a call in steps has in common with any other call (structures, libraries, enums) is asked where calls are asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue.diagnostics import did_you_mean, listed, path_text, quoted
from nbxrt.catalogue.forms import names_in
from nbxrt.catalogue.policies import POLICIES
from nbxrt.catalogue.verbs import DEVICE, Bind, verb_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Path
    from nbxrt.catalogue.subject import Subject


#: What a device has besides its handles and what is kept of it (binding/states.py).
DEVICE_FACTS = ("at", "default_stream", "index", "level", "model")


@attrs.frozen(eq=False)
class Sequence:
    """A list of steps: where it stands, what is bound before it, what it has to bind, and what of it has a type."""

    what: str
    path: Path
    steps: list[dict[str, Any]]
    takes: Mapping[str, str]
    gives: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    ignores: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    is_operation: bool = False
    #: What can be named of the device so far; None: all that is kept.
    entries: tuple[str, ...] | None = None


def sequences(subject: Subject) -> Iterator[Sequence]:
    """Every sound list of steps in a file."""
    yield from _of_operations(subject)
    yield from _of_policies(subject)
    yield from _of_state(subject)
    yield from _of_devices(subject)


def _of_operations(subject: Subject) -> Iterator[Sequence]:
    for variant in subject.variants():
        if "steps" in variant.spec:
            operation = variant.operation
            yield Sequence(
                f"`{operation.name}`",
                (*variant.path, "steps"),
                variant.spec["steps"],
                {each.name: each.type for each in operation.takes},
                tuple(each.name for each in operation.gives),
                tuple(variant.spec.get("result", ())),
                (*variant.spec.get("ignores", ()), *variant.spec.get("only_default", ())),
                tuple(each.name for each in operation.gives),
                is_operation=True,
            )


def _of_policies(subject: Subject) -> Iterator[Sequence]:
    for policy, parts in subject.mapping("policies").items():
        known = POLICIES[policy].parts if policy in POLICIES else {}
        for name, written in parts.items() if isinstance(parts, dict) else ():
            if name not in known:
                continue
            for path, form in subject.entries(("policies", policy, name), written):
                yield Sequence(
                    f"the part `{name}` of `{policy}`",
                    (*path, "steps"),
                    form["steps"],
                    known[name].takes,
                    tuple(known[name].gives),
                    tuple(form.get("result", ())),
                    typed=tuple(known[name].gives),
                )


def _of_state(subject: Subject) -> Iterator[Sequence]:
    levels = handles(subject)
    made: list[tuple[str, list[str]]] = []  # the entries above this one, with the levels that each is kept below
    for name, entry in subject.section("state").items():
        reached = _levels_of(levels, entry)
        entries = (*reached, *(other for other, below in made if set(below) <= set(reached)))
        made.append((name, reached))
        yield Sequence(f"the entry `{name}`", ("state", name, "steps"), entry["steps"], {}, (name,), entries=entries)
        if "release" in entry:
            what = f"the release of `{name}`"
            path = ("state", name, "release")
            yield Sequence(what, path, entry["release"], {name: "pointer"}, entries=entries)


def _levels_of(levels: list[str], entry: Mapping[str, Any]) -> list[str]:
    """The handles that are known where an entry is kept."""
    scope = entry.get("scope")
    return levels[: levels.index(scope) + 1] if scope in levels else levels


def _of_devices(subject: Subject) -> Iterator[Sequence]:
    above: dict[str, str] = {}
    last = ""
    for index, level in enumerate(subject.value("devices", "levels") or ()):
        path: Path = ("devices", "levels", index)
        known = {**above, "list": "pointer"} if "listing" in level else above
        for key, takes, gives in (
            ("listing", above, ("list",)),
            ("count", known, ("count",)),
            ("at", {**known, "index": "size"}, (level["as"],)),
            ("listed", known, ()),
            ("release", {**above, level["as"]: "pointer"}, ()),
        ):
            if key in level:
                what = f"`{key}`"
                yield Sequence(what, (*path, key), level[key], takes, gives, typed=("count",), entries=tuple(above))
        above = {**above, level["as"]: "pointer"}
        last = level["as"]
    default = subject.value("devices", "default")
    if default and last:
        yield Sequence("`default`", ("devices", "default", "steps"), default["steps"], {}, (last,), entries=())
        where = ("devices", "default", "identity")
        yield Sequence("`identity`", where, default["identity"], above, ("identity",), entries=())


def handles(subject: Subject) -> list[str]:
    """The names of the handles that a device has."""
    levels = subject.mapping("devices").get("levels")
    known = levels if isinstance(levels, list) else ()
    return [level["as"] for level in known if isinstance(level, dict) and isinstance(level.get("as"), str)]


def check_steps(subject: Subject) -> Iterator[Diagnostic]:
    """Every name that steps use is bound before, and everything is bound that is to come out."""
    for sequence in sequences(subject):
        yield from _Walk(subject, sequence).faults()


@attrs.define(eq=False)
class _Walk:
    """One way through steps, with the names that are bound so far and the parameters that are used."""

    subject: Subject
    sequence: Sequence
    bound: dict[str, str] = attrs.field(factory=dict)
    used: set[str] = attrs.field(factory=set)
    inner: set[str] = attrs.field(factory=set)
    hidden: bool = False
    has_stranger: bool = False

    def faults(self) -> Iterator[Diagnostic]:
        self.bound = dict(self.sequence.takes)
        if "queues" in self.subject.mapping("policies"):
            self.bound.setdefault("stream", "pointer")
        yield from self._list(self.sequence.path, self.sequence.steps)
        yield from self._parameters()
        yield from self._results()

    def _list(self, path: Path, steps: list[dict[str, Any]]) -> Iterator[Diagnostic]:
        for index, step in enumerate(steps):
            where = (*path, index)
            if where in self.subject.broken:
                self.hidden = True  # what it binds is not known
                continue
            yield from self._step(where, step)

    def _step(self, path: Path, step: dict[str, Any]) -> Iterator[Diagnostic]:
        verb = verb_of(step)
        if verb is None:
            return
        names = list(verb.names_in(step))
        binds = [name for name in names if isinstance(name, Bind)]
        for name in names:
            if not isinstance(name, Bind):
                yield from self._use((*path, *name.path), name.name)
        for key, rule in verb.keys.items():
            if rule.kind == "device" and key in step:
                yield from self._base((*path, key), step[key])
        yield from _untyped_cells(self.subject, path, step, self.sequence.typed)
        outside = dict(self.bound)
        for bind in binds:
            yield from self._bind((*path, *bind.path), bind)
        if "steps" in step:
            yield from self._block((*path, "steps"), step["steps"], outside)
        for key in ("undo", "finally"):
            if key in step:
                yield from self._block((*path, key), step[key], dict(self.bound))

    def _block(self, path: Path, steps: list[dict[str, Any]], outside: dict[str, str]) -> Iterator[Diagnostic]:
        """Steps that are done later, or once for each of what may be none: what they bind is not bound after them."""
        yield from self._list(path, steps)
        self.inner |= self.bound.keys() - outside.keys()
        self.bound = outside

    def _use(self, path: Path, name: str) -> Iterator[Diagnostic]:
        base, dot, entry = name.partition(".")
        self.used.add(base)
        if dot:
            yield from self._base(path, base)
            yield from self._entry(path, entry)
        elif name not in self.bound and not self.hidden:
            self.has_stranger = True
            message = f"{self.sequence.what} uses {quoted(name)}, which nothing has bound before"
            yield self.subject.diagnostic(path, "unknown-name", message, hint=did_you_mean(name, [*self.bound]))

    def _base(self, path: Path, base: str) -> Iterator[Diagnostic]:
        """What stands before the dot is a device, or has one."""
        if base in ("state", "stream") or self.bound.get(base) == DEVICE or self.hidden:
            return
        message = f"{quoted(base)} is no device, whose entries could be named"
        known = ["state", *(name for name, kind in self.bound.items() if kind == DEVICE)]
        yield self.subject.diagnostic(path, "unknown-name", message, label=f"known here: {listed(known)}")

    def _entry(self, path: Path, entry: str) -> Iterator[Diagnostic]:
        kept = [*handles(self.subject), *self.subject.mapping("state")]
        known = kept if self.sequence.entries is None else self.sequence.entries
        if entry not in known:
            message = f"nothing that is kept of a device has the name {quoted(entry)}"
            if entry in kept:
                message = f"{self.sequence.what} uses {quoted(entry)}, which is not there before it"
            hint = did_you_mean(entry, known)
            label = f"known: {listed(known)}" if known else ""
            yield self.subject.diagnostic(path, "unknown-name", message, label=label, hint=hint)

    def _bind(self, path: Path, bind: Bind) -> Iterator[Diagnostic]:
        if (bind.name in self.bound or bind.name in self.inner) and bind.name != "stream":
            message = f"{self.sequence.what} binds {quoted(bind.name)} more than once"
            yield self.subject.diagnostic(path, "bound-twice", message)
        self.bound[bind.name] = bind.type

    def _parameters(self) -> Iterator[Diagnostic]:
        """Every parameter of an operation is used, or named as ignored."""
        if not self.sequence.is_operation or self.hidden:
            return
        ignored = {*self.sequence.ignores}
        flags = self._flags()
        left_out = [name for name in self.sequence.takes if name not in self.used | ignored | flags]
        if left_out and not self.has_stranger:  # what an unknown name was meant to be is not left out
            them = "it" if len(left_out) == 1 else "them"
            message = f"the steps of {self.sequence.what} do not use {listed(left_out)}"
            hint = f"use {them}, or name {them} under `ignores`"
            yield self.subject.diagnostic(self.sequence.path, "unused-parameter", message, at="key", hint=hint)
        for index, name in enumerate(self.sequence.ignores):
            if name in self.used:
                message = f"{self.sequence.what} ignores `{name}`, and a step uses it"
                where = (*self.sequence.path[:-1], "ignores", index)
                yield self.subject.diagnostic(where, "ignored-and-used", message)

    def _flags(self) -> set[str]:
        """The boolean parameters that go into a call as bits."""
        flags = self.subject.contract.flags
        return {
            word
            for step in self.sequence.steps
            for argument in step.get("args", ())
            if isinstance(argument, dict) and argument.get("flags") in flags
            for word in flags[argument["flags"]].words
        }

    def _results(self) -> Iterator[Diagnostic]:
        if self.hidden:
            return
        form = self.subject.document.at(self.sequence.path[:-1])
        for name, rule in form.get("result", {}).items() if isinstance(form, dict) and self.sequence.made else ():
            if rule["of"] not in self.bound:
                message = f"nothing that {self.sequence.what} binds has the name {quoted(rule['of'])}"
                path = (*self.sequence.path[:-1], "result", name, "of")
                hint = did_you_mean(rule["of"], [*self.bound])
                yield self.subject.diagnostic(path, "unknown-name", message, hint=hint)
        nowhere = [name for name in self.sequence.gives if name not in self.bound and name not in self.sequence.made]
        if nowhere:
            message = f"the steps of {self.sequence.what} end, and nothing has bound {listed(nowhere)}"
            yield self.subject.diagnostic(self.sequence.path, "unbound-result", message, at="key")


def _untyped_cells(
    subject: Subject, path: Path, call: Mapping[str, Any], typed: tuple[str, ...]
) -> Iterator[Diagnostic]:
    """The cells of a call that have no type: neither one of their own nor that of a result."""
    for index, argument in enumerate(call.get("args", ())):
        is_cell = isinstance(argument, dict) and "out" in argument and "struct" not in argument
        if is_cell and "type" not in argument and argument["out"] not in typed:
            message = f"{quoted(argument['out'])} is no result, so its cell has no type"
            hint = "a cell that is no result needs a `type`"
            yield subject.diagnostic((*path, "args", index, "out"), "unknown-name", message, hint=hint)


def check_device_calls(subject: Subject) -> Iterator[Diagnostic]:
    """What a call under `devices` passes is a handle of a level above, or the symbol that is asked for."""
    for path, call, known in _device_calls(subject):
        for index, argument in enumerate(call["args"]):
            for name in names_in(argument):
                if name.role in ("parameter", "mention") and name.name not in known:
                    message = f"this call passes {quoted(name.name)}, which is no handle that is known here"
                    where, hint = (*path, "args", index, *name.path), did_you_mean(name.name, known)
                    label = f"known here: {listed(known)}" if known else ""
                    related = subject.nearest("devices", "levels")
                    facts: dict[str, Any] = {"label": label, "hint": hint, "related": related}
                    yield subject.diagnostic(where, "unknown-name", message, **facts)
        yield from _untyped_cells(subject, path, call, ())


def check_levels(subject: Subject) -> Iterator[Diagnostic]:
    """The call that lists a level has room for the handles, and a cell for their number."""
    for path, call, known in _device_calls(subject):
        if path[:2] != ("devices", "levels"):
            continue
        forms = [argument for argument in call["args"] if isinstance(argument, dict)]
        named = [argument for argument in call["args"] if isinstance(argument, str)]
        lacking = [key for key in ("list", "found") if not any(key in form for form in forms)]
        if lacking and all(name in known for name in named):  # or what stands there instead is told
            message = f"the call that lists `{call['as']}` has no {listed(lacking)} among its arguments"
            hint = "`{list: pointer}` is the room for the handles, and `{found: uint}` their number"
            yield subject.diagnostic((*path, "args"), "unbound-result", message, at="key", hint=hint)


def _device_calls(subject: Subject) -> Iterator[tuple[Path, dict[str, Any], list[str]]]:
    """Path, call and known names of every call under `devices` that is no step."""
    levels = subject.value("devices", "levels") or ()
    above = [level["as"] for level in levels]
    for index, level in enumerate(levels):
        if "call" in level:
            yield ("devices", "levels", index), level, above[:index]
    written = subject.section("devices") if levels else {}  # without levels no handle is known
    if "gpu" in written:
        yield ("devices", "gpu"), written["gpu"], above
    for model, probe in written.get("models", {}).items():
        yield ("devices", "models", model), probe, above
    if "functions" in written:
        yield ("devices", "functions"), written["functions"], [*above, "symbol"]


def check_pending(subject: Subject) -> Iterator[Diagnostic]:
    """Work that is left in flight, and a set of streams, belong to the policy `queues`."""
    if "queues" in subject.mapping("policies"):
        return
    for sequence in sequences(subject):
        for index, step in enumerate(sequence.steps):
            if "pend" in step or "each" in step:
                message = "nothing keeps streams: the file has no `policies.queues`"
                yield subject.diagnostic((*sequence.path, index), "wrong-policy", message)


def check_handovers(subject: Subject) -> Iterator[Diagnostic]:
    """What the address table keeps, and what a stream keeps, is released by each of them."""
    for sequence in sequences(subject):
        kept: set[str] = set()
        for index, step in enumerate(sequence.steps):
            key = "pend" if "pend" in step else "object" if "track" in step and "object" in step else "track"
            name = step.get(key)
            if name in kept:
                message = f"{quoted(name)} is handed over already, and would be released twice"
                yield subject.diagnostic((*sequence.path, index, key), "wrong-owner", message)
            if name:
                kept.add(name)


def check_models(subject: Subject) -> Iterator[Diagnostic]:
    """A model that steps or a policy are for is one that devices can be."""
    known = [*subject.mapping("devices", "models")]
    users: dict[str, list[tuple[Path, str]]] = {}
    paths = [sequence.path[:-1] for sequence in sequences(subject)]
    paths += [variant.path for variant in subject.variants() if "policy" in variant.spec]
    for path in paths:
        form = subject.document.at(path)
        if isinstance(form, dict) and "model" in form and form["model"] not in known:
            users.setdefault(form["model"], []).append(((*path, "model"), path_text(path)))
    for model, found in users.items():
        says = f"no device is of the model {quoted(model)}, which USERS name(s)"
        facts = subject.lacking(found, says, of=("devices", "models"))
        yield subject.diagnostic(found[0][0], "unknown-name", **facts, hint=did_you_mean(model, known))


def check_policies_are_given(subject: Subject) -> Iterator[Diagnostic]:
    """A policy whose parts are steps finds them in the file."""
    given = subject.mapping("policies")
    users: dict[str, list[tuple[Path, str]]] = {}
    for variant in subject.variants():
        name = variant.spec.get("policy", "")
        parts = POLICIES[name].parts if name in POLICIES and name not in given else {}
        if any(part.required for part in parts.values()):
            users.setdefault(name, []).append(((*variant.path, "policy"), variant.operation.name))
    for name, found in users.items():
        needed = [part for part, each in POLICIES[name].parts.items() if each.required]
        says = f"the file has no `policies.{name}` with {listed(needed)}, which USERS need(s)"
        facts = subject.lacking(found, says, of=("policies", name))
        yield subject.diagnostic(found[0][0], "wrong-policy", **facts)


#: So many parts, of which one is needed, are not named one by one.
MANY = 4


def check_parts(subject: Subject) -> Iterator[Diagnostic]:
    """What an operation or another part of a policy needs is among the policy's parts."""
    given = subject.mapping("policies")
    used: dict[str, dict[str, Path]] = {}
    for variant in subject.variants():
        if variant.spec.get("policy") in POLICIES:
            used.setdefault(variant.spec["policy"], {}).setdefault(variant.operation.name, (*variant.path, "policy"))
    broken = {path[:2] for path in subject.broken}  # a part that is misspelt may be the one that is needed
    for name, operations in used.items():
        parts: Any = None if ("policies", name) in broken else given.get(name)
        for cause, needed in POLICIES[name].asks if isinstance(parts, dict) else ():
            is_asked = not cause or cause in operations or cause in parts
            if is_asked and not any(part in parts for part in needed):
                said = listed(needed, "or") if len(needed) < MANY else "a fact at least"
                message = f"`{cause or name}` needs {said} under `policies.{name}`"
                path = operations.get(cause, ("policies", name, cause) if cause else ("policies", name))
                hint = f"add it, or give a reason for `{cause}` under `absent`" if cause in operations else ""
                at = "value" if cause in operations else "key"
                related = subject.nearest("policies", name)
                yield subject.diagnostic(path, "wrong-policy", message, at=at, related=related, hint=hint)


def check_state(subject: Subject) -> Iterator[Diagnostic]:
    """What is kept of a device has names of its own, and is kept for a level that there is."""
    if any(path[:1] == ("devices",) for path in subject.broken):
        return
    levels = handles(subject)
    for name, entry in subject.section("state").items():
        if name in (*DEVICE_FACTS, *levels):
            message = f"every device has {quoted(name)} already"
            yield subject.diagnostic(("state", name), "bound-twice", message, at="key", hint="give it another name")
        if "scope" in entry and entry["scope"] not in levels:
            message = f"no level of the devices has the name {quoted(entry['scope'])}"
            hint = did_you_mean(entry["scope"], levels)
            yield subject.diagnostic(("state", name, "scope"), "unknown-name", message, hint=hint)
    apart = subject.value("devices", "apart")
    if apart is not None and apart not in levels:
        message = f"no level of the devices has the name {quoted(apart)}"
        yield subject.diagnostic(("devices", "apart"), "unknown-name", message, hint=did_you_mean(apart, levels))
    for index, level in enumerate(levels):
        if level in DEVICE_FACTS or level in levels[:index]:
            path = ("devices", "levels", index, "as")
            yield subject.diagnostic(path, "bound-twice", f"every device has {quoted(level)} already")


def check_marks(subject: Subject) -> Iterator[Diagnostic]:
    """Marks are recorded, or told by counters that are made, raised, waited for and dropped."""
    given = subject.mapping("policies", "marks")
    counters = ("make", "drop", "raise", "hold")
    if all(part in given for part in counters) and "keep" not in subject.mapping("policies", "queues"):
        message = "marks by counters need `keep` under `policies.queues`: an event and its stream both keep the work"
        yield subject.diagnostic(("policies", "marks", "make"), "wrong-policy", message, at="key")
    if not given or "record" in given or all(part in given for part in counters):
        return
    missing = [part for part in counters if part not in given]
    message = f"marks are put into a queue by `record`, or by counters, which lack {listed(missing)}"
    yield subject.diagnostic(("policies", "marks"), "wrong-policy", message)


def check_statuses(subject: Subject) -> Iterator[Diagnostic]:
    """What has finished is not on its way too."""
    for policy in ("queues", "marks"):
        values = subject.mapping("policies", policy)
        here = ("policies", policy, "busy")
        if here in subject.faulty or (*here[:2], "complete") in subject.broken:
            continue
        for path, status in subject.entries(here, values.get("busy", [])):
            if status == values.get("complete", 0):
                message = f"the status {status} is `complete` already, and nothing of it would be on its way"
                yield subject.diagnostic(path, "duplicate-number", message)


def check_handles(subject: Subject) -> Iterator[Diagnostic]:
    """Where addresses stand for objects, something puts them into the table."""
    if subject.value("handles") != "object" or any(path[:1] == ("operations",) for path in subject.broken):
        return
    if not any("track" in step for sequence in sequences(subject) for step in sequence.steps):
        message = "`handles: object` needs steps that `track` what an address stands for, and no step does"
        yield subject.diagnostic(("handles",), "wrong-handles", message, hint="drop it where pointers are addresses")


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (
    check_steps,
    check_device_calls,
    check_levels,
    check_pending,
    check_handovers,
    check_models,
    check_policies_are_given,
    check_parts,
    check_state,
    check_marks,
    check_statuses,
    check_handles,
)
