"""Compiling a kernel of Triton's ahead of time: for any target, on any machine, with no device and no torch."""

from nbxrt import errors
from nbxrt.launch import checking, targets, versions
from nbxrt.launch.saved import CompiledKernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: What a launch needs of a kernel's metadata.
_KEPT = (
    "name", "shared", "num_warps", "num_ctas", "warp_size", "global_scratch_size", "global_scratch_align",
    "profile_scratch_size", "profile_scratch_align", "launch_cooperative_grid", "launch_pdl",
)  # fmt: skip

#: Elements that memory has and no argument is.
_SMALL = ("fp8e4nv", "fp8e4b8", "fp8e4b15", "fp8e5", "fp8e5b16")


def compile(  # noqa: A001  # the verb of this field, as Triton has it
    kernel: "Any", signature: "Mapping[str, Any] | str", *, target: "Any", **options: "Any"
) -> CompiledKernel:
    """Compile a `@triton.jit` kernel for a target such as `cuda:90` or `hip:gfx942`.

    `signature` maps every parameter to its type (`*fp32`, `i32`; `*fp32:16` and `i32:16` promise multiples of 16) or to
    the value that it always has; a text has the same separated by commas, in order. `options` are Triton's:
    `num_warps`, `num_stages` and so on.

    Raises: CapabilityError without Triton, or where it does not know the target; UntestedVersionError;
    ArgumentTypeError, ArgumentValueError naming a parameter, type or option; what Triton's compiler raises.
    """
    from nbxrt.launch.installing import imported_triton

    triton = imported_triton()
    versions.facts_of(triton.__version__)
    from triton.compiler import ASTSource

    if not hasattr(kernel, "arg_names") or not hasattr(kernel, "params"):
        raise errors.ArgumentTypeError(
            f"a kernel is a function with `@triton.jit`, not {type(kernel).__name__}",
            hint="unset TRITON_INTERPRET before `import triton`" if hasattr(kernel, "rewriter") else "",
            parameter="kernel",
        )
    kinds, constants = _taken_apart(kernel, signature)
    backend, device = _backend(target)
    parsed = checking.options(backend, device.backend, options)
    source = ASTSource(kernel, _types(kernel, kinds), _by_place(kernel, constants), _promises(kernel, kinds))
    compiled = triton.compile(source, target=device, options=parsed.__dict__)
    return CompiledKernel(_facts(compiled, kinds, constants, device, triton.__version__), compiled.kernel)


def _taken_apart(kernel: "Any", signature: "Mapping[str, Any] | str") -> "tuple[dict[str, str], dict[str, Any]]":
    """Types and constants by name, in the kernel's order. Raises: ArgumentTypeError, ArgumentValueError."""
    given = _of_text(kernel, signature) if isinstance(signature, str) else dict(signature)
    for name in given:
        if name not in kernel.arg_names:
            close = errors.nearest(name, kernel.arg_names)
            hint = f"did you mean `{close}`?" if close else ""
            raise errors.ArgumentValueError(f"`{kernel.__name__}` has no parameter `{name}`", hint=hint, parameter=name)
    kinds, constants = {}, {}
    for parameter in kernel.params:
        name = parameter.name
        if name not in given and not parameter.has_default:
            raise errors.ArgumentValueError(f"the signature of `{kernel.__name__}` lacks `{name}`", parameter=name)
        value = given.get(name, parameter.default)
        if isinstance(value, str) and not parameter.is_constexpr:
            kinds[name] = _checked(kernel, name, value)
        else:
            constants[name] = value
    return kinds, constants


def _of_text(kernel: "Any", text: str) -> "dict[str, Any]":
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > len(kernel.arg_names):
        raise errors.ArgumentValueError(
            f"`{kernel.__name__}` has {len(kernel.arg_names)} parameters, and the signature {len(parts)}", value=text
        )
    return {name: literal(part) for name, part in zip(kernel.arg_names, parts, strict=False)}


def literal(text: str) -> "Any":
    """A constant's value, or a type as it is."""
    words: dict[str, Any] = {"True": True, "False": False, "None": None}
    if text in words:
        return words[text]
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _checked(kernel: "Any", name: str, kind: str) -> str:
    from nbxrt.launch.packing import format_of

    bare, colon, divisor = kind.replace(" ", "").partition(":")
    element = bare.lstrip("*")
    try:
        format_of(bare if element in _SMALL else element)
    except errors.ArgumentTypeError as error:
        message = f"the parameter `{name}` of `{kernel.__name__}`: {error.message}"
        raise errors.ArgumentValueError(message, hint=error.hint, parameter=name, value=kind) from None
    if colon and divisor != "16":
        raise errors.ArgumentValueError(
            f"the parameter `{name}` of `{kernel.__name__}` can promise multiples of 16, not of `{divisor}`",
            hint=f"a constant is its value: `{{{name!r}: 1}}`",
            parameter=name,
            value=kind,
        )
    return bare + colon + divisor


def _types(kernel: "Any", kinds: "dict[str, str]") -> "dict[str, str]":
    return {name: kinds[name].partition(":")[0] if name in kinds else "constexpr" for name in kernel.arg_names}


def _by_place(kernel: "Any", constants: "dict[str, Any]") -> "dict[tuple[int], Any]":
    return {(kernel.arg_names.index(name),): value for name, value in constants.items()}


def _promises(kernel: "Any", kinds: "dict[str, str]") -> "dict[tuple[int], list[list[Any]]]":
    places = kernel.arg_names.index
    return {(places(name),): [["tt.divisibility", 16]] for name, kind in kinds.items() if ":" in kind}


def _backend(target: "Any") -> "tuple[Any, Any]":
    """Triton's compiler for a target, and the target as Triton has it. Raises: CapabilityError."""
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget

    name, arch, warp = targets.parsed(target)
    asked = GPUTarget(name, arch, warp or 32)
    compilers = [each.compiler for each in backends.values() if each.compiler.supports_target(asked)]
    if not compilers:
        raise errors.CapabilityError(
            f"the installed Triton does not compile for `{name}`: it has the backends {', '.join(backends)}",
            hint="targets are written as `cuda:90` or `hip:gfx942`",
        )
    if warp is None:  # the compiler knows it by the architecture
        try:
            usual = getattr(compilers[0](asked).parse_options({}), "warp_size", asked.warp_size)
        except (AssertionError, ValueError, TypeError, KeyError) as error:
            why = f": {error}" if str(error) else ""
            raise errors.ArgumentValueError(
                f"the compiler for `{name}` does not know the architecture `{arch}`{why}",
                hint="targets are written as `cuda:90` or `hip:gfx942`",
                parameter="target",
                value=target,
            ) from error
        asked = GPUTarget(name, arch, usual)
    return compilers[0](asked), asked


def _facts(
    compiled: "Any", kinds: "dict[str, str]", constants: "dict[str, Any]", device: "Any", version: str
) -> "dict[str, Any]":
    metadata = {name: getattr(compiled.metadata, name) for name in _KEPT if hasattr(compiled.metadata, name)}
    metadata.setdefault("warp_size", device.warp_size)
    return {
        "name": compiled.metadata.name,
        "target": f"{device.backend}:{device.arch}",
        "triton": version,
        "signature": [[name, kind] for name, kind in kinds.items()],  # the order counts
        "constants": {name: _plain(value) for name, value in constants.items()},
        "metadata": metadata,
    }


def _plain(value: "Any") -> "Any":
    """A constant as JSON has it; others are told by their text, which is all that a launch needs of them."""
    value = getattr(value, "value", value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
