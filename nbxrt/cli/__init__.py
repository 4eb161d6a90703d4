"""The command line, `nbxrt …`. Each command has a file of its own; click and rich are imported only here.

Data goes to standard output and talk to standard error. Exit codes: 0 fine, 1 findings, 2 misuse.
"""


def main() -> None:
    """Run the command line on this process's arguments, and exit."""
    from nbxrt.cli.app import run

    run()
