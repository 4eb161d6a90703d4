"""The vocabulary of policies stays small: each serves several backends, and a backend of the tests besides."""

from __future__ import annotations

from pathlib import Path

import yaml

from nbxrt import descriptions
from nbxrt.catalogue.policies import POLICIES

#: What one shipped backend alone uses, and why that is so in docs/design.md.
ALONE = dict.fromkeys(("current_device", "system_memory", "synchronous"), "host")


def _users() -> dict[str, set[str]]:
    """The shipped backends that use each policy."""
    users: dict[str, set[str]] = {name: set() for name in POLICIES}
    for backend in descriptions.INDEX:
        for _line, variants in descriptions.built_in(backend)["operations"].values():
            for form, _since, _before, _platforms, what, _extras in variants:
                if form == "policy":
                    users[what[1]].add(backend)
    return users


def test_each_policy_serves_two_shipped_backends_but_those_whose_reason_is_written_down() -> None:
    users = _users()

    assert {name: used for name, used in users.items() if len(used) < 2} == {
        name: {backend} for name, backend in ALONE.items()
    }


def test_each_policy_has_a_backend_of_the_tests() -> None:
    found: set[str] = set()
    for file in Path(__file__).parent.glob("*.yaml"):
        content = yaml.safe_load(file.read_text("utf-8"))
        found |= {each["policy"] for each in content.get("operations", {}).values() if "policy" in each}
        found |= {name for name in content if name in POLICIES}  # code.yaml, whose parts are a policy's

    assert set(POLICIES) - found == set()
