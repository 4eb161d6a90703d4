"""How YAML is read: what it means, where its nodes are, and what is refused."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from nbxrt.catalogue import parsing, reading
from nbxrt.errors import DescriptionError


def read(text: str | bytes) -> Any:
    return reading.read(text if isinstance(text, bytes) else text.encode(), "x.yaml").data


def refused(text: str | bytes) -> list[str]:
    """`line:column reference` of every fault."""
    with pytest.raises(DescriptionError) as raised:
        read(text)
    return [f"{each.line}:{each.column} {each.reference}" for each in raised.value.diagnostics]


def message(text: str | bytes) -> str:
    with pytest.raises(DescriptionError) as raised:
        read(text)
    return raised.value.diagnostics[0].message


SCALARS = [
    ("off", "off"),
    ("No", "No"),
    ("y", "y"),
    ("true", True),
    ("False", False),
    ("~", None),
    ("null", None),
    ("", None),
    ("12", 12),
    ("-7", -7),
    ("+7", 7),
    ("0", 0),
    ("0x23", 35),
    ("0xfF", 255),
    ("12.10", 12.1),
    (".5", 0.5),
    ("1e3", 1000.0),
    ("-.inf", float("-inf")),
    ("0o43", "0o43"),
    ("043", "043"),
    ("08", "08"),
    ("1_000", "1_000"),
    ("1:30", "1:30"),
    ("0b1", "0b1"),
    ("12.4.1", "12.4.1"),
    ("2026-11-01", "2026-11-01"),
    ("'12'", "12"),
    ('"true"', "true"),
    ("9" * 50, "9" * 50),
]


@pytest.mark.parametrize(("written", "meant"), SCALARS, ids=[written[:12] or "nothing" for written, _ in SCALARS])
def test_a_scalar_means_what_yaml_1_2_says(written: str, meant: object) -> None:
    value = read(f"key: {written}\n")["key"]

    assert (type(value), value) == (type(meant), meant)


def test_a_scalar_that_is_not_a_number_is_a_float_that_is_not_itself() -> None:
    value = read("key: .NaN\n")["key"]

    assert value != value  # noqa: PLR0124 - the only test that NaN fails


def test_every_node_has_its_place_and_scalars_their_text() -> None:
    document = reading.read(b"a:\n  - b: 12.10\n    c: {d: 'x'}\n", "x.yaml")

    place = document.place(("a", 0, "b"))
    quoted = document.place(("a", 0, "c", "d"))

    assert place.value == reading.Span("x.yaml", 2, 8, 13)
    assert place.key == reading.Span("x.yaml", 2, 5, 6)
    assert (place.written, place.is_plain, place.line, place.column) == ("12.10", True, 2, 5)
    assert (quoted.written, quoted.is_plain) == ("'x'", False)
    assert document.place(("a", 0)).key is None
    assert document.place().value.line == 1


def test_a_path_through_an_alias_leads_to_the_anchor() -> None:
    document = reading.read(b"a: &x {b: 1}\nc: *x\n", "x.yaml")

    assert document.place(("c",)).value == reading.Span("x.yaml", 2, 4, 6)
    assert document.place(("c", "b")).value == reading.Span("x.yaml", 1, 11, 12)


def test_a_path_that_is_not_there_is_a_key_error() -> None:
    document = reading.read(b"a: 1\n", "x.yaml")

    with pytest.raises(KeyError):
        document.place(("b",))


def test_columns_count_characters_whatever_their_width() -> None:
    document = reading.read("é𝔸: [ü, 1]\n".encode(), "x.yaml")

    assert document.place(("é𝔸", 1)).value == reading.Span("x.yaml", 1, 9, 10)


SAME = ["a: é\nb: [1]\n", "a: é\r\nb: [1]\r\n", "a: é\rb: [1]\r", "\ufeffa: é\nb: [1]\n", "---\na: é\nb: [1]\n...\n"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", SAME, ids=["lf", "crlf", "cr", "mark", "markers"])
def test_every_encoding_and_line_end_reads_alike(text: str, encoding: str) -> None:
    writes_mark = encoding in ("utf-8-sig", "utf-16")
    content = (text.lstrip("\ufeff") if writes_mark else text).encode(encoding)

    assert read(content) == {"a": "é", "b": [1]}


def test_the_locale_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONUTF8", "0")

    assert read("a: é\n") == {"a": "é"}


def test_other_bytes_are_refused_with_their_offset() -> None:
    assert message("a: é\n".encode("latin-1")) == "byte 0xe9 at offset 3 is not UTF-8"
    assert refused("x: 1\na: é\n".encode("latin-1")) == ["2:4 invalid-encoding"]
    assert message("a: 1".encode("utf-32")) == "byte 0xff at offset 0 is not UTF-8"
    assert message(b"\xff\xfea\x00\x00\xd8") == "byte 0x00 at offset 4 is not UTF-16-LE"


@pytest.mark.parametrize("character", ["\0", "\x07", "\x7f", "\x85", "\u2028", "\ufffe"])
def test_a_character_that_yaml_forbids_or_reads_in_two_ways_is_refused(character: str) -> None:
    assert refused(f"a: b{character}c\n") == ["1:5 invalid-character"]


def test_a_key_given_twice_is_refused_with_both_places() -> None:
    """F01."""
    with pytest.raises(DescriptionError) as raised:
        read("malloc: a\nfree: b\nmalloc: c\n")

    (fault,) = raised.value.diagnostics
    assert fault.one_line() == "x.yaml:3:1: duplicate key `malloc`; first at line 1"
    assert [*map(str, fault.related)] == ["first at x.yaml:1:1"]


def test_a_key_given_twice_inside_a_list_item_is_refused() -> None:
    """F01."""
    assert refused("- {a: 1, b: 2, a: 3}\n") == ["1:16 duplicate-key"]


def test_two_spellings_of_one_number_are_one_key() -> None:
    """F04: `35` and `0x23`."""
    assert refused("{35: a, 0x23: b}\n") == ["1:2 non-string-key", "1:9 duplicate-key"]


@pytest.mark.parametrize("key", ["35", "1.5", "true", "~", "[a]", "{a: b}", "? [a]\n"])
def test_a_key_is_text(key: str) -> None:
    assert "non-string-key" in refused(f"{key}: 1\n")[0]


def test_quoted_keys_may_look_like_anything() -> None:
    assert read('{"35": a, "true": b}') == {"35": "a", "true": "b"}


MERGES = {
    "own keys win, wherever they stand": ("{<<: *x, b: 2}", "{b: 2, <<: *x}"),
    "of several the first": ("{<<: [{b: 2}, *x]}", "{<<: [{b: 2}, {b: 3}, *x]}"),
    "what merges itself": ("{<<: &y {<<: *x, b: 2}}", "{<<: [&z {b: 2}, {<<: [*z, *x]}]}"),
}


@pytest.mark.parametrize("written", [each for pair in MERGES.values() for each in pair])
def test_merge_keys_take_over_what_a_mapping_does_not_say_itself(written: str) -> None:
    """F01, F10: a key that is given both through `<<` and directly is no duplicate."""
    assert read(f"a: &x {{b: 1, d: 3}}\nc: {written}\n")["c"] == {"b": 2, "d": 3}


def test_a_merged_key_has_its_place_where_the_anchor_is() -> None:
    document = reading.read(b"a: &x {b: 1, d: 3}\nc: {<<: *x, b: 2}\n", "x.yaml")

    merged, own = document.place(("c", "d")), document.place(("c", "b"))

    assert (merged.line, merged.column, merged.written) == (1, 14, "3")
    assert (own.line, own.column, own.written) == (2, 13, "2")
    fault = document.diagnostic(("c", "d"), "wrong-value", "no")
    assert [*map(str, fault.related)] == ["merged by `<<` at x.yaml:2:5"]
    assert document.diagnostic(("c", "b"), "wrong-value", "no").related == ()


def test_what_was_merged_and_is_gone_is_nobodys_merge_key() -> None:
    inline = "".join(f"a{number}: {{<<: {{<<: {{b: 1}}, c: 2}}, d: [{{b: 3}}]}}\n" for number in range(200))
    document = reading.read(inline.encode(), "x.yaml")

    for number in range(200):
        assert document.diagnostic((f"a{number}", "d", 0, "b"), "wrong-value", "no").related == ()
        (merge,) = document.diagnostic((f"a{number}", "b"), "wrong-value", "no").related
        assert str(merge) == f"merged by `<<` at x.yaml:{number + 1}:{len(str(number)) + 5}"


@pytest.mark.parametrize(
    ("written", "place"), [("5", "1:9"), ("", "1:5"), ("[{b: 1}, 5]", "1:18"), ("[[{b: 1}]]", "1:10"), ('"x"', "1:9")]
)
def test_a_merge_key_takes_mappings(written: str, place: str) -> None:
    assert refused(f"a: {{<<: {written}, b: 2}}\n") == [f"{place} merge-key"]


def test_a_merge_key_stands_once_and_without_quotes() -> None:
    assert refused("{<<: {a: 1}, <<: {b: 2}}") == ["1:14 duplicate-key"]
    assert refused('{"<<": {a: 1}}') == ["1:2 merge-key"]


def test_tags_are_refused() -> None:
    assert refused("a: !!str 12\nb: !x [1]\nc: ! d\n") == ["1:4 yaml-tag", "2:4 yaml-tag", "3:4 yaml-tag"]


def test_only_yaml_1_2_is_read() -> None:
    assert read("%YAML 1.2\n---\na: 1\n") == {"a": 1}
    assert refused("%YAML 1.1\n---\na: 1\n") == ["1:1 yaml-version"]


@pytest.mark.parametrize(
    "text", ["a:\n\tb: 1\n", "a: 1\t# why\n", "a:\t1\n", "{a: 1,\tb: 2}", "- a\n-\tb\n", "a: 1\t\r\n"]
)
def test_a_tab_between_words_is_called_a_tab(text: str) -> None:
    """F05: in indentation, before a comment, and elsewhere."""
    with pytest.raises(DescriptionError) as raised:
        read(text)

    fault = raised.value.diagnostics[0]
    assert (fault.reference, text.splitlines()[fault.line - 1][fault.column - 1]) == ("tab", "\t")
    assert "tab" in fault.message


def test_a_tab_in_text_or_in_a_comment_is_fine() -> None:
    assert read('a: "x\ty"\nb: |\n  x\ty\n# c\t# d\n') == {"a": "x\ty", "b": "x\ty\n"}
    assert read("a: 'x #' # y\tz\r") == {"a": "x #"}


@pytest.mark.parametrize("text", ["", "# comment\n", "---\n", "---\n...\n", "\n\n", "\ufeff"])
def test_a_file_without_content_is_empty(text: str) -> None:
    """F07: no bytes, only comments, only a mark."""
    assert refused(text) == ["1:1 empty-document"]


def test_null_is_not_empty() -> None:
    assert read("null\n") is None


def test_a_second_document_is_refused_by_its_line() -> None:
    """F08."""
    assert message("a: 1\n---\nb: 2\n") == "a second document starts at line 2: a file holds one"
    assert read("---\na: 1\n...\n") == {"a": 1}


def test_bad_yaml_says_what_was_expected_and_where_it_began() -> None:
    with pytest.raises(DescriptionError) as raised:
        read("a: 1\nb: [1,\nc: 2\n")

    (fault,) = raised.value.diagnostics
    assert fault.one_line() == "x.yaml:2:4: not valid YAML: did not find expected ',' or ']'"
    assert fault.notes == ("while parsing a flow sequence that starts at line 2",)


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("nodes: [/dev/toy[0-9]*]\n", "1:23", "stands in quotes"),
        ("a: *.so\n", "1:5", "stands in quotes"),
        ("a: [\n\n", "1:5", "of what is open"),
        ("a: [b,#c]\n", "1:10", "of what is open"),
        ("a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> x\n", "2:1", "keep one of the two versions"),
    ],
)
def test_mistakes_that_people_make_have_their_place_and_a_hint(text: str, place: str, hint: str) -> None:
    with pytest.raises(DescriptionError) as raised:
        read(text)

    (fault,) = raised.value.diagnostics
    assert f"{fault.line}:{fault.column}" == place
    assert hint in fault.hint
    assert fault.source != ""


BOMB = "a: &a [l,l,l,l,l,l,l,l,l]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)
ATTACKS = {
    "alias bomb": (BOMB, "too-many-aliases"),
    "bomb of merge keys": (BOMB.replace("[", "{<<: [").replace("]", "]}"), "too-many-aliases"),
    "many aliases": ("- &a x\n" + "- *a\n" * 2000, "too-many-aliases"),
    "recursive": ("a: &x [*x]\n", "recursive-alias"),
    "recursive further down": ("a: &x {b: [{c: *x}]}\n", "recursive-alias"),
    "deep through aliases": (
        "a: &a0 [1]\n" + "".join(f"b{i}: &a{i + 1} {'[' * 9}*a{i}{']' * 9}\n" for i in range(9)),
        "too-deep",
    ),
    "brackets": ("[" * 5000, "too-deep"),
    "nested lists": ("".join(f"{' ' * depth}-\n" for depth in range(1100)), "too-deep"),
    "nested mappings": ("".join(f"{' ' * depth}a:\n" for depth in range(1400)), "too-deep"),
    "nested in one line": ("- " * 5000, "too-deep"),
    "braces": ("{a: " * 5000, "too-deep"),
    "many nodes": ("[" + "a," * 200_000 + "]", "too-many-nodes"),
    "many faults": ("a: 1\n" * 200_000, "duplicate-key"),
    "many directives": ("%TAG !a b\n" * 100_000 + "--- a", "invalid-yaml"),
    "large": ("#" * (reading.MAX_BYTES + 1), "file-too-large"),
}


@pytest.mark.parametrize(("text", "reference"), ATTACKS.values(), ids=ATTACKS.keys())
def test_an_attack_is_refused_in_a_second_and_a_hundred_megabytes(text: str, reference: str) -> None:
    """F10, F11: what unfolds, contains itself or nests without end; the message is bounded too."""
    content = text.encode()
    tracemalloc.start()
    start = time.process_time()

    scanned = reading.scan(content, "x.yaml")

    seconds = time.process_time() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert scanned.document is None
    assert scanned.diagnostics[-1].reference == reference
    assert sum(len(fault.render()) for fault in scanned.diagnostics) < 100_000
    assert seconds < 5  # one, and what tracing costs
    assert peak < 100e6


def test_tabs_in_a_long_comment_after_many_signs_do_not_take_long() -> None:
    content = ("a: [" + "'#'," * 10_000 + "] #" + "\ta" * 400_000).encode()
    start = time.process_time()

    scanned = reading.scan(content, "x.yaml")

    assert scanned.diagnostics == ()
    assert time.process_time() - start < 2


def test_ordinary_anchors_work() -> None:
    """F10."""
    data = read("a: &x {b: 1}\nc: [*x, *x]\nd: &x 2\ne: *x\n")

    assert data == {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}], "d": 2, "e": 2}


def test_an_alias_without_an_anchor_is_refused() -> None:
    assert refused("a: *x\n") == ["1:4 unknown-alias"]


def test_all_faults_that_do_not_end_the_reading_are_told_at_once() -> None:
    assert refused("a: 1\na: 2\n3: x\nb: !t 1\nc:\t4\n") == [
        "2:1 duplicate-key",
        "3:1 non-string-key",
        "4:4 yaml-tag",
        "5:3 tab",
    ]


def test_a_file_that_cannot_be_opened_is_a_fault(tmp_path: Path) -> None:
    missing = reading.scan(tmp_path / "none.yaml", "none.yaml")
    folder = reading.scan(tmp_path, "folder")

    assert missing.diagnostics[0].one_line() == "none.yaml:1:1: the file cannot be read: no such file or directory"
    assert folder.diagnostics[0].reference == "unreadable-file"


def test_the_parser_in_python_reads_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x [1, 'b c', {d: ~}]\ne: *x\nf: |\n  g\n"
    fast = reading.read(text.encode(), "x.yaml")
    monkeypatch.setattr(parsing, "_PARSER", parsing.yaml.Loader)

    slow = reading.read(text.encode(), "x.yaml")

    assert slow.data == fast.data
    assert [entry for _path, entry in slow.nodes()] == [entry for _path, entry in fast.nodes()]
    assert refused("a: 1\t# why\n") == ["1:5 tab"]
