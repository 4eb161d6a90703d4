"""Vendor functions for calls whose arguments are all prebuilt: nothing is converted, and no type is looked at.

They are the one exception to typed calls. A converted integer costs a third of such a call.
"""

import ctypes

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from nbxrt.binding.binder import Binder


#: A handle as the argument of a prebuilt call: what ctypes passes on as it is.
argument: "Callable[[int], Any]" = ctypes.c_void_p.from_param


class PrebuiltCall:
    """One vendor function, and what its status means.

    `function` is called without conversion: pass ctypes objects and 32-bit integers only. `failure(code)` makes the
    error of a status; `enter(code)` gives the thread a context where the status says that it has none, and tells
    whether it is worth another call.
    """

    def __init__(self, binder: "Binder", operation: str, role: "str | None", symbol: str) -> None:
        library = binder.library(role or "runtime")
        if library.needs_start:
            library.start()
        function, self.symbol = library.function((symbol,), ctypes.c_int, ())
        function.argtypes = None
        self.function = function
        self._fail = binder.failures.failing(library, operation, symbol)
        self._library = library
        self._no_context = library.codes("invalid_context") if library.can_enter else ()

    def enter(self, code: int) -> bool:
        """Whether the status says that the thread has no context, and it has one now."""
        return code in self._no_context and self._library.enter()

    def failure(self, code: int, given: "Mapping[str, Any]") -> errors.DeviceError:
        """The error of a status."""
        error: errors.DeviceError = self._fail(code, given)
        return error


def call_of(binder: "Binder", operation: str) -> "PrebuiltCall | None":
    """The call of an operation that is one vendor function of its handles in order, and 0 as its success; else None."""
    try:
        form, *_range, call, results = binder.variants.of(operation)
    except (errors.CapabilityError, errors.LibraryNotFoundError):  # which the operation itself tells
        return None
    if form != "call" or results:
        return None
    _symbols, role, arguments, returns, _usual = call
    takes = [("param", name, "pointer") for name, *_kind in binder.contract["operations"][operation]["takes"]]
    if list(arguments) != takes or returns[0] != "status" or binder.library(role or "runtime").success:
        return None
    return PrebuiltCall(binder, operation, role, binder.variants.exported_symbol(call))


class PrebuiltCalls:
    """Operations of handles, for arguments made by `argument`; each answers the vendor's status.

    It answers None, and nothing was called, where the backend does an operation in another way, or calls are followed:
    the operation itself is what to call then, as it is after a status that is not 0 and that `failed` does not raise.
    """

    __slots__ = ("_bound", "_make", "event_record", "graph_launch")

    event_record: "Callable[..., int | None]"
    graph_launch: "Callable[..., int | None]"

    def __init__(self, make: "Callable[[str], PrebuiltCall | None]") -> None:
        self._make = make
        self.forget()

    def forget(self) -> None:
        """Bind each operation anew at its next call."""
        self._bound: dict[str, PrebuiltCall] = {}
        for operation in ("event_record", "graph_launch"):
            setattr(self, operation, self._binding(operation))

    def _binding(self, operation: str) -> "Callable[..., int | None]":
        def bind(*arguments: "Any") -> "int | None":
            call = self._make(operation)
            if call is not None:
                self._bound[operation] = call
            function = _not_called if call is None else call.function
            setattr(self, operation, function)
            return function(*arguments)

        return bind

    def failed(self, operation: str, code: int, given: "Mapping[str, Any]") -> None:
        """Raise what a status means, but for a thread that had no context and has one now. Raises: DeviceError."""
        call = self._bound.get(operation)
        if call is not None and not call.enter(code):
            raise call.failure(code, given)


def _not_called(*_arguments: "Any") -> None:
    """The answer where there is no prebuilt call."""
