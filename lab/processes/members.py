# SPDX-License-Identifier: Apache-2.0
"""Find and kill the processes that belong to a lab.

Every process of a lab, and every process these start, carries the environment entry `LAB_MEMBER_OF=<state folder>`.
That is how YARN containers are found: they run in sessions of their own and outlive a NodeManager that is killed.
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
    """List the pids of living processes that carry the mark of `state_dir`; the caller itself is left out."""
    entry = f"{MEMBER_VARIABLE}={state_dir}".encode()
    return [pid for pid in _pids() if pid != os.getpid() and _carries(pid, entry)]


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


def _carries(pid: int, entry: bytes) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:  # gone, a zombie, or another user's
        return False
    return entry in environment.split(b"\0")


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:  # gone already
        return
