"""The documentation says what the code does: examples run, and every variable, error and search step is explained."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nbxrt
from copies import run
from nbxrt import descriptions, errors
from nbxrt.binding import search
from nbxrt.binding.variants import calls_in
from nbxrt.cli.doctor import environment
from nbxrt.compiled import INDEX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.simulation import Simulation

pytestmark = pytest.mark.checkout


def test_the_example_of_the_readme_runs_on_any_machine(root: Path, tmp_path: Path) -> None:
    (example,) = _code(root / "README.md")

    said = run(sys.executable, "-c", example, cwd=tmp_path, PYTHONPATH=str(root), NBX_GPU_BACKEND="host")

    assert said.endswith("first light\n")


@pytest.mark.needs("cc", "numpy")
@pytest.mark.skipif(sys.platform == "win32", reason="simulations are built on Linux and macOS")
@pytest.mark.parametrize(
    ("page", "prints"),
    [
        pytest.param("quickstart.md", "\n8.0\n", id="quickstart"),
        pytest.param("objects.md", "b'", id="objects", marks=pytest.mark.tier("all")),
        pytest.param("memory.md", "0 20971520 1048576", id="memory", marks=pytest.mark.tier("all")),
    ],
)
def test_the_code_of_a_page_runs_from_top_to_bottom(
    page: str, prints: str, root: Path, tmp_path: Path, simulate: Callable[..., Simulation]
) -> None:
    environment = {"NBX_GPU_BACKEND": "cuda", "PYTHONPATH": str(root)} | simulate("cuda").environment()
    (tmp_path / "kernels.cubin").write_bytes(b"nbxrt simulated module\nkernel store 8 4 = store\n")
    (tmp_path / "page.py").write_text("\n".join(_code(root / "docs" / page)), "utf-8")

    said = run(sys.executable, "page.py", cwd=tmp_path, **environment)

    assert prints in said


@pytest.mark.tier("all")
@pytest.mark.needs("mypy", "numpy")
def test_a_type_checker_follows_the_quickstart_and_sees_what_no_function_takes(root: Path, tmp_path: Path) -> None:
    wrong = 'nbxrt.empty("x")\nnbxrt.zeros(3, kind="host")\n'
    (tmp_path / "page.py").write_text("\n".join([*_code(root / "docs" / "quickstart.md"), wrong]), "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "page.py"]

    said = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(root)}, capture_output=True, text=True, check=False
    )

    assert re.findall(r"error: (.*?) has incompatible type", said.stdout) == [
        'Argument 1 to "empty"',
        'Argument "kind" to "zeros"',
    ]


@pytest.mark.tier("all")
@pytest.mark.needs("triton-3.9")
def test_the_first_kernel_of_the_page_of_triton_runs_without_a_gpu(root: Path, tmp_path: Path, tritons: Path) -> None:
    (tmp_path / "page.py").write_text(_code(root / "docs" / "triton.md")[0], "utf-8")
    python = tritons / "3.9" / "bin" / "python"

    said = run(python, "page.py", cwd=tmp_path, PYTHONPATH=str(root), NBX_GPU_BACKEND="host")

    assert "9.998e+03]" in said


def test_the_vendor_of_the_readme_lacks_nothing_but_the_operations_it_leaves_out(root: Path, tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (root / "README.md").read_text("utf-8"), re.DOTALL)
    file = tmp_path / "mygpu.yaml"
    file.write_text(example, "utf-8")

    faults = nbxrt.validate(file)

    assert {fault.reference for fault in faults} == {"missing-operation"}


#: Files that say the name of a backend or a vendor's function, and why.
_NAMING = {
    "catalogue/schema.py": "examples that editors show",
    "catalogue/schema_extends.py": "examples that editors show",
    "catalogue/schema_origin.py": "examples that editors show",
    "launch/driver.py": "what PyTorch calls every GPU",
    "launch/streams.py": "what PyTorch calls every GPU",
    "simulation/__init__.py": "an example in the docstring",
    "verifying/__init__.py": "an example in the docstring",
}


def test_no_line_of_python_names_a_vendors_backend_or_function(root: Path) -> None:
    vendors = [name for name in INDEX if name != "host"]  # which is also a word of the contract
    names = {*vendors, *(symbol for vendor in vendors for symbol in _functions(vendor))}

    naming = {
        file.relative_to(root / "nbxrt").as_posix(): sorted(said)
        for file in _sources(root)
        if file.parent.name != "compiled" and (said := names & _quoted(file))
    }

    assert len(names) > 400
    assert {file: said for file, said in naming.items() if file not in _NAMING} == {}
    assert sorted(naming) == sorted(_NAMING)


def test_every_variable_in_the_code_is_documented(root: Path) -> None:
    read = {name for file in _sources(root) for name in _variables(file.read_text("utf-8"))}

    documented = set(_variables((root / "docs" / "environment.md").read_text("utf-8")))

    assert read - documented == set()


def test_every_documented_variable_is_in_the_code(root: Path) -> None:
    rows = re.findall(r"^\| `(NBX\w+)` \|", (root / "docs" / "environment.md").read_text("utf-8"), re.MULTILINE)

    code = "".join(file.read_text("utf-8") for file in _sources(root))

    assert rows
    assert [name for name in rows if name not in code] == []
    assert {name for name in rows if not name.startswith("NBXRT_SIM_")} == set(environment.OWN)  # doctor knows them


def test_every_error_class_is_documented_by_its_reference(root: Path) -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.NbxrtError)}

    rows = dict(re.findall(r"^\| `([a-z-]+)` \| `(\w+)` \|", _page(root, "errors.md"), re.MULTILINE))

    assert rows == {kind.reference: kind.__name__ for kind in kinds}


def test_every_fault_of_a_file_is_documented_by_its_reference(root: Path) -> None:
    said = {word for file in (root / "nbxrt" / "catalogue").glob("*.py") for word in _references(file)}

    documented = set(re.findall(r"^### `([a-z0-9-]+)`", _page(root, "diagnostics.md"), re.MULTILINE))

    assert said - documented == set()


def test_every_search_step_and_verdict_is_documented(root: Path) -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", _page(root, "search.md"), re.MULTILINE))

    assert rows == {*search.STEPS, *_verdicts()}


def test_every_page_is_in_the_index(root: Path) -> None:
    pages = {file.name for file in (root / "docs").glob("*.md")} - {"README.md"}

    assert pages <= set(re.findall(r"[\w-]+\.md", _page(root, "README.md")))


def test_every_link_leads_somewhere(root: Path) -> None:
    pages = {file: _prose(file) for file in [*root.glob("*.md"), *(root / "docs").glob("*.md")]}
    links = [(file, link) for file, text in pages.items() for link in re.findall(r"\]\(([^)\s:]+)\)", text)]

    broken = [f"{file.name}: {link}" for file, link in links if not _leads_somewhere(file, link)]

    assert broken == []


def _code(page: Path) -> list[str]:
    """The blocks of Python of a page, in order."""
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def _prose(page: Path) -> str:
    """A page without its code."""
    return re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))


def _leads_somewhere(page: Path, link: str) -> bool:
    """Whether the file that a link names is there, and the heading in it."""
    name, _hash, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in _anchors(target))


def _anchors(page: Path) -> set[str]:
    """What links to the headings of a page are called."""
    headings = re.findall(r"(?m)^#+ (.*)$", _prose(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _page(root: Path, name: str) -> str:
    return (root / "docs" / name).read_text("utf-8")


def _functions(vendor: str) -> Iterator[str]:
    """The functions of a vendor's that its backend calls."""
    for _line, variants in descriptions.built_in(vendor)["operations"].values():
        for form, *_range, what, _results in variants:
            if form == "call":
                yield from what[0]
            elif form == "steps":
                yield from (symbol for symbols, _role in calls_in(what[2]) for symbol in symbols)


def _quoted(file: Path) -> set[str]:
    """The words that stand in quotes of their own in a file."""
    return set(re.findall(r"[\"'](\w+)[\"']", file.read_text("utf-8")))


def _sources(root: Path) -> Iterator[Path]:
    return (root / "nbxrt").rglob("*.py")


def _variables(text: str) -> Iterator[str]:
    """Names of variables of ours; a placeholder such as `NBXRT_<BACKEND>_<ROLE>` counts for itself."""
    yield from re.findall(r"\bNBX(?:RT)?(?:_[A-Z]+)+\b(?!_)", text)


def _references(file: Path) -> Iterator[str]:
    """What looks like the reference of a fault: words joined by hyphens that are values of their own in the code."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"^[a-z]+(?:-[a-z]+)+$", node.value)


def _verdicts() -> set[str]:
    """The verdicts that the docstring of a candidate lists."""
    assert search.Candidate.__doc__
    listed = search.Candidate.__doc__.partition("Verdicts:")[2]
    return set(re.findall(r"`(\w+)`", listed))
