"""Messages of Objective-C: selectors, a typed send for each signature, autorelease pools, what an object answers.

Types are those of catalogue/encodings.py. What is named here is the language's own runtime library, which every
vendor with messages shares; which messages there are is in the vendor's file.
"""

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Type = Any
    Signature = tuple[Type, tuple[Type, ...]]

#: The ctypes class of each word. A BOOL is one byte everywhere, and 0 or 1.
SCALARS: "dict[str, Any]" = {
    "void": None,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16,
    "uint16": ctypes.c_uint16,
    "int": ctypes.c_int,
    "uint": ctypes.c_uint,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "longdouble": ctypes.c_longdouble,
    "bool": ctypes.c_bool,
    "text": ctypes.c_char_p,
    **dict.fromkeys(("object", "class", "selector", "block", "pointer"), ctypes.c_void_p),
}

#: Up to this size a structure comes back in registers.
IN_REGISTERS = 16

#: Required or optional methods of a protocol, those of instances first.
_DECLARATIONS = ((True, True), (False, True), (True, False), (False, False))

_structures: "dict[tuple[Any, ...], Any]" = {}


def c_type(kind: "Type") -> "Any":
    """The ctypes class of a type; structures with the same fields are one class."""
    if isinstance(kind, str):
        return SCALARS[kind]
    if kind not in _structures:
        fields = [(f"f{number}", c_type(field)) for number, field in enumerate(kind)]
        _structures.setdefault(kind, type("Structure", (ctypes.Structure,), {"_fields_": fields}))
    return _structures[kind]


def entry_point(returns: "Type", processor: str) -> str:
    """The function that carries a message of this result, on this processor.

    On x86-64 the caller passes room for a large structure before the receiver, and a long double comes back on a stack
    of its own; elsewhere one function carries all, and the others do not exist.
    """
    if processor != "x86_64":
        return "objc_msgSend"
    if returns == "longdouble":
        return "objc_msgSend_fpret"
    large = isinstance(returns, tuple) and ctypes.sizeof(c_type(returns)) > IN_REGISTERS
    return "objc_msgSend_stret" if large else "objc_msgSend"


class _Description(ctypes.Structure):
    """A method as a protocol declares it (`struct objc_method_description`)."""

    _fields_ = (("selector", ctypes.c_void_p), ("types", ctypes.c_char_p))


class Messages:
    """The messages of one process, over its Objective-C runtime. What two threads look up at once is found twice."""

    def __init__(self, handle: ctypes.CDLL, processor: str) -> None:
        self._handle = handle
        self._processor = processor
        self._selectors: dict[str, int] = {}
        self._functions: dict[Signature, Any] = {}
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        self._register = self._typed("sel_registerName", pointer, text)
        self._class = self._typed("objc_getClass", pointer, text)
        self._class_of = self._typed("object_getClass", pointer, pointer)
        self._responds = self._typed("class_respondsToSelector", ctypes.c_bool, pointer, pointer)
        self._method = self._typed("class_getInstanceMethod", pointer, pointer, pointer)
        self._encoding = self._typed("method_getTypeEncoding", text, pointer)
        self._protocol = self._typed("objc_getProtocol", pointer, text)
        self._described = self._typed(
            "protocol_getMethodDescription", _Description, pointer, pointer, ctypes.c_bool, ctypes.c_bool
        )
        #: Opens an autorelease pool on the calling thread and gives what `pop` takes, on the same thread.
        self.push: Callable[[], int] = self._typed("objc_autoreleasePoolPush", pointer)
        self.pop: Callable[[int], None] = self._typed("objc_autoreleasePoolPop", None, pointer)
        #: Keeps an object beyond the pool; gives up one that is owned. Address 0 is nothing to do.
        self.retain: Callable[[int], int] = self._typed("objc_retain", pointer, pointer)
        self.release: Callable[[int], None] = self._typed("objc_release", None, pointer)

    def _typed(self, name: str, returns: "Any", *arguments: "Any") -> "Any":
        """A function of the runtime on an object of its own: types that are set on a shared one are everybody's."""
        function = self._handle[name]
        function.restype = returns
        function.argtypes = list(arguments)
        return function

    def selector(self, name: str) -> int:
        """The selector of that name."""
        found = self._selectors.get(name)
        if found is None:
            found = self._selectors[name] = self._register(name.encode())
        return found

    def named_class(self, name: str) -> int:
        """The class of that name, 0 when there is none."""
        return self._class(name.encode()) or 0

    def class_of(self, thing: int) -> int:
        """The class of an object; 0 of none."""
        return self._class_of(thing) or 0

    def function(self, signature: "Signature") -> "Any":
        """What sends a message of this signature: called with the receiver, the selector and the arguments.

        Every argument is typed. On some machines, what is passed beyond the types of a ctypes function travels as to
        a function with `...`, and arrives wrong.
        """
        found = self._functions.get(signature)
        if found is None:
            returns, arguments = signature
            pointer = ctypes.c_void_p
            name = entry_point(returns, self._processor)
            found = self._typed(name, c_type(returns), pointer, pointer, *map(c_type, arguments))
            self._functions[signature] = found
        return found

    def responds(self, thing: int, name: str) -> bool:
        """Whether an object answers the selector; a message that it does not answer ends the process."""
        return bool(self._responds(self._class_of(thing), self.selector(name)))

    def encoding(self, owner: int, name: str) -> str:
        """How the runtime writes down the method by which instances of a class answer; empty when they do not."""
        method = self._method(owner, self.selector(name))
        return (self._encoding(method) or b"").decode() if method else ""

    def declared(self, owner: str, name: str) -> "str | None":
        """How the class or protocol of that name declares a method, of instances or its own; empty when it does not.

        None where the process has neither.
        """
        protocol, kind = self._protocol(owner.encode()), self.named_class(owner)
        if not protocol and not kind:
            return None
        said = [self.encoding(each, name) for each in (kind, self.class_of(kind)) if each]
        for required, of_instances in _DECLARATIONS if protocol else ():
            found = self._described(protocol, self.selector(name), required, of_instances)
            said.append((found.types or b"").decode())
        return next(filter(None, said), "")
