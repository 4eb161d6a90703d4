"""Whether a library's search can find it: no step and no name stands behind one that always comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.catalogue.diagnostics import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Path
    from nbxrt.catalogue.subject import Subject


def check_steps(subject: Subject) -> Iterator[Diagnostic]:
    """Every step of a search can be reached, and looks somewhere new."""
    for role, library in subject.section("libraries").items():
        path = ("libraries", role, "search")
        steps = library.get("search", [])
        for index, step in enumerate(steps):
            earlier = next((each for each in range(index) if _hides(subject, steps[each], step)), None)
            if earlier is not None:
                message = f"this step is never reached: {_reason(steps[earlier], step)}"
                first = subject.related((*path, earlier), "the earlier one is")
                yield subject.diagnostic((*path, index), "unreachable-step", message, related=(first,))


def _hides(subject: Subject, earlier: Any, step: Any) -> bool:
    """Whether a step leaves nothing to a later one: the same again, or any after the process's own symbols.

    A process of Windows offers no symbols, so there the search goes on.
    """
    platforms = subject.value("platforms") or ("windows",)  # where they are not known, the search may go on
    return bool(earlier == step or (earlier == "process" and "windows" not in platforms))


def _reason(earlier: Any, step: Any) -> str:
    return "an earlier one is the same" if earlier == step else "`process` always finds the process itself"


def check_file_names(subject: Subject) -> Iterator[Diagnostic]:
    """A file name stands once: the version that is found first would hide the other."""
    for role, library in subject.section("libraries").items():
        seen: dict[tuple[str, str], Path] = {}
        for index, name in enumerate(library.get("names", ())):
            for platform, file in name.items():
                path = ("libraries", role, "names", index, platform)
                first = seen.setdefault((platform, str(file)), path)
                if platform != "major" and first != path:
                    message = f"the file name {quoted(file)} stands in an earlier name for `{platform}` already"
                    earlier = subject.related(first, "the earlier one is")
                    yield subject.diagnostic(path, "unreachable-name", message, related=(earlier,))


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (check_steps, check_file_names)
