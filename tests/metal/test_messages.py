"""Messages to a real Objective-C runtime: every way in which values travel, ownership, pools, threads."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import pytest

import objective_c
from nbxrt.binding.objc import Messages, c_type, entry_point
from nbxrt.catalogue.encodings import parse, parse_method, same
from objective_c import Stub

pytestmark = [
    pytest.mark.skipif(not objective_c.IS_FOR_THIS_MACHINE, reason=objective_c.FOR_WHICH),
    pytest.mark.needs("gobjc"),
]

SIZE = c_type(("uint64", "uint64", "uint64"))
RANGE = c_type(("uint64", "uint64"))


class Talk:
    """Messages by selector and encoding, for tests."""

    def __init__(self, stub: Stub) -> None:
        self.messages = Messages(ctypes.CDLL(str(stub.runtime)), "x86_64")
        self.probe = self.messages.named_class("StubProbe")
        default = stub.MTLCreateSystemDefaultDevice
        default.restype = ctypes.c_void_p
        self.device = default()

    def send(self, receiver: int, selector: str, encoding: str, *arguments: Any) -> Any:
        return self.messages.function(parse(encoding))(receiver, self.messages.selector(selector), *arguments)


@pytest.fixture
def talk(stub: Stub) -> Any:
    talk = Talk(stub)
    pool = talk.messages.push()
    yield talk
    talk.messages.release(talk.device)
    talk.messages.pop(pool)


def test_numbers_and_structures_travel_in_registers_and_on_the_stack(talk: Talk) -> None:
    sent = (0.5, 0.25, 3, SIZE(1, 10, 100), RANGE(1000, 10000), 1 << 40, 200)
    expected = 0.5 + 0.25 + 3 + (1 + 20 + 300) + (1000 + 20000) + (1 << 40) + 200

    said = talk.send(talk.probe, "sum:float:int:size:range:long:byte:", "ddfi{MTLSize=QQQ}{_NSRange=QQ}qC", *sent)

    assert said == expected


def test_large_and_small_structures_come_back(talk: Talk) -> None:
    large = talk.send(talk.probe, "sizeOf:and:", "{MTLSize=QQQ}QQ", 7, 1 << 63)
    small = talk.send(talk.probe, "rangeOf:and:", "{_NSRange=QQ}QQ", 7, 1 << 63)

    assert (large.f0, large.f1, large.f2) == (7, 1 << 63, (1 << 63) + 7)
    assert (small.f0, small.f1) == (7, 1 << 63)


def test_floats_of_every_width_and_truth_come_back(talk: Talk) -> None:
    assert talk.send(talk.probe, "half:", "ff", 3.0) == 1.5
    assert talk.send(talk.probe, "third:", "DD", 3.0) == 1.0
    assert talk.send(talk.probe, "isOdd:", "Bc", -3) is True
    assert talk.send(talk.probe, "isOdd:", "Bc", 4) is False


def test_a_message_to_nothing_gives_nothing(talk: Talk) -> None:
    assert talk.send(0, "half:", "ff", 3.0) == 0.0
    assert talk.send(0, "third:", "DD", 3.0) == 0.0
    assert talk.send(0, "name", "@") is None
    assert talk.send(0, "length", "Q") == 0


@pytest.mark.parametrize(
    ("encoding", "intel", "arm"),
    [
        ("@QQ", "objc_msgSend", "objc_msgSend"),
        ("d", "objc_msgSend", "objc_msgSend"),
        ("{_NSRange=QQ}", "objc_msgSend", "objc_msgSend"),
        ("{MTLSize=QQQ}", "objc_msgSend_stret", "objc_msgSend"),
        ("D", "objc_msgSend_fpret", "objc_msgSend"),
    ],
)
def test_the_entry_point_follows_from_machine_and_result(encoding: str, intel: str, arm: str) -> None:
    returns, _arguments = parse(encoding)

    assert (entry_point(returns, "x86_64"), entry_point(returns, "aarch64")) == (intel, arm)


def test_one_function_serves_one_signature(talk: Talk) -> None:
    one, other = (talk.messages.function(parse(text)) for text in ("@QQ", "@QQ"))

    assert one is other
    assert talk.messages.function(parse("@Q")) is not one
    assert talk.messages.selector("name") == talk.messages.selector("name")


def test_the_runtime_says_which_selectors_an_object_answers_and_how(talk: Talk) -> None:
    messages = talk.messages
    owner = messages.class_of(talk.device)

    assert messages.responds(talk.device, "architecture")
    assert not messages.responds(talk.device, "noSuchThing:")
    assert same(parse_method(messages.encoding(owner, "newBufferWithLength:options:")), parse("@QQ"))
    assert messages.encoding(owner, "noSuchThing:") == ""
    assert messages.named_class("NoSuchClass") == 0


def test_a_pool_releases_what_was_given_within_it(talk: Talk, stub: Stub) -> None:
    before = stub.live
    pool = talk.messages.push()
    name = talk.send(talk.device, "name", "@")
    text = talk.send(name, "UTF8String", "*")
    during = stub.live
    talk.messages.pop(pool)

    assert text == b"Stub M1"
    assert (during, stub.live) == (before + 1, before)


def test_the_interpreter_runs_while_a_message_waits(talk: Talk, stub: Stub) -> None:
    queue = talk.send(talk.device, "newCommandQueue", "@")
    buffer = talk.send(queue, "commandBuffer", "@")
    with stub.held():
        talk.send(buffer, "commit", "v")
        waiting = threading.Thread(target=talk.send, args=(buffer, "waitUntilCompleted", "v"))
        waiting.start()
        for _turn in range(20):  # there would be none were the interpreter's lock kept, and the message would be over
            time.sleep(0.002)
        waits = waiting.is_alive()
    waiting.join()
    talk.messages.release(queue)

    assert waits
    assert talk.send(buffer, "status", "Q") == 4


def test_a_structure_of_the_same_fields_is_one_class() -> None:
    assert c_type(("uint64", "uint64")) is c_type(("uint64", "uint64"))
    assert ctypes.sizeof(c_type(("uint8", ("double", "bool")))) == 24
