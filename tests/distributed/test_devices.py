"""Communicators of a vendor's collectives: ranks are processes, the vendor is simulated, NumPy says what is right."""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.needs("cc"), pytest.mark.needs("numpy")]


@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.tier("all"))])
def test_ranks_receive_what_numpy_says(ranks: Callable[..., list[int]], size: int) -> None:
    assert ranks("every_collective", size) == [0] * size


@pytest.mark.tier("all")
@pytest.mark.parametrize("vendor", ["hip", "musa", "maca", "ascend", "cambricon", "enflame"])
def test_other_vendors_libraries_do_the_same(ranks: Callable[..., list[int]], vendor: str) -> None:
    """Among them identities of 4108 bytes by their address, other numbers and orders, no abort, and no broadcast."""
    assert ranks("every_collective", 2, vendor) == [0] * 2


@pytest.mark.tier("all")
def test_ranks_may_be_in_several_communicators(ranks: Callable[..., list[int]]) -> None:
    assert ranks("overlapping_groups", 4) == [0] * 4


def test_what_is_wrong_is_refused_before_anything_is_sent(ranks: Callable[..., list[int]]) -> None:
    assert ranks("refusals", 2) == [0] * 2


def test_ranks_of_one_host_share_memory_and_get_no_context_elsewhere(ranks: Callable[..., list[int]]) -> None:
    assert ranks("shared_memory", 2) == [0] * 2


@pytest.mark.tier("all")
def test_no_elements_are_nothing_to_do(ranks: Callable[..., list[int]]) -> None:
    assert ranks("no_elements", 2) == [0] * 2


def test_different_calls_are_found_by_the_check(ranks: Callable[..., list[int]]) -> None:
    assert ranks("different_calls", 2, NBXRT_DIST_CHECK="1") == [0] * 2


@pytest.mark.tier("all")
def test_the_others_go_on_without_a_rank_that_is_late(ranks: Callable[..., list[int]]) -> None:
    assert ranks("a_rank_that_does_not_come", 3) == [0] * 3


@pytest.mark.tier("all")
def test_ranks_that_do_not_come_are_named(ranks: Callable[..., list[int]]) -> None:
    assert ranks("a_rank_that_waits_for_itself", 3) == [0] * 3


def test_the_others_go_on_without_a_rank_that_ends(ranks: Callable[..., list[int]]) -> None:
    assert ranks("a_rank_that_ends", 3) == [0, 0, -signal.SIGKILL]


@pytest.mark.tier("all")
@pytest.mark.parametrize(
    "operation",
    ["all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "recv"],
)
def test_a_rank_may_end_in_the_middle_of_each_operation(ranks: Callable[..., list[int]], operation: str) -> None:
    assert ranks("a_rank_that_ends_in_the_middle", 2, OPERATION=operation) == [0, -signal.SIGKILL]


@pytest.mark.tier("all")
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python itself warns of a fork beside threads")
def test_a_forked_child_refuses_its_parents_communicator(ranks: Callable[..., list[int]]) -> None:
    assert ranks("a_fork", 2) == [0, 0]


@pytest.mark.tier("all")
def test_a_rank_may_exit_in_the_middle(ranks: Callable[..., list[int]]) -> None:
    assert ranks("an_exit_in_the_middle", 2) == [0, 4]


@pytest.mark.tier("all")
def test_the_end_of_a_process_does_not_wait_for_others(ranks: Callable[..., list[int]]) -> None:
    start = time.monotonic()

    assert ranks("an_end_that_leaves_work_behind", 2) == [0, 0]
    assert time.monotonic() - start < 45, "this is about hanging, not about speed"


@pytest.mark.tier("all")
@pytest.mark.parametrize("seconds", ["0", "1.2"])
def test_the_others_tell_of_a_rank_that_leaves(ranks: Callable[..., list[int]], seconds: str) -> None:
    assert ranks("a_rank_leaves", 3, LATE=seconds) == [0] * 3


@pytest.mark.tier("all")
def test_a_rank_that_ends_as_it_joins_leaves_nothing_behind(ranks: Callable[..., list[int]]) -> None:
    assert ranks("a_rank_that_ends_as_it_joins", 2) == [0, -signal.SIGKILL]


@pytest.mark.tier("all")
def test_a_rank_that_ends_before_all_have_joined_is_named(ranks: Callable[..., list[int]]) -> None:
    assert ranks("a_rank_that_ends_before_all_have_joined", 3) == [0, -signal.SIGKILL, 0]


@pytest.mark.tier("all")
def test_a_rank_that_ends_in_a_split_is_named(ranks: Callable[..., list[int]]) -> None:
    assert ranks("a_rank_that_ends_in_a_split", 2) == [0, -signal.SIGKILL]


@pytest.mark.tier("all")
@pytest.mark.parametrize("size", [2, 3])
def test_communicators_may_be_closed_in_another_order(ranks: Callable[..., list[int]], size: int) -> None:
    assert ranks("closing_in_another_order", size) == [0] * size


@pytest.mark.tier("all")
def test_a_split_beside_another_call_breaks_by_name(ranks: Callable[..., list[int]]) -> None:
    assert ranks("a_split_beside_another_call", 2) == [0] * 2


@pytest.mark.tier("all")
def test_the_work_of_a_communicator_that_nobody_holds_is_watched(ranks: Callable[..., list[int]]) -> None:
    assert ranks("a_communicator_that_nobody_holds", 2) == [0] * 2


@pytest.mark.tier("all")
def test_joining_ends_when_nobody_else_comes(ranks: Callable[..., list[int]]) -> None:
    assert ranks("a_rank_that_joins_alone", 1) == [0]
