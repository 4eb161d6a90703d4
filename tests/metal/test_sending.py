"""Steps that send: what undoes them, what settles that, objects that are kept, and messages that nobody answers."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
import objective_c
from nbxrt.binding.source import source_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from objective_c import Stub

pytestmark = [
    pytest.mark.skipif(not objective_c.IS_FOR_THIS_MACHINE, reason=objective_c.FOR_WHICH),
    pytest.mark.needs("gobjc"),
]


@pytest.fixture
def changed(stub: Stub, metal: Any, tmp_path: Path) -> Callable[[str], Any]:
    """Opens the `metal` backend with what a file of the user's changes."""

    def opened(text: str) -> Any:
        file = tmp_path / "mine.yaml"
        file.write_text(f"contract: 1\nextends: metal\n{text}", "utf-8")
        return nbxrt.open(file)

    return opened


def test_a_failure_in_the_middle_of_encoding_ends_the_encoder_and_commits_the_buffer(stub: Stub, metal: Any) -> None:
    address = metal.malloc(64)
    target = metal._binder.addresses.find(address, "test").target
    stream = metal._binder.policy("queues").find(0)
    fill = metal._binder.part("transfers", "fill")
    committed = stub.committed

    for _turn in range(70):  # more than a queue holds: each must have given its place back
        with pytest.raises(TypeError):
            fill(stream.state, target, "no offset", 64, 1, stream)

    assert stub.committed - committed == 70
    assert not stream.in_flight
    metal.free(address)


class _Interrupted(deque[int]):
    """Takes what it is given, and is interrupted."""

    def append(self, work: int) -> None:
        super().append(work)
        raise KeyboardInterrupt


def test_an_interrupt_after_the_commit_neither_ends_nor_commits_nor_releases_anything_twice(metal: Any) -> None:
    address = metal.malloc(64)
    stream = metal._binder.policy("queues").find(0)
    stream.in_flight = _Interrupted()

    with pytest.raises(KeyboardInterrupt):
        metal.memset(address, 1, 64)

    stream.in_flight = deque(stream.in_flight)
    metal.sync()
    metal.free(address)


def test_what_settles_is_said_before_it_is_done(metal: Any) -> None:
    source = source_of(metal._binder.part("transfers", "fill"))
    lines = [line.strip() for line in source.splitlines()]

    for flag in ("_undo_encoder", "_undo_work", "_own_work"):
        assert lines.index(f"{flag} = True") < lines.index(f"{flag} = False") < lines.index(f"if {flag}:")
    ended = lines.index("_undo_encoder = False")
    assert "encoder_" in lines[ended + 1]


def test_a_message_that_this_system_does_not_answer_is_not_offered(changed: Callable[[str], Any]) -> None:
    runtime = changed(
        """
messages:
  Newer: {marketingName: {encoding: "@", optional: true}}
operations:
  device_name:
    steps:
      - {send: marketingName, to: device.handle, as: description}
      - {send: UTF8String, to: description, as: name}
"""
    )

    with pytest.raises(nbxrt.CapabilityError, match="nothing answers `marketingName`"):
        runtime.device_name(0)


def test_a_message_that_may_not_be_answered_is_sent_where_it_is(changed: Callable[[str], Any]) -> None:
    runtime = changed(
        """
messages:
  Newer: {architecture: {encoding: "@", optional: true}}
operations:
  device_name:
    steps:
      - {send: architecture, to: device.handle, as: kind}
      - {send: name, to: kind, as: description}
      - {send: UTF8String, to: description, as: name}
"""
    )

    assert runtime.device_name(0) == "applegpu_stub"


def test_nil_is_the_error_that_the_file_says_or_an_answer(changed: Callable[[str], Any]) -> None:
    runtime = changed(
        """
operations:
  malloc:
    steps:
      - send: "newBufferWithLength:options:"
        to: state.handle
        args: [nbytes, {uint64: 0}]
        as: buffer
        nil: not_supported
      - {send: contents, to: buffer, as: address}
      - {track: address, object: buffer, nbytes: nbytes}
"""
    )

    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.malloc(1 << 40)

    assert (caught.value.kind, caught.value.symbol) == ("not_supported", "newBufferWithLength:options:")
    assert "The library does not offer this here" in str(caught.value)


def test_a_class_that_is_not_here_is_named(changed: Callable[[str], Any]) -> None:
    runtime = changed(
        """
operations:
  device_name:
    ignores: [device]
    steps:
      - {send: "stringWithCString:encoding:", class: NSMissing, args: [null, {uint64: 4}], as: text}
      - {send: UTF8String, to: text, as: name}
"""
    )

    with pytest.raises(nbxrt.SymbolNotFoundError, match="this process has no class `NSMissing`"):
        runtime.device_name(0)


def test_a_later_failure_releases_what_is_owned(stub: Stub, metal: Any) -> None:
    before = stub.live_by_class

    with pytest.raises(nbxrt.DeviceError):
        metal.module_load(b"MTLB")  # the data object was made, the library was not
    with pytest.raises(nbxrt.DeviceError):
        metal.module_load(b"no kernel")

    assert stub.live_by_class == before


def test_operations_without_messages_have_no_pool(metal: Any) -> None:
    assert "_push" in source_of(metal.malloc)
    assert "_push" not in source_of(metal.sync)
