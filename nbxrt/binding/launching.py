"""The vendor's launch function, as a call whose arguments are all prebuilt.

There are two shapes. By a configuration in memory: (configuration, function, addresses of the arguments, null). And as
`launch_kernel` takes them: (function, grid, block, shared memory, stream, addresses of the arguments, null).
"""

from nbxrt import errors
from nbxrt.binding.prebuilt import PrebuiltCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from nbxrt.binding.binder import Binder

_OPERATION = "launch_kernel"


class LaunchCall(PrebuiltCall):
    """A launch function of one runtime.

    `configuration` and `attribute` are the file's offsets; both None where the function takes everything as arguments.
    """

    def __init__(self, binder: "Binder", role: str, symbol: str, data: "Mapping[str, Any] | None") -> None:
        super().__init__(binder, _OPERATION, role, symbol)
        self.configuration: Mapping[str, int] | None = data["configuration"] if data else None
        self.attribute: Mapping[str, int] | None = data["attribute"] if data else None


class LaunchCalls:
    """The launch functions of one runtime, each bound at its first use."""

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        self._made: dict[bool, LaunchCall] = {}
        self.data: Mapping[str, Any] | None = binder.description["launch"]

    def of(self, asks: "Mapping[str, int]") -> "tuple[LaunchCall, tuple[tuple[int, tuple[int, ...]], ...]]":
        """The function for a launch that asks for these attributes, and their numbers and values in order.

        `asks` maps the format's words to values, `shared_memory` to the bytes that the launch wants; an attribute that
        is 0, and a cluster of 1, is not asked for.
        Raises: CapabilityError for an attribute that the backend does not have; as binding does.
        """
        attributes = tuple(self._attributes(asks))
        by_configuration = self.data is not None and (bool(attributes) or not self.data["only_with_attributes"])
        if by_configuration not in self._made:
            self._made[by_configuration] = self._bound(by_configuration)
        return self._made[by_configuration], attributes

    def _attributes(self, asks: "Mapping[str, int]") -> "Iterator[tuple[int, tuple[int, ...]]]":
        known: Mapping[str, Any] = self.data["attributes"] if self.data else {}
        wanted = _wanted(asks)
        for word, (number, value, above) in known.items():
            if above is not None:
                if asks.get("shared_memory", 0) > above:
                    yield number, (value, 0, 0)
            elif word in wanted:
                yield number, wanted[word] or (value, 0, 0)
        lacking = [word for word in wanted if word not in known and word != "cluster_scheduling"]
        if lacking:
            raise errors.CapabilityError(
                f"a launch asks for `{lacking[0]}`, which {self._binder.description['title']} does not offer",
                operation=_OPERATION,
                reason=f"`launch.attributes` of {self._binder.description['file']} does not have it",
            )

    def _bound(self, by_configuration: bool) -> LaunchCall:
        if by_configuration and self.data is not None:
            return LaunchCall(self._binder, self.data["library"], self.data["call"], self.data)
        form, *_range, call, _results = self._binder.variants.of(_OPERATION)
        if form != "call":
            raise errors.CapabilityError(
                f"`{_OPERATION}` of {self._binder.description['title']} is not one call", operation=_OPERATION
            )
        symbols, role, arguments, _returns, _usual = call
        if [argument[0] for argument in arguments] != _PLAIN:
            raise errors.CapabilityError(
                f"`{symbols[0]}` does not take a launch's arguments in the usual order", operation=_OPERATION
            )
        return LaunchCall(self._binder, role, symbols[0], None)


def _wanted(asks: "Mapping[str, int]") -> "dict[str, tuple[int, ...] | None]":
    """What a launch asks for by its words, with a value where it is not the file's."""
    wanted: dict[str, tuple[int, ...] | None] = {
        word: None for word, value in asks.items() if value and word not in ("shared_memory", "cluster")
    }
    if asks.get("cluster", 1) != 1:
        wanted |= {"cluster": (asks["cluster"], 1, 1), "cluster_scheduling": None}
    return wanted


#: The usual arguments of `launch_kernel`, by their forms.
_PLAIN = ["param", "axes", "axes", "param", "param", "packed", "null"]
