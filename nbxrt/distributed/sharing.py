"""Memory of the ranks of one host, each other's without a copy."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed.hosts import host
from nbxrt.distributed.messages import SHARE
from nbxrt.objects import ipc
from nbxrt.objects.buffer import Buffer, shared
from nbxrt.objects.device import as_device
from nbxrt.objects.memory import OwnedMemory

if TYPE_CHECKING:
    from nbxrt.distributed.communicator import Communicator
    from nbxrt.objects.ipc import Handle


def share(comm: Communicator, buffer: Buffer) -> list[Buffer | None]:
    """Every rank's buffer, as `Communicator.share` gives them."""
    own, failure = _said(buffer)
    everybody = [pickle.loads(said) for said in comm.gather(pickle.dumps(own), SHARE)]  # noqa: S301  # ranks of one program
    if failure is not None:
        raise failure
    for rank, said in enumerate(everybody):
        if "error" in said:
            told = f"rank {rank} shares nothing: {said['error']}"
            raise errors.CommunicatorError(told, hint=said["hint"], missing=(rank,))
    return [
        buffer if rank == comm.rank else _opened(comm, said["handle"]) if said["host"] == own["host"] else None
        for rank, said in enumerate(everybody)
    ]


def _said(buffer: Buffer) -> tuple[dict[str, Any], errors.NbxrtError | None]:
    """What this rank tells the others, and its own error: it is raised when they know of it."""
    try:
        return {"host": host(), "handle": ipc.plain_of_buffer(buffer)}, None
    except errors.NbxrtError as error:
        return {"error": error.summary, "hint": error.hint}, error


def _opened(comm: Communicator, handle: Handle) -> Buffer:
    """The memory of another rank, mapped by this rank's own device: none of the other's needs a context here."""
    runtime, device = comm.runtime, as_device(comm.device, comm.runtime)
    whole = handle.offset + handle.nbytes
    address = device.on(runtime.ipc_open_mem_handle, handle.content, whole)
    close, content = runtime.ipc_close_mem_handle, handle.content
    memory = OwnedMemory(device, address, whole, lambda opened: close(opened, content))
    return shared(memory, address + handle.offset, handle.nbytes)
