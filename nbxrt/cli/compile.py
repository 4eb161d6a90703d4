"""`nbxrt compile`: kernels of Triton's compiled ahead of time, a file for each target."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import click

from nbxrt.cli import files
from nbxrt.cli.console import Writer
from nbxrt.errors import NbxrtError


@click.command("compile")
@click.argument("kernel", metavar="MODULE:KERNEL")
@click.option("--signature", required=True, help="Types and constants, in order: `*fp32:16, *fp32:16, i32, 1024`.")
@click.option("--target", "targets", multiple=True, required=True, metavar="TARGET", help="cuda:90, hip:gfx942 …")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option("--num-warps", type=int, help="Warps of a block; the compiler's usual number when left out.")
@click.option("--num-stages", type=int, help="Stages of the pipeline.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="Any other option of the compiler.")
def command(
    kernel: str, signature: str, targets: tuple[str, ...], output: Path, num_warps: int | None,
    num_stages: int | None, options: tuple[str, ...],
) -> None:  # fmt: skip
    """Compile a kernel of Triton's ahead of time, with no device.

    A file is written for each target, and `nbxrt.load_kernel` reads it. MODULE is an importable module or a Python
    file. `*fp32:16` promises an address that is a multiple of 16.
    """
    function = _kernel(kernel)
    given = dict(map(_option, options))
    given |= {
        name: value for name, value in (("num_warps", num_warps), ("num_stages", num_stages)) if value is not None
    }
    from nbxrt.launch.ahead import compile as compiled

    writer = Writer(stderr=True)
    with files.writing(output):
        output.mkdir(parents=True, exist_ok=True)
    with click.progressbar(targets, label="compiling", file=sys.stderr, item_show_func=str) as bar:
        made = [(target, _compiled(compiled, function, signature, target, given)) for target in bar]
    for target, each in made:
        path = output / f"{each.name}.{target.replace(':', '-')}.kernel"
        with files.writing(path):
            each.save(path)
        writer.line(f"wrote {path}: {len(each.binary)} bytes of code")


def _compiled(compiled: Any, function: Any, signature: str, target: str, given: dict[str, Any]) -> Any:
    """One kernel for one target. What Triton's compiler says of it is said without its own way there."""
    try:
        return compiled(function, signature, target=target, **given)
    except (NbxrtError, click.ClickException):
        raise
    except Exception as error:
        raise click.ClickException(f"Triton does not compile it for {target}: {error}") from error


def _option(written: str) -> tuple[str, Any]:
    from nbxrt.launch.ahead import literal

    name, equals, value = written.partition("=")
    if not equals:
        raise click.UsageError(f"`--option {written}` is no NAME=VALUE")
    return name, literal(value)


def _kernel(written: str) -> Any:
    """The kernel of MODULE:KERNEL."""
    place, colon, name = written.rpartition(":")
    if not colon or not place or not name:
        raise click.UsageError(f"`{written}` is not MODULE:KERNEL, such as `package.kernels:add` or `kernels.py:add`")
    module = _module(place)
    found = getattr(module, name, None)
    if found is None:
        raise click.UsageError(f"{place} has no `{name}`")
    return found


def _module(place: str) -> Any:
    try:
        return _of_file(place) if place.endswith(".py") else _of_path(place)
    except Exception as error:
        raise click.UsageError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error


def _of_path(place: str) -> Any:
    sys.path.insert(0, "")
    return importlib.import_module(place)


def _of_file(place: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(place).stem, place)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
