# SPDX-License-Identifier: Apache-2.0
"""Find and kill the processes that belong to a lab.

Every process that a lab starts carries the environment entry `LAB_MEMBER_OF=<state folder>`. YARN containers do not:
a NodeManager starts them with an empty environment, in sessions of their own, and they outlive a NodeManager that is
killed. They are known by the folders that YARN names in their environment and by their working directory.
Only the standard library is used here, because the watchdog runs this file without the virtual environment.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

MEMBER_VARIABLE: Final = "LAB_MEMBER_OF"
_PROC: Final = Path("/proc")
_SCAN_PAUSE_SECONDS: Final = 0.05
_QUIET_SCANS: Final = 2  # a process may fork between being seen and being killed: be sure twice


def find_members(state_dir: Path) -> list[int]:
    """List the pids of living processes that belong to `state_dir`; the caller itself is left out."""
    return [pid for pid in _pids() if pid != os.getpid() and (_carries(pid, state_dir) or _works_in(pid, state_dir))]


def kill_members(state_dir: Path, *, timeout_seconds: float = 10.0) -> list[int]:
    """Send SIGKILL to all members until none is left.

    Returns:
        The pids that are still there at the deadline: normally none.
    """
    deadline = time.monotonic() + timeout_seconds
    quiet = 0
    members: list[int] = []
    while quiet < _QUIET_SCANS and time.monotonic() < deadline:
        members = find_members(state_dir)
        quiet = 0 if members else quiet + 1
        for pid in members:
            _kill(pid)
        time.sleep(_SCAN_PAUSE_SECONDS)
    return members


def start_ticks_of(pid: int) -> int | None:
    """Read when a process started (field 22 of /proc/PID/stat, clock ticks); None when it is gone or a zombie."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def _pids() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208 (names only, and often)


def _carries(pid: int, state_dir: Path) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, a zombie, or another user's
        return False
    if f"{MEMBER_VARIABLE}={state_dir}".encode() in environment:
        return True
    container_entry = f"LOCAL_DIRS={state_dir}/".encode()
    return any(entry.startswith(container_entry) for entry in environment)


def _works_in(pid: int, state_dir: Path) -> bool:
    """Tell whether a process works in a container's folder, also when that was removed under it."""
    try:
        folder = os.readlink(_PROC / str(pid) / "cwd")  # noqa: PTH115 (the target may carry " (deleted)")
    except OSError:
        return False
    return folder.startswith(f"{state_dir}/yarn/") and "/appcache/" in folder


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:  # gone already
        return
