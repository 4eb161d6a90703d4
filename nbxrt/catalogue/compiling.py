"""From descriptions to the plain values that the binder reads, and to the committed modules in nbxrt/compiled.

    python -m nbxrt.catalogue.compiling            write nbxrt/compiled/*.py from schema/ and backends/
    python -m nbxrt.catalogue.compiling --check    exit 1 when they are not current

A program that uses a built-in backend reads only these modules: no YAML, no attrs. A user's file goes through the same
functions, so both paths give the binder equal values.

Arguments of a C call become tuples, their form first and C types resolved:

    ("param", name, type)          ("out", name, type)            ("const", type, value)      ("null",)
    ("buffer", result, bytes)      ("length", param, type)        ("flags", enum, type)       ("axes", param)
    ("packed", param, how)         ("pointer_to", param, type)    ("error", type)             ("pci", param, widths)
    ("struct_in", S, pairs)        ("struct_value", S, pairs)     ("struct_bytes", S, param)  (pairs: field, item)
    ("struct_out", S, pairs)       ("struct_whole", S, result)    (pairs: result, field)
    ("rows", S, result, fields)    ("count", type)                ("array", items, type)
    ("padded", param, bytes, type) ("literal", text)            ("current_device", type)
    ("current_device_itself", type)
An item is a parameter, a number, ("length", parameter), or in a structure ("address", parameter).

What a function returns: ("status",), ("ignored",), ("nothing",), ("code", result), ("text", result),
("result", name, type), ("pointer", name). A call is (symbols, role or None, arguments, returns, usual), where usual
says that it has the contract's own C form.
A variant is (form, since, before, platforms, what, results): what is the call, the constant, the parameter, (model,
policy's name) or (model, role, steps, parameters that only take their default), and results are (result, out, equals).
compiling_steps.py has what steps become.
"""

from __future__ import annotations

import pprint
import sys
from pathlib import Path
from typing import Any

from nbxrt.catalogue import compiling_steps, encodings, inheritance, operations_page, reading, sources, stubs
from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue.model import (
    Backend,
    Evidence,
    Identity,
    Interop,
    Operation,
    Range,
    Role,
    Status,
    Variant,
    structure,
    version,
)
from nbxrt.catalogue.resolving import Resolver
from nbxrt.errors import DescriptionError

#: Parameters of the calls that belong to a role instead of an operation.
_ROLE_PARAMETERS = {"code": "int", "device": "int"}
_ROLE_RESULTS = {"version": "int", "text": "text", "active": "int", "flags": "uint"}


def compile_contract(data: dict[str, Any]) -> dict[str, Any]:
    """The contract as plain values, from the data of schema/operations.yaml."""
    return {
        "contract": data["contract"],
        "types": {name: (entry["c"], entry.get("zero") == "refused") for name, entry in data["types"].items()},
        "enums": {name: (entry.get("numbered", False), tuple(entry["words"])) for name, entry in data["enums"].items()},
        "flags": {name: tuple(entry["words"]) for name, entry in data["flags"].items()},
        "errors": {
            name: (entry.get("is"), entry.get("sticky", False), entry.get("raises"), entry["says"])
            for name, entry in data["errors"].items()
        },
        "groups": {name: entry["library"] for name, entry in data["groups"].items()},
        "operations": {name: _contract_operation(entry) for name, entry in data["operations"].items()},
    }


def _contract_operation(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "group": entry["group"],
        "says": entry["says"],
        "since": entry.get("since", 1),
        "takes": tuple(_parameter(name, spec) for name, spec in entry["takes"].items()),
        "gives": tuple(entry["gives"].items()),
        "c": tuple(map(_frozen, entry["c"])) if "c" in entry else None,
        "required": entry.get("required", False),
        "never_waits": entry.get("never_waits", False),
        "released_by": entry.get("released_by"),
        "errors": tuple(entry.get("errors", ())),
        "tolerates": tuple(entry.get("tolerates", ())),
        "done": entry.get("done"),
        "zero_on": entry.get("zero_on"),
        "answers": entry.get("answers"),
    }


def _parameter(name: str, spec: Any) -> tuple[Any, ...]:
    """(name, type, what zero does, default as a 0- or 1-tuple)."""
    if isinstance(spec, str):
        return (name, spec, None, ())
    return (name, spec["type"], spec.get("zero"), (spec["default"],) if "default" in spec else ())


#: What a file does not say of the policy `expandable`.
_EXPANDABLE = {"piece": 24 << 20, "split": 24, "ahead": 0, "keeps_handles": False}


def _frozen(argument: Any) -> Any:
    return tuple(argument.items()) if isinstance(argument, dict) else argument


def compile_backend(backend: Backend, contract: dict[str, Any]) -> dict[str, Any]:
    """The backend as plain values, every operation of the contract answered in `operations` or `absent`."""
    roles = {
        name: backend.libraries[role.same_as] if role.same_as else role for name, role in backend.libraries.items()
    }
    scope = compiling_steps.Scope(backend, roles, contract)
    return {
        "name": backend.name,
        "title": backend.title,
        "contract": backend.contract,
        "abi": backend.abi,
        "kind": backend.kind,
        "handles": backend.handles,
        "platforms": backend.platforms,
        "priority": backend.priority,
        "triton": (backend.triton_keys, backend.triton_target) if backend.triton_keys else None,
        "interop": _interop(backend.interop or Interop()),
        "triton_architecture": tuple(
            (each["call"], each["bytes"], each["at"]) if isinstance(each, dict) else each
            for each in backend.triton_architecture
        ),
        "expandable": {**_EXPANDABLE, **backend.expandable},
        "launch": _launch(backend.launch),
        "binaries": _binaries(backend.binaries),
        "visibility": backend.visibility,
        "device_required": backend.device_required,
        "presence": {platform: _presence(rule) for platform, rule in backend.presence.items()},
        "nodes_beside": {platform: _nodes_beside(rule) for platform, rule in backend.presence.items()},
        "libraries": {name: _role(role, contract) for name, role in backend.libraries.items()},
        "structs": {
            name: tuple(
                (*_span(layout.applies), layout.bytes, dict(layout.fields), dict(layout.constants))
                for layout in layouts
            )
            for name, layouts in backend.structs.items()
        },
        "messages": {
            owner: {
                selector: (message.encoding, encodings.parse(message.encoding), message.optional)
                for selector, message in methods.items()
            }
            for owner, methods in backend.messages.items()
        },
        "enums": {
            name: tuple((*_span(entry.applies), dict(entry.words)) for entry in entries)
            for name, entries in backend.enums.items()
        },
        "needs": _spread(backend.needs, contract),
        "devices": compiling_steps.devices(scope),
        "state": compiling_steps.state(scope),
        "policies": compiling_steps.policies(scope),
        "operations": {
            name: _operation(operation, contract["operations"][name], contract, roles, scope)
            for name, operation in backend.operations.items()
        },
        "absent": _absent(backend, contract),
        "evidence": _evidence(backend, contract),
        "file": backend.file,
    }


def _interop(interop: Interop) -> dict[str, Any]:
    return {
        "dlpack": dict(interop.dlpack),
        "streams": None if interop.streams is None else dict(interop.streams),
        "array_interface": interop.array_interface,
        "stream_protocol": interop.stream_protocol,
    }


def _binaries(rules: Any) -> dict[str, Any]:
    return {
        "targets": rules.get("targets", ""),
        "device": rules.get("device", ""),
        "variables": tuple(rules.get("variables", ())),
    }


def _nodes_beside(rule: Any) -> tuple[str, ...]:
    return () if rule == "ask" else tuple(rule.get("also", ()))


def _presence(rule: Any) -> Any:
    if rule == "ask":
        return None
    pci = rule.get("pci")
    return (
        (pci["vendor"], tuple(pci["classes"])) if pci else None,
        tuple(rule.get("nodes", ())),
        tuple(rule.get("ask", ())),
        rule.get("hint", ""),
    )


def _launch(written: Any) -> dict[str, Any] | None:
    """Symbol and role, offsets, and attributes as (id, value, from how many bytes of shared memory on)."""
    if written is None:
        return None
    return {
        "call": written["call"],
        "library": written.get("library", "driver"),
        "only_with_attributes": written.get("only") == "attributes",
        "configuration": dict(written["configuration"]),
        "attribute": dict(written["attribute"]),
        "attributes": {
            word: (each["id"], each.get("value", 1), each.get("above")) for word, each in written["attributes"].items()
        },
        "parameters": written.get("parameters"),
        "small_tensors": _small_tensors(written.get("small_tensors")),
    }


def _small_tensors(written: Any) -> tuple[Any, int, int] | None:
    """The first driver that does it right, the bytes from which on a tensor is large, and the bit to clear."""
    return written and (version(written["driver_before"]), written["nbytes"], written["clears"])


def _absent(backend: Backend, contract: dict[str, Any]) -> dict[str, tuple[str, int | str]]:
    """Reason and line for every operation that the file does not bind, later ones of the contract included."""
    absent: dict[str, tuple[str, int | str]] = {}
    for name, entry in contract["operations"].items():
        if name in backend.operations:
            continue
        found = backend.absent.get(name) or backend.absent.get(entry["group"])
        if found is not None:
            absent[name] = (found.reason, found.line)
        else:
            absent[name] = (f"the file was written for contract {backend.contract}, which does not have it", 0)
    return absent


def _evidence(backend: Backend, contract: dict[str, Any]) -> dict[str, int]:
    """How many operations that call the vendor rest on each kind of evidence; `unstated` where nothing is said."""
    counts: dict[str, int] = {}
    for name, operation in backend.operations.items():
        if any(variant.form not in _OWN_FORMS for variant in operation.variants):
            found = evidence_of(backend, name, contract["operations"][name]["group"])
            kind = "unstated" if found is None else found.kind
            counts[kind] = counts.get(kind, 0) + 1
    return counts


#: Forms that call nothing of the vendor's.
_OWN_FORMS = ("value", "same", "policy")


def evidence_of(backend: Backend, operation: str, group: str) -> Evidence | None:
    """What an operation rests on: the entry that names it, else its group, else all the rest."""
    for wanted in (operation, group):
        for entry in backend.evidence:
            if wanted in entry.operations:
                return entry
    return next((entry for entry in backend.evidence if not entry.operations), None)


def _spread(by_group: Any, contract: dict[str, Any]) -> dict[str, str]:
    spread: dict[str, str] = {}
    for name, entry in contract["operations"].items():
        if name in by_group or entry["group"] in by_group:
            spread[name] = by_group.get(name) or by_group[entry["group"]]
    return spread


def _span(applies: Range) -> tuple[Any, Any]:
    return (applies.since, applies.before)


def _role(role: Role, contract: dict[str, Any]) -> dict[str, Any]:
    if role.same_as:
        return {"same_as": role.same_as, "line": role.line}
    resolve = Resolver(_ROLE_PARAMETERS, _ROLE_RESULTS, role, contract)
    return {
        "names": tuple((entry.major, dict(entry.files)) for entry in role.names),
        "search": tuple((step.kind, step.where, dict(step.folders)) for step in role.search),
        "identity": _identity(role.identity, resolve),
        "telling": tuple((each.folder, each.says, each.last) for each in role.telling),
        "beside": role.beside,
        "hint": role.hint,
        "mode": role.mode,
        "version": resolve.call(role.version),
        "digits": role.digits,
        "driver_version": resolve.call(role.driver_version),
        "driver_digits": role.driver_digits,
        "uuid_prefixes": role.uuid_prefixes,
        "loads_first": dict(role.loads_first),
        "init": resolve.call(role.init),
        "init_tolerates": role.init_tolerates,
        "enter": resolve.call(role.enter),
        "has_context": resolve.call(role.has_context),
        "close": resolve.call(role.close),
        "status": _status(role.status, resolve),
        "line": role.line,
    }


def _identity(identity: Identity | None, resolve: Resolver) -> dict[str, Any] | None:
    if identity is None:
        return None
    probe = resolve.call(identity.probe)
    return {
        "exports": identity.exports,
        "lacks": identity.lacks,
        "linked_to": identity.linked_to,
        "not_linked_to": identity.not_linked_to,
        "not_under": identity.not_under,
        "probe": (probe, identity.equals) if probe else None,
    }


def _status(status: Status, resolve: Resolver) -> dict[str, Any]:
    return {
        "success": status.success,
        "negated": status.negated,
        "clear": resolve.call(status.clear),
        "name": resolve.call(status.name, default=("code",)),
        "text": resolve.call(status.text, default=("code",)),
        "kinds": dict(status.kinds),
        "explains": tuple((each.codes, each.driver, each.says, each.hint) for each in status.explains),
    }


def _operation(
    operation: Operation,
    entry: dict[str, Any],
    contract: dict[str, Any],
    roles: dict[str, Role],
    scope: compiling_steps.Scope,
) -> tuple[int | str, tuple[Any, ...]]:
    """(line, variants)."""
    parameters = {name: kind for name, kind, _zero, _default in entry["takes"]}
    return operation.line, tuple(
        scope.operation(variant, entry) if variant.steps else _variant(variant, entry, parameters, contract, roles)
        for variant in operation.variants
    )


def _variant(
    variant: Variant,
    entry: dict[str, Any],
    parameters: dict[str, str],
    contract: dict[str, Any],
    roles: dict[str, Role],
) -> tuple[Any, ...]:
    applies = variant.applies
    what: Any = variant.value
    if variant.call is not None:
        library = variant.call.library or contract["groups"][entry["group"]]
        resolve = Resolver(parameters, dict(entry["gives"]), roles[library], contract)
        what = resolve.call(variant.call, default=entry["c"] or (), library=library, answers=entry["answers"])
    if variant.form == "policy":
        what = (variant.model, variant.value)
    results = tuple((result, spec["of"], spec["equals"]) for result, spec in variant.result.items())
    return (variant.form, applies.since, applies.before, applies.platforms, what, results)


def written(root: Path) -> dict[Path, str]:
    """The text of every generated file, by path: compiled descriptions, the typing stub, the page of operations."""
    contract_data, _line = _read(root / "schema" / "operations.yaml", root)
    contract = compile_contract(contract_data)
    folder = root / "nbxrt" / "compiled"
    texts = {
        root / "nbxrt" / "operations.pyi": stubs.write(contract_data),
        root / "docs" / "operations.md": operations_page.write(contract_data),
        folder / "contract.py": _module("schema/operations.yaml", "CONTRACT", contract),
    }
    index: dict[str, Any] = {}
    needing: dict[str, Any] = {}
    for path in sorted((root / "backends").glob("*.yaml")):
        data, line = _read(path, root)
        file = path.relative_to(root).as_posix()
        plain = compile_backend(structure(data, file=file, line=line), contract)
        texts[folder / f"{plain['name']}.py"] = _module(file, "DESCRIPTION", plain)
        index[plain["name"]] = (plain["priority"], plain["kind"], plain["platforms"], plain["triton"])
        if plain["device_required"]:
            needing[plain["name"]] = {key: plain[key] for key in ("name", "title", "kind", "platforms", "presence")}
    ordered = dict(sorted(index.items(), key=lambda item: (item[1][1] == "cpu", item[1][0])))
    texts[folder / "__init__.py"] = _module("backends/*.yaml", "INDEX", ordered) + _assigned("NEEDING", needing)
    return texts


def _read(path: Path, root: Path) -> tuple[dict[str, Any], Any]:
    """The data of a file with what it extends, and what tells the line of a key in it. Raises: DescriptionError."""
    document = reading.read(path, path.relative_to(root).as_posix())
    if isinstance(document.data, dict) and "extends" in document.data:
        return _extended(path)
    return document.data, lambda where: document.place(where).line


def _extended(path: Path) -> tuple[dict[str, Any], Any]:
    found = sources.find()
    source = found.sources[path.stem]
    whole = inheritance.whole(source, found, contracts.load())
    if whole.faults or whole.document is None:
        raise DescriptionError(whole.faults)
    return whole.document.data, inheritance.lines(whole.document, source.shown)


def _assigned(name: str, value: Any) -> str:
    return f"{name} = {pprint.pformat(value, width=118, sort_dicts=False)}\n"


def _module(source: str, name: str, value: Any) -> str:
    return (
        f'"""Compiled from {source}.\n\n'
        f"Written by `python -m nbxrt.catalogue.compiling`; edit {source} and run it again.\n"
        f'"""\n\n# fmt: off\n{_assigned(name, value)}'
    )


def main(arguments: list[str]) -> int:
    """Write the generated modules; with `--check`, only say which are not current (1 when some are not)."""
    checking = "--check" in arguments
    texts = written(Path(__file__).resolve().parents[2])
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        if not checking:
            path.write_bytes(texts[path].encode())
        print(f"{'not current' if checking else 'written'}: {path.name}")
    return 1 if stale and checking else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
