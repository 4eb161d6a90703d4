"""The file by which ranks of one host see each other, and what becomes of that of ranks that end as they join."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from nbxrt.distributed.rankfile import PREFIX, RankFile, remove_abandoned

HOLDS = """
import sys
from pathlib import Path
from nbxrt.distributed.rankfile import RankFile
file = RankFile(Path(sys.argv[1]), 256)
print("here", flush=True)
sys.stdin.read()
"""


def test_ranks_that_have_it_see_each_other_also_when_it_has_no_name(tmp_path: Path) -> None:
    path = tmp_path / f"{PREFIX}one"
    one, other = RankFile(path, 256), RankFile(path, 256)

    one.unlink()
    one.map[7] = 5

    assert (other.map[7], path.exists()) == (5, False)
    other.unlink()


def test_a_file_stays_while_a_rank_joins_and_goes_when_nobody_does(tmp_path: Path, environment: dict[str, str]) -> None:
    path, another = tmp_path / f"{PREFIX}held", tmp_path / "another"
    another.touch()
    command = [sys.executable, "-c", HOLDS, str(path)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as rank:
        assert rank.stdout is not None
        rank.stdout.readline()
        remove_abandoned(tmp_path)
        assert path.exists()
        os.kill(rank.pid, signal.SIGKILL)

    remove_abandoned(tmp_path)

    assert [file.name for file in tmp_path.iterdir()] == ["another"]
