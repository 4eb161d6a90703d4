"""One compiled kernel of Triton's on one device, for arguments of the kinds of one key: how it is launched."""

from nbxrt.binding.prebuilt import argument
from nbxrt.device import make_current
from nbxrt.launch import sending, streams
from nbxrt.launch.launcher import failure
from nbxrt.objects.device import Device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.launch.kernel import Grid, Kernel


class Entry:
    """A compiled kernel that is loaded, and `launch`: the function of a grid and the values of all parameters.

    That is a generated one where a launch is one pack and one call; it leaves to the long ways here what it is not sure
    of.
    """

    def __init__(
        self, kernel: "Kernel", compiled: "Any", device: int, arguments: "tuple[Any, ...]", options: "dict[str, Any]"
    ) -> None:
        self.compiled = compiled
        self._kernel, self._device, self._options = kernel, device, options
        self._launcher = compiled.run
        self._launcher.prepare(compiled.function)
        self._function = argument(compiled.function)
        shape = self._launcher.shape
        can_send = sending.can_send(shape)
        self.launch = self._sender(arguments) if can_send else self._sent
        self._plan = kernel.plan
        self._direct = self._plan.direct(shape, compiled, device) if self._plan and can_send else None

    def kept(self, values: "tuple[Any, ...]", grid: "Grid") -> "tuple[Any, ...]":
        """How the finder launches these values on a grid: by what is kept for both, or by passing them on."""
        plan: Any = self._kernel.plan  # it is there, or the finder would not ask
        found = self._direct.kept(values, grid) if self._direct and self._plan is plan else None
        return found or plan.passed_on(self.launch)

    def failed(self, code: int, stream: int, grid: "Grid", *arguments: "Any") -> "Any":
        """A launch was refused: once more where the thread only lacked a context. Raises: DeviceError."""
        shape = self._launcher.shape
        if shape.call.enter(code):
            return self._checked(grid, *arguments)
        raise failure(shape, code, grid[:3], stream)

    def _sender(self, arguments: "tuple[Any, ...]") -> "Any":
        kernel = self._kernel
        return sending.sender(
            kernel.name,
            self._launcher.shape,
            kernel.session.driver.runtime,
            self._device,
            dict(zip(kernel.names, arguments, strict=True)),
            kernel.used_globals(),
            {
                "_nbx_kernel": self.compiled,
                "_nbx_function": self._function,
                "_nbx_slow": self._checked,
                "_nbx_failed": self.failed,
                "_nbx_changed": self._changed,
            },
        )

    def _changed(self, grid: "Grid", *arguments: "Any") -> "Any":
        return self._kernel.changed(self._options, grid, *arguments)

    def _sent(self, grid: "Grid", *arguments: "Any") -> "Any":
        """A launch that is more than one pack and one call."""
        return self._changed(grid, *arguments) if self._kernel.has_changed() else self._checked(grid, *arguments)

    def _checked(self, grid: "Grid", *arguments: "Any") -> "Any":
        """The long way: any device, any value, every error by the argument's name."""
        runtime, device = self._kernel.session.driver.runtime, self._device
        Device(device, runtime=runtime).on(self._launched, grid[:3], arguments)
        if getattr(runtime.current, "index", None) is None and runtime.get_device() == device:
            make_current(runtime, device)  # it has a context by now, and the next launch need not ask
        return self.compiled

    def _launched(self, extents: "tuple[int, int, int]", arguments: "tuple[Any, ...]") -> None:
        kernel = self._kernel
        stream = streams.current(kernel.session.driver.runtime, self._device)
        streams.note_arguments(kernel.name, kernel.names, stream, *arguments)
        self._launcher.launcher.launch(extents, stream, self._function, arguments, kernel.names)
