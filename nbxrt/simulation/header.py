"""The contract as C: numbers for its words, and the prototype of every operation that the simulator's core must have.

The core includes this header, so that a difference between contract and core is an error of the compiler. Operations
that the core does not have yet are weak: their wrappers answer `not_supported`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.simulation.primitives import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: C type of a parameter by the contract's own C type. Handles and addresses are integers in the core.
PARAMETERS = {
    "pointer": "uint64_t",
    "size": "uint64_t",
    "int": "int",
    "uint": "unsigned",
    "uint64": "uint64_t",
    "float": "float",
    "text": "const char *",
}
#: Parameters of these contract types have a form of their own.
SPECIAL = {"dim3": "const unsigned *", "arguments": "void **", "bytes": "const void *"}
RESULTS = {"text": "struct sim_text", "bytes": "struct sim_bytes", "processes": "struct sim_rows"}


def parameter_type(kind: str, contract: Mapping[str, Any]) -> str:
    """The C type that a parameter of a contract type has in the core."""
    if kind in contract["enums"]:
        return "int"
    return SPECIAL.get(kind) or PARAMETERS[contract["types"][kind][0]]


def result_type(kind: str, contract: Mapping[str, Any]) -> str:
    """The C type that a result of a contract type has in the core."""
    return RESULTS.get(kind) or parameter_type(kind, contract)


def results(entry: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The results that come out of the core's function; one that the status tells is not among them."""
    return () if entry["done"] else tuple(entry["gives"])


def operations(contract: Mapping[str, Any]) -> Mapping[str, Any]:
    """What functions of the core there are: the contract's operations, and what is less than one."""
    return {**contract["operations"], **PRIMITIVES}


def contract_header(contract: Mapping[str, Any]) -> str:
    """The text of contract.h."""
    lines = ["/* Written by nbxrt.simulation from the contract. */", "#include <stddef.h>", "#include <stdint.h>"]
    lines += [f"struct {kind};" for kind in ("sim_text", "sim_bytes", "sim_rows")]
    lines += _numbers("KIND", ["success", *contract["errors"]])
    lines += _numbers("OP", [*operations(contract)])
    lines += _numbers("GROUP", [*contract["groups"]])
    for name, (_numbered, words) in contract["enums"].items():
        lines += _numbers(name.upper(), words)
    lines += _table("kind_names", ["success", *contract["errors"]])
    lines += _table("operation_names", [*operations(contract)])
    for name, (_numbered, words) in contract["enums"].items():
        lines += _table(f"{name}_words", words)
    lines += _facts(contract)
    lines += _prototypes(contract)
    return "\n".join(lines) + "\n"


def _numbers(prefix: str, words: Any) -> list[str]:
    members = ", ".join(f"{prefix}_{word.upper()}" for word in words)
    return [f"enum {{ {members}, {prefix}_COUNT }};"]


def _table(name: str, words: Any) -> list[str]:
    texts = ", ".join(f'"{word}"' for word in words)
    return [f"static const char *const {name}[] __attribute__((unused)) = {{ {texts} }};"]


def _facts(contract: Mapping[str, Any]) -> list[str]:
    """What the contract says of each kind of error and of each operation, as arrays by their numbers."""
    groups = [*contract["groups"]]
    sticky = ", ".join(str(int(row[1])) for row in contract["errors"].values())
    of_group = ", ".join(str(groups.index(entry["group"])) for entry in operations(contract).values())
    return [
        f"static const unsigned char kind_is_sticky[] __attribute__((unused)) = {{ 0, {sticky} }};",
        f"static const unsigned char group_of_operation[] __attribute__((unused)) = {{ {of_group} }};",
    ]


def _prototypes(contract: Mapping[str, Any]) -> Iterator[str]:
    for name, entry in operations(contract).items():
        yield f"int sim_{name}({_arguments(entry, contract)}) __attribute__((weak));"


def _arguments(entry: Mapping[str, Any], contract: Mapping[str, Any]) -> str:
    given = []
    for name, kind, _zero, _default in entry["takes"]:
        given.append(f"{parameter_type(kind, contract)} {name}")
        if kind == "bytes":
            given.append(f"size_t {name}_nbytes")
    given += [f"{result_type(kind, contract)} *{name}" for name, kind in results(entry)]
    return ", ".join(given) or "void"
