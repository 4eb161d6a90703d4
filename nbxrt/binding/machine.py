"""The machine as a search or a detection sees it: system, processor, environment, root folder, Python's paths.

Everything here is an argument elsewhere, so that a test can describe another machine. `NBXRT_SYSROOT` puts a folder in
front of every absolute path that nbxrt looks at by itself.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Machine:
    """What is known of a machine; the defaults are this process's own."""

    __slots__ = ("environ", "paths", "prefix", "processor", "root", "start_environ", "system")

    def __init__(
        self,
        system: "str | None" = None,
        processor: "str | None" = None,
        environ: "Mapping[str, str] | None" = None,
        start_environ: "Mapping[str, str] | None" = None,
        root: "str | None" = None,
        paths: "Sequence[str] | None" = None,
        prefix: "str | None" = None,
    ) -> None:
        self.system = system or _system()
        self.processor = processor or _processor()
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        #: The environment that the system's loader has seen; None when it is not known.
        self.start_environ = start_environ if environ is None or start_environ is not None else environ
        self.root = self.environ.get("NBXRT_SYSROOT", "") if root is None else root
        self.paths = sys.path if paths is None else paths
        self.prefix = prefix or sys.prefix

    def under(self, path: str) -> str:
        """The absolute path, below the root folder."""
        return self.root + path if self.root else path

    def entries(self) -> "list[str]":
        """The entries of Python's path in their order, each once; what is no text is passed over, as Python does."""
        return list(dict.fromkeys(each for each in self.paths if isinstance(each, str)))

    def variable(self, name: str) -> str:
        """A variable's value without surrounding space; empty means unset."""
        return self.environ.get(name, "").strip()

    def started_with(self, name: str) -> str:
        """The value that a variable had when the process started: what the system's loader goes by."""
        if self.start_environ is None:
            self.start_environ = _start_environ() if self.system == "linux" else self.environ
        return self.start_environ.get(name, "")


def absolute(path: str) -> str:
    """The path as it stays right when the working folder changes; one that is not there where that folder is gone."""
    try:
        return os.path.abspath(path)
    except OSError:
        return os.path.join(os.sep, "(the working folder is gone)", path)


def realpath(path: str) -> str:
    """The absolute path without links."""
    return os.path.realpath(path if os.path.isabs(path) else absolute(path))


def _system() -> str:
    if sys.platform == "win32":
        return "windows"
    return "macos" if sys.platform == "darwin" else "linux"


def _processor() -> str:
    if sys.platform == "win32":
        return {"AMD64": "x86_64", "ARM64": "aarch64"}.get(os.environ.get("PROCESSOR_ARCHITECTURE", ""), "x86")
    machine = os.uname().machine
    return {"arm64": "aarch64", "amd64": "x86_64", "i686": "i386", "armv7l": "arm"}.get(machine, machine)


def _start_environ() -> "dict[str, str]":
    """The environment at exec, from the kernel: os.environ may have been changed since."""
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = os.fsdecode(file.read()).split("\0")
    except OSError:
        return dict(os.environ)
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
