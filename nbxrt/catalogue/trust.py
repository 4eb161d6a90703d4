"""Whether somebody else may change a file: what `open` asks before it follows one.

A description decides which library is loaded, so whoever can write it can run code as its reader. The file and every
folder and link on the way to it must belong to the reader or to root, and others must not be able to write them; a
folder that is sticky, as /tmp is, keeps others from touching what is not theirs. A group that may write is fine when it
is the reader's own primary group, with nobody else in it. Access control lists, and Windows, are not asked.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from typing import TYPE_CHECKING

from nbxrt.catalogue.diagnostics import Diagnostic
from nbxrt.errors import DescriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OVERRIDE = "NBXRT_TRUST_FILES"

# No chain of links is longer: the system itself gives up at that number.
_MOST_LINKS = 40


def demand(files: Iterable[str], environment: Mapping[str, str] = os.environ) -> None:
    """Refuse files that somebody else may change. Raises: DescriptionError, with every such file."""
    if environment.get(OVERRIDE, "").strip() == "1":
        return
    faults = [_fault(file, reason) for file in files if (reason := why_not(file))]
    if faults:
        raise DescriptionError(faults)


def why_not(file: str) -> str:
    """Why a file is not to be trusted; empty when it is, or where it is not there to be asked about."""
    if sys.platform == "win32":
        return ""
    user, groups = os.geteuid(), _own_groups()
    for path in reversed(_on_the_way(file)):
        try:
            status = os.lstat(path)
        except OSError:
            continue
        reason = changeable_by(status, user, groups)
        if reason:
            return f"`{path}` {reason}"
    return ""


def changeable_by(status: os.stat_result, user: int, groups: frozenset[int]) -> str:
    """Who else may change a file or what a folder holds, in words; empty when nobody may."""
    if status.st_uid not in (user, 0):
        return f"belongs to {_user_name(status.st_uid)}"
    if stat.S_ISLNK(status.st_mode) or (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX):
        return ""
    if status.st_mode & stat.S_IWOTH:
        return "can be written by everybody"
    if status.st_mode & stat.S_IWGRP and status.st_gid not in groups:
        return f"can be written by the group {_group_name(status.st_gid)}"
    return ""


def _fault(file: str, reason: str) -> Diagnostic:
    message = f"the file is not followed, because somebody else may change it: {reason}"
    hint = f"make it yours alone (`chmod go-w`), or set {OVERRIDE}=1"
    return Diagnostic(file, 1, 1, 1, "untrusted-file", message, hint=hint)


def _on_the_way(file: str) -> list[str]:
    """What the system passes on the way to a file, in that order: each folder, each link and what it leads to."""
    passed = ["/"]
    whole = file if file.startswith("/") else os.path.join(os.getcwd(), file)
    here, pending, links = "/", whole.split("/")[::-1], 0
    while pending and links <= _MOST_LINKS:
        part = pending.pop()
        path = os.path.join(here, part)
        if part == "..":
            here = os.path.dirname(here)
        elif part not in ("", "."):
            passed.append(path)
            target = _target(path)
            here = path if target is None else "/" if target.startswith("/") else here
            links += target is not None
            pending += (target or "").split("/")[::-1]
    return passed


def _target(path: str) -> str | None:
    """Where a link leads; None for what is none."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def _own_groups() -> frozenset[int]:
    """The primary group of the user, by the account and as this process runs, as far as nobody else is in it.

    A container may have no account.
    """
    if sys.platform == "win32":
        return frozenset()
    import grp
    import pwd

    user = os.geteuid()
    accounts = [(each.pw_name, each.pw_uid, each.pw_gid) for each in pwd.getpwall()]
    groups = {os.getegid(), *(group for _name, number, group in accounts if number == user)}
    members = {}
    for group in groups:
        with contextlib.suppress(KeyError):
            members[group] = grp.getgrgid(group).gr_mem
    return frozenset(group for group in groups if is_private(group, user, accounts, members.get(group, ())))


def is_private(group: int, user: int, accounts: Iterable[tuple[str, int, int]], members: Iterable[str]) -> bool:
    """Whether a group is one user's alone. Accounts are name, number and primary group; who is in root's is trusted."""
    if group == 0:
        return True
    names = {name: number for name, number, _group in accounts}
    in_it = {number for _name, number, primary in accounts if primary == group}
    return {*in_it, *(names.get(name) for name in members)} <= {user}


def _user_name(number: int) -> str:
    if sys.platform == "win32":
        return f"the user {number}"
    import pwd

    try:
        return f"the user `{pwd.getpwuid(number).pw_name}`"
    except KeyError:
        return f"the user {number}"


def _group_name(number: int) -> str:
    if sys.platform == "win32":
        return str(number)
    import grp

    try:
        return f"`{grp.getgrgid(number).gr_name}`"
    except KeyError:
        return str(number)
