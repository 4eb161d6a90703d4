"""Type encodings: the grammar by laws, and what is refused with the place of the fault."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbxrt.catalogue import encodings
from nbxrt.catalogue.encodings import EncodingError, parse, parse_method, same

_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
_LETTERS = st.sampled_from([pair for pair in encodings.WORDS.items() if pair[0] not in "v@"])
_OBJECTS = st.one_of(
    st.sampled_from([("@", "object"), ("@?", "block")]), _NAMES.map(lambda name: (f'@"{name}"', "object"))
)
#: What may stand behind a pointer and nowhere else.
_HIDDEN = st.sampled_from(["v", "?", "{__Opaque}", "{?=}", "[3I]", "(Either=id)", "b3", "[2[4f]]", "^?", "{A=[3f]b2}"])


def _structure(fields: tuple[str, list[tuple[str, Any]]]) -> tuple[str, Any]:
    name, members = fields
    return "{" + name + "=" + "".join(text for text, _kind in members) + "}", tuple(kind for _text, kind in members)


def _pointer(target: str) -> tuple[str, str]:
    return f"^{target}", "pointer"


#: Pairs of an encoding and the value that it stands for.
TYPES: st.SearchStrategy[tuple[str, Any]] = st.recursive(
    st.one_of(_LETTERS, _OBJECTS, _HIDDEN.map(_pointer)),
    lambda inner: st.one_of(
        st.tuples(st.one_of(_NAMES, st.just("?")), st.lists(inner, min_size=1, max_size=4)).map(_structure),
        inner.map(lambda pair: _pointer(pair[0])),
        st.tuples(st.sampled_from("rnNoORV"), inner).map(lambda both: (both[0] + both[1][0], both[1][1])),
    ),
    max_leaves=6,
)
_RETURNS = st.one_of(st.just(("v", "void")), TYPES)


@given(_RETURNS, st.lists(TYPES, max_size=6))
def test_what_was_written_is_read(returns: tuple[str, Any], arguments: list[tuple[str, Any]]) -> None:
    text = returns[0] + "".join(text for text, _kind in arguments)

    assert parse(text) == (returns[1], tuple(kind for _text, kind in arguments))


@given(_RETURNS, st.lists(st.tuples(TYPES, st.integers(0, 200)), max_size=6))
def test_the_encoding_of_a_whole_method_says_the_same(
    returns: tuple[str, Any], arguments: list[tuple[tuple[str, Any], int]]
) -> None:
    offsets = "".join(f"{text}{offset}" for (text, _kind), offset in arguments)

    assert parse_method(f"{returns[0]}32@0:8{offsets}") == parse(
        returns[0] + "".join(text for (text, _kind), _offset in arguments)
    )


@given(st.text(alphabet='vcCsSiIlLqQfdDB*@#:^{}[]()=?b"rnN0123456789xY_', max_size=24))
def test_any_text_is_read_or_refused_within_it(text: str) -> None:
    fault = None
    try:
        parse(text)
    except EncodingError as error:
        fault = error

    assert fault is None or (0 <= fault.position <= len(text) and str(fault)[0].islower())


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("", 0, "is empty"),
        ("@Q16", 2, "stack offsets"),
        ("v{x}", 1, "fields it does not name"),
        ("vv", 1, "no value"),
        ("v{x=iv}", 1, "a field of type `v`"),
        ("v[3I]", 1, "an array"),
        ("v(a=Qi)", 1, "a union"),
        ("vb3", 1, "a bit field"),
        ("v{a=Q", 1, "never closed"),
        ("v{", 1, "without a name"),
        ("v^", 2, "ends where a type should stand"),
        ("Qz", 1, "`z`, which is no type"),
        ('v@"NSString', 2, "does not end"),
        ("v" + "^" * 40 + "v", 18, "nested deeper"),
    ],
)
def test_a_fault_is_named_where_it_stands(text: str, position: int, says: str) -> None:
    with pytest.raises(EncodingError, match=says) as caught:
        parse(text)

    assert caught.value.position == position


@pytest.mark.parametrize("text", ["", "v", "@8", "v16@0", "v16:0@8", "Q16@0Q8"])
def test_a_method_has_a_receiver_and_a_selector(text: str) -> None:
    with pytest.raises(EncodingError):
        parse_method(text)


def test_a_bool_is_written_differently_by_machine() -> None:
    assert same(parse("B@"), parse("c@"))
    assert same(parse("v{S=BQ}"), parse("v{S=CQ}"))
    assert not same(parse("B@"), parse("i@"))
    assert not same(parse("q"), parse("Q"))
    assert not same(parse("@Q"), parse("@QQ"))


def test_ownership_follows_from_the_name() -> None:
    owned = ("new", "newBufferWithLength:options:", "alloc", "copy", "mutableCopy", "_newThing", "copyName")
    not_owned = ("commandBuffer", "news", "newsletter", "allocate", "copying", "name", "renew", "objectAtIndex:")

    assert all(encodings.gives_ownership(name, "object") for name in owned)
    assert not any(encodings.gives_ownership(name, "object") for name in not_owned)
    assert not encodings.gives_ownership("copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", "void")


def test_the_colons_of_a_selector_are_its_arguments() -> None:
    assert [encodings.arguments_of(name) for name in ("name", "objectAtIndex:", "fillBuffer:range:value:")] == [0, 1, 3]
