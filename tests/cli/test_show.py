"""`nbxrt show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nbxrt import descriptions
from nbxrt.catalogue.forms import FORMS
from nbxrt.catalogue.sources import data_folder
from nbxrt.cli import cforms

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine

BUILT_IN = list(descriptions.INDEX)


def _forms(backend: str, operation: str) -> list[str]:
    return list(cforms.variants(descriptions.built_in(backend)["operations"][operation], "runtime"))


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_backend_can_be_shown_and_read_at_80_columns(cli: CommandLine, name: str) -> None:
    ended = cli("show", name)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"{descriptions.built_in(name)['title']} ({name}), backends/{name}.yaml\n")
    words = [line for line in ended.out.splitlines() if len(line) > 80]
    assert [line for line in words if " " in line.strip()] == []  # a word of the vendor's is never broken


#: Forms of arguments that `cuda` does not have, or only in steps.
OTHER_FORMS = """
contract: 1
name: site
extends: cuda
operations:
  mem_get_info:
    call: f
    args: [{out: free}, {out: total}, {array: [1, 2], type: uint64}, {current_device: int}, {error: int}]
    returns: nothing
  memset_async: {call: g, args: [{padded: nbytes, by: 255}, address, value, nbytes, stream]}
  module_load: {call: h, args: [{literal: "-O2"}, {length: image}, image, {out: module}, {again: image}]}
  monitor_by_pci_bus_id: {call: i, args: [{pci: pci_bus_id, bits: [3, 5, 8, 48]}, {out: monitor}]}
  device_can_access_peer:
    call: j
    args: [{param: device, type: uint}, peer, {out: can_access}, {current_device: int, as: value}]
  device_uuid: {call: k, args: [{int64: -1}, {buffer: uuid, bytes: 16}, device]}
  mempool_set_attribute: {call: l, args: [pool, attribute, {pointer_to: value, type: uint64}]}
  event_create_flags: {call: n, args: [{out: event}, {flags: event_flags}]}
  launch_kernel:
    call: m
    args: [function, {axes: grid}, {axes: block}, shared_memory, stream, {packed: arguments, as: pointers}]
"""


def test_every_form_of_an_argument_is_shown_in_c(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(OTHER_FORMS, "utf-8")
    written = OTHER_FORMS + (data_folder("backends") / "cuda.yaml").read_text("utf-8")
    assert [head for head in FORMS if f"{{{head}: " not in written] == []

    ended = cli("show", str(file))

    assert (ended.code, ended.err) == (0, "")
    said = " ".join(ended.out.split())
    assert "void f(size_t *free, size_t *total, uint64_t * = {1, 2}, int * = current device, int * = status)" in said
    assert "int g(size_t = nbytes + 255, void *address, int value, size_t nbytes, void *stream)" in said
    assert 'int h(const char * = "-O2", size_t = length of image, const void *image, void **module, ' in said


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_operation_is_shown_as_bound_or_as_not_offered(cli: CommandLine, name: str) -> None:
    bound, _heading, absent = cli("show", name).out.partition("\nNot offered\n")

    description = descriptions.built_in(name)
    lines = {line.split()[0] for line in bound.splitlines() if line.startswith("  ")}
    assert set(description["operations"]) <= lines
    assert {each for each in descriptions.contract()["operations"] if each in absent.replace(",", "").split()} == set(
        description["absent"]
    )


def test_the_usual_form_is_a_c_declaration() -> None:
    assert _forms("cuda", "mem_get_info") == ["int cudaMemGetInfo(size_t *free, size_t\N{NO-BREAK SPACE}*total)"]


def test_a_function_that_takes_more_than_the_contract_shows_what_it_is_given() -> None:
    (form,) = _forms("hip", "malloc_host")

    assert (
        form.replace("\N{NO-BREAK SPACE}", " ") == "int hipHostMalloc(void **address, size_t nbytes, unsigned int = 0)"
    )


def test_each_variant_says_when_it_is_taken() -> None:
    with_flags = [form.replace("\N{NO-BREAK SPACE}", " ") for form in _forms("host", "malloc")]

    assert with_flags == [
        "int posix_memalign(void **address, size_t = 256, size_t nbytes)  (on linux, macos)",
        "void *_aligned_malloc(size_t nbytes, size_t = 256)  (on windows; null means out of memory)",
    ]


def test_a_backend_can_be_shown_by_its_file(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes((data_folder("backends") / "host.yaml").read_bytes())

    ended = cli("show", file)

    assert ended.code == 0
    assert ended.out.startswith(f"Host memory (host), {file}\n")


def test_a_wrong_file_is_told_with_its_faults(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("contract: 1\nname: mine\nnmae: mine\n", "utf-8")

    ended = cli("show", file)

    assert (ended.code, ended.out) == (1, "")
    assert f"  --> {file}:3:1" in ended.err


def test_one_operation_is_shown_with_its_meaning_and_its_place(cli: CommandLine) -> None:
    ended = cli("show", "host", "--operation", "malloc")

    line = descriptions.built_in("host")["operations"]["malloc"][0]
    assert ended.code == 0
    assert ended.out.startswith("malloc of Host memory\n  means       Allocates memory on the current device; ")
    assert "  freed by    free\n" in ended.out
    assert f"  file        backends/host.yaml:{line}\n" in ended.out


def test_an_absent_operation_is_shown_with_its_reason(cli: CommandLine) -> None:
    ended = cli("show", "host", "--operation", "pci_bus_id")

    assert ended.code == 0
    assert "  absent      the host is not on PCI\n" in ended.out


def test_an_unknown_operation_is_misuse_and_the_nearest_is_offered(cli: CommandLine) -> None:
    ended = cli("show", "host", "--operation", "mallok")

    assert ended.code == 2
    assert ended.err == (
        "error[argument-value]: `mallok` is no operation of the contract\n\nhint: did you mean `malloc`?\n"
    )


def test_the_generated_function_is_printed_as_it_runs(cli: CommandLine) -> None:
    ended = cli("show", "host", "--source", "memcpy")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith('def memcpy(dst, src, nbytes, kind):\n    """Copies and waits ')
    compile(ended.out, "source", "exec")


def test_the_source_of_an_absent_operation_is_its_reason(cli: CommandLine) -> None:
    ended = cli("show", "host", "--source", "pci_bus_id")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(
        "error[capability]: `pci_bus_id` is not offered by Host memory: the host is not on PCI\n"
    )
