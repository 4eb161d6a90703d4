"""Laws of every operation's parameters: a value that is not acceptable is refused by name, and nobody is called."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbxrt
from nbxrt import descriptions

CONTRACT = descriptions.contract()
HOST = nbxrt.open("host")
nbxrt.reset()

NOT_INTEGERS = st.one_of(
    st.none(), st.booleans(), st.floats(), st.text(), st.binary(), st.lists(st.integers()), st.builds(object)
)
TOO_LARGE = st.integers(min_value=2**64)
NEGATIVE = st.integers(max_value=-(2**31) - 1)

#: Values that no parameter of the type takes.
REFUSED: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.one_of(st.none(), st.integers(), st.text()),
    "text": st.one_of(st.none(), st.integers(), st.binary(), st.just("a\0b")),
    "bytes": st.one_of(st.none(), st.integers(), st.text()),
    "dim3": st.one_of(st.none(), st.integers(), st.just(()), st.just((1, 0)), st.just((1, 1, 1, 1)), st.just((2**32,))),
    "arguments": st.one_of(st.none(), st.floats(), st.text(), st.just([1])),
}


def acceptable(kind: str) -> Any:
    """A value that a parameter of the type takes."""
    if kind in CONTRACT["enums"]:
        return CONTRACT["enums"][kind][1][0]
    return {"boolean": False, "text": "x", "bytes": b"x", "dim3": (1,), "arguments": [], "device": 0}.get(kind, 1)


def refused(kind: str) -> st.SearchStrategy[Any]:
    if kind in CONTRACT["enums"]:
        words = CONTRACT["enums"][kind][1]
        unknown = st.text().filter(lambda text: text not in words)
        return st.one_of(unknown, st.none(), st.booleans(), st.floats(), st.just(2**31))
    return REFUSED[kind] if kind in REFUSED else st.one_of(NOT_INTEGERS, TOO_LARGE, NEGATIVE)


PARAMETERS = [
    pytest.param(name, position, id=f"{name}-{parameter[0]}")
    for name, entry in CONTRACT["operations"].items()
    if HOST.supports(name)
    for position, parameter in enumerate(entry["takes"])
]


@pytest.mark.parametrize(("operation", "position"), PARAMETERS)
@given(data=st.data())
def test_an_unacceptable_value_is_refused_by_its_parameters_name(
    operation: str, position: int, data: st.DataObject
) -> None:
    takes = CONTRACT["operations"][operation]["takes"]
    values = [acceptable(kind) for _name, kind, _zero, _default in takes]
    values[position] = data.draw(refused(takes[position][1]))

    with pytest.raises(nbxrt.ArgumentError) as caught:
        getattr(HOST, operation)(*values)

    assert caught.value.parameter == takes[position][0]
    assert caught.value.operation == operation
