# SPDX-License-Identifier: Apache-2.0
"""Tell whether this program is in the machine's own PID namespace, where the end of PID 1 ends nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Final

HOST_PID_NAMESPACE: Final = 0xEFFFFFFC
"""PROC_PID_INIT_INO: inode of the machine's first PID namespace (include/linux/proc_ns.h)."""


def is_host_pid_namespace(proc: str = "/proc") -> bool:
    """Tell whether it is; what cannot be looked at is not."""
    try:
        return Path(proc, "self", "ns", "pid").stat().st_ino == HOST_PID_NAMESPACE
    except OSError:
        return False
