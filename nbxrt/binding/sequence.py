"""Steps as generated Python: straight code with a `try` where a step says what undoes or follows it.

An operation that is steps becomes one function, checks included, like those of generating.py; what is kept of a device
and the parts of policies become functions too. Names bound by steps are local variables that end in an underscore, and
internal ones begin with one, so that neither meets a word of the contract.
"""

from nbxrt.binding.addresses import MOST_UNSORTED
from nbxrt.binding.forms import ARGUMENTS, finished, returned
from nbxrt.binding.generating import prologue, slot
from nbxrt.binding.parameters import signature
from nbxrt.binding.source import Source, compiled, starting_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from nbxrt.binding.binder import Binder

    Step = tuple[Any, ...]

#: The expression of the current device's state, and of the record of the stream.
STATE, STREAM = "_state", "_stream"


class Names(dict[str, str]):
    """The expression of every name; an entry of what is kept is found through the state that it belongs to."""

    def __init__(self, script: "Script") -> None:
        super().__init__()
        self._script = script

    def __missing__(self, name: str) -> str:
        if name == "stream":
            return f"{self._script.stream()}.queue"
        base, _dot, entry = name.partition(".")
        return f"{self._script.owner(base)}.{entry}"


class Script:
    """Steps under construction. `source` collects cells and globals; its names are those bound so far."""

    def __init__(self, source: Source, gives: "Sequence[tuple[str, str]]", *, own_stream: bool = False) -> None:
        self.source = source
        self.gives = gives
        self.names = Names(self)
        self.names.update(source.names)
        source.names = self.names
        self.owners: dict[str, str] = {}
        self.ignoring = False
        self.sends = False
        self.numbers = 0
        self._guards: set[tuple[str, str]] = set()
        self._fetched: dict[str, list[str]] = {}
        self._unwritten: list[str] = []
        self._depth = 0
        self._own_stream = own_stream

    @property
    def operation(self) -> str:
        """What is under construction, as errors name it."""
        return self.source.operation

    # names

    def bind(self, name: str) -> str:
        """The local variable of a name."""
        self.names[name] = f"{name}_"
        return f"{name}_"

    def value(self, name: str) -> str:
        """The expression of a name."""
        return self.names[name]

    def number(self) -> int:
        """A number that nothing else in this function has."""
        self.numbers += 1
        return self.numbers

    def share(self, prefix: str, value: "Any") -> str:
        """Give the function a value by its globals: the name that it has there."""
        name = f"_{prefix}{self.number()}"
        self.source.globals[name] = value
        return name

    def owner(self, base: str) -> str:
        """The expression of the state behind a name: the current device's, a parameter's, or one bound by a step."""
        if base in self.owners:
            return self.owners[base]
        if base == "state":
            return self.current()
        if base == "stream":
            return f"{self.stream()}.state"
        return self._state_of(base)

    def is_given(self, stream: bool) -> None:
        """The state is the function's first parameter, and the record of the stream one of the others."""
        self._fetched[STATE] = []
        if stream:
            self._fetched[STREAM] = []

    def current(self) -> str:
        """The current device's state, fetched once."""
        if STATE not in self._fetched:
            devices = self.source.binder.listed()
            self.source.globals |= {"_here": devices.here, "_first": devices.first, "_Missing": AttributeError}
            self._fetch(STATE, f"try: {STATE} = _here.state", f"except _Missing: {STATE} = _first()")
        return STATE

    def _fetch(self, name: str, *lines: str) -> None:
        """Have lines written before the step that needs them first: what is refused needs nothing of the vendor."""
        self._fetched[name] = [*lines]
        self._unwritten += lines

    def _state_of(self, parameter: str) -> str:
        name = f"_state_of_{parameter}"
        if name not in self._fetched:
            devices = self.source.binder.listed()
            self.source.globals |= {"_listed": devices.listed, "_numbered": devices.numbered, "_Outside": IndexError}
            given = self.names[parameter]
            self._fetch(name, f"try: {name} = _listed[{given}]", f"except _Outside: {name} = _numbered({given})")
        return name

    def stream(self) -> str:
        """The record of the stream that is given, or of the current device's default one."""
        if STREAM not in self._fetched:
            queues = self.source.binder.policy("queues")
            failed = f"if {STREAM}.failed: raise {STREAM}.failure()"
            if self._own_stream:  # a stream that is given needs no current device
                self.source.globals |= {
                    "_streams": queues.records, "_Unknown": KeyError, "_no_stream": queues.unknown,
                    "_default_stream": queues.of_current,
                }  # fmt: skip
                given = f"try: {STREAM} = _streams[stream] if stream else _default_stream()"
                self._fetch(STREAM, given, "except _Unknown: raise _no_stream(stream) from None", failed)
            else:
                self._fetch(STREAM, f"{STREAM} = {self.current()}.default_stream", failed)
        return STREAM

    # steps

    def lines(self, steps: "Sequence[Step]", end: "Callable[[], list[str]]") -> "list[str]":
        """The code of steps, each with what undoes or follows it around the rest."""
        if not steps:
            return end()
        verb, payload, _undo, always = steps[0]
        own = VERBS[verb](self, *payload)
        following = self._aside(always)
        undoing, guards = self._undoing(steps[0], steps[1:])
        own += guards
        if not self._depth:
            own, self._unwritten = [*self._unwritten, *own], []
        rest = self.lines(steps[1:], end)
        if undoing:
            rest = ["try:", *_deeper(rest), "except BaseException:", *_deeper([*undoing, "raise"])]
        if following:
            rest = ["try:", *_deeper(rest), "finally:", *_deeper(following)]
        return own + rest

    def _undoing(self, step: "Step", rest: "Sequence[Step]") -> "tuple[list[str], list[str]]":
        """What undoes a step, and the lines after it that say that it is still to be undone.

        An object that is ours is given up too, unless something follows it in any case.
        """
        verb, payload, undo, always = step
        undoing = self._aside(undo)
        guards: list[str] = []
        if verb != "send" or not payload[4]:
            return undoing, guards
        name, is_ours = payload[4][0], payload[7] or payload[8]
        given_up = [f"{self.messages('release')}({self.value(name)})"] if is_ours and not always else []
        found = []
        for what, lines, is_settled in (("undo", undoing, _settles), ("own", given_up, _takes_over)):
            if lines and any(is_settled(each, name) for each in rest):
                self._guards.add((what, name))
                guards.append(f"_{what}_{name} = True")
                found += [f"if _{what}_{name}:", *_deeper(lines)]
            else:
                found += lines
        return found, guards

    def settling(self, what: str, name: "str | None") -> "list[str]":
        """The line that says that a name needs no more to be undone; before what settles it is called.

        Nothing that an interrupt could break into stands between the two.
        """
        return [f"_{what}_{name} = False"] if (what, name) in self._guards else []

    def messages(self, name: str) -> str:
        """The expression of a function of the runtime that carries messages: `retain`, `release`, `push`, `pop`."""
        self.sends = True
        self.source.globals[f"_{name}"] = getattr(self.source.binder.messages, name)
        return f"_{name}"

    def pooled(self, body: "list[str]") -> "list[str]":
        """The code in an autorelease pool, where it sends messages: what they give for a while goes with it."""
        if not self.sends:
            return body
        push, pop = self.messages("push"), self.messages("pop")
        return [f"_pool = {push}()", "try:", *_deeper(body), "finally:", f"    {pop}(_pool)"]

    def _aside(self, steps: "Sequence[Step]") -> "list[str]":
        """Steps whose own failure is not asked for: the error that they clean up after is the one to be seen."""
        before, self.ignoring = self.ignoring, True
        lines = self.inner(steps)
        self.ignoring = before
        return lines

    def inner(self, steps: "Sequence[Step]") -> "list[str]":
        """Steps inside a step."""
        self._depth += 1
        lines = self.lines(steps, list)
        self._depth -= 1
        return lines

    def answer(self, made: "Iterable[tuple[str, str, int]]") -> "list[str]":
        """Read the results, give the slot back, return."""
        expressions = {result: f"({self.names[out]} == {equals})" for result, out, equals in made}
        lines, values = [], []
        for result, kind in self.gives:
            raw = expressions.get(result) or self.names[result]
            lines.append(f"_result_{result} = {finished(self.source, result, kind, raw)}")
            values.append(f"_result_{result}")
        if self.source.cells:
            lines.append("_give(_slot)")
        return [*lines, f"return {', '.join(values)}"] if values else lines


def _settles(step: "Step", name: str) -> bool:
    """Whether a step says that what a name stands for needs no more to be undone."""
    return bool(step[0] == "send" and step[1][10] == name)


def _takes_over(step: "Step", name: str) -> bool:
    """Whether a step hands an object over to what keeps it."""
    return bool(step[0] == "pend" and step[1][0] == name)


def _deeper(lines: "Iterable[str]") -> "list[str]":
    return [f"    {line}" for line in lines]


# verbs: the lines of one step each


def _call(
    script: Script, symbols: "tuple[str, ...]", role: str, arguments: "tuple[Any, ...]", returns: "tuple[Any, ...]"
) -> "list[str]":
    source = script.source
    source.call, source.types, source.before, source.results, source.status = [], [], [], {}, ""
    for argument in arguments:
        ARGUMENTS[argument[0]](source, argument)
    restype = returned(source, returns)
    function, symbol = _function(script, symbols, role, arguments, restype)
    lines = [*source.before, *_call_lines(script, role, symbol, f"{function}({', '.join(source.call)})", returns)]
    for name, expression in source.results.items():
        lines.append(f"{script.bind(name)} = {expression}")
    return lines


def _send(script: Script, *payload: "Any") -> "list[str]":
    from nbxrt.binding import sending  # only where a backend sends messages

    script.sends = True
    return sending.send(script, *payload)


def _function(
    script: Script, symbols: "tuple[str, ...]", role: str, arguments: "tuple[Any, ...]", restype: "Any"
) -> "tuple[str, str]":
    """The expression of the function, and its symbol; one that the library does not export is asked for by name."""
    binder = script.source.binder
    library = binder.library(role)
    types = script.source.types
    if library.exports(symbols) or not binder.asks_for_functions:
        function, symbol = binder.typed(library, script.source.operation, symbols, restype, types, keep_gil=False)
        name = script.share("call", function)
        starting_first(script.source, library, name)
        return name, symbol
    name = binder.listed().function_by_address(symbols[0], restype, types)
    return f"{_owner_of(script, arguments)}.{name}", symbols[0]


def _owner_of(script: Script, arguments: "tuple[Any, ...]") -> str:
    """The device whose function is meant: the one that the arguments name first, else the stream's or the current."""
    for argument in arguments:
        if argument[0] == "param" and "." in argument[1]:
            return script.owner(argument[1].partition(".")[0])
        if argument[0] == "param" and argument[1] in ("stream", "queue"):
            return script.owner("stream")
    return script.current()


def _call_lines(script: Script, role: str, symbol: str, call: str, returns: "tuple[Any, ...]") -> "list[str]":
    """The call, and what happens for a status that is not success."""
    source = script.source
    value = returns[0] in ("result", "pointer")
    lines = [f"_value = {call}" if value else call]
    if script.ignoring:
        return lines
    library = source.binder.library(role)
    if source.status:
        lines.append(f"_code = {source.status}")
    elif returns[0] == "status":
        lines = [f"_code = {call}"]
    if source.status or returns[0] == "status":
        failed = f"_code != {library.success}" if library.success else "_code"
        lines.append(f"if {failed}: raise {_failure(script, role, symbol, '_code')}")
    if returns[0] == "pointer":
        code = repr((library.codes("out_of_memory") or (0,))[0])
        lines.append(f"if _value is None: raise {_failure(script, role, symbol, code)}")
    return lines


def _failure(script: Script, role: str, symbol: str, code: str) -> str:
    source = script.source
    fail = script.share("fail", source.binder.failures.failing(source.binder.library(role), source.operation, symbol))
    given = ", ".join(f"{name!r}: {name}" for name, *_rest in source.entry["takes"])
    return f"{fail}({code}, {{{given}}})"


def _table(script: Script, method: str) -> str:
    return script.share("table", getattr(script.source.binder.addresses, method))


def _track(
    script: Script, address: str, nbytes: str, target: "str | None", memory: str, new: "str | None", aligned: int
) -> "list[str]":
    state, where, size = script.current(), script.value(address), script.value(nbytes)
    given = script.value(target) if target else where
    if new is not None and not aligned:
        return [f"{script.bind(new)} = {_table(script, 'mint')}({size}, {given}, {state}, {memory!r})"]
    lines = []
    if new is not None:
        fresh = script.bind(new)
        is_bits = aligned & (aligned - 1) == 0
        rounded = f"({where} + {aligned - 1}) & -{aligned}" if is_bits else f"-(-{where} // {aligned}) * {aligned}"
        lines, where = [f"{fresh} = {rounded}"], fresh
    entries, unsorted = _table(script, "entries"), _table(script, "new")
    return [
        *lines,
        f"{entries}[{where}] = ({size}, {given}, {state}, {memory!r}, 0)",  # as `add` does, without its frame
        f"{unsorted}.append({where})",
        f"if len({unsorted}) > {MOST_UNSORTED}: {_table(script, 'sort')}()",
    ]


def _untrack(script: Script, address: str, owner: "str | None", target: "str | None") -> "list[str]":
    where = script.value(address)
    if owner:
        script.owners[owner] = f"{owner}_"
    state, thing = f"{owner}_" if owner else "_owner", script.bind(target) if target else "_target"
    script.source.globals["_Untracked"] = KeyError
    return [  # as `remove` does, without its frame
        f"try: _nbytes, {thing}, {state}, _memory, _offset = {_table(script, 'entries')}.pop({where})",
        f"except _Untracked: raise {_table(script, 'unknown')}({where}, {script.source.operation!r}) from None",
    ]


def _locate(
    script: Script, address: str, target: "str | None", offset: "str | None", nbytes: "str | None"
) -> "list[str]":
    where, size = script.value(address), script.value(nbytes) if nbytes else "0"
    within = f"{_table(script, 'within')}({where}, {size}, {script.source.operation!r})"
    if target is None or offset is None:  # most addresses are the start of their memory, which needs no search
        entries = _table(script, "entries")
        return [f"_entry = {entries}.get({where})", f"if _entry is None or {size} > _entry[0]: {within}"]
    return [
        f"_block = {within}",
        f"{script.bind(target)} = _block.target",
        f"{script.bind(offset)} = _block.offset_of({where})",
    ]


def _pend(script: Script, work: str) -> "list[str]":
    queues = script.source.binder.policy("queues")
    stream = script.stream()
    return [
        *script.settling("own", work),
        f"{stream}.in_flight.append({script.value(work)})",
        f"if len({stream}.in_flight) > {queues.most}: {script.share('retire', queues.retire)}({stream})",
    ]


def _each(script: Script, members: str, owner: str, member: str, steps: "tuple[Step, ...]") -> "list[str]":
    queues = script.source.binder.policy("queues")
    listed = script.share(members, queues.by_state)
    variable = script.bind(member)
    kept = script.share("queues", queues)
    loop = [f"for {variable} in {listed}.get({script.owner(owner)}, ()):", *_deeper(script.inner(steps))]
    return [f"with {kept}.walks:", *_deeper(loop)]  # no member ends meanwhile


def _boxed(script: Script, targets: "tuple[str, ...]") -> str:
    """What goes into a box: an object, or several; 0 for an empty one."""
    values = [script.value(target) for target in targets]
    return values[0] if len(values) == 1 else f"({', '.join(values)})" if values else "0"


def _mint(script: Script, handle: str, targets: "tuple[str, ...]") -> "list[str]":
    add = script.share("box", script.source.binder.boxes.add)
    return [f"{script.bind(handle)} = {add}({_boxed(script, targets)})"]


def _put(script: Script, targets: "tuple[str, ...]", handle: str, former: "str | None") -> "list[str]":
    swap = script.share("box", script.source.binder.boxes.swap)
    call = f"{swap}({script.value(handle)}, {_boxed(script, targets)})"
    return [f"{script.bind(former)} = {call}" if former else call]


def _taken(script: Script, method: str, handle: str, targets: "tuple[str, ...]", ends: bool) -> "list[str]":
    box = script.share("box", getattr(script.source.binder.boxes, method))
    lines = [f"_box = {box}({script.value(handle)})"]
    if ends:
        success = "True" if script.source.entry["done"] else ", ".join("0" for _result in script.gives)
        lines.append(f"if not _box: return {success}".rstrip())
    return [*lines, f"{', '.join(map(script.bind, targets))} = _box"] if targets else lines


def _take(script: Script, handle: str, targets: "tuple[str, ...]", ends: bool) -> "list[str]":
    return _taken(script, "get", handle, targets, ends)


def _retire(script: Script, handle: str, targets: "tuple[str, ...]", ends: bool) -> "list[str]":
    return _taken(script, "remove", handle, targets, ends)


#: The verbs of catalogue/verbs.py: a function that takes the script and the step's payload gives the lines.
VERBS: "dict[str, Callable[..., list[str]]]" = {
    "call": _call,
    "send": _send,
    "track": _track,
    "untrack": _untrack,
    "locate": _locate,
    "pend": _pend,
    "each": _each,
    "mint": _mint,
    "put": _put,
    "take": _take,
    "retire": _retire,
}


# functions


def operation_function(binder: "Binder", operation: str, variant: "tuple[Any, ...]") -> "Callable[..., Any]":
    """The function of an operation that is steps."""
    _form, _since, _before, _platforms, (_model, _role, steps, only_default), made = variant
    source = Source(binder, operation)
    parameters, checks = signature(source), prologue(source)
    taken = [name for name, *_rest in source.entry["takes"]]
    for name in only_default:
        source.globals["_only_default"] = binder.failures.only_default
        checks.append(f"if {name} != _default_{name}: raise _only_default({operation!r}, {name!r}, _default_{name})")
    script = Script(source, source.entry["gives"], own_stream="stream" in taken)
    if "queues" in binder.description["policies"]:
        script.names.pop("stream", None)  # what goes into the call is the queue behind the handle
    body = script.lines(steps, lambda: script.answer(made))
    lines = [f"def {operation}({parameters}):", *checks, *slot(source), *script.pooled(body)]
    return compiled(source, lines)


def part_function(
    binder: "Binder",
    name: str,
    steps: "tuple[Step, ...]",
    takes: "Sequence[str]",
    gives: "Sequence[str]",
    made: "Iterable[tuple[str, str, int]]" = (),
) -> "Callable[..., Any]":
    """A function of a policy or of what is kept: it takes the state of a device, then the names that it is given.

    Its results are as they came out of C; several make a tuple.
    """
    entry: Mapping[str, Any] = {
        "says": f"Steps of `{name}`.",
        "takes": [(taken, "pointer", None, ()) for taken in takes if taken != "stream"],
        "gives": [(given, "") for given in gives], "never_waits": False, "done": None,
    }  # fmt: skip
    function = name.replace(".", "_")
    source = Source(binder, name, entry)
    source.names.update((taken, taken) for taken in takes if taken != "stream")
    script = Script(source, entry["gives"])
    script.is_given("stream" in takes)
    body = script.lines(steps, lambda: script.answer(made))
    named = [STREAM if taken == "stream" else taken for taken in takes]
    lines = [f"def {function}({', '.join((STATE, *named))}):", *slot(source), *script.pooled(body)]
    return compiled(source, lines)
