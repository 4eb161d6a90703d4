"""What kind of machine this is: system, kernel, distribution, container, WSL, and the Python that runs."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING, Any

import nbxrt

if TYPE_CHECKING:
    from nbxrt.binding.machine import Machine

# Files and variables by which containers show themselves, and words in the control group of process 1.
_CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv", "/.singularity.d", "/run/systemd/container", "/.flatpak-info")
_CONTAINER_VARIABLES = ("KUBERNETES_SERVICE_HOST", "APPTAINER_NAME", "SINGULARITY_NAME", "container")
_CONTAINER_GROUPS = ("docker", "kubepods", "containerd", "libpod", "lxc")

_WSL_FILES = ("/proc/sys/fs/binfmt_misc/WSLInterop", "/dev/dxg")
_WSL_VARIABLES = ("WSL_DISTRO_NAME", "WSL_INTEROP")


def described(machine: Machine) -> dict[str, Any]:
    """The facts of the machine; `container` and `wsl` say how it is known, and are empty when it is not one."""
    return {
        "system": machine.system,
        "kernel": f"{platform.system()} {platform.release()}",
        "processor": machine.processor,
        "distribution": distribution(machine),
        "libc": _libc(),
        "container": container(machine),
        "wsl": wsl(machine),
        "root": machine.root,
    }


def python() -> dict[str, Any]:
    """The Python that runs, and the nbxrt that it found."""
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable or "",
        "environment": _environment(),
        "nbxrt": nbxrt.__version__,
        "nbxrt_path": os.path.dirname(nbxrt.__file__),
    }


def distribution(machine: Machine) -> str:
    """The name that the system gives itself."""
    if machine.system == "macos":
        return f"macOS {platform.mac_ver()[0]}"
    if machine.system == "windows":
        return f"Windows {platform.win32_ver()[1]}"
    for line in _read(machine, "/etc/os-release").splitlines():
        key, _equals, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip("\"' ")
    return ""


def container(machine: Machine) -> str:
    """How it is known that this is a container; empty when nothing says so."""
    for file in _CONTAINER_FILES:
        if os.path.exists(machine.under(file)):
            return f"{file} is there"
    for variable in _CONTAINER_VARIABLES:
        if machine.variable(variable):
            return f"{variable} is set"
    groups = _read(machine, "/proc/1/cgroup")
    word = next((word for word in _CONTAINER_GROUPS if word in groups), "")
    return f"the control group of process 1 names {word}" if word else ""


def wsl(machine: Machine) -> str:
    """How it is known that this is Linux under Windows; empty when nothing says so."""
    if machine.system != "linux":
        return ""
    release = _read(machine, "/proc/sys/kernel/osrelease").strip()
    if "wsl" in release.lower():
        return f"the kernel is {release}"
    for file in _WSL_FILES:
        if os.path.exists(machine.under(file)):
            return f"{file} is there"
    return next((f"{variable} is set" for variable in _WSL_VARIABLES if machine.variable(variable)), "")


def _libc() -> str:
    if sys.platform == "win32":
        return ""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # macOS, musl
        return ""


def _environment() -> str:
    if sys.prefix != sys.base_prefix:
        return f"virtual environment {sys.prefix}"
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        return f"conda environment {sys.prefix}"
    return ""


def _read(machine: Machine, path: str) -> str:
    try:
        with open(machine.under(path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
