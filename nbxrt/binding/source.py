"""A generated function under construction: its lines by part, their globals, and its text once it is made."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from nbxrt.binding.binder import Binder
    from nbxrt.binding.library import Library


class Source:
    """A function under construction: its lines by part, and the globals that they use."""

    def __init__(self, binder: "Binder", operation: str, entry: "Mapping[str, Any] | None" = None) -> None:
        self.binder = binder
        self.operation = operation
        #: The operation as the contract has it, or what a part of a policy takes and gives.
        self.entry: Mapping[str, Any] = entry or binder.contract["operations"][operation]
        self.globals: dict[str, Any] = {}
        self.checks: list[str] = []  # conditions under which no argument needs a closer look
        self.checked: list[tuple[str, str | None, Any]] = []
        self.names: dict[str, str] = {}  # parameter: the expression that goes into the call
        self.before: list[str] = []  # lines between the checks and the call
        self.cells: list[Any] = []  # ctypes class of each cell of a slot
        self.call: list[str] = []  # expressions of the C arguments
        self.types: list[Any] = []  # their ctypes classes
        self.results: dict[str, str] = {}
        self.status: str = ""  # expression of a status that comes out of a parameter
        self.rows: tuple[str, str] | None = None

    def cell(self, kind: "Any") -> str:
        """A new cell of the slot: the number that its names `_c…` (cell) and `_a…` (address) end in."""
        self.cells.append(kind)
        return str(len(self.cells) - 1)


def starting_first(source: Source, library: "Library", name: str) -> None:
    """Put the first call that a library asks for in front of the global function of that name, until it was made.

    So it is made when a call comes to the library, after the arguments were checked, and not before.
    """
    if not library.needs_start:
        return
    function = source.globals[name]

    def start_first(*values: "Any") -> "Any":
        source.binder.failures.start(library, source.operation)
        source.globals[name] = function
        return function(*values)

    source.globals[name] = start_first


def compiled(source: Source, lines: "list[str]") -> "Callable[..., Any]":
    """The function of the lines: a `def` line, then its body without indentation."""
    operation = source.operation
    file = f"<nbxrt {source.binder.description['name']}.{operation}>"
    doc = f"    {_quoted(source.entry['says'])}"
    body = [f"    {line}" for line in lines[1:]] or ["    pass"]
    text = "\n".join([lines[0], doc, *body]) + "\n"
    _SOURCES[file] = text
    show_sources()
    exec(compile(text, file, "exec"), source.globals)  # noqa: S102  # our own text; values come by the globals
    function: Callable[..., Any] = source.globals[operation.replace(".", "_")]  # a part's has its policy before it
    return function


#: The text of every generated function by its file name.
_SOURCES: "dict[str, str]" = {}


def show_sources() -> None:
    """Give the generated sources to linecache, where tracebacks and debuggers look for them.

    Only where something has imported it already: it takes longer to import than a backend to open.
    """
    linecache = sys.modules.get("linecache")
    if linecache is not None:
        for file, text in _SOURCES.copy().items():  # another thread may be making a function
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


def source_of(function: "Callable[..., Any]") -> str:
    """The source of a generated function."""
    return _SOURCES[function.__code__.co_filename]


def _quoted(says: str) -> str:
    return '"""' + says.replace("\\", "\\\\").replace('"', '\\"') + '"""'
