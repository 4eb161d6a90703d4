"""Simulated vendor libraries, for testing engines on machines without the devices.

    from nbxrt.simulation import build

    simulation = build("cuda", folder, devices=4, memory=1 << 30)
    runtime = simulation.open()

A backend file says what the vendor's functions look like; `build` compiles a library that has them, with a small core
behind it: devices with limited memory, streams whose work is done later, contexts, errors, faults on request, a record
of all calls. Its signatures are those of the vendor's headers where these were read, and a file that states others is
refused. In everything else it is made from the description and agrees with every mistake in it: it proves how the
caller behaves, not that the vendor's library is as described.

A process that uses one may set, lists separated by commas:

    NBXRT_SIM_DEVICES=4                  devices; 2 otherwise
    NBXRT_SIM_MEMORY=512M                memory of each: bytes, or with K, M or G; 16G otherwise
    NBXRT_SIM_FAIL=malloc@1:3+:out_of_memory
                                         OPERATION[@DEVICE]:N[+]:KIND, the n-th call, or every call from it on
    NBXRT_SIM_LATENCY_US=200             a thread does the streams' work, each piece that late
    NBXRT_SIM_SLEEP_US=free:1000         OPERATION:MICROSECONDS that each call takes before it does anything
    NBXRT_SIM_NO_DRIVER=1                as where the vendor's kernel driver is not installed
    NBXRT_SIM_CONTEXT=500M               memory of a device that its context takes; nothing when unset
    NBXRT_SIM_DRIVER_VERSION=11040       what the runtime answers for the driver's version, as the vendor codes it
    NBXRT_SIM_VISIBLE=1,0                devices that the runtime shows, in this order
    NBXRT_SIM_OBEY_VISIBILITY=1          the vendor's own variables hide devices
    NBXRT_SIM_MODELS=usm,svm             models of the devices, of those that the file calls differently, in turn
    NBXRT_SIM_ATTRIBUTES=warp_size=64    facts of the devices, by the contract's words
    NBXRT_SIM_LOG=FILE                   every call is written there; `read_log` reads it
"""

from nbxrt.simulation.building import CompilerError, build
from nbxrt.simulation.controlling import Call, read_log
from nbxrt.simulation.evidence import SignatureError
from nbxrt.simulation.plan import is_made_from_file
from nbxrt.simulation.simulated import Launch, Live, Simulation
from nbxrt.simulation.standing_in import StandIn, has_stand_in, stand_in

__all__ = [
    "Call",
    "CompilerError",
    "Launch",
    "Live",
    "SignatureError",
    "Simulation",
    "StandIn",
    "build",
    "has_stand_in",
    "is_made_from_file",
    "read_log",
    "stand_in",
]
