"""docs/adding-a-vendor.md, followed literally by somebody who has only the template."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

import nbxrt
from copies import run
from nbxrt import descriptions, verifying
from nbxrt.simulation.stepping import stepped

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.checkout,
    pytest.mark.needs("cc"),
    pytest.mark.needs("cxx"),
    pytest.mark.skipif(sys.platform != "linux", reason="the vendor of the page has a runtime for Linux only"),
]


def _commands(page: str) -> list[str]:
    """The lines that the page tells to type."""
    blocks = re.findall(r"(?ms)^```\n(.*?)^```", page)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def shell(root: Path, tmp_path: Path) -> Path:
    """A folder with the template, and `nbxrt` and `pip` of an environment of the newcomer's own on the path."""
    shutil.copytree(root / "examples" / "nbxrt-backend-template", tmp_path / "nbxrt-backend-template")
    programs = tmp_path / "programs"
    programs.mkdir()
    site = tmp_path / "site"
    offline = "--no-deps --no-build-isolation"  # what it needs is here already
    pip = f'"{sys.executable}" -m pip --quiet --disable-pip-version-check install {offline} --target "{site}"'
    for name, command in {
        "nbxrt": f'exec "{sys.executable}" -m nbxrt "$@"',
        "pip": f'shift; exec {pip} "$@"',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{command}\n", "utf-8")
        (programs / name).chmod(0o755)
    return tmp_path


def _typed(shell: Path, root: Path, commands: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """What a shell does with the commands in a folder; the first that fails ends it."""
    environ = {
        **os.environ,
        "PATH": f"{shell / 'programs'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(shell / "site"), str(root)]),
    }
    script = "set -e\n" + "\n".join(commands)
    return subprocess.run(["sh", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.tier("all")
def test_every_step_of_the_page_works_and_the_backend_is_there_in_the_end(root: Path, shell: Path) -> None:
    commands = _commands((root / "docs" / "adding-a-vendor.md").read_text("utf-8"))

    done = _typed(shell, root, commands, shell)

    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stdout + done.stderr
    assert len(commands) == 9
    assert " 0 wrong, 0 unverified" in done.stdout
    assert "skipped, 0 wrong" in done.stdout
    assert re.search(r"(?m)^acme +Acme accelerators: gpu on linux", done.stdout)


@pytest.mark.tier("all")
def test_the_continuous_integration_of_the_template_passes(root: Path, shell: Path) -> None:
    template = shell / "nbxrt-backend-template"
    workflow = yaml.safe_load((template / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    commands = [step["run"] for step in workflow["jobs"]["backend"]["steps"] if "run" in step]

    done = _typed(shell, root, commands, template)

    assert done.returncode == 0, done.stdout + done.stderr
    assert len(commands) == 5
    assert 'failures="0"' in (template / "conform.xml").read_text("utf-8")


def test_each_row_of_the_page_says_in_the_file_what_its_declaration_says(root: Path, tmp_path: Path) -> None:
    page = (root / "docs" / "adding-a-vendor.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| `(\w+ [^`]*\))`.*? \| `(\w+: \{call: .*?\})`[ ;]", page)
    template = root / "examples" / "nbxrt-backend-template"
    data = yaml.safe_load((template / "src/nbxrt_acme/backends/acme.yaml").read_text("utf-8"))
    for _declared, stated in rows:
        data["operations"] |= yaml.safe_load(stated)
    data["structs"] = {"key64": {"bytes": 64}}
    (tmp_path / "acme.yaml").write_text(yaml.safe_dump(data), "utf-8")
    declared = "".join(f"{declaration};\n" for declaration, _stated in rows)
    (tmp_path / "more.h").write_text(
        f"#include <stdint.h>\ntypedef struct {{ char b[64]; }} key64;\n{declared}", "utf-8"
    )

    result = verifying.verify(tmp_path / "acme.yaml", headers=[template / "acme_runtime.h", tmp_path / "more.h"])

    assert len(rows) == 7
    assert [(row.subject, row.faults) for row in result.faults] == []
    assert result.ok


def test_the_file_of_the_template_has_no_fault(root: Path, tmp_path: Path) -> None:
    backends = root / "examples" / "nbxrt-backend-template" / "src" / "nbxrt_acme" / "backends"

    run(sys.executable, "-m", "nbxrt", "validate", backends, cwd=tmp_path, PYTHONPATH=str(root))


@pytest.fixture
def objects(root: Path, tmp_path: Path) -> Path:
    """The page's file for an API of objects."""
    page = (root / "docs" / "adding-a-vendor.md").read_text("utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "omega.yaml"
    file.write_text(example, "utf-8")
    return file


def test_the_api_of_objects_on_the_page_is_right_and_what_its_functions_do_is_told(objects: Path) -> None:
    told = {(each.symbols[0], each.operation) for each in stepped(descriptions.load(objects), descriptions.contract())}

    assert nbxrt.validate(objects) == ()
    assert {("omBufNew", "buffer_create"), ("omContents", "buffer_contents"), ("omBufEnd", "memory_free")} <= told


@pytest.mark.tier("all")
def test_the_api_of_objects_on_the_page_works_in_simulation(root: Path, shell: Path, objects: Path) -> None:
    commands = [f"nbxrt simulate {objects.name} -o simulated", f"nbxrt conform {objects.name} --library simulated"]

    done = _typed(shell, root, commands, objects.parent)

    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 skipped, 0 wrong" in done.stdout
