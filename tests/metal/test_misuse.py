"""The stand-in ends the process where Metal's assertions do, so what passes on it keeps those rules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import objective_c
from objective_c import Stub

pytestmark = [
    pytest.mark.skipif(not objective_c.IS_FOR_THIS_MACHINE, reason=objective_c.FOR_WHICH),
    pytest.mark.needs("gobjc"),
    pytest.mark.checkout,
]

PROGRAM = Path(__file__).with_name("misuse.py")
ROOT = PROGRAM.parents[2]


def _start(stub: Stub, case: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-S", str(PROGRAM), str(stub.runtime), str(stub.framework), case]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


ENDINGS = {
    "an_encoder_that_is_not_ended": "released without endEncoding",
    "a_commit_with_an_open_encoder": "commit: an encoder of the command buffer is not ended",
    "a_second_encoder": "has one that is not ended",
    "an_encoder_that_is_ended_twice": "called twice",
    "a_command_after_the_end": "after endEncoding",
    "a_second_commit": "is committed already",
    "an_encoder_after_the_commit": "that is committed",
    "waiting_for_what_is_not_committed": "is not committed",
    "a_signal_inside_an_encoder": "encodeSignalEvent: an encoder",
    "a_wait_inside_an_encoder": "encodeWaitForEvent: an encoder",
    "a_fill_of_an_odd_size": "multiples of 4",
    "a_fill_outside_the_buffer": "outside the buffer",
    "a_copy_at_an_odd_offset": "multiples of 4",
    "a_copy_outside_the_buffer": "outside a buffer",
    "a_buffer_of_no_bytes": "must not be 0",
    "an_index_beyond_the_array": "beyond bounds",
    "a_dispatch_without_a_pipeline": "no pipeline",
    "a_selector_that_nobody_answers": "-[StubDevice noSuchThing]: unrecognized selector",
    "a_message_to_the_dead": "-[Zombie contents]: unrecognized selector",
    "a_release_too_many": "-[Zombie release]: unrecognized selector",
    "a_pool_that_is_popped_twice": "was popped before",
    "a_pool_that_is_popped_on_another_thread": "is not one of this thread",
}


def test_every_misuse_ends_its_process_with_a_sentence(compiled_stub: Stub) -> None:
    running = {case: _start(compiled_stub, case) for case in ENDINGS}
    ended = {case: (process.communicate()[1], process.returncode) for case, process in running.items()}

    wrong = {
        case: (said, code)
        for case, (said, code) in ended.items()
        if code != -signal.SIGABRT or ENDINGS[case] not in said
    }
    assert wrong == {}


def test_a_queue_holds_64_command_buffers_and_then_waits(compiled_stub: Stub) -> None:
    process = _start(compiled_stub, "more_buffers_than_a_queue_holds")
    assert process.stdout is not None
    seen = [process.stdout.readline().strip() for _number in range(64)]
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    process.kill()
    rest = process.communicate()[0].split()

    assert [*seen, *rest] == [str(number) for number in range(64)]  # one was made before these
