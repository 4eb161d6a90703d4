"""The devices of an API without ordinals, and what is kept of each: contexts, queues, pools.

An entry of what is kept is an attribute of a state. It is made by the file's steps when it is first missed, once, and
is a plain attribute from then on.
"""

import ctypes

from nbxrt import errors, locks
from nbxrt.binding import sequence
from nbxrt.binding.listing import LISTS, ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.binding.binder import Binder


#: Held while devices are listed, and while what is kept of them is made or released, of all backends: a driver may come
#: down with the last thing that it made, and lists no devices meanwhile.
coming_and_going = locks.RLock()


class State:
    """A device, or the level above it, with its handles and with what is kept of it."""

    def __init__(self, devices: "Devices", level: str, above: "State | None") -> None:
        self._devices = devices
        self._level = level
        self._above = above
        self.index = -1
        self.model = ""

    def __getattr__(self, name: str) -> "Any":
        if name.startswith("__"):
            raise AttributeError(name)
        return self._devices.make(self, name)

    @property
    def level(self) -> str:
        """The level that this is of: its handle has that name."""
        return self._level

    def at(self, level: str) -> "State":
        """This state, or the one above it that is of the level."""
        state = self
        while level and state._level != level and state._above is not None:
            state = state._above
        return state


class Devices:
    """The list of devices. Its lock guards the list, and the making of what is kept."""

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        self._spec = binder.description["devices"]
        self._lock = locks.RLock()
        #: Every device that was listed, the same list for good: generated functions look into it.
        self.listed: list[State] = []
        self._by_address: dict[str, tuple[str, Any, tuple[Any, ...]]] = {}
        self._makers_by_name: dict[str, tuple[str, Callable[[State], Any]]] | None = None
        self._made: list[tuple[str, State]] = []
        #: What nobody finds any more, and is still to be released.
        self._left: list[tuple[str, State, Any]] = []
        self._forked = False
        #: The calling thread's current device: `state`.
        self.here: Any = locks.local()
        #: What the listing failed with where there is no device; None where it gave an empty list.
        self.why: errors.DeviceError | None = None

    # listing

    def all(self) -> "list[State]":
        """Every device, GPUs first. A list without devices is made anew each time.

        Raises: DeviceError in a process that was forked after the devices were used.
        """
        if not self.listed:
            if self._forked:
                raise self._binder.failures.of_a_fork()
            with self._lock:
                if not self.listed:
                    with coming_and_going:
                        made = self._list()
                        self.listed += [] if self.listed else made  # not twice, where a finalizer has asked too
                return [*self.listed]
        return [*self.listed] or self.all()  # it may have been released meanwhile

    def gpus(self) -> int:
        """The number of devices that are GPUs."""
        return sum(self._is_gpu(state) for state in self.all())

    def are_apart(self) -> bool:
        """Whether several devices are here that know nothing of each other's memory."""
        return bool(self._spec["apart"]) and not all(self.share_memory(self.listed[0], each) for each in self.listed)

    def share_memory(self, one: State, other: State) -> bool:
        """Whether memory of one device means something to the other."""
        level = self._spec["apart"]
        return one.at(level) is other.at(level)

    def numbered(self, index: int) -> State:
        """The device of an ordinal. Raises: DeviceError where there is none at all."""
        try:
            return self.listed[index]
        except IndexError:  # the list was not made yet, or there is no device
            return self.all()[index] if self.all() else self.first()

    def first(self) -> State:
        """The device of a thread that has set none, which is then its current one.

        Raises: DeviceError, of the class that the listing's status means; NoDeviceError.
        """
        devices = self.all()
        if devices:
            self.here.state = devices[0]
            return devices[0]
        if self.why is not None:
            raise errors.again(self.why)
        raise errors.NoDeviceError(
            f"{self._binder.description['title']} has no device here", backend=self._binder.description["name"]
        )

    def _list(self) -> "list[State]":
        self.why = None
        try:
            for role in self._roles():
                self._binder.library(role).start()
            states = [State(self, "", None)]
            for level in self._spec["levels"]:
                states = [below for state in states for below in self._below(state, level)]
            states = self._with_default(states)
        except errors.DeviceError as error:
            if not self._binder.failures.means_no_device(error.kind):
                raise
            self.why = error
            return []
        modelled = [state for state in states if self._set_model(state)]
        modelled.sort(key=lambda state: not self._is_gpu(state))
        for index, state in enumerate(modelled):
            state.index = index
        return modelled

    def _roles(self) -> "list[str]":
        roles = [level[2][1] for level in self._spec["levels"] if level[0] == "fill"] or ["runtime"]
        return list(dict.fromkeys(roles))

    def _below(self, above: State, level: "tuple[Any, ...]") -> "list[State]":
        name = level[1]
        try:
            handles = LISTS[level[0]](self._binder, above, level, self._handles())
        except errors.DeviceError as error:
            if above._level == "":  # noqa: SLF001  # nothing at all is there
                raise
            if not self._binder.failures.means_no_device(error.kind):
                raise
            self.why = error
            return []
        return [self._new(above, name, handle) for handle in handles]

    def _new(self, above: State, level: str, handle: int) -> State:
        state = State(self, level, above)
        state.__dict__ |= {key: value for key, value in vars(above).items() if key in self._handles()}
        state.__dict__[level] = handle
        return state

    def _with_default(self, states: "list[State]") -> "list[State]":
        """The devices with the default one first, be it among them or not: some systems list one and not the other."""
        if self._spec["default"] is None:
            return states
        level, default, identity = self._spec["default"]
        root = State(self, "", None)
        handle = sequence.part_function(self._binder, "devices.default", default, (), (level,))(root)
        if not handle:
            return states
        asked = sequence.part_function(self._binder, "devices.identity", identity, (level,), ("identity",))
        number = asked(root, handle)
        found = next((state for state in states if asked(state, vars(state)[level]) == number), None)
        if found is None:
            return [self._new(root, level, handle), *states]
        self._give_up(root, level, handle)
        return [found, *(state for state in states if state is not found)]

    def _give_up(self, state: State, level: str, handle: int) -> None:
        """Give up a handle of a device, where the file says how."""
        spec = next(each for each in self._spec["levels"] if each[1] == level)
        if spec[0] == "ask" and spec[2]["release"]:
            sequence.part_function(self._binder, f"release.{level}", spec[2]["release"], (level,), ())(state, handle)

    def _handles(self) -> "list[str]":
        return [level[1] for level in self._spec["levels"]]

    def _set_model(self, state: State) -> bool:
        models = self._spec["models"]
        state.model = next((name for name, probe in models.items() if self._holds(probe, state)), "")
        return bool(state.model) or not models

    def _is_gpu(self, state: State) -> bool:
        probe = self._spec["gpu"]
        return probe is None or self._holds(probe, state)

    def _holds(self, probe: "tuple[Any, ...]", state: State) -> bool:
        call, how, wanted = probe
        answer = ask(self._binder, call, vars(state))
        if answer is None:
            return False
        if how == "has":
            return wanted in answer.split(b"\0", 1)[0].decode(errors="replace").split()
        return bool(answer & wanted == wanted if how == "bits" else answer == wanted)

    # what is kept

    def make(self, state: State, name: str) -> "Any":
        """An attribute that a state does not have yet.

        Raises: what the steps raise that make it; AttributeError for a name that nothing makes.
        """
        if name in self._by_address:
            return self._ask_address(state, name)
        maker = self._makers().get(name)
        if maker is None:
            raise AttributeError(name)
        scope, make = maker
        with self._lock:
            keeper = state.at(scope)
            if name not in vars(keeper):
                with coming_and_going:
                    keeper.__dict__[name] = make(keeper)
                self._made.append((name, keeper))
            value = state.__dict__[name] = vars(keeper)[name]
        return value

    def _makers(self) -> "dict[str, tuple[str, Callable[[State], Any]]]":
        """What makes each entry, and the level that it is kept for."""
        if self._makers_by_name is None:
            makers = {
                name: (scope, self._maker(name, steps))
                for name, (_line, scope, steps, _release) in self._binder.description["state"].items()
            }
            if "queues" in self._binder.description["policies"]:
                makers["default_stream"] = ("", self._binder.policy("queues").default)
            self._makers_by_name = makers
        return self._makers_by_name

    def _maker(self, name: str, steps: "tuple[Any, ...]") -> "Callable[[State], Any]":
        function: list[Callable[[State], Any]] = []

        def make(state: State) -> "Any":
            if not function:
                function.append(sequence.part_function(self._binder, f"state.{name}", steps, (), (name,)))
            return function[0](state)

        return make

    def release(self) -> None:
        """Release what was made, last made first; a failure ends one release and not the others.

        What another thread may be working with is left for the next time: whoever comes later makes it anew.
        """
        while self._left or self._made:
            if not self._left:
                self._left.append(self._detached())
            if locks.others_are_inside(self._binder.description["name"]):
                return
            try:
                self._release(*self._left.pop())
            except errors.NbxrtError:
                continue
        with self._lock:
            for state in self.listed:
                self._give_up(state, state.level, vars(state)[state.level])
            self.listed.clear()

    def _detached(self) -> "tuple[str, State, Any]":
        """What was made last, which nobody finds from now on."""
        with self._lock:
            name, keeper = self._made.pop()
            value = vars(keeper).pop(name)
            for state in self.listed:  # devices below the keeper have it too
                if state.at(keeper.level) is keeper:
                    vars(state).pop(name, None)
            return name, keeper, value

    def _release(self, name: str, keeper: State, value: "Any") -> None:
        if name == "default_stream":
            self._binder.policy("queues").end(value)
            return
        steps = self._binder.description["state"][name][3]
        if steps:
            with coming_and_going:
                sequence.part_function(self._binder, f"release.{name}", steps, (name,), ())(keeper, value)

    # functions that the library does not export

    def function_by_address(self, symbol: str, returns: "Any", types: "list[Any]") -> str:
        """The attribute of every state that is the function of that symbol and type."""
        spec = (symbol, returns, tuple(types))
        for name, known in self._by_address.items():
            if known == spec:
                return name
        name = f"_by_address_{len(self._by_address)}"
        self._by_address[name] = spec
        return name

    def _ask_address(self, state: State, name: str) -> "Any":
        symbol, returns, types = self._by_address[name]
        address = ask(self._binder, self._spec["functions"], {**vars(state), "symbol": symbol.encode()})
        if not address:
            raise errors.SymbolNotFoundError(
                f"`{symbol}` is not offered by the driver of device {state.index}", symbols=(symbol,),
                library=self._binder.library("runtime").path,
            )  # fmt: skip
        function = ctypes.CFUNCTYPE(returns, *types)(address)
        state.__dict__[name] = function
        return function

    def renew_lock(self) -> None:
        """Make the lock anew, in a process that was forked; devices that the parent has used are not used here."""
        global coming_and_going
        self._lock, coming_and_going = locks.RLock(), locks.RLock()
        self._left.clear()
        if self.listed:
            self._forked = True
            self.listed.clear()
            self._made = []
            vars(self.here).clear()


class ListedDevices:
    """Devices as the file lists them; the current one is kept per thread."""

    def __init__(self, binder: "Binder") -> None:
        self._devices = binder.listed()

    def device_count(self) -> int:
        return len(self._devices.all())

    def set_device(self, device: int) -> None:
        self._devices.here.state = self._devices.numbered(device)

    def get_device(self) -> int:
        try:
            state = self._devices.here.state
        except AttributeError:
            state = self._devices.first()
        index: int = state.index
        return index


class Facts:
    """Facts of a device that the vendor tells in ways of their own, each by steps."""

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        self._words = binder.contract["enums"]["device_attribute"][1]
        self._parts: dict[str, Any] = {}

    def device_attribute(self, attribute: int, device: int) -> int:
        word = self._words[attribute] if attribute in range(len(self._words)) else ""
        if word not in self._parts:
            self._parts[word] = self._binder.optional_part("facts", word)
        if self._parts[word] is None:
            said = f"does not tell {word or f'number {attribute}'}"
            raise errors.CapabilityError(
                f"`device_attribute`: {self._binder.description['title']} {said}", operation="device_attribute"
            )
        return int(self._parts[word](self._binder.listed().numbered(device)))
