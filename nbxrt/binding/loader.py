"""The system's loader: loading a file, what the process has mapped, and where the loader itself would look."""

import ctypes
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nbxrt.binding.machine import Machine

#: The cache of the loader of glibc.
CACHE = "/etc/ld.so.cache"
#: How the reason for a missing dependency ends; its name stands before.
NOT_FOUND = ", which the loader does not find"
#: The reason for a name that the loader knows no file for.
UNKNOWN = "unknown to the system's loader"
#: How the reason begins where there is a file, and no system of this processor takes it.
UNFIT = "is built for another processor"

_CACHE_MAGIC = b"glibc-ld.so.cache1.1"  # elf/dl-cache.h of glibc; the format before it may precede in the same file
_MODES = {"local": ctypes.RTLD_LOCAL, "global": ctypes.RTLD_GLOBAL}
_RTLD_DI_LINKMAP = 2
_GONE = b" (deleted)"  # what the kernel adds to the name of a file that is mapped and has no name any more

#: Folders that Windows searches for what a library loads later; by folder, and for as long as the process runs.
_dll_folders: "dict[str, object]" = {}


def load(path: "str | None", mode: str, machine: "Machine") -> "tuple[ctypes.CDLL | None, str]":
    """(the library, "") or (None, why not). None as path is the process itself."""
    if path is not None and not path.strip():
        return None, "empty name"
    if machine.system == "windows" and path and os.path.isabs(path):
        _add_dll_folder(os.path.dirname(path))
    try:
        return ctypes.CDLL(path, mode=_MODES[mode] | getattr(os, "RTLD_NOW", 0)), ""
    except OSError as error:
        return None, reason(path or "", str(error))
    except UnicodeDecodeError as error:  # of the loader's words, where the path in them is not UTF-8
        return None, reason(path or "", os.fsdecode(error.object))


def _add_dll_folder(folder: str) -> None:
    """Let Windows find what a library needs, now and when it loads it later, beside the library."""
    if folder not in _dll_folders:
        _dll_folders[folder] = os.add_dll_directory(folder)  # type: ignore[attr-defined,unused-ignore]


def reason(path: str, said: str) -> str:
    """Why the loader refused a path, in words that do not mislead; `said` is its own message.

    The first is the missing library, where one is missing: `needs NAME`, then NOT_FOUND.
    """
    for wording in (_said_by_glibc, _said_by_musl):
        missing = wording(said)
        if missing and os.path.basename(missing) != os.path.basename(path):
            return f"needs {missing}{NOT_FOUND}"
        if missing:
            return UNKNOWN
    if "failed to map segment" in said:
        return "cannot be mapped: is its file system mounted noexec?"
    if "[WinError 193]" in said or "incompatible architecture" in said:  # of Windows; of macOS
        return UNFIT
    if "or one of its dependencies" in said:
        return f"{os.path.basename(path)} cannot be loaded, or a library that it needs is missing"
    return said.removeprefix(path + ": ")


def is_unknown(why: str, machine: "Machine") -> bool:
    """Whether a reason says of a name that there is no such file, rather than what is wrong with it."""
    if machine.system == "linux":
        return why == UNKNOWN
    return not why.startswith(("needs ", UNFIT))


def _said_by_glibc(said: str) -> str:
    missing, found, _rest = said.partition(": cannot open shared object file: No such file")
    return missing if found else ""


def _said_by_musl(said: str) -> str:
    if not said.startswith("Error loading shared library "):
        return ""
    missing, found, _rest = said.removeprefix("Error loading shared library ").partition(": No such file")
    return missing if found else ""


def path_of(library: ctypes.CDLL) -> str:
    """The file that a loaded library came from, or an empty string."""
    handle = library._handle  # noqa: SLF001  # the only name ctypes has for it
    if sys.platform == "win32":
        buffer = ctypes.create_unicode_buffer(32768)
        length = ctypes.WinDLL("kernel32").GetModuleFileNameW(ctypes.c_void_p(handle), buffer, len(buffer))
        return buffer.value if length else ""
    try:
        dlinfo = ctypes.CDLL(None).dlinfo
    except AttributeError:  # macOS
        return ""
    dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    link_map = ctypes.c_void_p()
    if dlinfo(handle, _RTLD_DI_LINKMAP, ctypes.addressof(link_map)) or not link_map.value:
        return ""
    name = ctypes.cast(link_map.value + ctypes.sizeof(ctypes.c_void_p), ctypes.POINTER(ctypes.c_char_p))[0]
    return os.path.abspath(os.fsdecode(name)) if name else ""


def mapped(machine: "Machine") -> "list[str]":
    """Files of the libraries that this process has loaded, in no particular order."""
    if machine.system != _running_system():
        return []
    found = {"linux": _mapped_linux, "macos": _mapped_macos, "windows": _mapped_windows}[machine.system]()
    inside = os.path.join(machine.root, "")  # what lies outside of another root is not that machine's
    return [path for path in found if path.startswith(inside)] if machine.root else found


def _running_system() -> str:
    return {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")


def _mapped_linux() -> "list[str]":
    """Those with code in them: a file that somebody maps to read it is not loaded."""
    return list({path for path, _addresses, rights, _is_gone in _mappings() if b"x" in rights})


def _mappings() -> "Iterator[tuple[str, range, bytes, bool]]":
    """(file, addresses, rights, whether the file is gone since) of every mapping of a library on Linux."""
    try:
        with open("/proc/self/maps", "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return
    for line in lines:
        slash = line.find(b"/")
        if slash > 0 and b".so" in line:
            path = line[slash:].replace(b"\\012", b"\n")  # all that the kernel escapes
            addresses, rights = line.split(b" ", 2)[:2]
            first, end = (int(address, 16) for address in addresses.split(b"-"))
            yield os.fsdecode(path.removesuffix(_GONE)), range(first, end), rights, path.endswith(_GONE)


def kept_name(path: str) -> str:
    """The name by which the loader gives a loaded library whose file was deleted or replaced since; else empty.

    Opening that file again would fail, or load a second copy.
    """
    if sys.platform != "linux":
        return ""
    is_hidden = not os.path.lexists(path)  # as when its file system was unmounted, or another root is in force
    gone = [addresses for file, addresses, _rights, is_gone in _mappings() if (is_gone or is_hidden) and file == path]
    if not gone:
        return ""
    return next((name for name, inside in objects() if any(inside in addresses for addresses in gone)), "")


def objects() -> "list[tuple[str, int]]":
    """(name, an address inside) of everything that the loader of this process has loaded."""
    found: list[tuple[str, int]] = []

    def note(info: int, _size: int, _data: int) -> int:
        _bias, name, headers = (ctypes.c_void_p.from_address(info + 8 * each).value or 0 for each in range(3))
        if name and (text := ctypes.string_at(name)):
            found.append((os.fsdecode(text), headers))
        return 0

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    # The loader's list is locked meanwhile: giving up Python's own lock then could wait for ever.
    iterate = ctypes.PyDLL(None).dl_iterate_phdr
    iterate.argtypes, iterate.restype = [kind, ctypes.c_void_p], ctypes.c_int
    iterate(kind(note), None)
    return found


def _mapped_macos() -> "list[str]":
    system = ctypes.CDLL(None)
    system._dyld_get_image_name.restype = ctypes.c_char_p  # noqa: SLF001  # public API of dyld, for all its name
    images = range(system._dyld_image_count())  # noqa: SLF001
    return [os.fsdecode(system._dyld_get_image_name(index) or b"") for index in images]  # noqa: SLF001


def _mapped_windows() -> "list[str]":
    if sys.platform != "win32":
        return []
    kernel = ctypes.WinDLL("kernel32")
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    modules = (ctypes.c_void_p * 4096)()
    needed = ctypes.c_ulong()
    enumerate_modules = kernel.K32EnumProcessModules
    enumerate_modules.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p]
    size = ctypes.sizeof(modules)
    if not enumerate_modules(kernel.GetCurrentProcess(), modules, size, ctypes.addressof(needed)):
        return []
    buffer = ctypes.create_unicode_buffer(32768)
    loaded = modules[: needed.value // ctypes.sizeof(ctypes.c_void_p)]
    return [
        buffer.value for module in loaded if kernel.GetModuleFileNameW(ctypes.c_void_p(module), buffer, len(buffer))
    ]


def start_path(machine: "Machine") -> "list[str]":
    """The folders of LD_LIBRARY_PATH as the loader got them, without the empty parts that mean the working folder."""
    return [part for part in machine.started_with("LD_LIBRARY_PATH").replace(";", ":").split(":") if part]


def default_folders(machine: "Machine") -> "list[str]":
    """Folders that the loader of this system searches by itself."""
    triplet = f"{machine.processor}-linux-gnu"
    folders = [f"/lib/{triplet}", f"/usr/lib/{triplet}", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"]
    return [machine.under(folder) for folder in _folders_of_musl(machine) or folders]


def _folders_of_musl(machine: "Machine") -> "list[str]":
    """The folders that the loader of musl was told to search, one a line or between colons."""
    try:
        with open(machine.under(f"/etc/ld-musl-{machine.processor}.path"), encoding="utf-8") as file:
            return file.read().replace(":", "\n").split("\n")[:64]
    except (OSError, ValueError):
        return []


def places_of(
    machine: "Machine", name: str, cached_files: "Mapping[str, Sequence[str]] | None" = None
) -> "Iterator[str]":
    """The files that the loader tries for a name, in its order; the cache is read unless what it has is given."""
    yield from (os.path.join(place, name) for place in start_path(machine))
    yield from ((cached(machine, [name]) or {}) if cached_files is None else cached_files).get(name, ())
    yield from (os.path.join(place, name) for place in default_folders(machine))


def cached(machine: "Machine", names: "list[str]") -> "dict[str, list[str]] | None":
    """The paths that the loader's cache has for each name; None when there is no cache (NixOS, musl, slim images)."""
    try:
        with open(machine.under(CACHE), "rb") as file:
            data = file.read()
    except OSError:
        return None
    start = data.find(_CACHE_MAGIC)
    if start < 0:
        return None
    data = data[start:]
    found: dict[str, list[str]] = {}
    for name in names:
        if name.encode() + b"\0" in data:  # a key may be the end of its path: glibc keeps one string for both
            found[name] = [machine.under(path) for path in _entries(data, name.encode())]
    return found


def _entries(data: bytes, name: bytes) -> "list[str]":
    """Paths of a name in the cache: a header of 48 bytes, then entries of 24 with offsets of key and value.

    A cache that is cut off has what could be read of it.
    """
    paths: list[str] = []
    try:
        (count,) = struct.unpack_from("=I", data, 20)
        for index in range(count):
            key, value = struct.unpack_from("=II", data, 48 + 24 * index + 4)
            if data.startswith(name + b"\0", key):
                paths.append(os.fsdecode(data[value : data.index(b"\0", value)]))
    except (struct.error, ValueError):
        pass
    return paths
