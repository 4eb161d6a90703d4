"""Laws of the reader: plain data comes back as it was, and no bytes give another exception or take long."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from nbxrt.catalogue import reading

# What YAML allows in a file, less the two that YAML 1.1 takes for line breaks.
TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\u2028\u2029\ufeff"), max_size=30
)
KEYS = TEXT.filter(lambda text: text != "<<")  # refused in quotes, since some readers merge it there too
SCALARS = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | TEXT
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=30
)


class Quoting(yaml.SafeDumper):
    """Writes block style with every text in quotes, since PyYAML quotes for readers of YAML 1.1 only."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


@given(DATA)
@example({"off": None, "12": [True, -1, "~", ""]})
def test_data_written_as_flow_comes_back(data: Any) -> None:
    text = json.dumps(data, ensure_ascii=False)

    assert reading.read(text.encode(), "x.yaml").data == data


@given(DATA)
def test_data_written_as_block_comes_back(data: Any) -> None:
    text = yaml.dump(data, Dumper=Quoting, allow_unicode=True, width=10_000)

    assert reading.read(text.encode(), "x.yaml").data == data


@st.composite
def merging(draw: st.DrawFn) -> tuple[str, list[dict[str, str]]]:
    """Mappings on a line each, which merge those before them, alone or in lists; and what they are by YAML 1.1."""
    lines: list[str] = []
    meant: list[dict[str, str]] = []
    for number in range(draw(st.integers(1, 6))):
        keys = draw(st.lists(st.sampled_from("abcd"), max_size=3, unique=True))
        own = {key: f"v{number}{index}" for index, key in enumerate(keys)}
        merged = draw(st.lists(st.integers(0, number - 1), max_size=3)) if number else []
        parts = [f"{key}: {value}" for key, value in own.items()]
        if merged:
            listed = [draw(st.sampled_from([f"*m{each}", f"{{<<: *m{each}}}"])) for each in merged]
            text = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
            parts.insert(draw(st.integers(0, len(parts))), f"<<: {text}")
        lines.append(f"- &m{number} {{{', '.join(parts)}}}\n")
        weakest_first = [*(meant[each] for each in reversed(merged)), own]
        meant.append({key: value for mapping in weakest_first for key, value in mapping.items()})
    return "".join(lines), meant


@given(merging())
def test_merge_keys_mean_what_yaml_1_1_says_and_each_key_knows_where_it_is_written(
    written: tuple[str, list[dict[str, str]]],
) -> None:
    text, meant = written

    document = reading.read(text.encode(), "x.yaml")

    assert document.data == meant
    for index, mapping in enumerate(meant):
        for key, value in mapping.items():
            place = document.place((index, key)).value
            assert document.lines[place.line - 1][place.column - 1 : place.end_column - 1] == value


@given(DATA)
def test_every_node_has_a_place_that_shows_it(data: Any) -> None:
    text = json.dumps(data, ensure_ascii=False)
    document = reading.read(text.encode(), "x.yaml")

    for path, _entry in document.nodes():
        place = document.place(path)
        shown = document.lines[place.value.line - 1][place.value.column - 1 : place.value.end_column - 1]
        assert json.loads(shown) == document.at(path)


PIECES = st.sampled_from(
    [
        *(
            "a",
            ": ",
            "- ",
            "\n",
            "  ",
            "[",
            "]",
            "{",
            "}",
            ", ",
            "&x ",
            "*x",
            "<<",
            "!!int ",
            "? ",
            "| ",
            "> ",
            "'",
            '"',
            "#",
        ),
        *("\t", "---", "...", "%YAML 1.2", "0x1f", "1_0", "é", "\x85", "\ufeff", "\r", "~", "\0", "\\x", "@", "`"),
    ]
)


@given(st.binary(max_size=200) | st.lists(PIECES, max_size=60).map(lambda pieces: "".join(pieces).encode()))
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfe")
@example(b"!<a> [b]")
@example(b"? ? ? a")
@example(b"- |\n a\n-\t")
def test_no_bytes_give_another_exception(content: bytes) -> None:
    scanned = reading.scan(content, "x.yaml")

    assert (scanned.document is None) <= bool(scanned.diagnostics)
    assert all(fault.render() and fault.line >= 1 and fault.column >= 1 for fault in scanned.diagnostics)
    if scanned.document is not None:
        for path, _entry in scanned.document.nodes():
            scanned.document.place(path)


@pytest.mark.tier("nightly")
@given(st.binary(max_size=20_000))
def test_no_long_bytes_give_another_exception(content: bytes) -> None:
    reading.scan(content, "x.yaml")
