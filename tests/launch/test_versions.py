"""Versions of Triton: those that are known, and those that are refused; G11."""

from __future__ import annotations

import collections

import pytest

import nbxrt
from nbxrt.launch import versions


@pytest.mark.parametrize("version", ["3.5.1", "3.6.0", "3.7.1", "3.8.0", "3.9.0", "3.9.0+git1234"])
def test_a_known_version_has_its_facts(version: str) -> None:
    assert versions.facts_of(version).hidden == ("global_scratch", "profile_scratch")


@pytest.mark.parametrize("version", ["3.4.0", "3.10.0", "4.0", "main"])
def test_an_unknown_version_is_refused_with_those_that_are_known(version: str) -> None:
    with pytest.raises(nbxrt.UntestedVersionError) as caught:
        versions.facts_of(version)

    assert f"Triton {version} is not known here" in str(caught.value)
    assert "3.5, 3.6, 3.7, 3.8, 3.9" in str(caught.value)
    assert "NBXRT_TRITON_UNCHECKED=1" in caught.value.hint


def test_an_unknown_version_can_be_tried_as_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBXRT_TRITON_UNCHECKED", "1")

    assert versions.facts_of("3.4.0") is versions.KNOWN[3, 5]
    assert versions.facts_of("3.12.0") is versions.KNOWN[3, 9]


def test_metadata_without_what_every_kernel_has_is_refused_by_field() -> None:
    metadata = collections.namedtuple("metadata", "name num_warps num_ctas")("add", 4, 1)  # noqa: PYI024

    with pytest.raises(nbxrt.UntestedVersionError, match=r"Triton 3\.9\.0 has no `shared`"):
        versions.field(metadata, "shared", versions.KNOWN[3, 9], "3.9.0")

    assert versions.field(metadata, "global_scratch_size", versions.KNOWN[3, 9], "3.9.0") is None


@pytest.mark.parametrize("value", ["0", -1, 1.5, b""])
def test_metadata_that_is_no_number_is_refused_by_field(value: object) -> None:
    metadata = collections.namedtuple("metadata", "name shared")("add", value)  # noqa: PYI024

    with pytest.raises(nbxrt.UntestedVersionError, match=r"Triton 3\.9\.0 has .* for `shared`, which is no number"):
        versions.field(metadata, "shared", versions.KNOWN[3, 9], "3.9.0")
