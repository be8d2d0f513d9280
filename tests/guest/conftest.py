# SPDX-License-Identifier: Apache-2.0
"""Give tests a private best-effort directory in the virtual machine's cgroup version 2 tree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.node.machine import Machine, sweep
from lab.vm.machine import MARK
from nm_proxy.cgroup.detection import read_mounts
from nm_proxy.cgroup.files import KernelFiles
from nm_proxy.cgroup.hierarchy import find_hierarchies
from nm_proxy.cgroup.layout import Version

ROOT = "/sys/fs/cgroup"


@pytest.fixture(autouse=True)
def _only_in_the_virtual_machine() -> None:
    if MARK not in Path("/proc/cmdline").read_text().split():
        pytest.skip("this test needs a kernel of its own: tests/lab/node/test_virtual_machine.py runs it in one")


@pytest.fixture
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Give a private subtree and remove it."""
    hierarchies = find_hierarchies(read_mounts(), ROOT, KernelFiles())
    assert [one.version for one in hierarchies.every] == [Version.V2]
    name = f"best-effort-{os.getpid()}-{request.node.name[:60]}"
    try:
        yield Machine(tmp_path, hierarchies, name)
    finally:
        sweep(hierarchies, name)
