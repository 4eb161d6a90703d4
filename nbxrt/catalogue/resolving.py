"""From arguments as a file writes them to the plain tuples of compiling.py, with C types resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbxrt.catalogue.model import Call, Role


class Resolver:
    """Turns arguments as written into tuples, with the C type that each contract type has in one library."""

    def __init__(
        self, parameters: dict[str, str], results: dict[str, str], role: Role, contract: dict[str, Any]
    ) -> None:
        self.parameters = parameters
        self.results = results
        self.role = role
        self.contract = contract

    def call(
        self, call: Call | None, *, default: Any = (), library: str | None = None, answers: str | None = None
    ) -> tuple[Any, ...] | None:
        if call is None:
            return None
        args = default if call.args is None else call.args
        returns = ("code", answers) if answers and call.returns == "status" else self.returns(call.returns)
        arguments = tuple(self.argument(arg) for arg in args)
        usual = arguments == tuple(self.argument(arg) for arg in default) and call.returns == "status"
        return (call.symbols, library or call.library, arguments, returns, usual)

    def returns(self, written: Any) -> tuple[Any, ...]:
        if written in ("status", "ignored", "nothing"):
            return (written,)
        if written in ("code", "text"):
            return (written, next(iter(self.results), written))
        if "pointer" in written:
            return ("pointer", written["pointer"])
        return ("result", written["result"], self.c_type(written.get("type") or self.results[written["result"]]))

    def c_type(self, name: str) -> str:
        """The C type of a contract type, an enum or a C type."""
        if name in self.role.types:
            return self.role.types[name]
        if name in self.contract["types"]:
            return str(self.contract["types"][name][0])
        return "int" if name in self.contract["enums"] else name

    def argument(self, written: Any) -> tuple[Any, ...]:
        if written is None:
            return ("null",)
        if isinstance(written, str):
            return self.named(written, self.parameters[written])
        fields = dict(written)
        head = next(key for key in (*_FORMS, *_CONSTANTS) if key in fields)  # `struct` also where `out` comes first
        if head in _CONSTANTS:
            return ("const", head, fields[head])
        form: tuple[Any, ...] = _FORMS[head](self, fields)
        return form

    def named(self, name: str, kind: str) -> tuple[Any, ...]:
        return ("param", name, self.c_type(kind))

    def out(self, fields: dict[str, Any]) -> tuple[Any, ...]:
        kind = fields.get("type") or self.results[fields["out"]]
        return ("out", fields["out"], self.c_type(kind))

    def fields(self, given: dict[str, Any]) -> tuple[Any, ...]:
        """Fields with what they are set to; bytes and texts go in by their address."""
        return tuple((field, self.field(item)) for field, item in given.items())

    def field(self, item: Any) -> Any:
        is_text = isinstance(item, str) and self.c_type(self.parameters[item]) in ("bytes", "text")
        return ("address", item) if is_text else _item(item)

    def structure(self, fields: dict[str, Any]) -> tuple[Any, ...]:
        name = fields["struct"]
        if "by_pointer" in fields:
            return ("struct_in", name, self.fields(fields["by_pointer"]))
        if "by_value" in fields:
            given = fields["by_value"]
            whole = isinstance(given, str)
            return ("struct_bytes", name, given) if whole else ("struct_value", name, self.fields(given))
        given = fields["out"]
        whole = isinstance(given, str)
        return ("struct_whole", name, given) if whole else ("struct_out", name, tuple(given.items()))


_CONSTANTS = ("uint", "int", "uint64", "int64", "size")

#: The form of an argument is told by its key. `struct` comes before `out`, which it also uses.
_FORMS: dict[str, Any] = {
    "struct": Resolver.structure,
    "out": Resolver.out,
    "param": lambda self, f: self.named(f["param"], f["type"]),
    "again": lambda self, f: self.named(f["again"], f.get("type") or self.parameters[f["again"]]),
    "buffer": lambda _self, f: ("buffer", f["buffer"], f["bytes"]),
    "length": lambda _self, f: ("length", f["length"], f.get("type", "size")),
    "flags": lambda _self, f: ("flags", f["flags"], f.get("type", "uint")),
    "axes": lambda _self, f: ("axes", f["axes"]),
    "packed": lambda _self, f: ("packed", f["packed"], f["as"]),
    "pointer_to": lambda _self, f: ("pointer_to", f["pointer_to"], f["type"]),
    "current_device": lambda _self, f: (
        "current_device_itself" if "as" in f else "current_device",
        f["current_device"],
    ),
    "error": lambda _self, f: ("error", f["error"]),
    "rows": lambda _self, f: ("rows", f["rows"], f["as"], tuple(f["fields"])),
    "count": lambda _self, f: ("count", f["count"]),
    "literal": lambda _self, f: ("literal", f["literal"]),
    "padded": lambda self, f: ("padded", f["padded"], f["by"], self.c_type("nbytes")),
    "array": lambda _self, f: ("array", tuple(map(_item, f["array"])), f["type"]),
    "pci": lambda _self, f: ("pci", f["pci"], tuple(f["bits"])),
}


def _item(item: Any) -> Any:
    """An item of an array: a number, a name, or ("length", name)."""
    return ("length", item["length"]) if isinstance(item, dict) else item
