"""The `nbxrt` command: its subcommands, loaded when they are asked for, and how a run ends."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import click

import nbxrt
from nbxrt.cli import console, problems, streams
from nbxrt.errors import NbxrtError, nearest

#: Subcommand to the module whose `command` it is; help lists them in this order.
COMMANDS = {
    "doctor": "nbxrt.cli.doctor.command",
    "list": "nbxrt.cli.list",
    "libraries": "nbxrt.cli.libraries",
    "topology": "nbxrt.cli.topology",
    "show": "nbxrt.cli.show",
    "new": "nbxrt.cli.new",
    "upgrade": "nbxrt.cli.upgrade",
    "explain": "nbxrt.cli.explain",
    "diff": "nbxrt.cli.diff",
    "validate": "nbxrt.cli.validate",
    "verify": "nbxrt.cli.verify",
    "simulate": "nbxrt.cli.simulate",
    "conform": "nbxrt.cli.conform",
    "compile": "nbxrt.cli.compile",
    "schema": "nbxrt.cli.schema",
    "memory": "nbxrt.cli.memory",
    "demo": "nbxrt.cli.demo.command",
}


class Commands(click.Group):
    """A group that imports only the subcommand that runs, and tells nbxrt's errors without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        close = "" if args[0] in COMMANDS else nearest(args[0], list(COMMANDS))
        if close:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close!r}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NbxrtError as error:
            problems.tell(error)
            ctx.exit(problems.exit_code(error))
        except click.FileError as error:
            error.show()
            ctx.exit(problems.MISUSE)  # click's own is 1, which says that something was found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(nbxrt.__version__, message="nbxrt %(version)s")
def commands() -> None:
    """Find, describe and try the device runtimes of this machine.

    Exit codes: 0 fine, 1 findings, 2 misuse. NO_COLOR turns colours off.
    """


def run(arguments: list[str] | None = None) -> None:
    """Run the command of the arguments, by default this process's own, and exit."""
    warnings.showwarning = _tell_warning
    streams.run(lambda: commands(arguments, prog_name="nbxrt"))


def _tell_warning(message: Warning | str, *_where: Any, **_more: Any) -> None:
    console.Writer(stderr=True).line(f"warning: {message}")
