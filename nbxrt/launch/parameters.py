"""What a kernel's parameters are, where the vendor tells it of a loaded one."""

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nbxrt.runtime import Runtime

_TAKES = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)


def sizes(runtime: "Runtime", function: int) -> "list[int] | None":
    """The bytes of each parameter of a kernel; None where the vendor does not tell them."""
    launch = runtime.description["launch"]
    symbol = launch and launch["parameters"]
    if not symbol:
        return None
    library = runtime.library(launch["library"])
    if not library.exports((symbol,)):
        return None
    ask, _symbol = library.function((symbol,), ctypes.c_int, _TAKES)
    offset, nbytes = ctypes.c_size_t(), ctypes.c_size_t()
    found: list[int] = []
    while not (code := ask(function, len(found), ctypes.addressof(offset), ctypes.addressof(nbytes))):
        found.append(nbytes.value)
    return found if code in library.codes("invalid_value") else None
