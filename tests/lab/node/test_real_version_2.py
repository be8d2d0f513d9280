# SPDX-License-Identifier: Apache-2.0
"""Test moving, freezing and killing on the version 2 hierarchy that a hybrid host mounts without controllers."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.node.machine import MARK, Machine, carriers_of, end_carriers
from lab.node.programs import STORM, WithoutKill
from nm_proxy.cgroup.detection import read_mounts
from nm_proxy.cgroup.files import KernelFiles
from nm_proxy.cgroup.gathering import gather
from nm_proxy.cgroup.hierarchy import Hierarchies, Hierarchy
from nm_proxy.cgroup.killing import GroupKiller
from nm_proxy.cgroup.layout import Version
from nm_proxy.cgroup.tree import CgroupTree
from nm_proxy.nodemanager.processes import ProcessReader
from nm_proxy.parenting.belonging import BelongingLook, Root


@pytest.fixture
def tree() -> Iterator[tuple[CgroupTree, str]]:
    """Give a version 2 hierarchy that is taken for one with cpu and memory, and a group in it."""
    mount = next((one for one in read_mounts() if one.version is Version.V2 and not one.read_only), None)
    if os.geteuid() != 0 or mount is None:
        pytest.skip("no writable cgroup version 2 hierarchy")
    hierarchy = Hierarchy(
        version=Version.V2,
        mount_point=mount.mount_point,
        controllers=frozenset({"cpu", "memory"}),
        read_only=False,
    )
    path = f"nm-proxy-test-{os.getpid()}-{secrets.token_hex(4)}"
    tree = CgroupTree(Hierarchies((hierarchy,)), KernelFiles())
    tree.create(path)
    try:
        yield tree, path
    finally:
        end_carriers(path)
        with contextlib.suppress(Exception):
            GroupKiller(tree).kill(path, timeout_seconds=20)
        Machine.wait_for(lambda: not tree.processes(path))
        tree.remove(path)


def storm(name: str, seed: int, seconds: float) -> subprocess.Popen[bytes]:
    """Prepare a storm that breaks out once its standard input is closed.

    Nothing in its environment tells that it is a container's, so who left its parent before the first look would be
    nobody's: it has to be inside before it forks.
    """
    code = "import os, sys\nsys.stdin.read()\n" + STORM
    return subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", code, "", str(seed), str(seconds)],
        start_new_session=True,
        env={"PATH": os.environ["PATH"], MARK: name},
        stdin=subprocess.PIPE,
    )


def looker(process: subprocess.Popen[bytes], path: str) -> Callable[[], BelongingLook]:
    reader = ProcessReader()
    first = reader.process(process.pid)
    assert first is not None
    roots = {path: Root(first.pid, first.start_ticks)}
    excluded = frozenset({1, os.getpid()})
    return lambda: BelongingLook(reader.table(), roots=roots, carriers={}, excluded=excluded)


@pytest.mark.parametrize("files", [KernelFiles, WithoutKill], ids=["cgroup.kill", "freeze-signal-thaw"])
def test_kills_a_storm_in_a_version_2_group(tree: tuple[CgroupTree, str], files: type[KernelFiles]) -> None:
    real, path = tree
    used = CgroupTree(real.hierarchies, files())
    process = storm(path, 3, 1.0)
    assert process.stdin is not None
    (result,) = gather(used, [path], looker(process, path)).values()
    assert result.error is None
    process.stdin.close()
    Machine.wait_for(lambda: len(used.processes(path)) > 20)
    assert GroupKiller(used).kill(path, timeout_seconds=30) > 5
    assert process.wait(timeout=30) == -signal.SIGKILL
    assert used.processes(path) == set()
    assert carriers_of(f"{MARK}={path}") == set()
    events = Path(f"{real.hierarchies.every[0].at(path)}/cgroup.events").read_text()
    assert "populated 0" in events
    assert "frozen 0" in events
