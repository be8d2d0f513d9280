# SPDX-License-Identifier: Apache-2.0
"""Test that a kill ends everyone in a group, and nobody else."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.embedded.cgroup.kernel import FakeKernel
from nm_proxy.cgroup.errors import ForeignProcessError, KillIncompleteError
from nm_proxy.cgroup.killing import GroupKiller, Pace, PidfdSignaller
from nm_proxy.cgroup.layout import Driver
from tests.unit.nm_proxy.world import KINDS, V1_WITHOUT_FREEZER, Node


class KernelSignaller:
    """Signal made-up processes, and remember who was signalled."""

    def __init__(self, kernel: FakeKernel) -> None:
        self._kernel = kernel
        self.signalled: list[int] = []

    def kill(self, pid: int, is_member: Callable[[int], bool]) -> None:
        """Signal if still a member."""
        if is_member(pid):
            self.signalled.append(pid)
            self._kernel.signal(pid)


def killer_of(node: Node) -> tuple[GroupKiller, KernelSignaller]:
    def sleep(seconds: float) -> None:
        node.time.now += seconds

    def groups(pid: int) -> dict[str, str]:
        return node.kernel.where(pid) if pid in node.kernel.processes.by_pid else {}

    signaller = KernelSignaller(node.kernel)
    return GroupKiller(node.tree, signaller, Pace(node.time.monotonic, sleep), groups), signaller


def filled(node: Node, count: int = 3) -> list[int]:
    node.tree.prepare_parent(node.place.yarn)
    node.tree.create(node.path())
    pids = [node.kernel.processes.start(parent=node.node_manager.pid).pid for _ in range(count)]
    for pid in pids:
        node.kernel.put(pid, node.path())
    return pids


def alive(node: Node) -> set[int]:
    return set(node.kernel.processes.by_pid)


def test_ends_everyone_inside_and_nobody_else(any_node: Node) -> None:
    pids = filled(any_node)
    before = alive(any_node)
    killer, _ = killer_of(any_node)
    assert killer.kill(any_node.path(), timeout_seconds=5) == 3
    assert alive(any_node) == before - set(pids)
    assert any_node.tree.processes(any_node.path()) == set()
    any_node.tree.remove(any_node.path())


def test_an_empty_or_missing_group_needs_no_kill(any_node: Node) -> None:
    killer, signaller = killer_of(any_node)
    assert killer.kill(any_node.path(), timeout_seconds=5) == 0
    filled(any_node, 0)
    assert killer.kill(any_node.path(), timeout_seconds=5) == 0
    assert signaller.signalled == []


def test_uses_the_kernels_own_kill_where_there_is_one(v2_node: Node) -> None:
    filled(v2_node)
    killer, signaller = killer_of(v2_node)
    killer.kill(v2_node.path(), timeout_seconds=5)
    assert signaller.signalled == []
    assert f"write {v2_node.kernel.root}/{v2_node.path()}/cgroup.kill" in v2_node.kernel.operations


def test_freezes_signals_and_thaws_on_an_old_v2_kernel(v2_node: Node) -> None:
    pids = filled(v2_node)
    (v2_node.kernel.root / v2_node.path() / "cgroup.kill").unlink()
    killer, signaller = killer_of(v2_node)
    assert killer.kill(v2_node.path(), timeout_seconds=5) == 3
    assert set(signaller.signalled) == set(pids)
    assert v2_node.kernel.show("cpu", v2_node.path(), "cgroup.freeze") == "0"


def test_freezes_first_and_thaws_last_in_v1(node: Node) -> None:
    filled(node)
    killer, _ = killer_of(node)
    killer.kill(node.path(), timeout_seconds=5)
    states = [one for one in node.kernel.operations if one.endswith("freezer.state") and one.startswith("write")]
    assert len(states) == 2
    assert node.kernel.show("freezer", node.path(), "freezer.state") == "THAWED"


def test_thaws_also_when_signalling_fails(node: Node) -> None:
    filled(node)
    killer, signaller = killer_of(node)
    signaller.kill = _raising  # type: ignore[method-assign] # the failure of a system call
    with pytest.raises(RuntimeError):
        killer.kill(node.path(), timeout_seconds=5)
    assert node.kernel.show("freezer", node.path(), "freezer.state") == "THAWED"


def _raising(pid: int, is_member: Callable[[int], bool]) -> None:
    raise RuntimeError("no")


def test_does_not_wait_for_ever_for_the_freezer(node: Node) -> None:
    filled(node)
    node.kernel.freezes_slowly = True
    killer, signaller = killer_of(node)
    assert killer.kill(node.path(), timeout_seconds=5) == 3
    assert len(signaller.signalled) == 3


def test_kills_without_a_freezer_whoever_forks_meanwhile(tmp_path: Path) -> None:
    KINDS["v1-bare"] = V1_WITHOUT_FREEZER
    node = Node(tmp_path, kind="v1-bare", driver=Driver.CGROUPFS)
    del KINDS["v1-bare"]
    pids = filled(node)
    killer, signaller = killer_of(node)
    plain = signaller.kill
    forks = iter(pids)

    def fork_then_kill(pid: int, is_member: Callable[[int], bool]) -> None:
        if next(forks, None) is not None:
            node.kernel.processes.fork(pid)
        plain(pid, is_member)

    signaller.kill = fork_then_kill  # type: ignore[method-assign] # the group forks while it is killed
    assert killer.kill(node.path(), timeout_seconds=5) >= 3
    assert node.tree.processes(node.path()) == set()


def test_says_who_is_left_after_the_deadline(any_node: Node) -> None:
    pids = filled(any_node)
    any_node.kernel.processes.by_pid[pids[1]].is_unkillable = True
    killer, _ = killer_of(any_node)
    with pytest.raises(KillIncompleteError, match=f"1 processes are alive.*{pids[1]}") as caught:
        killer.kill(any_node.path(), timeout_seconds=2)
    assert caught.value.retryable


def test_never_signals_processes_it_cannot_name(node: Node) -> None:
    pids = filled(node)
    node.kernel.processes.by_pid[pids[0]].is_foreign = True
    killer, signaller = killer_of(node)
    with pytest.raises(ForeignProcessError, match="hostPID"):
        killer.kill(node.path(), timeout_seconds=2)
    assert signaller.signalled == []


def test_the_kernel_kills_foreign_processes_in_v2(v2_node: Node) -> None:
    pids = filled(v2_node)
    v2_node.kernel.processes.by_pid[pids[0]].is_foreign = True
    killer, _ = killer_of(v2_node)
    assert killer.kill(v2_node.path(), timeout_seconds=2) == 3


def test_a_threaded_v2_group_is_killed_the_slow_way(v2_node: Node) -> None:
    filled(v2_node)
    v2_node.kernel.fail("write", "cgroup.kill", errno.EOPNOTSUPP)
    killer, signaller = killer_of(v2_node)
    assert killer.kill(v2_node.path(), timeout_seconds=2) == 3
    assert len(signaller.signalled) == 3


def test_finds_processes_that_are_in_one_hierarchy_only(node: Node) -> None:
    pids = filled(node)
    node.kernel.put(pids[0], "", controller="cpu")
    node.kernel.put(pids[1], "", controller="memory")
    killer, _ = killer_of(node)
    assert killer.kill(node.path(), timeout_seconds=2) == 3
    assert not set(pids) & alive(node)


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_thaws_what_a_former_run_left_frozen(tmp_path: Path, kind: str) -> None:
    node = Node(tmp_path, kind=kind)
    filled(node)
    killer, _ = killer_of(node)
    assert not killer.thaw(node.path())
    if kind == "v1":
        node.kernel.force("freezer", node.path(), "freezer.state", "FROZEN")
    else:
        node.kernel.force("cpu", node.path(), "cgroup.freeze", "1")
    assert killer.thaw(node.path())
    assert not killer.thaw(node.path())


def test_the_real_signaller_pins_checks_and_kills() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        PidfdSignaller().kill(child.pid, lambda pid: False)
        assert child.poll() is None
        PidfdSignaller().kill(child.pid, lambda pid: pid == child.pid)
        assert child.wait(timeout=20) == -9
    finally:
        child.kill()
        child.wait()
    PidfdSignaller().kill(child.pid, lambda pid: True)


def test_never_signals_itself(node: Node) -> None:
    filled(node, 0)
    node.kernel.processes.start(pid=os.getpid())
    node.kernel.put(os.getpid(), node.path())
    killer, signaller = killer_of(node)
    with pytest.raises(KillIncompleteError):
        killer.kill(node.path(), timeout_seconds=1)
    assert signaller.signalled == []
