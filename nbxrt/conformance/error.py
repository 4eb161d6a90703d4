"""Checks of the group `error`: the error that the library keeps for the thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt import errors
from nbxrt.conformance.checking import check, expect, expect_error, expect_that
from nbxrt.conformance.memory import IMPOSSIBLE
from nbxrt.locks import in_another_thread

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench


@check("error", ("get_last_error", "malloc"))
def a_failure_leaves_no_stored_error(bench: Bench) -> None:
    """The error that was raised has told it already."""
    expect(bench.runtime.get_last_error(), 0, "get_last_error with no failure before")
    expect_error(errors.OutOfMemoryError, f"malloc({IMPOSSIBLE})", bench.runtime.malloc, IMPOSSIBLE)
    expect(bench.runtime.get_last_error(), 0, "get_last_error after a failure that was raised")


@check("error", ("peek_last_error", "get_last_error"))
def looking_at_the_stored_error_gives_a_code(bench: Bench) -> None:
    """The code is 0 where there is no error."""
    expect(bench.runtime.peek_last_error(), 0, "peek_last_error with no failure before")
    expect(bench.runtime.get_last_error(), 0, "get_last_error after peek_last_error")


@check("error", ("get_last_error", "malloc"))
def a_failure_in_one_thread_is_not_stored_for_others(bench: Bench) -> None:
    """Each thread has its own stored error."""

    def fail() -> None:
        bench.runtime.set_device(bench.device)
        expect_error(errors.OutOfMemoryError, "an impossible malloc", bench.runtime.malloc, IMPOSSIBLE)

    in_another_thread(fail)

    expect(bench.runtime.get_last_error(), 0, "this thread's error after the other thread's failure")


@check("error")
def codes_have_the_words_of_the_library_or_the_contract(bench: Bench) -> str:
    """Every code that the backend gives a meaning to has a text."""
    library = bench.runtime.library("runtime")
    codes = sorted(library.kind_of_code)
    for code in codes:
        expect_that(bool(bench.runtime.error_text(code)), f"error_text({code}): no text")
    for word in set(library.kind_of_code.values()):
        expect_that(word in bench.runtime.contract["errors"], f"`{word}` is no error of the contract")
    return f"{len(codes)} codes"
