"""Element types: their names, sizes, and the words that other libraries have for them."""

from nbxrt import errors
from nbxrt.errors import wrong_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# DLPack's numbers of classes of types (dlpack.h 1.1).
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_E4M3FN, _E4M3FNUZ, _E5M2, _E5M2FNUZ = 10, 11, 12, 13


class DType:
    """One element type. `str()` of it is its name, as NumPy, PyTorch and Triton spell it.

    `itemsize` is in bytes. `code` is DLPack's number of its class; `typestr` NumPy's spelling of it, empty for types
    that NumPy has only by `ml_dtypes`.
    """

    __slots__ = ("code", "itemsize", "name", "typestr")

    def __init__(self, name: str, itemsize: int, code: int, typestr: str) -> None:
        self.name, self.itemsize, self.code, self.typestr = name, itemsize, code, typestr

    @property
    def is_floating_point(self) -> bool:
        """Whether it is a float, and not one of complex numbers: a word of PyTorch's, by which Triton asks."""
        return self.name.startswith(("float", "bfloat"))

    @property
    def triton(self) -> str:
        """Triton's word for it in a kernel's signature, such as `fp32`; empty for a type that Triton does not have."""
        if self.code == _COMPLEX:
            return ""
        letters = {_INT: "i", _UINT: "u", _FLOAT: "fp"}
        return _TRITON.get(self.name) or f"{letters[self.code]}{self.itemsize * 8}"

    @property
    def numpy(self) -> "Any":
        """The `numpy.dtype`. Raises: CapabilityError where it needs `ml_dtypes`, which is not installed."""
        import numpy as np

        if self.typestr:
            return np.dtype(self.typestr)
        try:
            import ml_dtypes  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise errors.CapabilityError(
                f"NumPy has no type {self.name} of its own", hint="`pip install ml_dtypes`", dtype=self.name
            ) from None
        return np.dtype(getattr(ml_dtypes, self.name))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"nbxrt.dtype({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other == self.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> "tuple[Any, ...]":
        return dtype, (self.name,)


#: Every element type by its name.
DTYPES: "dict[str, DType]" = {
    row[0]: DType(*row)
    for row in (
        ("bool", 1, _BOOL, "|b1"),
        ("int8", 1, _INT, "|i1"),
        ("int16", 2, _INT, "<i2"),
        ("int32", 4, _INT, "<i4"),
        ("int64", 8, _INT, "<i8"),
        ("uint8", 1, _UINT, "|u1"),
        ("uint16", 2, _UINT, "<u2"),
        ("uint32", 4, _UINT, "<u4"),
        ("uint64", 8, _UINT, "<u8"),
        ("float16", 2, _FLOAT, "<f2"),
        ("float32", 4, _FLOAT, "<f4"),
        ("float64", 8, _FLOAT, "<f8"),
        ("bfloat16", 2, _BFLOAT, ""),
        ("float8_e4m3fn", 1, _E4M3FN, ""),
        ("float8_e4m3fnuz", 1, _E4M3FNUZ, ""),
        ("float8_e5m2", 1, _E5M2, ""),
        ("float8_e5m2fnuz", 1, _E5M2FNUZ, ""),
        ("complex64", 8, _COMPLEX, "<c8"),
        ("complex128", 16, _COMPLEX, "<c16"),
    )
}
_BY_TYPESTR = {each.typestr: each for each in DTYPES.values() if each.typestr}
#: Python's own types, as NumPy takes them.
_BY_TYPE = {bool: DTYPES["bool"], int: DTYPES["int64"], float: DTYPES["float64"], complex: DTYPES["complex128"]}
#: Triton's words for the types that are not its own spelling of their class and bits.
_TRITON = {
    "bool": "i1", "bfloat16": "bf16", "float8_e4m3fn": "fp8e4nv", "float8_e4m3fnuz": "fp8e4b8", "float8_e5m2": "fp8e5",
    "float8_e5m2fnuz": "fp8e5b16",
}  # fmt: skip
#: Letters of the buffer protocol and of `struct`; the sizes of `l` and `L` are the platform's.
_BY_FORMAT = {
    "?": "bool", "b": "int8", "h": "int16", "i": "int32", "q": "int64", "B": "uint8", "c": "uint8", "H": "uint16",
    "I": "uint32", "Q": "uint64", "e": "float16", "f": "float32", "d": "float64", "Zf": "complex64", "Zd": "complex128",
}  # fmt: skip


#: Those that `memoryview.cast` takes.
_LETTERS = {name: letter for letter, name in _BY_FORMAT.items() if letter in "?bhiqBHIQfd"}


def letter_of(kind: DType) -> str:
    """The letter of an element type in the buffer protocol, empty where a memoryview has none."""
    return _LETTERS.get(kind.name, "")


def dtype(given: "Any") -> DType:
    """The element type that is meant: a DType, its name, or the type of NumPy, PyTorch, JAX or ml_dtypes.

    Raises: ArgumentValueError for an unknown name, ArgumentTypeError for what is no type.
    """
    if given.__class__ is DType:
        return given
    if given.__class__ is str and given in DTYPES:
        return DTYPES[given]
    found = DTYPES.get(given) if isinstance(given, str) else _BY_TYPE.get(given) if isinstance(given, type) else None
    if found is not None:
        return found
    name = given if isinstance(given, str) else getattr(given, "name", None) or _last_word(given)
    known = DTYPES.get(name) or _BY_TYPESTR.get(name) if isinstance(name, str) else None
    if known is None:
        if not isinstance(given, (str, type)) and not hasattr(type(given), "itemsize"):
            raise wrong_type("`dtype`", "an element type or its name", given)
        close = errors.nearest(name, list(DTYPES))
        raise errors.ArgumentValueError(
            f"`{name}` is no element type of an array", hint=f"did you mean `{close}`?" if close else "", value=given
        )
    if getattr(given, "isnative", True) is False:
        raise errors.ArgumentValueError(
            f"`{given}` has its bytes in the other order, and no element is converted here",
            hint="`array.astype(array.dtype.newbyteorder('='))` converts them", value=given,
        )  # fmt: skip
    return known


def _last_word(given: "Any") -> str:
    """`torch.float32` is float32, `<class 'numpy.float32'>` too."""
    return (given.__name__ if isinstance(given, type) else str(given)).rpartition(".")[2]


def by_typestr(typestr: str) -> DType:
    """The element type that an array interface means. Raises: ExchangeError."""
    found = None
    if isinstance(typestr, str):
        found = _BY_TYPESTR.get(typestr) or _BY_TYPESTR.get("|" + typestr[1:])
    if found is None:
        raise errors.ExchangeError(f"`typestr` {typestr!r} is no element type of an array here")
    return found


def by_format(letters: str, itemsize: int) -> DType:
    """The element type of a format of the buffer protocol. Raises: ExchangeError."""
    letters = letters.lstrip("@=<")
    if letters in ("l", "L", "n", "N"):
        return DTYPES[f"{'' if letters.islower() else 'u'}int{itemsize * 8}"]
    name = _BY_FORMAT.get(letters)
    if name is None:
        raise errors.ExchangeError(f"the buffer format {letters!r} is no element type of an array here")
    return DTYPES[name]
