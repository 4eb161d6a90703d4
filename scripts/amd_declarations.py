"""Write C headers of AMD SMI and RCCL from AMD's own bindings, which were generated from AMD's headers.

    python scripts/amd_declarations.py amdsmi_wrapper.py cyrccl.pxd FOLDER

No registry has the headers themselves. The bindings are read as text and never imported. RCCL's do not tell the values
of enumerators, so its header has none: what the backend file says of them stays unverified.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = "/* Written by scripts/amd_declarations.py from AMD's bindings. */\n#include <stddef.h>\n#include <stdint.h>\n"

# AMD SMI: a module of ctypes

_PLAIN = {
    "c_char": "char", "c_ubyte": "unsigned char", "c_bool": "_Bool", "c_float": "float", "c_double": "double",
    "c_uint64": "uint64_t", "c_int64": "int64_t", "c_uint32": "uint32_t", "c_int32": "int32_t",
    "c_uint16": "uint16_t", "c_int16": "int16_t", "c_uint8": "uint8_t", "c_int8": "int8_t",
}  # fmt: skip


class Module:
    """The module's statements by the name that they are about; a type comes before what is made of it."""

    def __init__(self, text: str) -> None:
        self.types: dict[str, ast.expr | str] = {}  # what a name stands for; of a structure its kind
        self.fields: dict[str, list[ast.expr]] = {}
        self.functions: dict[str, list[ast.expr]] = {}
        self.numbers: dict[str, int] = {}
        self.enums = set(re.findall(r"(?m)^(\w+) = ctypes\.c_u?int32 # enum$", text))
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and node.bases:
                self.types[node.name] = "union" if "Union" in ast.unparse(node.bases[0]) else "struct"
            elif isinstance(node, ast.Assign):
                self._assigned(node.targets[0], node.value)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and isinstance(value, ast.List):
            known = {"_fields_": self.fields, "argtypes": self.functions}.get(target.attr, {})
            known[target.value.id] = value.elts
        elif isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, int):
            self.numbers[target.id] = value.value
        elif isinstance(target, ast.Name):
            self.types.setdefault(target.id, value)

    def header(self) -> Iterator[str]:
        """Constants, then functions, each after the types that it takes."""
        yield from (f"#define {name} {number}" for name, number in self.numbers.items())
        said: set[str] = set()
        for name, takes in {"": [ast.Name("amdsmi_status_t")], **self.functions}.items():
            for each in takes:
                yield from self._types_in(each, said)
            if name:
                given = ", ".join(_declared(each, "") for each in takes) or "void"
                yield f"amdsmi_status_t {name}({given});"
        for name, value in self.types.items():
            if isinstance(value, ast.Name) and value.id in said - {name}:
                yield from self._types_in(ast.Name(name), said)

    def _types_in(self, value: ast.expr, said: set[str]) -> Iterator[str]:
        for node in ast.walk(value):
            if isinstance(node, ast.Name) and node.id in self.types and node.id not in said:
                said.add(node.id)
                yield from self._type(node.id, said)

    def _type(self, name: str, said: set[str]) -> Iterator[str]:
        value = self.types[name]
        if name in self.enums:
            yield f"typedef enum {name} {{ some_{name} }} {name};"
            return
        if not isinstance(value, str):
            yield from self._types_in(value, said)
            yield f"typedef {_declared(value, name)};"
            return
        fields = [field for field in self.fields.get(name, []) if isinstance(field, ast.Tuple)]
        for field in fields:
            yield from self._types_in(field.elts[1], said)
        members = " ".join(map(_member, fields))
        yield f"typedef {value} {name} {{ {members} }} __attribute__((packed)) {name};"


def _member(field: ast.Tuple) -> str:
    """A member; the module states padding as members of its own."""
    name = ast.literal_eval(field.elts[0])
    bits = f" : {ast.literal_eval(field.elts[2])}" if len(field.elts) > 2 else ""
    return f"{_declared(field.elts[1], f'm_{name}' if name.startswith(('struct_', 'union_')) else name)}{bits};"


def _declared(value: ast.expr, name: str) -> str:
    if isinstance(value, ast.BinOp):
        return _declared(value.left, f"{name}[{ast.unparse(value.right)}]")
    if isinstance(value, ast.Call):  # POINTER(…)
        inner = value.args[0]
        return f"void *{name}" if isinstance(inner, ast.Constant) else _declared(inner, f"*{name}")
    return f"{_PLAIN[value.attr] if isinstance(value, ast.Attribute) else ast.unparse(value)} {name}".rstrip()


# RCCL: declarations for Cython

_FUNCTION = re.compile(r"(?m)^cdef (?P<head>[\w *]+\bnccl\w+\(.*\)) (?:no)?except")
_OPAQUE = re.compile(r"(?m)^ +ctypedef (?P<struct>\w+) \* (?P<name>\w+)$")
_STRUCT = re.compile(r"(?m)^ +(?:ctypedef|cdef) struct (?P<name>\w+):\n(?P<fields>(?: {8}\S.*\n)+)")
_ENUM = re.compile(r"(?m)^ +ctypedef enum (?P<name>\w+):")
_ALIAS = re.compile(r"(?m)^ +ctypedef (?P<old>ncclConfig\w+|ncclSimInfo\w+) (?P<new>\w+)$")


def rccl(declarations: str) -> Iterator[str]:
    """Types and functions."""
    yield "typedef struct ihipStream_t *hipStream_t;"
    for found in _OPAQUE.finditer(declarations):
        yield f"typedef struct {found['struct']} *{found['name']};"
    for found in _ENUM.finditer(declarations):
        yield f"typedef enum {found['name']} {{ some_{found['name']} }} {found['name']};"
    for found in _STRUCT.finditer(declarations):
        fields = [line.strip() for line in found["fields"].splitlines()]
        if fields != ["pass"]:
            yield f"typedef struct {found['name']} {{ {' '.join(f'{field};' for field in fields)} }} {found['name']};"
    for found in _ALIAS.finditer(declarations):
        yield f"typedef {found['old']} {found['new']};"
    for found in _FUNCTION.finditer(declarations):
        if "ncclParam" not in found["head"]:  # settings, whose handle is declared elsewhere
            yield f"{found['head']};"


def main(module: str, declarations: str, folder: str) -> None:
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    for name, lines in {
        "amdsmi.h": Module(Path(module).read_text("utf-8")).header(),
        "rccl.h": rccl(Path(declarations).read_text("utf-8")),
    }.items():
        (home / name).write_text("\n".join([HEAD, *lines, ""]), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
