"""The command: choose, move, and say in plain words what was done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nbxrt.binding.layout import as_tuple
from nbxrt.cli.console import Writer
from nbxrt.cli.demo import kernel, payload, transfer
from nbxrt.cli.demo.choice import Choice, choose
from nbxrt.cli.problems import FINDINGS, FINE

if TYPE_CHECKING:
    from nbxrt import Runtime
    from nbxrt.cli.demo.payload import Payload
    from nbxrt.cli.demo.transfer import Outcome

#: The operations that a run may use, in the order of their use.
USED = (
    "device_count", "get_device", "device_name", "mem_get_info", "pci_bus_id", "malloc", "malloc_host", "stream_create",
    "memset", "memcpy", "memcpy_async", "stream_sync", "sync", "stream_destroy", "free_host", "free",
)  # fmt: skip


@click.command("demo")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_context
def command(ctx: click.Context, file: Path | None) -> None:
    """Move a file to this machine's best device and back.

    The bytes are compared, and it says what was done. The bytes go by pageable and by pinned host memory, 64 MiB at a
    time; a smaller file is repeated to that size. Without FILE, a file of nbxrt itself is moved. Where Triton is
    installed, a kernel of it runs, interpreted where there is no GPU. Exits with 1 when bytes differ.
    """
    load = _payload(file)
    choice = choose()
    writer = Writer()
    _write_choice(writer, choice)
    repeated = f", repeated to {size(load.moved)}" if load.is_repeated else ""
    writer.row("file", f"{load.shown}, {size(load.nbytes)}{repeated}")
    outcome = transfer.move(choice.runtime, load)
    _write_legs(writer, outcome)
    said, is_right = kernel.tried(choice.runtime)
    writer.row("kernel", said, style="" if is_right else "bold red", word="NOT right")
    _write_verdict(writer, outcome, choice.runtime)
    ctx.exit(FINE if outcome.is_good and is_right else FINDINGS)


def _payload(file: Path | None) -> Payload:
    try:
        return payload.of_file(file) if file is not None else payload.own_file()
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from error


def _write_choice(writer: Writer, choice: Choice) -> None:
    runtime = choice.runtime
    library = runtime.library()
    writer.line("nbxrt demo: a file goes to a device and back", "bold")
    if runtime.kind == "cpu":
        writer.row("no GPU", "no GPU is used: the bytes move inside host memory", style="bold", word="no GPU is used")
    for number, (name, why) in enumerate(choice.not_used):
        writer.row("" if number else "not used", f"{name}: {why}")
    writer.row("backend", f"{runtime.name} ({runtime.title})", style="bold", word=runtime.name)
    writer.row("why", choice.why)
    writer.row("described", f"by {runtime.description['file']}")
    step = next((candidate.step for candidate in library.candidates if candidate.verdict == "chosen"), "")
    version = f", version {as_tuple(library.version)}" if library.version else ""
    writer.row("library", f"{library.path}{version}" + (f", found by the step `{step}`" if step else ""))
    writer.row("device", _device(runtime))


def _device(runtime: Runtime) -> str:
    device = runtime.get_device()
    said = [f"{device} of {runtime.device_count()}"]
    if runtime.supports("device_name"):
        said.append(runtime.device_name(device))
    if runtime.supports("mem_get_info"):
        free, total = runtime.mem_get_info()
        said.append(f"{size(free)} of {size(total)} free")
    if runtime.supports("pci_bus_id"):
        said.append(f"PCI {runtime.pci_bus_id(device)}")
    return ", ".join(said)


def _write_legs(writer: Writer, outcome: Outcome) -> None:
    writer.heading(f"  {'way':<20}{'bytes':>10}{'time':>12}{'bandwidth':>14}")
    for leg in (leg for route in outcome.routes for leg in (route.there, route.back)):
        rate = f"{leg.nbytes / leg.seconds / 1e9:.1f} GB/s" if leg.seconds else "-"
        writer.line(f"  {leg.name:<20}{size(leg.nbytes):>10}{leg.seconds * 1e3:>9.2f} ms{rate:>14}")
    writer.line()


def _write_verdict(writer: Writer, outcome: Outcome, runtime: Runtime) -> None:
    writer.row("SHA-256", outcome.sent)
    for route in outcome.routes:
        same = outcome.is_same(route)
        said = "the same SHA-256 after the round trip" if same else f"differs\n{route.digest.hexdigest()}"
        writer.row(route.name, said, style="" if same else "bold red", word="differs")
    if not any(route.name == "pinned" for route in outcome.routes):
        writer.row("pinned", f"not tried: {runtime.title} offers no pinned memory")
    writer.row("used", ", ".join(name for name in USED if name in vars(runtime)))
    writer.line()
    if outcome.is_good:
        moved = size(outcome.routes[0].there.nbytes)
        writer.line(f"{moved} went there and back by {runtime.name}, and every byte is the same.", "green")
    else:
        writer.line(f"Bytes differ after the round trip by {runtime.name}.", "bold red")


def size(nbytes: float) -> str:
    """A number of bytes for people, in powers of 1024."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while nbytes >= 1024 and len(units) > 1:
        nbytes /= 1024
        units.pop(0)
    return f"{nbytes:.0f} {units[0]}" if nbytes == int(nbytes) else f"{nbytes:.1f} {units[0]}"
