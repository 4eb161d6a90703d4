"""What simulated devices answer to the calls by which a file tells GPUs and models of devices apart."""

from __future__ import annotations

import attrs


@attrs.frozen
class Probes:
    """The probes that one call answers: (model, how it is told, what is wanted); an empty model is that of all."""

    models: tuple[str, ...]
    wanted: list[tuple[str, str, int | str]] = attrs.field(factory=list)

    def add(self, model: str, how: str, wanted: int | str) -> None:
        """One probe more."""
        self.wanted.append((model, how, wanted))

    def answer(self) -> int | str | None:
        """The answer as a number or in C; None where no answer makes each device one of its own model."""
        by_model = [self._of(model) for model in self.models or ("",)]
        if not all(self._is_told(model, value) for model, value in zip(self.models, by_model, strict=False)):
            return None
        if len({*by_model}) == 1 and isinstance(by_model[0], int):
            return by_model[0]
        is_text = isinstance(by_model[0], str)
        values = ", ".join(f'"{value}"' if is_text else f"{value}ull" for value in by_model)
        return f"(({'const char *' if is_text else 'uint64_t'}[]){{ {values} }})[sim_model(p_device)]"

    def _of(self, model: str) -> int | str:
        mine = [wanted for of, _how, wanted in self.wanted if of in ("", model)]
        if any(how == "has" for _model, how, _wanted in self.wanted):
            return " ".join(map(str, mine))
        number = 0
        for wanted in mine:
            number |= int(wanted)
        return number

    def _is_told(self, model: str, value: int | str) -> bool:
        """Whether the answer makes a device one of the model, and of none that is asked for before."""
        before = self.models[: self.models.index(model)]
        return all(
            _holds(how, value, wanted) is (of in ("", model))
            for of, how, wanted in self.wanted
            if of in ("", model, *before)
        )


def _holds(how: str, value: int | str, wanted: int | str) -> bool:
    if how == "has":
        return wanted in str(value).split()
    return int(value) & int(wanted) == wanted if how == "bits" else value == wanted
