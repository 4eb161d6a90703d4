"""The operations of the contract as methods. Written by `python -m nbxrt.catalogue.compiling` from
schema/operations.yaml; edit that and run it again.
"""

from collections.abc import Sequence
from typing import Literal, SupportsIndex

type_memcpy_kind = Literal[
    "host_to_host",
    "host_to_device",
    "device_to_host",
    "device_to_device",
    "default",
]
type_memory_type = Literal[
    "unregistered",
    "host",
    "device",
    "managed",
]
type_device_attribute = Literal[
    "max_threads_per_block",
    "max_shared_memory_per_block",
    "max_shared_memory_per_block_optin",
    "max_shared_memory_per_multiprocessor",
    "max_registers_per_block",
    "warp_size",
    "multiprocessor_count",
    "compute_capability_major",
    "compute_capability_minor",
    "integrated",
    "can_map_host_memory",
    "unified_addressing",
    "managed_memory",
    "concurrent_managed_access",
    "pageable_memory_access",
    "memory_pools_supported",
    "virtual_memory_supported",
    "pci_bus",
    "pci_device",
    "pci_domain",
    "clock_rate",
    "l2_cache_size",
    "max_grid_x",
    "max_grid_y",
    "max_grid_z",
]
type_mempool_attribute = Literal[
    "release_threshold",
    "reserved_current",
    "reserved_high",
    "used_current",
    "used_high",
]
type_mem_advice = Literal[
    "set_read_mostly",
    "unset_read_mostly",
    "set_preferred_location",
    "unset_preferred_location",
    "set_accessed_by",
    "unset_accessed_by",
]
type_mem_access = Literal[
    "none",
    "read",
    "read_write",
]
type_mem_sharing = Literal[
    "none",
    "file",
]
type_capture_mode = Literal[
    "global",
    "thread_local",
    "relaxed",
]
type_function_attribute = Literal[
    "max_threads_per_block",
    "shared_memory",
    "local_memory",
    "registers",
    "max_dynamic_shared_memory",
    "preferred_shared_memory",
    "non_portable_clusters",
]
type_tensor_element = Literal[
    "uint8",
    "uint16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "float32_ftz",
    "tfloat32",
    "tfloat32_ftz",
]
type_tensor_swizzle = Literal[
    "none",
    "bytes_32",
    "bytes_64",
    "bytes_128",
]
type_tensor_fill = Literal[
    "zero",
    "nan",
]
type_bus_distance = Literal[
    "same_board",
    "one_switch",
    "switches",
    "host_bridge",
    "numa_node",
    "system",
]
type_datatype = Literal[
    "int8",
    "uint8",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e4m3",
    "float8_e5m2",
]
type_reduction = Literal[
    "sum",
    "prod",
    "max",
    "min",
    "avg",
]

class Operations:
    """Every operation, in the contract's form; nbxrt.Runtime has them.

    One that a backend lacks raises CapabilityError with the reason from its file.
    Behind DeviceError stand the kinds (`error.kind`) that are to be expected.
    """

    def device_count(
        self,
    ) -> int:
        """The number of visible devices; 0 when there is none.

        Returns: count.
        Raises: DeviceError.
        """

    def set_device(
        self,
        device: SupportsIndex,
    ) -> None:
        """The device becomes the current one of the calling thread.

        device: Ordinal of a device among the visible ones, from 0.
        Raises: ArgumentError, NoDeviceError, DeviceError (`invalid_device`).
        """

    def get_device(
        self,
    ) -> int:
        """The current device of the calling thread.

        Returns: device.
        Raises: NoDeviceError, DeviceError.
        """

    def sync(
        self,
    ) -> None:
        """Waits until all work of the current device has finished.

        Raises: DeviceError.
        """

    def mem_get_info(
        self,
    ) -> tuple[int, int]:
        """Free and total memory of the current device, in bytes.

        Returns: free, total.
        Raises: CapabilityError, NoDeviceError, DeviceError.
        """

    def pci_bus_id(
        self,
        device: SupportsIndex,
    ) -> str:
        """Where the device sits on PCI, as domain:bus:device.function.

        device: Ordinal of a device among the visible ones, from 0.
        Returns: pci_bus_id.
        Raises: ArgumentError, CapabilityError, NoDeviceError, DeviceError (`invalid_device`).
        """

    def device_attribute(
        self,
        attribute: type_device_attribute | SupportsIndex,
        device: SupportsIndex,
    ) -> int:
        """One attribute of a device, by a word of `device_attribute` or the vendor's own number.

        attribute: An attribute of a device, an integer.
        device: Ordinal of a device among the visible ones, from 0.
        Returns: value.
        Raises: ArgumentError, CapabilityError, NoDeviceError, DeviceError (`invalid_device`, `invalid_value`).
        """

    def device_name(
        self,
        device: SupportsIndex,
    ) -> str:
        """The vendor's name of the device.

        device: Ordinal of a device among the visible ones, from 0.
        Returns: name.
        Raises: ArgumentError, CapabilityError, NoDeviceError, DeviceError (`invalid_device`).
        """

    def device_uuid(
        self,
        device: SupportsIndex,
    ) -> bytes:
        """The 16 bytes that identify the device everywhere.

        device: Ordinal of a device among the visible ones, from 0.
        Returns: uuid.
        Raises: ArgumentError, CapabilityError, NoDeviceError, DeviceError (`invalid_device`).
        """

    def device_can_access_peer(
        self,
        device: SupportsIndex,
        peer: SupportsIndex,
    ) -> bool:
        """Whether the device can access the memory of the other one.

        device, peer: Ordinal of a device among the visible ones, from 0.
        Returns: can_access.
        Raises: ArgumentError, CapabilityError, NoDeviceError, DeviceError (`invalid_device`).
        """

    def device_enable_peer_access(
        self,
        peer: SupportsIndex,
    ) -> None:
        """The current device gains access to the peer's memory; already enabled is success.

        peer: Ordinal of a device among the visible ones, from 0.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_device`, `peer_unsupported`).
        """

    def device_disable_peer_access(
        self,
        peer: SupportsIndex,
    ) -> None:
        """The current device loses access to the peer's memory; not enabled is success.

        peer: Ordinal of a device among the visible ones, from 0.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_device`).
        """

    def memcpy_peer(
        self,
        dst: SupportsIndex,
        dst_device: SupportsIndex,
        src: SupportsIndex,
        src_device: SupportsIndex,
        nbytes: SupportsIndex,
    ) -> None:
        """Copies between two devices; returns when the copy is ordered, or later.

        dst, src: Address of memory, an integer.
        dst_device, src_device: Ordinal of a device among the visible ones, from 0.
        nbytes: A number of bytes; 0 is nothing to do.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `invalid_device`).
        """

    def memcpy_peer_async(
        self,
        dst: SupportsIndex,
        dst_device: SupportsIndex,
        src: SupportsIndex,
        src_device: SupportsIndex,
        nbytes: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Copies between two devices, ordered on the stream.

        dst, src: Address of memory, an integer.
        dst_device, src_device: Ordinal of a device among the visible ones, from 0.
        nbytes: A number of bytes; 0 is nothing to do.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `invalid_device`, `invalid_handle`).
        """

    def malloc(
        self,
        nbytes: SupportsIndex,
    ) -> int:
        """Allocates memory on the current device; 0 bytes give address 0.

        nbytes: A number of bytes; 0 is nothing to do.
        Returns: address.
        Released by `free`.
        Raises: ArgumentError, OutOfMemoryError, NoDeviceError, DeviceError.
        """

    def free(
        self,
        address: SupportsIndex,
    ) -> None:
        """Releases memory of `malloc`; waits for work that uses it, and address 0 does nothing.

        address: Address of memory, an integer; 0 is nothing to do.
        Raises: ArgumentError, DeviceError (`invalid_value`).
        """

    def memcpy(
        self,
        dst: SupportsIndex,
        src: SupportsIndex,
        nbytes: SupportsIndex,
        kind: type_memcpy_kind | SupportsIndex,
    ) -> None:
        """Copies and waits until the host side may be reused.

        dst, src: Address of memory, an integer.
        nbytes: A number of bytes; 0 is nothing to do.
        kind: Direction of a copy.
        Raises: ArgumentError, DeviceError (`invalid_value`).
        """

    def memcpy_async(
        self,
        dst: SupportsIndex,
        src: SupportsIndex,
        nbytes: SupportsIndex,
        kind: type_memcpy_kind | SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Copies, ordered on the stream; both sides must stay allocated until the stream has passed the copy.

        dst, src: Address of memory, an integer.
        nbytes: A number of bytes; 0 is nothing to do.
        kind: Direction of a copy.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, DeviceError (`invalid_value`, `invalid_handle`).
        """

    def memset(
        self,
        address: SupportsIndex,
        value: SupportsIndex,
        nbytes: SupportsIndex,
    ) -> None:
        """Fills memory with the lowest byte of value; the fill is ordered before later work of the default stream.

        address: Address of memory, an integer.
        value: A signed 32-bit integer.
        nbytes: A number of bytes; 0 is nothing to do.
        Raises: ArgumentError, DeviceError (`invalid_value`).
        """

    def memset_async(
        self,
        address: SupportsIndex,
        value: SupportsIndex,
        nbytes: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Fills memory with the lowest byte of value, ordered on the stream.

        address: Address of memory, an integer.
        value: A signed 32-bit integer.
        nbytes: A number of bytes; 0 is nothing to do.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `invalid_handle`).
        """

    def pointer_attributes(
        self,
        address: SupportsIndex,
    ) -> tuple[str, int, int, int]:
        """What an address points to, which device owns it, and its addresses on device and host (0 where there is none).

        address: Address of memory, an integer.
        Returns: memory, device, device_address, host_address.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def malloc_host(
        self,
        nbytes: SupportsIndex,
    ) -> int:
        """Allocates page-locked host memory; 0 bytes give address 0.

        nbytes: A number of bytes; 0 is nothing to do.
        Returns: address.
        Released by `free_host`.
        Raises: ArgumentError, CapabilityError, OutOfMemoryError, NoDeviceError, DeviceError.
        """

    def free_host(
        self,
        address: SupportsIndex,
    ) -> None:
        """Releases memory of `malloc_host`; address 0 does nothing.

        address: Address of memory, an integer; 0 is nothing to do.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def host_register(
        self,
        address: SupportsIndex,
        nbytes: SupportsIndex,
    ) -> None:
        """Page-locks host memory that the caller owns.

        address: Address of memory, an integer.
        nbytes: A number of bytes.
        Released by `host_unregister`.
        Raises: ArgumentError, CapabilityError, OutOfMemoryError, DeviceError (`invalid_value`, `already_registered`).
        """

    def host_unregister(
        self,
        address: SupportsIndex,
    ) -> None:
        """Undoes `host_register`.

        address: Address of memory, an integer.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `not_registered`).
        """

    def host_get_device_pointer(
        self,
        address: SupportsIndex,
    ) -> int:
        """The device's address of page-locked host memory.

        address: Address of memory, an integer.
        Returns: device_address.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def malloc_managed(
        self,
        nbytes: SupportsIndex,
    ) -> int:
        """Allocates memory that migrates between host and device; 0 bytes give address 0.

        nbytes: A number of bytes; 0 is nothing to do.
        Returns: address.
        Released by `free`.
        Raises: ArgumentError, CapabilityError, OutOfMemoryError, DeviceError (`not_supported`).
        """

    def mem_prefetch(
        self,
        address: SupportsIndex,
        nbytes: SupportsIndex,
        device: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Moves managed memory to the device, ordered on the stream.

        address: Address of memory, an integer.
        nbytes: A number of bytes; 0 is nothing to do.
        device: Ordinal of a device among the visible ones, from 0.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `invalid_device`).
        """

    def mem_advise(
        self,
        address: SupportsIndex,
        nbytes: SupportsIndex,
        advice: type_mem_advice | SupportsIndex,
        device: SupportsIndex,
    ) -> None:
        """Tells the driver how managed memory will be used.

        address: Address of memory, an integer.
        nbytes: A number of bytes; 0 is nothing to do.
        advice: How managed memory will be used.
        device: Ordinal of a device among the visible ones, from 0.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `invalid_device`).
        """

    def malloc_async(
        self,
        nbytes: SupportsIndex,
        stream: SupportsIndex,
    ) -> int:
        """Allocates memory, ordered on the stream; 0 bytes give address 0.

        nbytes: A number of bytes; 0 is nothing to do.
        stream: Handle of a stream; 0 is the default stream.
        Returns: address.
        Released by `free_async`.
        Raises: ArgumentError, CapabilityError, OutOfMemoryError, DeviceError (`not_supported`).
        """

    def free_async(
        self,
        address: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Releases memory of `malloc_async`, ordered on the stream; address 0 does nothing.

        address: Address of memory, an integer; 0 is nothing to do.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def mempool_get_default(
        self,
        device: SupportsIndex,
    ) -> int:
        """The device's default pool, from which `malloc_async` takes.

        device: Ordinal of a device among the visible ones, from 0.
        Returns: pool.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_device`, `not_supported`).
        """

    def mempool_get_attribute(
        self,
        pool: SupportsIndex,
        attribute: type_mempool_attribute | SupportsIndex,
    ) -> int:
        """One value of a pool, in bytes.

        pool: Handle of a stream-ordered memory pool.
        attribute: A 64-bit value of a stream-ordered memory pool, bytes.
        Returns: value.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def mempool_set_attribute(
        self,
        pool: SupportsIndex,
        attribute: type_mempool_attribute | SupportsIndex,
        value: SupportsIndex,
    ) -> None:
        """Sets one value of a pool, in bytes.

        pool: Handle of a stream-ordered memory pool.
        attribute: A 64-bit value of a stream-ordered memory pool, bytes.
        value: An unsigned 64-bit integer.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def mempool_trim(
        self,
        pool: SupportsIndex,
        keep: SupportsIndex = 0,
    ) -> None:
        """Gives memory that the pool does not use back to the device, but for `keep` bytes.

        pool: Handle of a stream-ordered memory pool.
        keep: A number of bytes.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def stream_create(
        self,
    ) -> int:
        """Makes a stream on the current device.

        Returns: stream.
        Released by `stream_destroy`.
        Raises: NoDeviceError, OutOfMemoryError, DeviceError.
        """

    def stream_create_flags(
        self,
        non_blocking: bool = False,
    ) -> int:
        """Makes a stream that may ignore the default stream.

        non_blocking: True or False.
        Returns: stream.
        Released by `stream_destroy`.
        Raises: ArgumentError, CapabilityError, NoDeviceError, OutOfMemoryError, DeviceError.
        """

    def stream_create_priority(
        self,
        priority: SupportsIndex,
        non_blocking: bool = False,
    ) -> int:
        """Makes a stream of a priority; lower numbers go first.

        priority: A signed 32-bit integer.
        non_blocking: True or False.
        Returns: stream.
        Released by `stream_destroy`.
        Raises: ArgumentError, CapabilityError, NoDeviceError, OutOfMemoryError, DeviceError.
        """

    def stream_priority_range(
        self,
    ) -> tuple[int, int]:
        """The least and the greatest priority of the current device.

        Returns: least, greatest.
        Raises: CapabilityError, DeviceError.
        """

    def stream_destroy(
        self,
        stream: SupportsIndex,
    ) -> None:
        """Releases a stream; work already in it still runs.

        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, DeviceError (`invalid_handle`).
        """

    def stream_sync(
        self,
        stream: SupportsIndex,
    ) -> None:
        """Waits until the work of the stream has finished.

        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, DeviceError (`invalid_handle`).
        """

    def stream_query(
        self,
        stream: SupportsIndex,
    ) -> bool:
        """Whether the work of the stream has finished.

        stream: Handle of a stream; 0 is the default stream.
        Returns: done.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_handle`).
        """

    def stream_wait_event(
        self,
        stream: SupportsIndex,
        event: SupportsIndex,
    ) -> None:
        """Lets later work of the stream wait for what the event stands for; the calling thread does not wait.

        stream: Handle of a stream; 0 is the default stream.
        event: Handle of an event.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_handle`).
        """

    def event_create(
        self,
    ) -> int:
        """Makes an event that records its time.

        Returns: event.
        Released by `event_destroy`.
        Raises: NoDeviceError, DeviceError.
        """

    def event_create_flags(
        self,
        timing: bool = True,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> int:
        """Makes an event for what the flags say.

        timing, blocking, interprocess: True or False.
        Returns: event.
        Released by `event_destroy`.
        Raises: ArgumentError, CapabilityError, NoDeviceError, DeviceError (`invalid_value`).
        """

    def event_destroy(
        self,
        event: SupportsIndex,
    ) -> None:
        """Releases an event.

        event: Handle of an event.
        Raises: ArgumentError, DeviceError (`invalid_handle`).
        """

    def event_record(
        self,
        event: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Records the event in the stream; it then stands for all work that the stream was given before.

        event: Handle of an event.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, DeviceError (`invalid_handle`).
        """

    def event_sync(
        self,
        event: SupportsIndex,
    ) -> None:
        """Waits until the work that the event stands for has finished.

        event: Handle of an event.
        Raises: ArgumentError, DeviceError (`invalid_handle`).
        """

    def event_query(
        self,
        event: SupportsIndex,
    ) -> bool:
        """Whether the work that the event stands for has finished; an event never recorded counts as finished.

        event: Handle of an event.
        Returns: done.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_handle`).
        """

    def event_elapsed(
        self,
        start: SupportsIndex,
        end: SupportsIndex,
    ) -> float:
        """The time between two recorded events of one device, in milliseconds.

        start, end: Handle of an event.
        Returns: elapsed.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_handle`, `not_ready`).
        """

    def get_last_error(
        self,
    ) -> int:
        """The code of the calling thread's last error, which is cleared; 0 when there is none.

        Returns: code.
        Raises: CapabilityError, DeviceError.
        """

    def peek_last_error(
        self,
    ) -> int:
        """The code of the calling thread's last error, which stays.

        Returns: code.
        Raises: CapabilityError, DeviceError.
        """

    def ipc_get_mem_handle(
        self,
        address: SupportsIndex,
        nbytes: SupportsIndex,
    ) -> bytes:
        """A handle of device memory that another process can open.

        address: Address of memory, an integer.
        nbytes: A number of bytes.
        Returns: handle.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `not_supported`).
        """

    def ipc_open_mem_handle(
        self,
        handle: bytes | bytearray | memoryview,
        nbytes: SupportsIndex,
    ) -> int:
        """Opens device memory of another process.

        handle: Bytes; any bytes-like object is taken.
        nbytes: A number of bytes.
        Returns: address.
        Released by `ipc_close_mem_handle`.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `not_supported`).
        """

    def ipc_close_mem_handle(
        self,
        address: SupportsIndex,
        handle: bytes | bytearray | memoryview,
    ) -> None:
        """Closes device memory of another process.

        address: Address of memory, an integer.
        handle: Bytes; any bytes-like object is taken.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def ipc_get_event_handle(
        self,
        event: SupportsIndex,
    ) -> bytes:
        """A handle of an interprocess event that another process can open.

        event: Handle of an event.
        Returns: handle.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_handle`, `not_supported`).
        """

    def ipc_open_event_handle(
        self,
        handle: bytes | bytearray | memoryview,
    ) -> int:
        """Opens an event of another process.

        handle: Bytes; any bytes-like object is taken.
        Returns: event.
        Released by `event_destroy`.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `not_supported`).
        """

    def stream_begin_capture(
        self,
        stream: SupportsIndex,
        mode: type_capture_mode | SupportsIndex = "global",
    ) -> None:
        """Work given to the stream is recorded into a graph instead of run.

        stream: Handle of a stream; 0 is the default stream.
        mode: Which unsafe calls a capture forbids.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `capture_unsupported`).
        """

    def stream_end_capture(
        self,
        stream: SupportsIndex,
    ) -> int:
        """Ends the capture and gives the graph.

        stream: Handle of a stream; 0 is the default stream.
        Returns: graph.
        Released by `graph_destroy`.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `capture_unsupported`).
        """

    def stream_is_capturing(
        self,
        stream: SupportsIndex,
    ) -> bool:
        """Whether work given to the stream is being recorded.

        stream: Handle of a stream; 0 is the default stream.
        Returns: capturing.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def graph_instantiate(
        self,
        graph: SupportsIndex,
    ) -> int:
        """Makes an executable graph.

        graph: Handle of a captured graph.
        Returns: graph_exec.
        Released by `graph_exec_destroy`.
        Raises: ArgumentError, CapabilityError, OutOfMemoryError, DeviceError (`invalid_value`).
        """

    def graph_exec_update(
        self,
        graph_exec: SupportsIndex,
        graph: SupportsIndex,
    ) -> bool:
        """Gives an executable graph the parameters of another graph of the same shape; False when the shapes differ.

        graph_exec: Handle of an executable graph.
        graph: Handle of a captured graph.
        Returns: updated.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def graph_launch(
        self,
        graph_exec: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Runs an executable graph, ordered on the stream.

        graph_exec: Handle of an executable graph.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def graph_destroy(
        self,
        graph: SupportsIndex,
    ) -> None:
        """Releases a graph.

        graph: Handle of a captured graph.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def graph_exec_destroy(
        self,
        graph_exec: SupportsIndex,
    ) -> None:
        """Releases an executable graph.

        graph_exec: Handle of an executable graph.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def mem_granularity(
        self,
        device: SupportsIndex,
    ) -> int:
        """The size, in bytes, that sizes and addresses of mapped memory must be multiples of.

        device: Ordinal of a device among the visible ones, from 0.
        Returns: nbytes.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `not_supported`).
        """

    def mem_address_reserve(
        self,
        nbytes: SupportsIndex,
        alignment: SupportsIndex = 0,
    ) -> int:
        """Reserves a range of addresses with nothing behind it.

        nbytes, alignment: A number of bytes.
        Returns: address.
        Released by `mem_address_free`.
        Raises: ArgumentError, CapabilityError, OutOfMemoryError, DeviceError (`invalid_value`, `not_supported`).
        """

    def mem_address_free(
        self,
        address: SupportsIndex,
        nbytes: SupportsIndex,
    ) -> None:
        """Releases a range of addresses.

        address: Address of memory, an integer.
        nbytes: A number of bytes.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def mem_create(
        self,
        nbytes: SupportsIndex,
        device: SupportsIndex,
        sharing: type_mem_sharing | SupportsIndex = "none",
    ) -> int:
        """Allocates physical memory on the device, without an address.

        nbytes: A number of bytes.
        device: Ordinal of a device among the visible ones, from 0.
        sharing: How another process can have the same physical memory.
        Returns: allocation.
        Released by `mem_release`.
        Raises: ArgumentError, CapabilityError, OutOfMemoryError, DeviceError (`invalid_value`, `not_supported`).
        """

    def mem_release(
        self,
        allocation: SupportsIndex,
    ) -> None:
        """Gives up the handle of physical memory, which lives on while it is mapped, unless the backend file says `keeps_handles`.

        allocation: Handle of physical memory that can be mapped.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def mem_map(
        self,
        address: SupportsIndex,
        nbytes: SupportsIndex,
        offset: SupportsIndex,
        allocation: SupportsIndex,
    ) -> None:
        """Puts physical memory behind addresses.

        address: Address of memory, an integer.
        nbytes, offset: A number of bytes.
        allocation: Handle of physical memory that can be mapped.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def mem_unmap(
        self,
        address: SupportsIndex,
        nbytes: SupportsIndex,
    ) -> None:
        """Takes physical memory away from behind addresses; work that uses them must have finished.

        address: Address of memory, an integer.
        nbytes: A number of bytes.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def mem_set_access(
        self,
        address: SupportsIndex,
        nbytes: SupportsIndex,
        device: SupportsIndex,
        access: type_mem_access | SupportsIndex = "read_write",
    ) -> None:
        """Lets a device use mapped addresses.

        address: Address of memory, an integer.
        nbytes: A number of bytes.
        device: Ordinal of a device among the visible ones, from 0.
        access: What a device may do with mapped virtual memory.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`).
        """

    def mem_retain(
        self,
        address: SupportsIndex,
    ) -> int:
        """Another handle of the physical memory that is mapped at an address.

        address: Address of memory, an integer.
        Returns: allocation.
        Released by `mem_release`.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `not_supported`).
        """

    def mem_export(
        self,
        allocation: SupportsIndex,
    ) -> int:
        """A new file descriptor of physical memory that was created with `sharing="file"`; the caller closes it.

        allocation: Handle of physical memory that can be mapped.
        Returns: file.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `not_supported`).
        """

    def mem_import(
        self,
        file: SupportsIndex,
    ) -> int:
        """Physical memory, of another process too, by a file descriptor, which stays the caller's.

        file: A file descriptor of this process.
        Returns: allocation.
        Released by `mem_release`.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `not_supported`).
        """

    def module_load(
        self,
        image: bytes | bytearray | memoryview,
    ) -> int:
        """Loads code for the current device from the bytes of a binary.

        image: Bytes; any bytes-like object is taken.
        Returns: module.
        Released by `module_unload`.
        Raises: ArgumentError, CapabilityError, OutOfMemoryError, DeviceError (`invalid_value`, `no_binary`).
        """

    def module_unload(
        self,
        module: SupportsIndex,
    ) -> None:
        """Unloads a module.

        module: Handle of a loaded module.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_handle`).
        """

    def module_get_function(
        self,
        module: SupportsIndex,
        name: str,
    ) -> int:
        """The kernel of that name.

        module: Handle of a loaded module.
        name: Text, passed as UTF-8.
        Returns: function.
        Raises: ArgumentError, CapabilityError, DeviceError (`not_found`, `invalid_handle`).
        """

    def module_get_global(
        self,
        module: SupportsIndex,
        name: str,
    ) -> tuple[int, int]:
        """Address and size, in bytes, of the global variable of that name.

        module: Handle of a loaded module.
        name: Text, passed as UTF-8.
        Returns: address, nbytes.
        Raises: ArgumentError, CapabilityError, DeviceError (`not_found`, `invalid_handle`).
        """

    def function_get_attribute(
        self,
        attribute: type_function_attribute | SupportsIndex,
        function: SupportsIndex,
    ) -> int:
        """One attribute of a kernel function.

        attribute: An attribute of a kernel function, an integer.
        function: Handle of a kernel function.
        Returns: value.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `invalid_handle`).
        """

    def function_set_attribute(
        self,
        function: SupportsIndex,
        attribute: type_function_attribute | SupportsIndex,
        value: SupportsIndex,
    ) -> None:
        """Sets one attribute of a kernel function.

        function: Handle of a kernel function.
        attribute: An attribute of a kernel function, an integer.
        value: A signed 32-bit integer.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `invalid_handle`).
        """

    def launch_kernel(
        self,
        function: SupportsIndex,
        grid: tuple[int, ...] | list[int],
        block: tuple[int, ...] | list[int],
        shared_memory: SupportsIndex,
        stream: SupportsIndex,
        arguments: Sequence[object] | int,
    ) -> None:
        """Runs a kernel with `shared_memory` bytes of dynamic shared memory, ordered on the stream.

        function: Handle of a kernel function.
        grid, block: Extents along x, y and z: three positive integers.
        shared_memory: An unsigned 32-bit integer.
        stream: Handle of a stream; 0 is the default stream.
        arguments: Kernel arguments: a sequence of ctypes values, or the address of arguments packed before.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `invalid_handle`).
        """

    def tensor_map_encode(
        self,
        room: SupportsIndex,
        element: type_tensor_element | SupportsIndex,
        rank: SupportsIndex,
        address: SupportsIndex,
        extents: bytes | bytearray | memoryview,
        strides: bytes | bytearray | memoryview,
        block: bytes | bytearray | memoryview,
        steps: bytes | bytearray | memoryview,
        swizzle: type_tensor_swizzle | SupportsIndex,
        fill: type_tensor_fill | SupportsIndex,
    ) -> None:
        """Writes to host memory, at a multiple of 64, what the device's unit for copies of tensors takes a tensor as: 128 bytes. Extents and strides are numbers of 64 bits, the fastest dimension first and its stride left out; block and steps, the block of one copy and the distances of its elements, are numbers of 32 bits.

        room, address: Address of memory, an integer.
        element: The elements of a tensor as the unit that copies tensors knows them.
        rank: An unsigned 32-bit integer.
        extents, strides, block, steps: Bytes; any bytes-like object is taken.
        swizzle: How rows of a block are mixed in shared memory, so that its banks are used evenly.
        fill: What is read outside of a tensor.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `not_supported`).
        """

    def monitor_by_pci_bus_id(
        self,
        pci_bus_id: str,
    ) -> int:
        """The management library's handle of the device at that place on PCI.

        pci_bus_id: Text, passed as UTF-8.
        Returns: monitor.
        Raises: ArgumentError, CapabilityError, DeviceError (`not_found`, `not_permitted`).
        """

    def monitor_by_uuid(
        self,
        uuid: str,
    ) -> int:
        """The management library's handle of the device of that UUID, as the library spells UUIDs.

        uuid: Text, passed as UTF-8.
        Returns: monitor.
        Raises: ArgumentError, CapabilityError, DeviceError (`not_found`, `not_permitted`).
        """

    def monitor_processes(
        self,
        monitor: SupportsIndex,
    ) -> list[tuple[int, int]]:
        """The processes that compute on the device, with the bytes attributed to each; 2**64-1 where the library has no number.

        monitor: The management library's own handle of a device.
        Returns: processes.
        Raises: ArgumentError, CapabilityError, DeviceError (`not_supported`, `not_permitted`, `insufficient_size`).
        """

    def monitor_memory_used(
        self,
        monitor: SupportsIndex,
    ) -> int:
        """Memory in use on the device, by all processes, in bytes.

        monitor: The management library's own handle of a device.
        Returns: used.
        Raises: ArgumentError, CapabilityError, DeviceError (`not_supported`, `not_permitted`).
        """

    def monitor_memory_total(
        self,
        monitor: SupportsIndex,
    ) -> int:
        """Memory of the device, in bytes.

        monitor: The management library's own handle of a device.
        Returns: total.
        Raises: ArgumentError, CapabilityError, DeviceError (`not_supported`, `not_permitted`).
        """

    def monitor_bus_distance(
        self,
        monitor: SupportsIndex,
        peer: SupportsIndex,
    ) -> str:
        """What lies between two devices on the buses of their host.

        monitor, peer: The management library's own handle of a device.
        Returns: distance.
        Raises: ArgumentError, CapabilityError, DeviceError (`not_supported`, `not_permitted`).
        """

    def monitor_direct_link(
        self,
        monitor: SupportsIndex,
        peer: SupportsIndex,
    ) -> bool:
        """Whether links of their own join two devices, beside the buses of their host.

        monitor, peer: The management library's own handle of a device.
        Returns: direct.
        Raises: ArgumentError, CapabilityError, DeviceError (`not_supported`, `not_permitted`).
        """

    def comm_unique_id(
        self,
    ) -> bytes:
        """The bytes that the ranks of a new communicator share.

        Returns: id.
        Raises: CapabilityError, DeviceError.
        """

    def comm_init_rank(
        self,
        nranks: SupportsIndex,
        id: bytes | bytearray | memoryview,
        rank: SupportsIndex,
    ) -> int:
        """Joins a communicator of `nranks` ranks on the current device; returns when all have joined.

        nranks, rank: A signed 32-bit integer.
        id: Bytes; any bytes-like object is taken.
        Returns: communicator.
        Released by `comm_destroy`.
        Raises: ArgumentError, CapabilityError, DeviceError (`invalid_value`, `system_error`).
        """

    def comm_destroy(
        self,
        communicator: SupportsIndex,
    ) -> None:
        """Leaves a communicator after its work has finished.

        communicator: Handle of one rank's end of a communicator.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def comm_abort(
        self,
        communicator: SupportsIndex,
    ) -> None:
        """Leaves a communicator at once and stops its work.

        communicator: Handle of one rank's end of a communicator.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def comm_async_error(
        self,
        communicator: SupportsIndex,
    ) -> int:
        """The code of an error that happened after the call returned; 0 when there is none.

        communicator: Handle of one rank's end of a communicator.
        Returns: code.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def all_reduce(
        self,
        send: SupportsIndex,
        receive: SupportsIndex,
        count: SupportsIndex,
        datatype: type_datatype | SupportsIndex,
        reduction: type_reduction | SupportsIndex,
        communicator: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Every rank receives the reduction of all ranks' elements.

        send, receive: Address of memory, an integer.
        count: A number of elements; 0 is nothing to do.
        datatype: Element type of a collective.
        reduction: How a collective combines elements.
        communicator: Handle of one rank's end of a communicator.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def broadcast(
        self,
        send: SupportsIndex,
        receive: SupportsIndex,
        count: SupportsIndex,
        datatype: type_datatype | SupportsIndex,
        root: SupportsIndex,
        communicator: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Every rank receives the root's elements.

        send, receive: Address of memory, an integer.
        count: A number of elements; 0 is nothing to do.
        datatype: Element type of a collective.
        root: A signed 32-bit integer.
        communicator: Handle of one rank's end of a communicator.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def reduce(
        self,
        send: SupportsIndex,
        receive: SupportsIndex,
        count: SupportsIndex,
        datatype: type_datatype | SupportsIndex,
        reduction: type_reduction | SupportsIndex,
        root: SupportsIndex,
        communicator: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """The root receives the reduction of all ranks' elements.

        send, receive: Address of memory, an integer.
        count: A number of elements; 0 is nothing to do.
        datatype: Element type of a collective.
        reduction: How a collective combines elements.
        root: A signed 32-bit integer.
        communicator: Handle of one rank's end of a communicator.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def all_gather(
        self,
        send: SupportsIndex,
        receive: SupportsIndex,
        count: SupportsIndex,
        datatype: type_datatype | SupportsIndex,
        communicator: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Every rank receives `count` elements of each rank, in order of rank.

        send, receive: Address of memory, an integer.
        count: A number of elements; 0 is nothing to do.
        datatype: Element type of a collective.
        communicator: Handle of one rank's end of a communicator.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def reduce_scatter(
        self,
        send: SupportsIndex,
        receive: SupportsIndex,
        count: SupportsIndex,
        datatype: type_datatype | SupportsIndex,
        reduction: type_reduction | SupportsIndex,
        communicator: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Every rank receives its `count` elements of the reduction.

        send, receive: Address of memory, an integer.
        count: A number of elements; 0 is nothing to do.
        datatype: Element type of a collective.
        reduction: How a collective combines elements.
        communicator: Handle of one rank's end of a communicator.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def all_to_all(
        self,
        send: SupportsIndex,
        receive: SupportsIndex,
        count: SupportsIndex,
        datatype: type_datatype | SupportsIndex,
        communicator: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Every rank sends `count` elements to each rank and receives as many from each, in order of rank.

        send, receive: Address of memory, an integer.
        count: A number of elements; 0 is nothing to do.
        datatype: Element type of a collective.
        communicator: Handle of one rank's end of a communicator.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def send(
        self,
        address: SupportsIndex,
        count: SupportsIndex,
        datatype: type_datatype | SupportsIndex,
        peer: SupportsIndex,
        communicator: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Sends elements to a peer.

        address: Address of memory, an integer.
        count: A number of elements; 0 is nothing to do.
        datatype: Element type of a collective.
        peer: A signed 32-bit integer.
        communicator: Handle of one rank's end of a communicator.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def receive(
        self,
        address: SupportsIndex,
        count: SupportsIndex,
        datatype: type_datatype | SupportsIndex,
        peer: SupportsIndex,
        communicator: SupportsIndex,
        stream: SupportsIndex,
    ) -> None:
        """Receives elements from a peer.

        address: Address of memory, an integer.
        count: A number of elements; 0 is nothing to do.
        datatype: Element type of a collective.
        peer: A signed 32-bit integer.
        communicator: Handle of one rank's end of a communicator.
        stream: Handle of a stream; 0 is the default stream.
        Raises: ArgumentError, CapabilityError, DeviceError.
        """

    def group_start(
        self,
    ) -> None:
        """Collectives that follow are started together at `group_end`.

        Raises: CapabilityError, DeviceError.
        """

    def group_end(
        self,
    ) -> None:
        """Starts the collectives since `group_start`.

        Raises: CapabilityError, DeviceError.
        """
