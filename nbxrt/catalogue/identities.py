"""Whether what a file says of a library's vendor and origin holds together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.catalogue.diagnostics import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.subject import Subject


def check_contradictions(subject: Subject) -> Iterator[Diagnostic]:
    """Nothing is demanded of a library and forbidden to it."""
    for role, library in subject.section("libraries").items():
        rules = library.get("identity") or {}
        for demanded, forbidden in (("exports", "lacks"), ("linked_to", "not_linked_to")):
            for index, name in enumerate(rules.get(forbidden, ())):
                if name in rules.get(demanded, ()):
                    path = ("libraries", role, "identity", forbidden, index)
                    message = f"{quoted(name)} stands under `{demanded}` too"
                    yield subject.diagnostic(path, "contradicting-identity", message)


def check_probes(subject: Subject) -> Iterator[Diagnostic]:
    """A probe's answer is compared with a value of its kind."""
    for role, library in subject.section("libraries").items():
        probe = (library.get("identity") or {}).get("probe")
        if probe is not None and _kind_of_answer(probe) is not type(probe["equals"]):
            path = ("libraries", role, "identity", "probe", "equals")
            wanted = "a text" if _kind_of_answer(probe) is str else "an integer"
            yield subject.diagnostic(path, "wrong-answer-type", f"the probe answers with {wanted}")


def _kind_of_answer(probe: dict[str, Any]) -> type:
    cells = [argument for argument in probe.get("args", ()) if isinstance(argument, dict)]
    is_text = any("buffer" in each or each.get("out") == "text" for each in cells)
    return str if probe.get("returns") == "text" or is_text else int


def check_beside(subject: Subject) -> Iterator[Diagnostic]:
    """A library belongs with another one of the file, and a distribution that fits by major needs that other one."""
    libraries = subject.section("libraries")
    for role, library in libraries.items():
        other = library.get("beside")
        is_known = ("libraries", other) not in subject.broken  # or what it is cannot be told
        if other is not None and is_known and (other == role or "same_as" in libraries.get(other, {"same_as": ""})):
            message = f"the library `{role}` belongs with `{other}`, which is no other library of the file"
            yield subject.diagnostic(("libraries", role, "beside"), "unknown-role", message)
        for index, step in enumerate(library.get("search", ())):
            fits = step.get("distribution", "") if isinstance(step, dict) else ""
            if fits and other is None:
                path = ("libraries", role, "search", index, "distribution")
                message = "`distribution` says what fits the library that this one belongs with, and there is none"
                hint = f"say `beside: runtime` under `libraries.{role}`, or drop this key"
                yield subject.diagnostic(path, "missing-beside", message, hint=hint)


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (check_contradictions, check_probes, check_beside)
