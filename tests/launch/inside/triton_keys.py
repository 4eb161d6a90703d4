"""Equal keys mean one specialisation of Triton's, over many random arguments; G09."""

from __future__ import annotations

import random
from collections import namedtuple

import kernels
import pytest
import triton.language as tl
from arrays import Foreign, array
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.jit import create_function_from_signature

import nbxrt
from nbxrt.launch import direct, finding, keys
from nbxrt.objects.array import DeviceArray
from nbxrt.objects.memory import Memory

PAIR = namedtuple("PAIR", "first second")
EDGES = [0, 1, 2, 15, 16, 17, -1, -16, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]
DTYPES = ["float32", "float16", "bfloat16", "int32", "int64", "int8"]
TARGETS = {"cuda": GPUTarget("cuda", 90, 32), "hip": GPUTarget("hip", "gfx942", 64)}


class Values:
    """Random arguments of every kind that a kernel takes."""

    def __init__(self, seed: int, runtime) -> None:
        self.runtime = runtime
        self.random = random.Random(seed)
        self.kinds = (
            self.edge, self.small, self.wide, self.array, self.array, self.foreign,
            lambda: self.random.choice([True, False]), lambda: self.random.choice([0.0, 1.0, -2.5, float("inf")]),
            lambda: None, self.tuple, self.pair, lambda: tl.constexpr(self.random.choice([1, 2, True, 1.0])),
        )  # fmt: skip

    def edge(self):
        return self.random.choice(EDGES)

    def small(self):
        return self.random.randrange(-64, 64)

    def wide(self):
        return self.random.randrange(-(2**63), 2**64)

    def array(self):
        address = self.random.randrange(1, 2**40) * self.random.choice([1, 4, 16, 16])
        nbytes = self.random.choice([64, 2**31 - 1, 2**31, 2**34])
        device = nbxrt.Device(self.random.randrange(2), runtime=self.runtime)
        memory = Memory(device, address, nbytes)
        return DeviceArray(memory, address, (8,), (4,), nbxrt.dtype(self.random.choice(DTYPES)))

    def foreign(self):
        return Foreign(self.random.randrange(1, 2**20) * self.random.choice([1, 16]), self.random.choice(DTYPES))

    def tuple(self):
        return tuple(self.one() for _each in range(self.random.randrange(3)))

    def pair(self):
        return PAIR(self.one(), self.small())

    def one(self):
        return self.random.choice(self.kinds)()


def _frozen(value):
    """A specialisation with what Triton's own comparison takes for equal told apart by its class."""
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, *map(_frozen, value))
    if isinstance(value, tl.constexpr):
        return ("constexpr", _frozen(value.value))
    return (type(value).__name__, value)


@pytest.mark.parametrize("target", TARGETS)
def test_arguments_with_one_key_have_one_specialisation(target, monkeypatch, simulate):
    _simulation, runtime = simulate()
    monkeypatch.setenv("AMDGCN_USE_BUFFER_OPS", "1")
    backend = make_backend(TARGETS[target])
    jit = kernels.add
    bind = create_function_from_signature(jit.signature, jit.params, backend)
    values, found = Values(1, runtime), {}

    for _each in range(10_000):
        given = [values.one() for _parameter in range(4)]
        key = tuple(map(keys.of, given))
        specialised = _frozen(bind(*given, BLOCK=16)[1])
        assert found.setdefault(key, specialised) == specialised, (key, given)

    assert len(found) > 1000


#: Equal, and yet not the same.
TWINS = {0: (0, False, 0.0, -0.0), 1: (1, True, 1.0), 16: (16, 16.0)}


class Counted:
    """What stands for a compiled kernel: it answers with its key, and remembers for which values it was kept."""

    def __init__(self, key, plan) -> None:
        self.key, self.plan = key, plan

    def launch(self, *_given):
        return self.key

    def kept(self, _values, _grid):
        return self.plan.passed_on(self.launch)


@pytest.mark.parametrize("has_plan", [False, True])
def test_a_generated_function_finds_by_values_what_it_finds_by_keys(has_plan, simulate):
    _simulation, runtime = simulate()
    values = Values(2, runtime)
    parameters = list(kernels.add.signature.parameters.values())
    names = [parameter.name for parameter in parameters]
    found = 0

    for _each in range(100):
        first = [values.random.choice([values.one(), 0, 1]) for _name in names[:4]] + [16]
        roles = {name: direct.role(value, name == "BLOCK") for name, value in zip(names, first, strict=True)}
        plan = direct.Plan(roles, ["grid", b"", "stream"]) if has_plan and all(roles.values()) else None
        table = finding.Table()

        parts, missed = finding.parts(dict(zip(names, first, strict=True)), {"BLOCK"}), []

        def miss(_grid, given, _options, entries=table.entries, plan=plan, parts=parts, missed=missed):
            missed.append(given)
            key = (*map(keys.of, given[:4]), keys.constant(given[4]))
            if len(parts) > 5 or not any(isinstance(value, DeviceArray) for value in given[:4]):
                key = (*key, 0)
            return entries.setdefault(key, Counted(key, plan)).key

        sites = [finding.Site(grid, finding.nothing(parts, plan)) for grid in range(2)]
        options = dict.fromkeys(("enter", "exit", "hooks", "runtime", "compilation"))
        launch = finding.finder("add", parameters, parts, plan, (), {
            **{f"_nbx_{name}": value for name, value in options.items()},
            "_nbx_key": keys.of, "_nbx_table": table, "_nbx_variant": None,
            "_nbx_miss": miss, "_nbx_ask_device": lambda: 0,
        })  # fmt: skip
        some = [first]
        for _other in range(20):  # like one that was, but for one argument: equal to it where it can be, or any
            given, at = [*values.random.choice(some)], values.random.randrange(5)
            twins = TWINS.get(given[at], ()) if isinstance(given[at], (int, float)) else ()
            given[at] = values.random.choice([*twins, values.one() if at < 4 else 1])
            some.append(given)
        for given in values.random.choices(some, k=100):
            key = miss(None, given, {}, {})
            site = values.random.choice(sites)
            for new in [each for each in given if isinstance(each, DeviceArray) and values.random.random() < 0.5]:
                new.launch_key = None  # as if it was never launched
            assert launch(site, *given)[: len(key)] == key, given
            missed.clear()
            assert launch(site, *given)[: len(key)] == key, given  # as at the last launch
            assert not missed or list(map(type, given)) != list(map(type, first)), given
            found += len(table.seen) > 0

    assert found > 1000


@pytest.mark.parametrize("target", TARGETS)
def test_a_launch_with_new_arrays_finds_what_triton_would_compile_for_them(target, monkeypatch, simulate):
    _simulation, runtime = simulate(target)
    monkeypatch.setenv("AMDGCN_USE_BUFFER_OPS", "1")
    backend, jit, values = make_backend(TARGETS[target]), kernels.add, Values(3, runtime)
    bind = create_function_from_signature(jit.signature, jit.params, backend)
    found = {}

    for _each in range(3000):
        given = [values.array() for _parameter in range(3)]
        assert keys.give(*given)
        key = tuple(array.launch_key for array in given)
        specialised = _frozen(bind(*given, 5, BLOCK=16)[1])
        devices = [array.device for array in given]
        assert found.setdefault(key, (specialised, devices)) == (specialised, devices), (key, given)
        assert key == tuple(map(keys.of, given))

    assert len(found) > 100


@pytest.mark.parametrize("value", [*EDGES, True, 1.0, None, tl.constexpr(3)], ids=str)
def test_generated_keys_are_those_of_the_long_way(value):
    names = {"n": value, "integer": keys.integer, "key": keys.of, "type": type, "int": int}
    generated = eval(keys.INTEGER.format(n="_nbx_n"), {f"_nbx_{name}": each for name, each in names.items()})

    assert generated == keys.of(value)


def test_a_wide_integer_is_refused_by_name(simulate):
    _simulation, runtime = simulate()
    x = array(runtime, 64)

    for wide in (2**64, -(2**63) - 1):
        with pytest.raises(nbxrt.ArgumentValueError, match=r"argument `n` of `add`: .* does not fit into 64 bits"):
            kernels.add[(1,)](x, x, x, wide, BLOCK=16)


def test_types_of_one_hash_are_told_apart(simulate):
    class Colliding(str):
        __slots__ = ()

        def __hash__(self):
            return 7

    with pytest.raises(nbxrt.ArgumentTypeError, match="`float32` and `int8` have the same hash"):
        [keys.of(Foreign(16, Colliding(name))) for name in ("float32", "int8")]
