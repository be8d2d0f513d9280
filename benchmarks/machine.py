# SPDX-License-Identifier: Apache-2.0
"""Describe the machine and the versions that figures were measured on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

import psutil

from lab.kubernetes.binaries import kubernetes_version
from yarn_copilot.observability.version import program_version

_MIB = 1 << 20
_GO_MODULE = Path(__file__).resolve().parents[1] / "lab" / "kubernetes" / "go.mod"


def describe_machine() -> dict[str, Any]:
    """Give processor, cores, memory and kernel of this machine."""
    return {
        "cpu_model": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mib": psutil.virtual_memory().total // _MIB,
        "kernel": platform.release(),
        "system": platform.system(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def describe_versions(hadoop_version: str) -> dict[str, str]:
    """Give the versions of what took part.

    Args:
        hadoop_version: the lab's, for example 3.5.0.
    """
    return {
        "yarn_copilot": program_version(),
        "python": platform.python_version(),
        "kubernetes": kubernetes_version(),
        "etcd": _etcd_version(),
        "hadoop": hadoop_version,
    }


def _cpu_model() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1) if found else platform.machine()


def _etcd_version() -> str:
    found = re.search(r"^\s*go\.etcd\.io/etcd/server/v3 (v\S+)", _GO_MODULE.read_text(), re.MULTILINE)
    return found.group(1) if found else ""
