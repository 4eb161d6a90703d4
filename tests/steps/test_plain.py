"""Policies of backends whose calls have finished when they return, on a shelf that is one."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Shelf

pytestmark = pytest.mark.needs("cc")


@pytest.fixture
def plain(shelf: Callable[..., Shelf]) -> Any:
    more: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("plain.yaml").read_text("utf-8"))
    return shelf(operations=more["operations"]).runtime


def test_the_current_device_is_each_threads_own(plain: Any) -> None:
    plain.set_device(1)
    seen: list[int] = []

    thread = threading.Thread(target=lambda: seen.append(plain.get_device()))
    thread.start()
    thread.join()

    assert (seen, plain.get_device()) == ([0], 1)


def test_memory_is_that_of_the_system(plain: Any) -> None:
    free, total = plain.mem_get_info()

    assert 0 < free < total
    assert abs(total - os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) < total / 10


def test_streams_have_finished_and_are_refused_once_they_are_destroyed(plain: Any) -> None:
    stream = plain.stream_create()
    assert plain.stream_query(stream) is True
    plain.stream_sync(0)

    plain.stream_destroy(stream)

    for call in (plain.stream_sync, plain.stream_query, plain.stream_destroy):
        with pytest.raises(nbxrt.ArgumentValueError, match="no stream has the handle"):
            call(stream)


def test_events_tell_the_hosts_time(plain: Any) -> None:
    began = time.perf_counter()
    start, end, untimed = plain.event_create(), plain.event_create(), plain.event_create_flags(timing=False)
    plain.event_record(start, 0)
    time.sleep(0.002)
    plain.event_record(end, 0)
    plain.event_record(untimed, 0)
    plain.stream_wait_event(plain.stream_create(), end)

    assert plain.event_query(end) is True
    assert 2 <= plain.event_elapsed(start, end) <= 1000 * (time.perf_counter() - began)
    with pytest.raises(nbxrt.ArgumentValueError, match="`end` was made without timing"):
        plain.event_elapsed(start, untimed)
