# SPDX-License-Identifier: Apache-2.0
"""Tell whether this program is in the machine's own cgroup namespace, outside of which version 2 may not move anybody.

A version 2 mounted with `nsdelegate`, as systemd does, makes each cgroup namespace a boundary: a process is moved only
where source and target are both below the namespace's root, and ENOENT is the answer otherwise (kernel/cgroup/cgroup.c,
cgroup_procs_write_permission).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

HOST_CGROUP_NAMESPACE: Final = 0xEFFFFFFB
"""PROC_CGROUP_INIT_INO: inode of the machine's first cgroup namespace (include/linux/proc_ns.h)."""


def is_host_cgroup_namespace(proc: str = "/proc") -> bool:
    """Tell whether it is; what cannot be looked at is, since kernels before 4.6 have no other."""
    try:
        return Path(proc, "self", "ns", "cgroup").stat().st_ino == HOST_CGROUP_NAMESPACE
    except OSError:
        return True
