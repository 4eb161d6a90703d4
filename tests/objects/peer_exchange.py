"""What a peer and nbxrt give each other on memory of the host; run by an interpreter that has the peer.

It is a program, so that each peer lives in an environment of its own: `peer_exchange.py torch`. It ends with the peer
holding memory of ours and us holding memory of the peer, which must not change its exit.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

import nbxrt

SHAPES = [(), (3,), (2, 0, 3), (2, 3, 4)]
TYPES = ["bool", "int8", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64", "complex64"]


class Torch:
    """PyTorch on the processor."""

    types = (*TYPES, "float8_e4m3fn", "float8_e5m2")
    writable = True

    def __init__(self) -> None:
        import torch

        self.it = torch

    def ones(self, shape: tuple[int, ...], kind: str) -> Any:
        return self.it.ones(shape).to(getattr(self.it, kind))

    def take(self, ours: nbxrt.DeviceArray) -> Any:
        return self.it.from_dlpack(ours)

    def address(self, theirs: Any) -> int:
        return int(theirs.data_ptr())

    def strided(self) -> Any:
        return self.it.arange(24, dtype=self.it.float32).reshape(2, 3, 4)[:, ::2].transpose(0, 2)

    def extra(self) -> None:
        """What only PyTorch has: capsules of its own, tensors that need gradients, writes that are seen."""
        tensor = self.it.arange(4.0)
        ours = nbxrt.from_dlpack(self.it.utils.dlpack.to_dlpack(tensor))
        tensor[0] = 7
        assert ours.numpy().tolist() == [7, 1, 2, 3]
        back = self.it.from_dlpack(ours)
        back[1] = 8
        assert tensor.tolist() == [7, 8, 2, 3]
        needs = self.it.ones(3, requires_grad=True)
        refused = ""
        try:
            nbxrt.from_dlpack(needs)
        except (BufferError, RuntimeError) as error:
            refused = str(error)
        assert "grad" in refused


class Jax:
    """JAX on the processor."""

    types = tuple(kind for kind in TYPES if kind not in ("int64", "float64"))  # off unless it is told otherwise
    writable = False

    def __init__(self) -> None:
        import jax

        self.it = jax

    def ones(self, shape: tuple[int, ...], kind: str) -> Any:
        return self.it.numpy.ones(shape, kind if kind != "bool" else bool)

    def take(self, ours: nbxrt.DeviceArray) -> Any:
        return self.it.dlpack.from_dlpack(ours)

    def address(self, theirs: Any) -> int:
        return int(theirs.unsafe_buffer_pointer())

    def strided(self) -> Any:
        return self.it.numpy.arange(24, dtype="float32").reshape(2, 3, 4)

    def extra(self) -> None:
        """JAX brings `ml_dtypes`, so that the types which NumPy does not have go to NumPy and back."""
        for kind in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            there = nbxrt.from_dlpack(nbxrt.zeros((2, 3), kind)).numpy()
            assert there.dtype.name == kind
            back = nbxrt.from_numpy(there[:, ::2] + there.dtype.type(1))
            assert (back.dtype, back.shape) == (kind, (2, 2))
            assert back.numpy().astype("float32").tolist() == [[1, 1], [1, 1]]
            assert nbxrt.asarray(there).dtype == kind


def exchange(peer: Any) -> int:
    """Every type and shape in both directions; how many exchanges there were."""
    count = 0
    for kind in peer.types:
        for shape in SHAPES:
            theirs = peer.ones(shape, kind)
            ours = nbxrt.from_dlpack(theirs)
            assert (ours.shape, ours.dtype) == (shape, kind), (shape, kind, ours)
            if ours.size:
                assert ours.ptr == peer.address(theirs), (shape, kind)
            made = nbxrt.empty(shape, kind)
            made.copy_from(ours)
            back = peer.take(made)
            assert tuple(back.shape) == shape
            assert str(back.dtype).rpartition(".")[2] == kind
            assert not made.size or peer.address(back) == made.ptr or not peer.writable, (shape, kind)
            assert nbxrt.from_dlpack(back).tobytes() == ours.tobytes()
            count += 2
    return count


def lifetimes(peer: Any) -> None:
    """What one side took lives when the other side has dropped it."""
    taken = peer.take(nbxrt.asarray(bytearray(b"\1" * 4096)))
    ours = nbxrt.from_dlpack(peer.ones((1024,), "float32"))
    gc.collect()
    filler = [nbxrt.zeros(4096, "uint8") for _each in range(50)]
    assert set(nbxrt.from_dlpack(taken).tobytes()) == {1}
    assert set(ours.numpy().tolist()) == {1.0}
    del filler


if __name__ == "__main__":
    nbxrt.open("host")
    peer = {"torch": Torch, "jax": Jax}[sys.argv[1]]()
    count = exchange(peer)
    strided = peer.strided()
    assert nbxrt.from_dlpack(strided).numpy().tolist() == strided.tolist()
    lifetimes(peer)
    peer.extra()
    held_by_the_peer = peer.take(nbxrt.zeros(64))
    held_by_us = nbxrt.from_dlpack(peer.ones((64,), "float32"))
    print(count)  # noqa: T201  # what the test reads
