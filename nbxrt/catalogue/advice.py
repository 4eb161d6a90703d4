"""What was probably meant: a hint for mistakes that are often made by people who write their first backend file.

Tables of a mistake and its hint; an empty text where nothing is known to be meant.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nbxrt.catalogue import schema_parts
from nbxrt.catalogue.diagnostics import short

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.catalogue.contract import Contract
    from nbxrt.catalogue.document import Path


def for_text(path: Path, value: str, pattern: str, contract: Contract) -> str:
    """What a text should be that does not match its pattern."""
    if pattern == schema_parts.VERSION:
        return 'a range is `since`, included, and `before`, not included: `since: "2.0"`'
    if path == ("extends",) and re.search(r"[/\\.]", value):
        return "it names a backend, not its file: name that file, or its folder, in NBXRT_BACKEND_PATH"
    if pattern == schema_parts.NAME:
        near = re.sub(r"[^a-z0-9]+", "_", value.lower()).strip("_")
        return short(f"write `{near}`") if re.search(pattern, near) and near != value else ""
    called = re.fullmatch(r"([A-Za-z_]\w*)\s*\(.*\)", value, re.DOTALL)
    if called and path[:1] == ("operations",) and (operation := contract.operations.get(str(path[1]))):
        args = f", or `{{call: {called[1]}, args: […]}}`" if operation.c is not None else ""
        return short(f"write the symbol alone, `{called[1]}`{args}")
    return ""


def for_type(path: Path, value: Any, types: list[str]) -> str:
    """What a value of a wrong type should be."""
    return short(next((hint for tell in _TYPES if (hint := tell(path, value, types))), ""))


def _number_in_quotes(_path: Path, value: Any, types: list[str]) -> str:
    is_number = isinstance(value, str) and re.fullmatch(r"-?(0x[0-9a-fA-F]+|[1-9][0-9]*|0)", value)
    return f"write it without quotes: `{value}`" if is_number and "integer" in types else ""


def _arguments(path: Path, value: Any, _types: list[str]) -> str:
    if path[-1:] != ("args",) or not isinstance(value, (dict, str)):
        return ""
    names = ", ".join(map(str, value)) if isinstance(value, dict) else value
    return f"the arguments are a list in C order: `args: [{names}]`"


def _library_name(path: Path, value: Any, _types: list[str]) -> str:
    is_name = path[:1] == ("libraries",) and path[2:3] == ("names",) and len(path) == 4
    return f"say for which system: `{{linux: {value}}}`" if is_name and isinstance(value, str) else ""


def _reasons(path: Path, value: Any, _types: list[str]) -> str:
    if path != ("absent",) or not isinstance(value, list):
        return ""
    return "each has its reason: `absent: {peer: why there is none}`"


def _null_operation(path: Path, value: Any, _types: list[str]) -> str:
    if value is not None or path[:1] != ("operations",) or len(path) != 2:
        return ""
    return "name its symbol; an operation that is not required may be left out instead, with a reason under `absent`"


def _variables(path: Path, value: Any, _types: list[str]) -> str:
    if path[-1:] != ("environment",) or not isinstance(value, str):
        return ""
    return f"write `[{value.strip('${}%')}]`: a list of names"


def _one_of_a_list(path: Path, value: Any, types: list[str]) -> str:
    if types != ["array"] or not isinstance(value, (str, int)) or not path or isinstance(value, bool):
        return ""
    return f"write `{path[-1]}: [{value}]`"


_TYPES: tuple[Callable[[Path, Any, list[str]], str], ...] = (
    _number_in_quotes,
    _arguments,
    _library_name,
    _reasons,
    _null_operation,
    _variables,
    _one_of_a_list,
)


def for_word(path: Path, value: Any) -> str:
    """What a word should be that is none of those known."""
    if (
        path[:1] == ("libraries",)
        and path[2:3] == ("search",)
        and isinstance(value, str)
        and re.search(r"[/\\]", value)
    ):
        return short(f"a place is a step of its own: `{{root: {value}, folder: .}}`")
    if path[-1:] == ("returns",) and value in ("pointer", "result"):
        return f"write `{{{value}: NAME}}` with the result that it is"
    return ""


def for_key(path: Path, key: str, at_the_top: tuple[str, ...]) -> str:
    """Where a key belongs that is unknown where it stands."""
    if key.lower().startswith(("x-", "x_")):
        return "a key for the file's own use begins with `x-`, and stands at the top of the file"
    return f"`{key}` stands at the top of the file, not in here" if path and key in at_the_top else ""
