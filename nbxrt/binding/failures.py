"""The errors of one description's operations, with what this process knows and the vendor's status does not say."""

import ctypes
import os

from nbxrt import errors
from nbxrt.binding import generating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from nbxrt.binding.binder import Binder
    from nbxrt.binding.library import Library

#: The process in which a backend's functions were used first, by its name: a driver outlives `reset`, and no fork.
first_use_in: "dict[str, int]" = {}
#: Kinds of error that drivers give where a device node is closed to them or missing.
_OF_THE_SYSTEM = ("unknown", "system_error")
#: What there is to say of a process that was forked too late.
_FORKED = (
    ["this process was forked after the driver was initialised, which drivers do not survive"],
    "start it with `spawn`: `multiprocessing.set_start_method('spawn')`",
)


def unknown(said: str, *, of_parent: bool, **facts: "Any") -> errors.ArgumentValueError:
    """The error for a handle or an address that is none here; `of_parent`: it may be one of the process forked from."""
    (note,), hint = _FORKED
    if of_parent:
        said, facts["hint"] = f"{said}, or the parent's: {note}", hint
    return errors.ArgumentValueError(said, **facts)


class Failures:
    """Makes the errors of a binder's operations."""

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder

    def failing(self, library: "Library", operation: str, symbol: str) -> "Callable[[int, Mapping[str, Any]], Any]":
        """What makes the error of a status, with everything it needs bound now."""
        asks = operation not in ("get_device", "set_device", "device_count")
        if asks and self._binder.available("get_device"):  # bound now: an error on a finalizer's path must find it made
            self._binder.own("get_device")

        def fail(code: int, given: "Mapping[str, Any]") -> errors.DeviceError:
            kind = library.kind(code)
            if kind == "invalid_device" and asks and not self._has_devices():
                kind = "no_device"  # some libraries refuse the ordinal 0 where there is no device at all
            no_device = self.means_no_device(kind)
            device = self._binder.current_device() if asks and not no_device else -1
            notes, hint = self._explain(kind, no_device)
            if kind == "no_binary":
                from nbxrt.binding import binaries  # only when a module was refused already

                notes += binaries.explain(self._binder, given, device)
            return library.failure(code, operation, symbol, given, device, notes, hint, kind)

        return fail

    def nil_failure(self, operation: str, selector: str, kind: str) -> "Callable[..., errors.DeviceError]":
        """What makes the error of a message that gave no object, with everything it needs bound now."""
        library = self._binder.library("runtime")
        codes = library.codes(kind) or (0,)
        words = self._binder.optional_part("kernels", "words") if selector.endswith("error:") else None

        def fail(given: "Mapping[str, Any]", error: int = 0) -> errors.DeviceError:
            said = words(None, error).decode(errors="replace") if words is not None and error else ""
            device = self._binder.current_device() if self._binder.available("get_device") else -1
            return library.failure(codes[0], operation, selector, given, device, kind=kind, words=said)

        return fail

    def _has_devices(self) -> bool:
        """Whether a device was counted, or is now."""
        try:
            return bool(self._binder.devices[0] or self._binder.count_devices())
        except errors.NbxrtError:
            return True

    def why_no_device(self) -> "errors.DeviceError | None":
        """The error that stands behind a count of 0; None when the library gives 0 as its true answer.

        The status of a count says it, which `device_count` itself takes as an answer.
        """
        if self._binder.description["devices"] is not None:
            devices = self._binder.listed()
            return None if devices.all() else devices.why
        variant = self._binder.variants.of("device_count")
        form, *_range, call, _results = variant
        if form != "call" or not call[4]:
            return None
        library = self._binder.library(call[1])
        symbol = self._binder.variants.exported_symbol(call)
        cell = ctypes.c_int()
        status = generating.vendor_function(self._binder, "device_count", symbol, variant)(ctypes.addressof(cell))
        return None if status == library.success else self.failing(library, "device_count", symbol)(status, {})

    def start(self, library: "Library", operation: str) -> None:
        """Make the first call of a library, for an operation that needs it. Raises: DeviceError."""
        try:
            library.start()
        except errors.DeviceError as error:
            no_device = self.means_no_device(error.kind)
            notes, hint = self._explain(error.kind, no_device)
            lines = [error.message, f"  `{operation}` needs it", *(f"  {note}" for note in notes)]
            error.message, error.hint = "\n".join(lines), error.hint or hint
            raise

    def means_no_device(self, kind: str) -> bool:
        """Whether an error of that kind says that there is no device."""
        return kind == "no_device" or bool(self._binder.contract["errors"].get(kind, (None,))[0] == "no_device")

    def of_a_fork(self) -> errors.DeviceError:
        """The error for a device that the parent of this process has used."""
        (note,), hint = _FORKED
        return errors.DeviceError(
            f"{self._binder.description['title']}: {note}",
            hint=hint,
            kind="not_initialized",
            backend=self._binder.description["name"],
        )

    def _explain(self, kind: str, no_device: bool) -> "tuple[list[str], str]":
        """What this process knows that the status does not say."""
        if kind == "not_initialized" and first_use_in.get(self._binder.description["name"], os.getpid()) != os.getpid():
            return _FORKED
        if not no_device and kind not in _OF_THE_SYSTEM:
            return [], ""
        from nbxrt import presence  # only when there is no device already

        description, machine = self._binder.description, self._binder.machine
        hiding = [name for name in description["visibility"] if no_device and name in machine.environ]
        notes = [f"{name} is set to {machine.environ[name]!r}" for name in hiding]
        return [*notes, *presence.forbidden(description, machine), *presence.lacking(description, machine)], ""

    def of_operation(self, error: errors.DeviceError, operation: str) -> errors.DeviceError:
        """The error of a part of a policy, as one of the operation that the policy did."""
        if "." not in error.operation:
            return error
        error.message = error.message.replace(f"`{error.operation}` failed", f"`{operation}` failed", 1)
        error.operation = operation
        error.args = (error.message,)
        return error

    def absent(self, operation: str) -> errors.CapabilityError:
        """The error for an operation that the file does not offer, quoting it."""
        reason, line = self._binder.description["absent"][operation]
        place = errors.place(self._binder.description, line)
        return errors.CapabilityError(
            f"`{operation}` is not offered by {self._binder.description['title']}: {reason}\n  --> {place}",
            operation=operation,
            reason=reason,
            backend=self._binder.description["name"],
        )

    def not_for_model(self, operation: str, models: "Iterable[str]") -> errors.CapabilityError:
        """The error for an operation that devices of these models do not have, with what the file says of them."""
        named = " or ".join(f"`{model}`" for model in sorted(models))
        says = self._binder.description["devices"]["says"]
        reason = "; ".join(says[model] for model in sorted(models) if model in says)
        return errors.CapabilityError(
            f"`{operation}` is not offered by {self._binder.description['title']} for devices of the model {named}"
            + (f": {reason}" if reason else ""),
            operation=operation,
            reason=reason,
            backend=self._binder.description["name"],
        )

    def does_not_answer(self, operation: str, selector: str) -> errors.CapabilityError:
        """The error for a message that objects of this system do not answer."""
        title = self._binder.description["title"]
        said = f"`{operation}` is not offered by {title} of this system: nothing answers `{selector}`"
        return errors.CapabilityError(said, operation=operation)

    def lacks_part(self, policy: str, name: str) -> errors.CapabilityError:
        """The error for a part of a policy that the file does not give."""
        return errors.CapabilityError(
            f"the policy `{policy}` needs the part `{name}`, which {self._binder.description['file']} does not give"
        )

    def lacks_flag(self, operation: str, flag: str) -> errors.CapabilityError:
        return errors.CapabilityError(
            f"`{operation}`: {self._binder.description['title']} has no flag for `{flag}`", operation=operation
        )

    def only_default(self, operation: str, parameter: str, default: "Any") -> errors.CapabilityError:
        return errors.CapabilityError(
            f"`{operation}`: {self._binder.description['title']} offers no other `{parameter}` than {default}",
            operation=operation,
        )

    def wrong_size(self, operation: str, parameter: str, nbytes: int, wanted: int) -> errors.ArgumentValueError:
        return errors.ArgumentValueError(
            f"`{operation}`: `{parameter}` must be {wanted} bytes, not {nbytes}",
            operation=operation,
            parameter=parameter,
        )
