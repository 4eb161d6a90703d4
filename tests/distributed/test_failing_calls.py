"""What a call means that fails: an error of the call alone, or the end of the communicator."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

import nbxrt
import nbxrt.distributed as dist
from nbxrt import errors
from nbxrt.memory.allocator import account_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

pytestmark = [pytest.mark.needs("cc"), pytest.mark.needs("numpy")]


@pytest.fixture
def simulation(simulate: Callable[..., Simulation]) -> Simulation:
    return simulate("cuda", "12.9")


def test_a_failure_inside_the_library_ends_the_communicator_and_names_rank_and_operation(
    simulation: Simulation,
) -> None:
    with nbxrt.use(simulation.open()):
        comm, x = dist.join(dist.unique_id(), 0, 1, timeout=30), nbxrt.empty(4, "float32")
        comm.all_reduce(x)
        simulation.fail("all_reduce", kind="unknown")

        with pytest.raises(errors.CommunicatorError, match=r"rank 0 of 1, `all_reduce`: .*failed") as caught:
            comm.all_reduce(x)

        assert (caught.value.operation, caught.value.rank) == ("all_reduce", 0)
        with pytest.raises(errors.CommunicatorError, match="`all_reduce`"):
            comm.barrier()
        again = dist.join(dist.unique_id(), 0, 1, timeout=30)
        again.all_reduce(x)
        again.close()


def test_an_argument_that_the_library_refuses_is_an_error_of_that_call_alone(simulation: Simulation) -> None:
    with nbxrt.use(simulation.open()):
        x = nbxrt.empty(4, "float32")
        with dist.join(dist.unique_id(), 0, 1, timeout=30) as comm:
            simulation.fail("all_reduce", kind="invalid_value")

            with pytest.raises(errors.DeviceError, match="`all_reduce` failed"):
                comm.all_reduce(x)

            comm.all_reduce(x)
            comm.wait()


@pytest.mark.tier("all")
def test_a_call_that_does_not_come_back_from_the_library_is_ended_when_its_time_is_over(simulation: Simulation) -> None:
    """As where the library connects ranks at the first call, and waits for one that does not come."""
    with nbxrt.use(simulation.open()):
        comm, x = dist.join(dist.unique_id(), 0, 1, timeout=3), nbxrt.empty(4, "float32")
        simulation.sleep("all_reduce", 60_000_000)

        def come_back() -> None:
            while not comm.standing.is_over:
                time.sleep(0.01)
            simulation.mend()

        library = threading.Thread(target=come_back)
        library.start()
        with pytest.raises(errors.CommunicatorTimeoutError, match="`all_reduce`: not finished within 3 s"):
            comm.all_reduce(x)
        library.join()


def test_an_array_that_was_closed_is_refused_however_often_it_was_sent(simulation: Simulation) -> None:
    with nbxrt.use(simulation.open()), dist.join(dist.unique_id(), 0, 1, timeout=30) as comm:
        buffer = nbxrt.Buffer(16)
        for _turn in range(3):
            comm.all_reduce(buffer)
        buffer.close()

        with pytest.raises(errors.ArgumentValueError, match="is closed"):
            comm.all_reduce(buffer)


def test_a_communicator_keeps_no_memory_of_arrays_that_are_gone(simulation: Simulation) -> None:
    with nbxrt.use(simulation.open()) as runtime, dist.join(dist.unique_id(), 0, 1, timeout=30) as comm:
        held = account_of(runtime).memory_allocated()
        for _turn in range(3):
            x = nbxrt.empty(1 << 20, "float32")
            comm.all_reduce(x)
            comm.all_reduce(x)
            comm.wait()
            del x

        assert account_of(runtime).memory_allocated() == held
