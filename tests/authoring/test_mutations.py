"""A changed file is accepted and means what it says, or it is refused at the change; nothing else ever happens."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import inheritance, reading, validation
from nbxrt.catalogue.compiling import compile_backend
from nbxrt.catalogue.model import structure
from nbxrt.catalogue.sources import data_folder
from nbxrt.compiled.contract import CONTRACT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Document

#: Files that stand alone, one of each kind: others are like one of them, or state only what differs.
SHIPPED = {
    name: (data_folder("backends") / name).read_bytes().decode()
    for name in ("ascend.yaml", "cuda.yaml", "hip.yaml", "host.yaml", "metal.yaml", "opencl.yaml")
}
VALID = Path(__file__).parents[1] / "catalogue" / "cases" / "valid"
LAW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


class Plain(yaml.SafeDumper):
    """Writes every node where it stands, and in quotes what YAML 1.1 or 1.2 could take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


Plain.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def meaning(data: Any) -> dict[str, Any]:
    """What the binder gets of a file."""
    return compile_backend(structure(data), CONTRACT)


def faults_of(text: str) -> tuple[Document | None, tuple[Diagnostic, ...]]:
    scanned = reading.scan(text.encode(), "x.yaml")
    if scanned.document is None or scanned.diagnostics:
        return scanned.document, scanned.diagnostics
    return scanned.document, validation.check(scanned.document, contracts.load())


# Changes that mean nothing.


def in_hexadecimal(text: str) -> str:
    return re.sub(r"(?<=: )(\d\d+)(?=[,}\n])", lambda found: hex(int(found[1])), text)


def reordered(data: dict[str, Any]) -> dict[str, Any]:
    """The sections the other way round, and in each of them what stands in it."""
    return {
        key: dict(reversed(value.items())) if isinstance(value, dict) else value
        for key, value in reversed(data.items())
    }


def merged(node: Any) -> Any:
    """Every mapping as its first key and a merge key that brings the others, and one that has no say."""
    if isinstance(node, list):
        return [merged(each) for each in node]
    if not isinstance(node, dict) or not node:
        return node
    (first, value), *others = [(key, merged(value)) for key, value in node.items()]
    return {first: value, "<<": [dict(others), {first: "overridden"}]}


SPELLINGS = {
    "other line breaks": lambda text: text.replace("\n", "\r\n"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "comments at every line": lambda text: re.sub(r"(?m)^( *[a-z_]+:)$", r"\1  # why", text),
    "empty lines": lambda text: text.replace("\n", "\n\n"),
    "as flow": lambda text: json.dumps(reading.read(text.encode(), "x").data),
    "as blocks": lambda text: yaml.dump(reading.read(text.encode(), "x").data, Dumper=Plain, sort_keys=False),
    "in hexadecimal": in_hexadecimal,
    "keys in another order": lambda text: yaml.dump(
        reordered(reading.read(text.encode(), "x").data), Dumper=Plain, sort_keys=False
    ),
    "by merge keys": lambda text: yaml.dump(
        merged(reading.read(text.encode(), "x").data), Dumper=Plain, sort_keys=False
    ).replace('"<<":', "<<:"),
    "a key of its own": lambda text: text + "\nx-note: [no, 1e3]\n",
}


@pytest.mark.tier("all")
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", SHIPPED)
def test_another_spelling_means_the_same(name: str, spelling: str) -> None:
    before = reading.read(SHIPPED[name].encode(), name)

    document, found = faults_of(SPELLINGS[spelling](SHIPPED[name]))

    assert found == ()
    assert document is not None
    assert meaning(document.data) == meaning(before.data)


# Changes of one node.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutated")


WORDS = st.sampled_from(
    ["malloc", "call", "args", "out", "since", "12.0", "status", "runtime", "linux", "success", "nbytes", "x", ""]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**33) | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
#: Through JSON, so that a change of what has an alias is a change in one place.
DATA = [json.loads(json.dumps(reading.read(text.encode(), name).data)) for name, text in SHIPPED.items()]
EXTENDING = [json.loads(json.dumps(reading.read(file, file.name).data)) for file in sorted(VALID.glob("extends*.yaml"))]


class Changed(NamedTuple):
    """A file with one node changed, the path of what holds the change, and the words that were there and are now."""

    data: dict[str, Any]
    path: tuple[str | int, ...]
    before: set[str]
    now: set[str]

    def __repr__(self) -> str:
        node: Any = self.data
        for part in self.path:
            node = node[part]
        return f"{self.data.get('name')} {self.path}: {str(node)[:300]}"


def containers(node: Any) -> list[Any]:
    """Every mapping and list of a file that holds something."""
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [*([node] if inner else []), *(each for part in inner for each in containers(part))]


@st.composite
def mutations(draw: st.DrawFn, files: list[dict[str, Any]]) -> Changed:
    """A changed file. Where a node was taken away or put in, the change is in what held it."""
    data = copy.deepcopy(draw(st.sampled_from(files)))
    path: tuple[str | int, ...] = ()
    node: Any = data
    while True:
        key = draw(st.sampled_from(list(node) if isinstance(node, dict) else list(range(len(node)))))
        inner = node[key]
        if isinstance(inner, (dict, list)) and inner and draw(st.integers(0, 3)):
            path, node = (*path, key), inner
            continue
        before = {*words_in(inner), *words_in(key)}
        kind = draw(st.sampled_from(["remove", "replace", "transplant", "rename", "insert"]))
        if kind in ("replace", "transplant"):
            node[key] = draw(VALUES) if kind == "replace" else transplanted(draw, data)
            return Changed(data, (*path, key), before, {*words_in(node[key]), *words_in(key)})
        if kind == "insert":
            value = draw(VALUES) if draw(st.booleans()) else transplanted(draw, data)
            name = draw(WORDS) if draw(st.booleans()) else str(draw(st.sampled_from(list(draw_mapping(draw, data)))))
            now = before | {*words_in(value)}
            if isinstance(node, list):
                node.insert(draw(st.integers(0, len(node))), value)
            else:
                before |= {*words_in(node.get(name)), name}
                now.add(name)
                node[name] = value
            return Changed(data, path, before, now)
        if kind == "rename" and isinstance(node, dict):
            new = draw(WORDS)
            before |= {*words_in(node.get(new))}
            node[new] = node.pop(key)
            return Changed(data, path, before, {new, *words_in(node[new])})
        del node[key]
        return Changed(data, path, before, set())


def transplanted(draw: st.DrawFn, data: Any) -> Any:
    """A node of the same file, which is right where it stands."""
    holder = draw(st.sampled_from(containers(data)))
    return copy.deepcopy(draw(st.sampled_from(list(holder.values() if isinstance(holder, dict) else holder))))


def draw_mapping(draw: st.DrawFn, data: Any) -> dict[str, Any]:
    found: dict[str, Any] = draw(st.sampled_from([each for each in containers(data) if isinstance(each, dict)]))
    return found


def words_in(node: Any) -> Sequence[str]:
    """Every word of a part of a file; of a name with a dot also what stands before it."""
    if isinstance(node, dict):
        return [*map(str, node), *(word for value in node.values() for word in words_in(value))]
    if isinstance(node, list):
        return [word for value in node for word in words_in(value)]
    base, dot, _entry = str(node).partition(".")
    return [str(node), *([base] if dot and base.isidentifier() else [])]


def lines_of(document: Document, path: tuple[str | int, ...]) -> range:
    """The lines from a node's first to its last."""
    place = document.place(path)
    lines = [place.line, place.value.line]
    lines += [entry[0][0] for below, entry in document.nodes() if below[: len(path)] == path]
    return range(min(lines), max(lines) + 1)


@given(mutations(DATA))
@LAW
def test_a_changed_node_is_accepted_as_it_says_or_refused_where_it_is(changed: Changed) -> None:
    data = changed.data
    text = yaml.dump(data, Dumper=Plain, sort_keys=False)

    document, found = faults_of(text)

    if not found:
        assert document is not None
        assert document.data == data
        assert meaning(document.data) == meaning(json.loads(json.dumps(data)))
    demand_that_the_change_is_told(document, changed, found)


FOUND: list[tuple[str, tuple[str | int, ...], Any]] = [
    ("cuda", ("headers", "codes"), None),
    ("cuda", ("headers", "enums", "memcpy_kind"), None),
    ("cuda", ("libraries", "collectives", "status", "text", "call"), {"of": "status"}),
    ("cuda", ("operations", "mem_set_access", "args", 2, "by_pointer", "flags"), {}),
    ("cuda", ("structs", "CUmemAllocationProp", "fields", "location_id", 0), 826),
    ("hip", ("structs", "ncclUniqueId", "bytes"), 3),
    ("metal", ("devices", "levels"), 826),
    ("metal", ("policies", "kernels", "function", "steps", 0, "args"), []),
    ("metal", ("policies", "kernels", "function", "steps", 1, "finally", 0, "send"), "x"),
    ("metal", ("policies", "kernels", "function", "steps", 1, "finally", 0, "send"), "length"),
    ("opencl", ("devices", "gpu", "args"), ["x"]),
    ("opencl", ("devices", "levels", 0, "args", 2), "x"),
    ("opencl", ("devices", "models"), 826),
    ("opencl", ("devices", "models", "coarse_svm", "args", 3), {"out": "capabilities"}),
    ("opencl", ("operations", "device_name", "steps", 0, "args", 0), None),
    ("opencl", ("operations", "device_name", "steps", 0, "args", 0), "x"),
    ("opencl", ("state", "context", "steps", 0, "args", 2, "array"), [{}]),
    ("opencl", ("state", "context", "steps", 0, "returns"), {"type": "pointer"}),
]


@pytest.mark.tier("all")
@pytest.mark.parametrize(("name", "path", "value"), FOUND, ids=lambda part: str(part)[:60])
def test_what_random_changes_once_found_stays_mended(name: str, path: tuple[str | int, ...], value: Any) -> None:
    data = copy.deepcopy(next(each for each in DATA if each["name"] == name))
    *above, last = path
    node: Any = data
    for part in above:
        node = node[part]
    changed = Changed(data, path, {*words_in(node[last]), str(last)}, {*words_in(value), str(last)})
    node[last] = value

    document, found = faults_of(yaml.dump(data, Dumper=Plain, sort_keys=False))

    demand_that_the_change_is_told(document, changed, found)
    if not found:
        assert meaning(data)


@pytest.mark.tier("all")
@given(changed=mutations(EXTENDING))
@LAW
def test_so_is_one_of_a_file_that_extends_another(changed: Changed, folder: Path) -> None:
    file = folder / "mine.yaml"
    file.write_text(yaml.dump(changed.data, Dumper=Plain, sort_keys=False), "utf-8")

    found = inheritance.validate_file(file)

    demand_that_the_change_is_told(reading.scan(file, str(file)).document, changed, found)


def demand_that_the_change_is_told(document: Document | None, changed: Changed, found: Sequence[Diagnostic]) -> None:
    """One of the faults has a place in what was changed, and every other one has too or names what was changed.

    What was taken away has no place any more: faults may then stand elsewhere, as long as they all name it.
    """
    if not found:
        return
    assert document is not None
    within = lines_of(document, changed.path)
    elsewhere = [fault for fault in found if not any(line in within for line in lines_named(fault, document.name))]
    names = changed.before | changed.now | {str(part) for part in changed.path[-1:]}
    silent = [fault for fault in elsewhere if not names_one(fault, names)]
    assert silent == [], (changed.path, [*map(str, silent)])
    if len(elsewhere) == len(found):
        gone = changed.before - changed.now
        assert all(names_one(fault, gone) for fault in found), (changed.path, gone, [*map(str, found)])


def lines_named(fault: Diagnostic, file: str) -> list[int]:
    """The lines of a file at which a fault stands, or which it has to do with."""
    return [each.line for each in (fault, *fault.related) if each.file == file]


def names_one(fault: Diagnostic, words: set[str]) -> bool:
    """Whether a fault elsewhere names what was changed: a call whose library is gone stands where it stood."""
    said = " ".join([fault.message, fault.label, fault.path, *fault.notes])
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", said) for word in words if word)


# Changes of the text.


@st.composite
def edits(draw: st.DrawFn) -> str:
    """A shipped file with a line lost, repeated, moved in, cut or mistyped."""
    lines = draw(st.sampled_from([*SHIPPED.values()])).split("\n")
    for _edit in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        column = draw(st.integers(0, len(lines[at])))
        kind = draw(st.sampled_from(["lose", "repeat", "indent", "cut", "type"]))
        line = lines[at]
        typed = draw(st.text(st.sampled_from("abc019:-{}[],&*#'\"|>?!% \t"), min_size=1, max_size=3))
        lines[at : at + 1] = {
            "lose": [],
            "repeat": [line, line],
            "indent": ["  " + line],
            "cut": [line[:column]],
            "type": [line[:column] + typed + line[column:]],
        }[kind]
        lines = lines or [""]
    return "\n".join(lines)


@given(edits())
@LAW
def test_an_edited_text_is_accepted_or_refused_at_a_line_of_it(text: str) -> None:
    lines = text.split("\n")

    document, found = faults_of(text)

    if not found:
        assert document is not None
        assert meaning(document.data)
    for fault in found:
        assert fault.render()
        assert 1 <= fault.line <= len(lines)
        assert fault.source in ("", lines[fault.line - 1])
