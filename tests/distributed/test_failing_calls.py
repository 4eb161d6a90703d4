"""What a call means that fails: an error of the call alone, or the end of the communicator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import nbxrt
import nbxrt.distributed as dist
from nbxrt import errors

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
