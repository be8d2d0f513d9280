# SPDX-License-Identifier: Apache-2.0
"""Give tests a best-effort directory of their own in the machine's version 1 tree, and remove it whatever happens."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.node.machine import Machine, sweep
from nm_proxy.cgroup.detection import read_mounts
from nm_proxy.cgroup.errors import CgroupError
from nm_proxy.cgroup.files import KernelFiles
from nm_proxy.cgroup.hierarchy import find_hierarchies
from nm_proxy.cgroup.layout import Version

ROOT = "/sys/fs/cgroup"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Give a private subtree in every hierarchy in use; skip where the machine has no writable version 1 tree."""
    if os.geteuid() != 0:
        pytest.skip("only root may change the machine's cgroup tree")
    name = f"nm-proxy-test-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        hierarchies = find_hierarchies(read_mounts(), ROOT, KernelFiles())
    except CgroupError as error:
        pytest.skip(f"no cgroup tree to work with: {error}")
    if hierarchies.version is not Version.V1 or any(one.read_only for one in hierarchies.every):
        pytest.skip("the machine has no writable cgroup version 1 tree")
    try:
        yield Machine(tmp_path, hierarchies, name)
    finally:
        sweep(hierarchies, name)
