"""Methods that can also be called on the class: there they are those of the account in force."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")
else:
    P = R = None

    class Generic:
        """Nothing: the type variables are for checkers alone, and `typing` is slow to import."""

        def __class_getitem__(cls, _parameters: object) -> type:
            return cls


class classwide(Generic[P, R]):  # noqa: N801  # read as a decorator
    """A method: of the object that it is asked of, or of the account in force when it is asked of the class."""

    def __init__(self, function: "Callable[Concatenate[Any, P], R]") -> None:
        self._function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    def __get__(self, instance: "Any", owner: "Any") -> "Callable[P, R]":
        if instance is None:
            from nbxrt.memory import account

            bound: Callable[P, R] = getattr(account(), self.__name__)
            return bound
        return self._function.__get__(instance, owner)  # type: ignore[no-any-return]
