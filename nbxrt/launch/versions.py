"""What differs between versions of Triton, as a table; the code asks it and knows no version itself."""

import os

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Set to 1 to use a Triton that is not in the table, as if it were the nearest that is.
UNCHECKED = "NBXRT_TRITON_UNCHECKED"


class Facts:
    """One version's interface: pointers that every kernel takes after its arguments, fields of its metadata, habits."""

    def __init__(
        self,
        *,
        hidden: "tuple[str, ...]" = ("global_scratch", "profile_scratch"),
        fields: "tuple[str, ...]" = ("name", "shared", "num_warps", "num_ctas"),
        looks_for_torch_once: bool = False,
        descriptors_round: bool = True,
        descriptors_mended: bool = True,
        descriptors_widen: bool = False,
        interprets_bools: bool = True,
    ) -> None:
        #: Pointers after the arguments, in order; `<name>_size` and `<name>_align` of the metadata say how much room.
        self.hidden = hidden
        #: What a kernel's metadata must have.
        self.fields = fields
        #: The first argument that is specialised imports torch where it is installed.
        self.looks_for_torch_once = looks_for_torch_once
        #: A tensor descriptor has the member `round_f32_to_tf32`.
        self.descriptors_round = descriptors_round
        #: In the description of a small tensor a bit is cleared that some drivers set wrongly.
        self.descriptors_mended = descriptors_mended
        #: Of pairs of 4 bits in a byte, the extents behind the description count the halves too.
        self.descriptors_widen = descriptors_widen
        #: The interpreter takes arguments that are True or False.
        self.interprets_bools = interprets_bools


KNOWN = {
    (3, 5): Facts(descriptors_round=False, descriptors_mended=False, descriptors_widen=True),
    (3, 6): Facts(
        looks_for_torch_once=True,
        descriptors_round=False,
        descriptors_mended=False,
        descriptors_widen=True,
        interprets_bools=False,
    ),
    (3, 7): Facts(looks_for_torch_once=True, interprets_bools=False),
    (3, 8): Facts(),
    (3, 9): Facts(),
}


def facts_of(version: str) -> Facts:
    """The facts of a version of Triton, `3.9.0`.

    Raises: UntestedVersionError for one that is not in the table, unless NBXRT_TRITON_UNCHECKED is 1.
    """
    number = numbers(version)
    if number in KNOWN:
        return KNOWN[number]
    known = ", ".join(".".join(map(str, each)) for each in KNOWN)
    if os.environ.get(UNCHECKED) != "1":
        raise errors.UntestedVersionError(
            f"Triton {version} is not known here: how it launches kernels may differ from {known}",
            hint=f"install one of these, or set {UNCHECKED}=1 to try",
            version=version,
        )
    return KNOWN[min(KNOWN, key=lambda each: abs(each[0] - number[0]) * 100 + abs(each[1] - number[1]))]


def numbers(version: str) -> "tuple[int, int]":
    """(3, 9) of `3.9.0+git`; zeros for what is no number."""
    parts = (*version.split("."), "", "")[:2]
    first, second = (int("".join(filter(str.isdigit, part)) or 0) for part in parts)
    return first, second


def field(metadata: "Any", name: str, facts: Facts, version: str) -> "Any":
    """A field of a kernel's metadata.

    Raises: UntestedVersionError when a field is missing that every kernel of the version has, or is no number.
    """
    value = getattr(metadata, name, None)
    if value is None and name in facts.fields:
        raise errors.UntestedVersionError(
            f"the metadata of a kernel compiled by Triton {version} has no `{name}`: it cannot be launched safely",
            hint="compile it again with the Triton that is installed",
            version=version,
            field=name,
        )
    if value is not None and name != "name" and (not isinstance(value, int) or value < 0):
        raise errors.UntestedVersionError(
            f"the metadata of a kernel compiled by Triton {version} has {errors.shown(value)} for `{name}`, "
            "which is no number of anything",
            version=version,
            field=name,
        )
    return value
