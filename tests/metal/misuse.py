"""Run in a process of its own: one misuse of the framework or the runtime, by name, which ends the process.

python misuse.py RUNTIME FRAMEWORK CASE
"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any

from nbxrt.binding.objc import Messages, c_type
from nbxrt.catalogue.encodings import parse

messages = Messages(ctypes.CDLL(sys.argv[1]), "x86_64")
metal = ctypes.CDLL(sys.argv[2])
metal.MTLCreateSystemDefaultDevice.restype = ctypes.c_void_p
metal.MTLCopyAllDevices.restype = ctypes.c_void_p
RANGE = c_type(("uint64", "uint64"))
SIZE = c_type(("uint64", "uint64", "uint64"))


def send(receiver: int, selector: str, encoding: str, *arguments: Any) -> Any:
    return messages.function(parse(encoding))(receiver, messages.selector(selector), *arguments)


pool = messages.push()
device = metal.MTLCreateSystemDefaultDevice()
queue = send(device, "newCommandQueue", "@")
work = send(queue, "commandBuffer", "@")
buffer = send(device, "newBufferWithLength:options:", "@QQ", 4096, 0)
event = send(device, "newSharedEvent", "@")


def blit() -> int:
    return int(send(work, "blitCommandEncoder", "@"))


def fill(encoder: int, start: int, size: int) -> None:
    send(encoder, "fillBuffer:range:value:", "v@{_NSRange=QQ}C", buffer, RANGE(start, size), 1)


def copy(start: int, to: int, size: int) -> None:
    selector = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"
    send(blit(), selector, "v@Q@QQ", buffer, start, buffer, to, size)


def commit() -> None:
    send(work, "commit", "v")


def an_encoder_that_is_not_ended() -> None:
    blit()
    messages.pop(pool)


def a_commit_with_an_open_encoder() -> None:
    blit()
    commit()


def a_second_encoder() -> None:
    blit()
    blit()


def an_encoder_that_is_ended_twice() -> None:
    encoder = blit()
    send(encoder, "endEncoding", "v")
    send(encoder, "endEncoding", "v")


def a_command_after_the_end() -> None:
    encoder = blit()
    send(encoder, "endEncoding", "v")
    fill(encoder, 0, 4)


def a_second_commit() -> None:
    commit()
    commit()


def an_encoder_after_the_commit() -> None:
    commit()
    blit()


def waiting_for_what_is_not_committed() -> None:
    send(work, "waitUntilCompleted", "v")


def a_signal_inside_an_encoder() -> None:
    blit()
    send(work, "encodeSignalEvent:value:", "v@Q", event, 1)


def a_wait_inside_an_encoder() -> None:
    blit()
    send(work, "encodeWaitForEvent:value:", "v@Q", event, 1)


def a_fill_of_an_odd_size() -> None:
    fill(blit(), 0, 3)


def a_fill_outside_the_buffer() -> None:
    fill(blit(), 4092, 8)


def a_copy_at_an_odd_offset() -> None:
    copy(1, 8, 4)


def a_copy_outside_the_buffer() -> None:
    copy(0, 4092, 8)


def a_buffer_of_no_bytes() -> None:
    send(device, "newBufferWithLength:options:", "@QQ", 0, 0)


def an_index_beyond_the_array() -> None:
    send(metal.MTLCopyAllDevices(), "objectAtIndex:", "@Q", 7)


def a_dispatch_without_a_pipeline() -> None:
    encoder = send(work, "computeCommandEncoder", "@")
    send(
        encoder,
        "dispatchThreadgroups:threadsPerThreadgroup:",
        "v{MTLSize=QQQ}{MTLSize=QQQ}",
        SIZE(1, 1, 1),
        SIZE(1, 1, 1),
    )


def a_selector_that_nobody_answers() -> None:
    send(device, "noSuchThing", "@")


def a_message_to_the_dead() -> None:
    messages.release(buffer)
    send(buffer, "contents", "^v")


def a_release_too_many() -> None:
    messages.release(buffer)
    messages.release(buffer)


def a_pool_that_is_popped_twice() -> None:
    messages.pop(pool)
    messages.pop(pool)


def a_pool_that_is_popped_on_another_thread() -> None:
    thread = threading.Thread(target=messages.pop, args=(pool,))
    thread.start()
    thread.join()


def more_buffers_than_a_queue_holds() -> None:
    """No misuse, as far as the framework is concerned: the 65th waits for ever."""
    for number in range(100):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        send(queue, "commandBuffer", "@")


CASES = {name: case for name, case in vars().items() if getattr(case, "__module__", "") == "__main__"}
for name in ("send", "blit", "fill", "copy", "commit"):
    CASES.pop(name)

if __name__ == "__main__":
    CASES[sys.argv[3]]()
