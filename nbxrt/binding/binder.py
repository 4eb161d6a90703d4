"""What binds one description in this process: libraries, variants that apply here, numbers, layouts, functions."""

import ctypes
import os

from nbxrt import errors, locks
from nbxrt.binding import generating
from nbxrt.binding.failures import Failures, first_use_in
from nbxrt.binding.layout import C_TYPES
from nbxrt.binding.library import Library, open_library
from nbxrt.binding.variants import BY_MODEL, Variants, calls_in, first_of_models

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from nbxrt.binding.machine import Machine
    from nbxrt.binding.objc import Messages


class Current(locks.local):
    """What is current for a thread: `index`, where it chose a device, and its streams by device.

    `streams` has a default, which launches read without asking whether it is there.
    """

    streams: "Any" = None


class Binder:
    """Binds the operations of one description. Its lock guards the libraries, which are opened at their first use."""

    def __init__(self, description: "Mapping[str, Any]", contract: "Mapping[str, Any]", machine: "Machine") -> None:
        self.description = description
        self.contract = contract
        self.machine = machine
        #: The number of devices in a cell that the generated functions read; 0 until it was asked.
        self.devices = [0]
        #: The calling thread's current device as nbxrt knows it: `index`, None after a switch by the operation.
        self.current: Any = Current()
        #: What makes the errors of its operations.
        self.failures = Failures(self)
        #: What applies here of the variants that the file gives.
        self.variants = Variants(self)
        self._libraries: dict[str, Library] = {}
        self._lock = locks.RLock()
        self._policies: dict[str, Any] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self._preparing: dict[str, Callable[..., Callable[[], None]] | None] = {}
        self._kept: dict[str, Any] = {}

    # libraries

    def library(self, role: str) -> Library:
        """The library of a role, opened at the first call.

        Raises: LibraryNotFoundError, LibraryBrokenError.
        """
        role = self.library_role(role)
        if role not in self._libraries:
            with self._lock:
                if role not in self._libraries:
                    opened = open_library(self.description, role, self.machine, self.contract, self.library)
                    self._libraries[role] = opened
        return self._libraries[role]

    def has_context(self, device: int) -> "bool | None":
        """Whether a device has a context, as the first library knows that can be asked; None where none can."""
        for role, data in self.description["libraries"].items():
            if data.get("has_context") is not None:
                try:
                    return self.library(role).has_context(device)
                except (errors.LibraryNotFoundError, errors.DeviceError):
                    return None
        return None

    def opened(self) -> "list[Library]":
        """The libraries that are open, in order of opening."""
        return list(self._libraries.values())

    def renew_locks(self) -> None:
        """Make every lock anew, in a process that was forked."""
        self._lock = locks.RLock()
        for library in self._libraries.values():
            library.renew_lock()
        for kept in self._kept.values():
            kept.renew_lock()
        for policy in self._policies.values():
            if hasattr(policy, "renew_lock"):
                policy.renew_lock()
            for part in vars(policy).values():
                if hasattr(part, "renew_lock"):
                    part.renew_lock()

    # operations

    def function(self, operation: str) -> "Callable[..., Any]":
        """The operation as a function in the contract's form.

        Raises: CapabilityError with the file's reason; SymbolNotFoundError; UntestedVersionError.
        """
        variant = self.variants.of(operation)
        form, what = variant[0], variant[4]
        if form == "call":
            return generating.call_function(self, operation, variant)
        if form == "value":
            return generating.fixed_function(self, operation, what)
        if form == "same":
            return generating.same_function(self, operation, what)
        return self._function_by_model(operation)

    def prepared(self, operation: str, arguments: "tuple[Any, ...]") -> "Callable[[], None] | None":
        """A C call with these arguments, checked and converted; None for an operation that is more than a C call.

        Raises: as `function`; ArgumentTypeError, ArgumentValueError, DeviceIndexError.
        """
        if operation not in self._preparing:
            from nbxrt.binding import preparing

            self._preparing[operation] = preparing.preparing_function(self, operation, self.variants.of(operation))
        prepare = self._preparing[operation]
        return None if prepare is None else prepare(*arguments)

    def _function_by_model(self, operation: str) -> "Callable[..., Any]":
        """The function of an operation that is steps or a policy: for any device, or for each model that is here.

        Raises: CapabilityError where no device here is of a model that the operation is offered for.
        """
        variants = self.variants.by_model(operation)
        is_apart = self._is_apart(operation, variants)
        if list(variants) == [""] and not is_apart:
            return self._own_function(operation, variants[""])
        models = {state.model for state in self.listed().all()} or set(variants)
        made = {
            model: self._own_function(operation, variant)
            for model in sorted(models)
            if (variant := variants.get(model, variants.get(""))) is not None
        }
        if not made:
            raise self.failures.not_for_model(operation, models)
        if len(models) == 1 and not is_apart:
            return made[models.pop()]
        from nbxrt.binding import apart

        return apart.function(self, operation, made)

    def _is_apart(self, operation: str, variants: "Mapping[str, tuple[Any, ...]]") -> bool:
        """Whether steps take memory of several devices here that know nothing of each other's; policies see to it."""
        devices = self.description["devices"]
        if devices is None or not devices["apart"] or all(variant[0] == "policy" for variant in variants.values()):
            return False
        takes_memory = any(kind == "address" for _name, kind, *_rest in self.contract["operations"][operation]["takes"])
        return takes_memory and bool(self.listed().all()) and bool(self.listed().are_apart())

    def _own_function(self, operation: str, variant: "tuple[Any, ...]") -> "Callable[..., Any]":
        """The function of a variant that is steps or a policy."""
        if variant[0] == "policy":
            return generating.policy_function(self, operation, getattr(self.policy(variant[4][1]), operation))
        from nbxrt.binding import sequence

        return sequence.operation_function(self, operation, variant)

    def _has_model(self, operation: str, device: "int | None") -> bool:
        """Whether a device here, or that one, is of a model that the operation is offered for; none here: it is."""
        variants = self.variants.by_model(operation)
        if "" in variants:
            return True
        devices = self.listed().all()
        asked = devices if device is None else devices[device : device + 1]
        return not asked or any(state.model in variants for state in asked)

    # messages

    @property
    def messages(self) -> "Messages":
        """What sends messages of Objective-C; the library whose classes they are for is loaded then."""
        self.library("runtime")
        return self.library("driver").messages

    def named_class(self, name: str, operation: str) -> int:
        """The class of that name. Raises: SymbolNotFoundError."""
        found = self.messages.named_class(name)
        if not found:
            said = f"`{operation}` is not available: this process has no class `{name}`"
            raise errors.SymbolNotFoundError(said, operation=operation, symbols=(name,))
        return found

    # devices that are listed, and what is kept of them

    def listed(self) -> "Any":
        """The devices of an API that has no ordinals, made once."""
        return self._once("devices", "states", "Devices", self)

    def state(self) -> "Any":
        """The state of the calling thread's current device. Raises: DeviceError where there is no device."""
        devices = self.listed()
        try:
            return devices.here.state
        except AttributeError:
            return devices.first()

    @property
    def addresses(self) -> "Any":
        """The address table, made once."""
        return self._once("addresses", "addresses", "Addresses")

    @property
    def boxes(self) -> "Any":
        """The objects behind minted handles, made once."""
        return self._once("boxes", "addresses", "Boxes")

    def _once(self, key: str, module: str, name: str, *given: "Any") -> "Any":
        try:
            return self._kept[key]
        except KeyError:
            with self._lock:
                if key not in self._kept:
                    made = getattr(__import__(f"nbxrt.binding.{module}", fromlist=[name]), name)
                    self._kept[key] = made(*given)
                return self._kept[key]

    @property
    def asks_for_functions(self) -> bool:
        """Whether functions that the library does not export are asked for by name."""
        devices = self.description["devices"]
        return devices is not None and devices["functions"] is not None

    def values(self, policy: str) -> "Mapping[str, Any]":
        """The plain values that the file gives a policy."""
        values: Mapping[str, Any] = self.description["policies"].get(policy, {"values": {}})["values"]
        return values

    def part(self, policy: str, name: str) -> "Callable[..., Any]":
        """A part of a policy as a function: of a device's state, then of what the part takes."""
        made = self.optional_part(policy, name)
        if made is None:
            raise self.failures.lacks_part(policy, name)
        return made

    def single_call(self, policy: str, name: str) -> "Any":
        """The C function of a part that is one call with nothing but what the part takes; None for any other part."""
        part = self.description["policies"].get(policy, {"parts": {}})["parts"].get(name)
        if part is None or len(part[2]) != 1 or len(part[2][0][4][2]) != 1:
            return None
        takes, _gives, ((_form, _since, _before, _platforms, (_model, _role, steps, *_rest), _made),) = part
        verb, payload, undo, always = steps[0]
        if verb != "call" or undo or always or [each[:2] for each in payload[2]] != [("param", name) for name in takes]:
            return None
        library = self.library(payload[1])
        return library.function(payload[0], ctypes.c_int, [C_TYPES[each[2]] for each in payload[2]])[0]

    def optional_part(self, policy: str, name: str) -> "Callable[..., Any] | None":
        """A part of a policy, or None where the file does not give it."""
        makers = self.parts_by_model(policy, name)
        if not makers or list(makers) == [""]:
            return makers.get("")
        models = {state.model for state in self.listed().listed}
        if len(models) == 1 and (only := makers.get(models.pop(), makers.get(""))) is not None:
            return only

        def by_model(state: "Any", *given: "Any") -> "Any":
            maker = makers.get(state.model) or makers.get("")
            if maker is None:
                raise self.failures.not_for_model(f"{policy}.{name}", {state.model})
            return maker(state, *given)

        return by_model

    def parts_by_model(self, policy: str, name: str) -> "dict[str, Callable[..., Any]]":
        """A part of a policy for each model that the file gives it for; an empty model stands for all others."""
        part = self.description["policies"].get(policy, {"parts": {}})["parts"].get(name)
        if part is None:
            return {}
        from nbxrt.binding import sequence

        takes, gives, variants = part
        return {
            model: sequence.part_function(self, f"{policy}.{name}", variant[4][2], takes, gives, variant[5])
            for model, variant in first_of_models(self.variants.here(variants) or variants).items()
        }

    def keeps_devices(self) -> bool:
        """Whether this process, and not the one that it was forked from, has listed devices of an API of objects."""
        return "devices" in self._kept and bool(self.listed().listed)

    def release(self) -> None:
        """Release what is kept of devices, unless memory or streams are left whose owners may still release them."""
        in_use = len(self._kept.get("addresses", ()))
        if "queues" in self._policies:
            in_use += len(self._policies["queues"].records)
        if "devices" in self._kept and not in_use:
            for policy in self._policies.values():
                if hasattr(policy, "let_go"):
                    policy.let_go()
            self.listed().release()

    def policy(self, name: str) -> "Any":
        """The policy of that name, made once."""
        with self._lock:
            if name not in self._policies:
                from nbxrt.binding import policies  # only for a backend that names one

                self._policies[name] = policies.POLICIES[name](self)
            return self._policies[name]

    def require(self, operation: str) -> None:
        """See that a required operation can be bound, as far as the runtime library can tell.

        Other libraries are not opened for it: a toolkit without a driver opens.
        Raises: CapabilityError, SymbolNotFoundError.
        """
        if self.library_role(self.variants.role_of(operation)) == "runtime":
            variant = self.variants.of(operation)
            if not self.variants.exports(variant):
                missing = calls_in(variant[4][2]) if variant[0] == "steps" else [(variant[4][0], "runtime")]
                for symbols, role in missing:
                    self.typed(self.library(role), operation, symbols, None, (), keep_gil=False)

    def available(self, operation: str, device: "int | None" = None) -> bool:
        """Whether the operation can be called: it is offered here, for this version, and the library exports it.

        With a device, whether it is offered for that device's model.
        """
        try:
            variant = self.variants.of(operation)
            return self.variants.exports(variant) and (variant[0] not in BY_MODEL or self._has_model(operation, device))
        except (errors.CapabilityError, errors.LibraryNotFoundError):
            return False

    def library_role(self, role: str) -> str:
        """The role whose library serves a role."""
        served: str = self.description["libraries"].get(role, {}).get("same_as", role)
        return served

    def library_names(self, role: str) -> "list[str]":
        """File names of a role's library on this system, best first."""
        data = self.description["libraries"].get(self.library_role(role), {})
        return [files[self.machine.system] for _major, files in data.get("names", ()) if self.machine.system in files]

    def vendor_function(self, operation: str, symbol: str) -> "Any":
        """The vendor's function of an operation, typed, in its C form."""
        _line, variants = self.description["operations"][operation]
        with_symbol = [variant for variant in variants if variant[0] == "call" and symbol in variant[4][0]]
        variant = self.variants.in_range(f"`{symbol}`", with_symbol, operation)
        library = self.library(variant[4][1])
        if library.needs_start:
            try:
                library.start()
            except errors.DeviceError:  # the function itself will answer with its status
                library.clear()
        return generating.vendor_function(self, operation, symbol, variant)

    # what the generated functions use

    def typed(
        self, library: Library, operation: str, symbols: "Sequence[str]", returns: "Any", types: "Sequence[Any]",
        *, keep_gil: bool,
    ) -> "tuple[Any, str]":  # fmt: skip
        """The library's function, typed, and its symbol; the error names the operation."""
        first_use_in.setdefault(self.description["name"], os.getpid())
        try:
            return library.function(symbols, returns, types, keep_gil=keep_gil)
        except errors.SymbolNotFoundError as error:
            said = f"`{operation}` is not available: {error.message}"
            raise errors.SymbolNotFoundError(
                said, operation=operation, symbols=tuple(symbols), library=library.path
            ) from None

    def count_devices(self) -> int:
        """The number of devices, asked of the backend."""
        count: int = self.own("device_count")()
        self.devices[0] = count
        return count

    def count_gpus(self) -> int:
        """The number of devices that are GPUs: all of them, where the file does not tell them apart."""
        devices = self.description["devices"]
        if devices is None or devices["gpu"] is None:
            return self.count_devices()
        gpus: int = self.listed().gpus()
        return gpus

    def own(self, operation: str) -> "Callable[..., Any]":
        """An operation's function for the binder's own use, made once."""
        if operation not in self._functions:
            self._functions[operation] = self.function(operation)
        return self._functions[operation]

    def current_device(self) -> int:
        """The calling thread's current device, or -1 when it cannot be asked."""
        try:
            device: int = self.own("get_device")()
        except errors.NbxrtError:
            return -1
        return device
