"""A process that validates files of fuzzed bytes for a time, and prints what it saw as JSON.

What has no fault is compiled too, as `open` would, with all that it extends.

python tests/authoring/fuzzing.py SECONDS SEED
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from nbxrt.catalogue import inheritance, loading, reading
from nbxrt.catalogue.sources import data_folder
from nbxrt.compiled.contract import CONTRACT

if TYPE_CHECKING:
    from nbxrt.catalogue.diagnostics import Diagnostic

EXAMPLES = 200

CASES = Path(__file__).parents[1] / "catalogue" / "cases" / "valid"
FILES = [file.read_bytes() for file in data_folder("backends").iterdir() if file.name.endswith(".yaml")]
#: They have every form of the format between them, so a change to one is a change to a form of its own.
SMALL = [file.read_bytes() for file in sorted(CASES.glob("*.yaml"))]
PIECES = [
    *(
        b"a",
        b"a: ",
        b"- ",
        b"\n",
        b"  ",
        b"[",
        b"]",
        b"{",
        b"}",
        b", ",
        b"&x ",
        b"*x",
        b"<<: ",
        b"!!int ",
        b"? ",
        b"| ",
    ),
    *(b"> ", b"'", b'"', b"#", b"\t", b"---\n", b"...\n", b"%YAML 1.2\n", b"%TAG ! x\n", b"0x1f", b"1_0", b"\xc3\xa9"),
    *(b"\xff", b"\x00", b"\xef\xbb\xbf", b"\r", b"~", b"@", b"`", b"null", b"true", b"1e3", b".nan", b"operations:\n"),
    *(b"  malloc: ", b"{call: x, args: [", b"since: ", b"libraries:\n  runtime:\n", b"$ref: x\n"),
    *(b"extends: cuda\n", b"contract: 1\n", b"name: x\n", b"absent: ", b"null", b"prepend: ", b"remove: [conda]"),
]

pieces = st.lists(st.sampled_from(PIECES), max_size=80).map(b"".join)


@st.composite
def spliced(draw: st.DrawFn) -> bytes:
    """A right file in which some stretches were replaced."""
    content = draw(st.one_of(st.sampled_from(FILES), st.sampled_from(SMALL)))
    for _edit in range(draw(st.integers(1, 4))):
        before, line = around(content, draw(st.integers(0, content.count(b"\n"))))
        start = before + draw(st.integers(0, len(line)))
        end = start + draw(st.sampled_from([0, 1, 2, 8, 100, 5000]))
        content = content[:start] + draw(st.one_of(st.binary(max_size=4), pieces)) + content[end:]
    return content


def around(content: bytes, number: int) -> tuple[int, bytes]:
    """Where a line begins, and the line."""
    lines = content.split(b"\n")
    return sum(len(line) + 1 for line in lines[:number]), lines[number]


@st.composite
def repeated(draw: st.DrawFn) -> bytes:
    """A few pieces again and again, up to the size that is read."""
    unit = draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map(b"".join))
    return draw(pieces) + unit * draw(st.sampled_from([50, 5_000, reading.MAX_BYTES // len(unit)]))


extending = pieces.map(lambda written: b"contract: 1\nname: x\nextends: host\n" + written)

CONTENTS = st.one_of(st.binary(max_size=300), pieces, extending, spliced(), repeated())


def main(seconds: float, first_seed: int) -> None:
    file = Path(tempfile.mkdtemp()) / "x.yaml"
    judged(file, FILES[0])  # the schema is prepared once
    ready, most = memory("VmRSS"), 0
    slowest: tuple[float, bytes] = (0.0, b"")
    count = 0

    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(CONTENTS)
    def fuzz(content: bytes) -> None:
        nonlocal slowest, count, most
        count += 1
        before = forget_peak()
        start = time.process_time()  # nothing here waits, and others use this machine too
        found = judged(file, content)
        slowest = max(slowest, (time.process_time() - start, content[:200]))
        most = max(most, memory("VmHWM") - before)
        for fault in found:
            fault.render()
            if fault.file == str(file):
                assert 1 <= fault.line <= content.count(b"\n") + content.count(b"\r") + 1

    end = time.monotonic() + seconds
    number = first_seed
    while time.monotonic() < end:
        seed(number)(fuzz)()
        number += 1
    facts = {"examples": count, "slowest_s": slowest[0], "slowest": repr(slowest[1]), "memory": ready + most}
    sys.stdout.write(json.dumps(facts))


def judged(file: Path, content: bytes) -> tuple[Diagnostic, ...]:
    """The faults of a file with some content, which is compiled when it has none."""
    file.write_bytes(content)
    found = inheritance.validate_file(file)
    if not found:
        loading.given(str(file), CONTRACT)
    return found


def forget_peak() -> int:
    """Begin to look for the most memory anew: hypothesis remembers more and more. Returns what is in use now."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    return memory("VmRSS")


def memory(what: str) -> int:
    """Memory in use, or the most that was, in bytes: macOS knows only the most ever, and Windows is not asked."""
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text("ascii")
        return 1024 * int(re.search(rf"{what}:\s+(\d+) kB", status)[1])
    if sys.platform == "win32":
        return 0
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return most if what == "VmHWM" else 0


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
