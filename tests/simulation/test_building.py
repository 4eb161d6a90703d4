"""Building simulations: compiler, cache, names, versions, and what cannot be built."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt import descriptions
from nbxrt.compiled.contract import CONTRACT
from nbxrt.simulation import CompilerError, build
from nbxrt.simulation.building import _FLAGS, _core_files
from nbxrt.simulation.header import contract_header
from nbxrt.simulation.plan import make_plan
from nbxrt.simulation.writing import wrapper_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation


def test_without_a_compiler_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)

    with pytest.raises(CompilerError) as caught:
        build("cuda", tmp_path / "out")

    assert "none of cc, gcc, clang is on the PATH" in str(caught.value)
    assert "apt install gcc" in caught.value.hint


def test_a_compiler_that_is_named_and_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")

    with pytest.raises(CompilerError, match="CC names `no-such-compiler`, which is not there"):
        build("cuda", tmp_path / "out")


def test_a_compiler_that_refuses_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = tmp_path / "refusing"
    refusing.write_text("#!/bin/sh\necho no C today >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("CC", str(refusing))

    with pytest.raises(CompilerError, match="no C today"):
        build("cuda", tmp_path / "out", cache=tmp_path / "cache")


def test_a_compiler_that_makes_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "env true")

    with pytest.raises(CompilerError, match="env` does not compile the simulation"):
        build("cuda", tmp_path / "out", cache=tmp_path / "cache")


@pytest.mark.tier("all")
def test_what_was_compiled_once_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "bin" / "cc"
    compiler.parent.mkdir()
    compiler.symlink_to(shutil.which("cc") or "cc")
    monkeypatch.setenv("CC", str(compiler))
    build("cuda", tmp_path / "one", cache=tmp_path / "cache")
    compiler.unlink()
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)

    simulation = build("cuda", tmp_path / "other", cache=tmp_path / "cache")

    assert simulation.open().malloc(1)


@pytest.mark.tier("all")
def test_where_the_cache_cannot_be_written_the_build_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    assert build("cuda", tmp_path / "out").open().malloc(1)


def test_a_library_that_is_loaded_goes_on_while_it_is_built_again(
    simulate: Callable[..., Simulation], tmp_path: Path
) -> None:
    first = simulate("cuda", "12.9", folder=tmp_path / "out")
    runtime = first.open()
    address = runtime.malloc(1)

    simulate("cuda", "12.9", folder=tmp_path / "out")
    runtime.free(address)

    assert first.ledger() == []


@pytest.mark.parametrize(
    ("backend", "version", "names"),
    [
        ("cuda", None, ["libcudart.so.13", "libcuda.so.1", "libnvidia-ml.so.1", "libnccl.so.2"]),
        ("cuda", "11.8", ["libcudart.so.11.0", "libcuda.so.1", "libnvidia-ml.so.1", "libnccl.so.2"]),
        ("hip", "5.2", ["libamdhip64.so.5", "libamdhip64.so.5", "libamd_smi.so.26", "librccl.so.1"]),
    ],
)
def test_files_have_the_names_that_the_search_looks_for(
    simulate: Callable[..., Simulation], backend: str, version: str | None, names: list[str]
) -> None:
    assert [path.name for path in simulate(backend, version).paths.values()] == names


def test_roles_may_have_versions_of_their_own(simulate: Callable[..., Simulation]) -> None:
    runtime = simulate("cuda", {"runtime": "12.4", "driver": "13.0", "collectives": "2.21.5"}).open()

    assert [runtime.version(role) for role in ("runtime", "driver", "collectives")] == [(12, 4), (13, 0), (2, 21, 5)]


def test_the_search_finds_a_simulation_by_its_name(
    simulate: Callable[..., Simulation], run: Callable[..., str]
) -> None:
    simulation = simulate("cuda", "12.9")
    program = f"""
        import os
        for name in [name for name in os.environ if name.startswith("NBXRT_CUDA")]:
            del os.environ[name]
        os.environ["NBXRT_CUDA_RUNTIME"] = {str(simulation.paths["runtime"].parent)!r}
        import nbxrt
        print(nbxrt.open("cuda").version())
    """

    assert run(program, simulation) == "(12, 9)\n"


@pytest.mark.parametrize(
    ("backend", "options", "said"),
    [
        ("cuda", {"version": "9.2"}, "has no `runtime` of major 9"),
        ("cuda", {"version": "twelve"}, "a version is numbers with dots, not 'twelve'"),
        ("hip", {"version": {"driver": "5.2"}}, "has no library of its own for driver"),
        ("cuda", {"without": ("cudaMaloc",)}, "does not have here: cudaMaloc"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, backend: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(nbxrt.ArgumentValueError, match=said):
        build(backend, tmp_path, **options)


@pytest.mark.parametrize(("backend", "said"), [("host", "the process's own"), ("metal", "its ABI is not C")])
def test_a_backend_without_a_c_library_of_its_own_is_refused(tmp_path: Path, backend: str, said: str) -> None:
    with pytest.raises(nbxrt.CapabilityError, match=said):
        build(backend, tmp_path)


@pytest.mark.parametrize(
    ("backend", "version"),
    [("cuda", "11.8"), ("cuda", "13.5"), ("hip", "5.2"), ("hip", "7.1"), ("level_zero", None), ("opencl", None)],
)
def test_the_c_sources_compile_without_a_warning(tmp_path: Path, backend: str, version: str | None) -> None:
    plan = make_plan(descriptions.load(backend), CONTRACT, "linux", version)
    texts = {file.name: file.read_text("utf-8") for file in _core_files()}
    for name, text in {**texts, "contract.h": contract_header(CONTRACT), "wrapper.c": wrapper_source(plan)}.items():
        (tmp_path / name).write_text(text)

    sources = [name for name in (*texts, "wrapper.c") if name.endswith(".c")]
    command = [os.environ.get("CC", "cc"), *_FLAGS, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *sources]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.stderr == ""


def test_the_core_knows_no_vendor() -> None:
    vendors = {name for name in descriptions.names() if name != "host"}
    text = " ".join(file.read_text("utf-8").lower() for file in _core_files())

    assert [name for name in (*vendors, "nvidia", "amd") if name in text] == []


def test_an_operation_that_the_core_does_not_have_is_not_supported(simulate: Callable[..., Simulation]) -> None:
    new = {**CONTRACT["operations"]["mem_get_info"], "c": (("out", "free"), ("out", "total"))}
    contract = {**CONTRACT, "operations": {**CONTRACT["operations"], "mem_get_more": new}}
    description = descriptions.load("cuda")
    arguments = (("out", "free", "size"), ("out", "total", "size"))
    call = (("cudaMemGetMore",), "runtime", arguments, ("status",), True)
    operations = {**description["operations"], "mem_get_more": (1, (("call", None, None, None, call, ()),))}
    simulation = simulate({**description, "operations": operations}, "12.9", contract=contract)

    with pytest.raises(nbxrt.DeviceError) as caught:
        simulation.open().mem_get_more()

    assert caught.value.kind == "not_supported"


def test_every_symbol_of_the_plan_is_exported(simulation: Simulation) -> None:
    library = ctypes.CDLL(str(simulation.paths["runtime"]))

    assert [symbol for symbol in simulation.symbols if not hasattr(library, symbol)] == []
