"""How a fault is shown: its text is interface."""

from __future__ import annotations

import json
import pickle

import attrs
import pytest

from nbxrt.catalogue.diagnostics import Diagnostic, Related, did_you_mean, listed, nearest, path_text, quoted
from nbxrt.errors import DescriptionError

FAULT = Diagnostic(
    "hip.yaml",
    14,
    28,
    34,
    "unknown-key",
    "unknown key `libary` in a search step",
    path="libraries.runtime.search[0].libary",
    label="a `package` step takes `package` and `library`",
    source="      - {python: rocm_sdk, libary: amdhip64}",
    related=(Related("read because of `extends: hip`", "site.yaml", 3, 10),),
    notes=("it is the only one",),
    hint="did you mean `library`?",
)


def test_a_fault_shows_message_place_line_caret_note_and_hint() -> None:
    assert FAULT.render() == (
        "error[unknown-key]: unknown key `libary` in a search step\n"
        "  --> hip.yaml:14:28, `libraries.runtime.search[0].libary`\n"
        "   |\n"
        "14 |       - {python: rocm_sdk, libary: amdhip64}\n"
        "   |                            ^^^^^^ a `package` step takes `package` and `library`\n"
        "   = note: read because of `extends: hip` at site.yaml:3:10\n"
        "   = note: it is the only one\n"
        "\n"
        "hint: did you mean `library`?"
    )


def test_of_many_places_people_are_shown_so_many_that_a_fault_has_fewer_than_ten_lines() -> None:
    also = tuple(Related("also", "hip.yaml", line, 3) for line in (20, 30, 40))
    fault = attrs.evolve(FAULT, related=also, notes=())

    shown = fault.render().splitlines()

    assert shown[-4:-2] == ["   = note: also at hip.yaml:20:3", "   = note: also at hip.yaml:30:3, and 1 more"]
    assert len(shown) < 10
    assert len(fault.to_dict()["related"]) == 3  # type: ignore[arg-type]


def test_a_fault_fits_one_line() -> None:
    assert FAULT.one_line() == "hip.yaml:14:28: unknown key `libary` in a search step"


def test_a_fault_is_data_that_json_carries() -> None:
    data = json.loads(json.dumps(FAULT.to_dict()))

    related = tuple(Related(**each) for each in data.pop("related"))
    assert Diagnostic(**{**data, "notes": tuple(data["notes"]), "related": related}) == FAULT


def test_faults_order_by_place() -> None:
    later = attrs.evolve(FAULT, column=29, hint="")
    last = attrs.evolve(FAULT, line=100)

    assert sorted([last, later, FAULT]) == [FAULT, later, last]


def test_an_error_carries_its_faults_and_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(DescriptionError((FAULT,))))  # noqa: S301 - our own

    assert error.diagnostics == (FAULT,)
    assert str(error) == FAULT.render()


def test_a_fault_without_a_line_to_show_is_two_lines() -> None:
    fault = Diagnostic("x.yaml", 1, 1, 1, "empty-document", "the file is empty")

    assert fault.render() == "error[empty-document]: the file is empty\n  --> x.yaml:1:1"


def test_a_long_line_is_cut_around_the_caret() -> None:
    fault = attrs.evolve(FAULT, column=5001, end_column=5004, source="a" * 5000 + "bad" + "c" * 5000, label="")

    line, caret = fault.render().splitlines()[3:5]

    assert len(line) < 140
    assert line[caret.index("^") : caret.rindex("^") + 1] == "bad"


def test_a_tab_does_not_move_the_caret() -> None:
    fault = attrs.evolve(FAULT, column=2, end_column=4, source="\tno", label="")

    assert fault.render().splitlines()[3:5] == ["14 |  no", "   |  ^^"]


def test_the_caret_stands_under_a_word_after_wide_and_combining_characters() -> None:
    source = "{\u65e5\u672c: e\u0301, no: 1}"
    fault = attrs.evolve(FAULT, column=10, end_column=12, source=source, label="")
    wide = attrs.evolve(FAULT, column=2, end_column=4, source=source, label="")

    assert source[9:11] == "no"
    assert fault.render().splitlines()[4] == "   | " + " " * 10 + "^^"
    assert wide.render().splitlines()[4] == "   |  ^^^^"


@pytest.mark.parametrize(
    ("word", "meant"),
    [("malloc_asinc", "malloc_async"), ("Malloc", "malloc"), ("mem_cpy", "memcpy"), ("zzz", ""), ("m" * 100, "")],
)
def test_the_nearest_word_is_the_one_that_was_meant(word: str, meant: str) -> None:
    known = ["malloc", "malloc_async", "memcpy", "free"]

    assert nearest(word, known) == meant
    assert did_you_mean(word, known) == (f"did you mean `{meant}`?" if meant else "")


def test_words_are_listed_as_in_a_sentence_and_long_lists_are_cut() -> None:
    assert listed([]) == ""
    assert listed(["a"]) == "`a`"
    assert listed(["a", "b"], "or") == "`a` or `b`"
    assert listed(["a", "b", "c"]) == "`a`, `b` and `c`"
    assert listed(list("abcdefghijklmno")).endswith("`l` and 3 more")


def test_long_values_and_paths_are_cut() -> None:
    assert quoted("a\n  b") == "`a b`"
    assert len(quoted("x" * 1000)) < 70
    assert path_text(["operations", "malloc", "args", 0]) == "operations.malloc.args[0]"
    assert len(path_text(["x" * 1000])) <= 120


def test_what_a_file_says_neither_breaks_a_line_nor_commands_the_terminal() -> None:
    said = "\x1b[2J\r\n\x9b\u202e\udcff"
    fault = attrs.evolve(FAULT, file=said, message=said, path=said, label=said, notes=(said,), hint=said)
    fault = attrs.evolve(fault, related=(Related(said, said, 1, 1),))

    assert all(line.isprintable() for line in [fault.one_line(), *fault.render().split("\n")])
    assert len(fault.render().splitlines()) == len(FAULT.render().splitlines())
