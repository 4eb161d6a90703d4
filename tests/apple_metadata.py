"""What Apple says of its selectors, in two wheels that are read as text and never imported.

`pyobjc-framework-Metal` has the types of each selector, made by a tool from Apple's headers, and the numbers of every
enum; `metal-cpp` in `mlx-metal` is Apple's own C++ interface: the class of each selector, and its types in C++.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

# pyobjc-framework-Metal: one module of calls that register metadata


class PyObjC:
    """The metadata module of a framework: encodings by selector, enums by name, functions that give ownership."""

    def __init__(self, file: Path) -> None:
        tree = ast.parse(file.read_text("utf-8"))
        self.encodings: dict[str, str] = {}
        self.owning: set[str] = set()
        self.enums: dict[str, int] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "r":
                self._method(*map(_value, node.args))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("$"):
                self._numbers(node.value)
            elif isinstance(node, ast.Dict):
                self._functions(node)

    def _method(self, _owner: bytes, selector: bytes, facts: dict[str, Any]) -> None:
        arguments = facts.get("arguments", {})
        count = selector.count(b":")
        types = [
            facts.get("retval", {}).get("type", "?"),
            *(arguments.get(2 + n, {}).get("type", "?") for n in range(count)),
        ]
        self.encodings.setdefault(selector.decode(), "".join(map(_spelled, types)))

    def _numbers(self, text: str) -> None:
        for entry in text.split("$"):
            name, _at, number = entry.partition("@")
            if number.lstrip("-").isdigit():
                self.enums[name] = int(number)

    def _functions(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and "already_cfretained" in ast.dump(value):
                self.owning.add(str(key.value))


def _value(node: ast.expr) -> Any:
    """A literal; of a choice between 32 and 64 bits the second, and nothing for what is no literal."""
    if isinstance(node, ast.Call):
        return _value(node.args[-1])
    if isinstance(node, ast.Dict):
        return {_value(key): _value(value) for key, value in zip(node.keys, node.values, strict=True) if key}
    return node.value if isinstance(node, ast.Constant) else None


def _spelled(written: bytes | str) -> str:
    """An encoding as the compiler spells it: there, `Z` is a BOOL and `z` a byte that is a number."""
    text = written.decode() if isinstance(written, bytes) else written
    return {"Z": "B", "z": "C"}.get(text, text)


# metal-cpp: C++ headers

_SELECTOR = re.compile(r'_PRIVATE_DEF_SEL\((\w+),\s*"([^"]+)"\)')
_ENUM = re.compile(r"_(?:MTL|NS)_(?:ENUM|OPTIONS)\((?:NS::)?(U?Integer|uint\d+_t|std::\w+), (\w+)\)")
_INLINE = re.compile(
    r"_(?:MTL|NS)_INLINE ([^\n(]+?)\s*\b(?:MTL|NS)::(\w+)(?:<[^>]*>)?::(\w+)"
    r"\(([^\n]*?)\)\s*(?:const)?\s*\n\{\n(.*?)\n\}",
    re.DOTALL,
)
_SENT = re.compile(r"_PRIVATE_SEL\((\w+)\)")
_SCALARS = {
    "void": "v", "bool": "B", "char": "c", "float": "f", "double": "d", "TimeInterval": "d", "CFTimeInterval": "d",
    "UInteger": "Q", "Integer": "q", "uint64_t": "Q", "uint32_t": "I", "uint8_t": "C", "int64_t": "q", "int32_t": "i",
    "dispatch_data_t": "@", "Range": "{_NSRange=QQ}", "Size": "{MTLSize=QQQ}",
}  # fmt: skip


class MetalCpp:
    """Apple's C++ headers: the encoding of each message that they send, by class and selector."""

    def __init__(self, folder: Path) -> None:
        text = {file: file.read_text("utf-8") for file in sorted(folder.glob("*/*.hpp")) if "Single" not in str(file)}
        self._selectors = {name: said for each in text.values() for name, said in _SELECTOR.findall(each)}
        self._enums = {name: base for each in text.values() for base, name in _ENUM.findall(each)}
        self.selectors = set(self._selectors.values())
        self.encodings: dict[tuple[str, str], str] = {}
        for file, each in text.items():
            prefix = "NS" if file.parent.name == "Foundation" else "MTL"
            for returns, owner, _name, parameters, body in _INLINE.findall(each):
                for accessor in _SENT.findall(body):
                    if accessor in self._selectors:
                        known = {"v": "void"}.get(returns, returns)
                        said = self._encoding(known, parameters)
                        name = {"Referencing": "Object"}.get(owner, owner)  # a template has what all objects have
                        self.encodings[prefix + name, self._selectors[accessor]] = said

    def _encoding(self, returns: str, parameters: str) -> str:
        types = [re.sub(r"\w+$", "", each.strip()) for each in parameters.split(",") if each.strip()]
        return "".join(map(self._letter, [returns, *types]))

    def _letter(self, written: str) -> str:
        name = re.sub(r"\b(const|class|static)\b|\b(?:MTL|NS|std)::", "", written)
        name, stars = name.replace("*", "").strip(), name.count("*")
        if stars == 1:
            return {"char": "*", "void": "^v"}.get(name, "@")
        if stars:
            return "^@"
        name = self._enums.get(name, name).replace("std::", "")
        return _SCALARS.get(name, "?")
