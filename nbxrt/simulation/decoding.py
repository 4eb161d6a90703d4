"""One operation of a simulated function in C, collected line by line: parameters, what comes in, what goes back.

What each form of an argument adds to it is in argument_forms.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.simulation import header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nbxrt.simulation.plan import Case, Plan

#: C types of the format, as C writes them.
C_TYPES = {
    "int": "int",
    "uint": "unsigned",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "size": "size_t",
    "pointer": "void *",
    "float": "float",
    "double": "double",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "text": "const char *",
    "bytes": "const void *",
}
#: Those of them whose values may be negative.
SIGNED = ("int", "int64")
#: Types of handles behind which a device is.
_BEHIND = ("function", "module", "event")


class Decoder:
    """The C lines of one case, by their part in the function."""

    def __init__(self, plan: Plan, role: str, case: Case) -> None:
        self.plan = plan
        self.role = role
        self.case = case
        self.entry: Mapping[str, Any] = header.operations(plan.contract)[case.operation]
        self.takes: dict[str, str] = {name: kind for name, kind, _zero, _default in self.entry["takes"]}
        self.gives: dict[str, str] = dict(self.entry["gives"])
        self.parameters: list[str] = []  # of the C function
        self.decode: list[str] = []  # what comes in
        self.convert: list[str] = []  # results in the vendor's numbers, which may still refuse the call
        self.refuse: list[str] = []  # what can be refused only then
        self.store: list[str] = []  # results to where the caller wants them, on success
        self.always: list[str] = []  # after the call, whatever its status
        self.tables: dict[str, str] = {}  # C arrays of numbers by their name
        self.types: dict[str, str] = {}  # C structures that are passed by value
        self.known: set[str] = set()  # parameters that an argument gives
        self.stream = "0"  # the handle of the stream that an argument gives, in C

    # parameters of the C function

    def new(self, declared: str) -> str:
        """A new parameter of the C function; its name."""
        name = f"a{len(self.parameters)}"
        self.parameters.append(f"{declared}{'' if declared.endswith('*') else ' '}{name}")
        return name

    def new_axes(self) -> list[str]:
        return [self.new("unsigned") for _axis in range(3)]

    def new_pointer(self, declared: str = "void *") -> str:
        """A new parameter that must not be null."""
        name = self.new(declared)
        self.decode.append(f"sim_expect(&call, {name} != NULL);")
        return name

    # what comes in

    def take(self, name: str, c_type: str, value: str, *, guard: str = "") -> None:
        """The parameter has the value that a C expression of a C type gives; one that is given twice must agree."""
        kind = self.takes[name]
        if kind in _BEHIND and self.plan.description["devices"]:
            value = as_integer(value, c_type)
            self.decode.append(f"sim_enter_behind(&call, SIM_{kind.upper()}, (uint64_t){value});")
        if kind in self.plan.contract["enums"]:
            self._set(name, self._word(name, kind, value), guard)
            return
        if kind not in header.SPECIAL and c_type != "text":
            value = as_integer(value, c_type)
        if name in self.known:
            self.decode.append(
                f"sim_expect(&call, p_{name} == ({header.parameter_type(kind, self.plan.contract)}){value});"
            )
            return
        self._set(name, value, guard)
        self._note(name, kind, c_type)

    def _set(self, name: str, value: str, guard: str) -> None:
        self.known.add(name)
        self.decode.append(f"{guard}p_{name} = {value};")

    def _note(self, name: str, kind: str, c_type: str) -> None:
        if kind == "text":
            self.decode.append(f'sim_expect(&call, p_{name} != NULL); sim_note_text(&call, "{name}", p_{name});')
        elif kind in header.SPECIAL:
            self.decode.append(f'sim_note_address(&call, "{name}", p_{name});')
        else:
            signed = "signed" if c_type in SIGNED else "unsigned"
            self.decode.append(f'sim_note_{signed}(&call, "{name}", p_{name});')

    def _word(self, name: str, enum: str, value: str) -> str:
        table, count = self.numbers(enum), f"{enum.upper()}_COUNT"
        return f'sim_word(&call, "{name}", {table}, {count}, {enum}_words, (long long){value})'

    def numbers(self, enum: str) -> str:
        """The C array of the vendor's numbers of an enum's words; the contract's order where the vendor has none."""
        words = self.plan.contract["enums"][enum][1]
        numbers = self.plan.words(enum, self.role)
        known = {word: at for at, word in enumerate(words)} if numbers is None else numbers
        values = ", ".join(str(known[word]) if word in known else "INT32_MIN" for word in words)
        name = f"{enum}_of_{self.role}"
        self.tables[name] = f"static const int {name}[] = {{ {values} }};"
        return name

    # what goes out

    @property
    def tells_status(self) -> bool:
        """Whether the vendor tells by a number of its own what the contract tells by the status."""
        return "status" in dict(self.case.fixed)

    @property
    def tells_done(self) -> bool:
        """Whether the vendor tells by a result what the contract tells by the status."""
        given = [argument[1] for argument in self.case.arguments if argument[0] == "out"]
        given += [self.case.returns[1]] if self.case.returns[0] == "result" else []
        return bool(self.entry["done"]) and (bool(self.case.extras) or any(name in self.gives for name in given))

    def result(self, out: str) -> str:
        """The C expression of what a cell of that name receives."""
        for name, of, equals in self.case.extras:
            if of == out:
                truth = "is_done" if self.entry["done"] else f"r_{name}"
                return f"({truth} ? {equals} : {0 if equals else 1})"
        if out in dict(self.case.fixed):
            return str(dict(self.case.fixed)[out])
        if out not in self.gives:
            return "0"
        return self.converted(out, "is_done" if self.entry["done"] else f"r_{out}")

    def converted(self, result: str, value: str) -> str:
        """A result in the vendor's terms: words as numbers, kinds of errors as codes."""
        kind = self.gives[result]
        if kind == "code":
            return f"sim_roles[call.role].codes[{value}]"
        if kind not in self.plan.contract["enums"]:
            return value
        self.convert.append(f"int n_{result} = sim_number(&call, {self.numbers(kind)}, {kind.upper()}_COUNT, {value});")
        return f"n_{result}"


def as_integer(value: str, c_type: str) -> str:
    """The C expression as a number, where it is a pointer."""
    return f"(uint64_t)(uintptr_t){value}" if c_type in ("pointer", "bytes") else value
