# SPDX-License-Identifier: Apache-2.0
"""Test what is done to groups, on every kind of node."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nm_proxy.cgroup import errors, weights
from nm_proxy.cgroup.errors import (
    CgroupError,
    GroupBusyError,
    GroupGoneError,
    InternalProcessError,
    NotDelegatedError,
    PermissionDeniedError,
    ProcessGoneError,
    ValueRefusedError,
)
from nm_proxy.cgroup.files import KernelFiles
from nm_proxy.cgroup.tree import Values
from tests.unit.nm_proxy.world import Node, container_id

MIB = 1 << 20


def prepared(node: Node) -> Node:
    node.tree.prepare_parent(node.place.yarn)
    return node


def test_makes_the_parent_once_in_every_hierarchy(any_node: Node) -> None:
    assert any_node.tree.prepare_parent(any_node.place.yarn)
    assert any_node.tree.exists(any_node.place.yarn)
    assert not any_node.tree.prepare_parent(any_node.place.yarn)


def test_a_process_can_enter_a_new_group_at_once(any_node: Node) -> None:
    prepared(any_node)
    assert any_node.tree.create(any_node.path())
    assert not any_node.tree.create(any_node.path())
    process = any_node.kernel.processes.start()
    assert any_node.tree.move(any_node.path(), [process.pid]) == len(any_node.tree.hierarchies.every)
    assert any_node.is_inside(process.pid)
    assert any_node.tree.processes(any_node.path()) == {process.pid}
    assert any_node.tree.move(any_node.path(), [process.pid]) == 0


def test_lists_only_containers(any_node: Node) -> None:
    prepared(any_node).tree.create(any_node.path())
    any_node.tree.create(f"{any_node.place.yarn}/something-else")
    assert any_node.tree.containers(any_node.place.yarn) == {container_id(2)}
    assert any_node.tree.containers("no/such/group") == set()


def test_writes_and_reads_weight_and_limit(any_node: Node) -> None:
    prepared(any_node).tree.create(any_node.path())
    cpu = any_node.tree.container_cpu(3, opportunistic=False)
    any_node.tree.set_cpu(any_node.path(), cpu)
    any_node.tree.set_memory_limit(any_node.path(), 512 * MIB)
    assert any_node.tree.values(any_node.path()) == Values(cpu=cpu, memory_bytes=512 * MIB)
    any_node.tree.set_memory_limit(any_node.path(), None)
    assert any_node.tree.values(any_node.path()).memory_bytes is None


def test_removes_empty_groups_and_what_is_half_gone(any_node: Node) -> None:
    prepared(any_node).tree.create(any_node.path())
    any_node.kernel.remove_directory(any_node.tree.hierarchies.every[0].at(any_node.path()))
    assert not any_node.tree.exists(any_node.path())
    any_node.tree.remove(any_node.path())
    any_node.tree.remove(any_node.path())
    assert not any_node.tree.exists_anywhere(any_node.path())


def test_does_not_remove_a_group_with_processes(any_node: Node) -> None:
    prepared(any_node).tree.create(any_node.path())
    any_node.kernel.put(any_node.kernel.processes.start().pid, any_node.path())
    with pytest.raises(GroupBusyError):
        any_node.tree.remove(any_node.path())


def test_passes_over_processes_that_are_gone(any_node: Node) -> None:
    prepared(any_node).tree.create(any_node.path())
    assert any_node.tree.move(any_node.path(), [99_999]) == 0


def test_moving_into_a_group_that_is_gone_is_an_error(any_node: Node) -> None:
    with pytest.raises(GroupGoneError):
        any_node.tree.move(any_node.path(), [any_node.kernel.processes.start().pid])


def test_gives_new_v1_groups_the_cpus_of_their_parent_and_never_changes_them_again(node: Node) -> None:
    prepared(node)
    node.kernel.force("cpuset", node.place.yarn, "cpuset.cpus", "0-1")
    node.tree.create(node.path())
    assert node.kernel.show("cpuset", node.path(), "cpuset.cpus") == "0-1"
    node.kernel.force("cpuset", node.path(), "cpuset.cpus", "0")
    node.tree.create(node.path())
    assert node.kernel.show("cpuset", node.path(), "cpuset.cpus") == "0"


def test_tries_again_when_the_parents_cpus_shrink_meanwhile(node: Node) -> None:
    prepared(node)
    node.kernel.fail("write", "cpuset.cpus", errno.EACCES, times=2)
    node.tree.create(node.path())
    assert node.kernel.show("cpuset", node.path(), "cpuset.cpus") == "0-3"


def test_gives_up_on_cpus_that_are_refused_again_and_again(node: Node) -> None:
    prepared(node)
    node.kernel.fail("write", "cpuset.cpus", errno.EINVAL)
    with pytest.raises(ValueRefusedError, match=r"cpuset\.cpus"):
        node.tree.create(node.path())


def test_never_writes_what_is_koordlets(any_node: Node) -> None:
    prepared(any_node).launch()
    any_node.look()
    written = [one for one in any_node.kernel.operations if one.startswith("write ")]
    assert not any(name in one for one in written for name in ("cpu.max", "cfs_quota", "bvt", "effective"))
    assert any(any_node.place.best_effort in one for one in written)
    own = f"{any_node.place.yarn}"
    assert all(own in one for one in written)


def test_makes_the_freezers_directories_where_kubelet_has_none(node: Node) -> None:
    freezer = Path(node.kernel.root / "freezer")
    for directory in ("kubepods/besteffort/pod1", "kubepods/besteffort", "kubepods"):
        node.kernel.remove_directory(str(freezer / directory))
    node.tree.prepare_parent(node.place.yarn)
    assert node.tree.exists(node.place.yarn)


def test_does_not_make_kubelets_directories_elsewhere(node: Node) -> None:
    for directory in ("pod1", ""):
        node.kernel.remove_directory(str(node.kernel.root / "memory/kubepods/besteffort" / directory).rstrip("/"))
    with pytest.raises(GroupGoneError):
        node.tree.prepare_parent(node.place.yarn)


def test_says_where_a_v2_controller_is_not_delegated(v2_node: Node) -> None:
    v2_node.kernel.force("memory", v2_node.place.best_effort, "cgroup.subtree_control", "cpu pids")
    with pytest.raises(NotDelegatedError, match="write \\+memory to it") as caught:
        v2_node.tree.prepare_parent(v2_node.place.yarn)
    assert caught.value.path == f"{v2_node.kernel.root}/{v2_node.place.best_effort}/cgroup.subtree_control"


def test_says_that_processes_sit_in_the_v2_parent(v2_node: Node) -> None:
    v2_node.tree.files.make_directory(v2_node.tree.hierarchies.every[0].at(v2_node.place.yarn))
    v2_node.kernel.put(v2_node.node_manager.pid, v2_node.place.yarn)
    with pytest.raises(InternalProcessError, match=r"cgroup\.procs"):
        v2_node.tree.prepare_parent(v2_node.place.yarn)


def test_delegates_everything_that_koordlet_may_want_in_v2(v2_node: Node) -> None:
    prepared(v2_node)
    assert v2_node.kernel.show("cpu", v2_node.place.yarn, "cgroup.subtree_control") == "cpu cpuset io memory pids"


def test_asks_for_group_kills_in_v2_only(any_node: Node) -> None:
    prepared(any_node).tree.create(any_node.path())
    any_node.tree.kill_together(any_node.path())
    if any_node.tree.version == "v2":
        assert any_node.kernel.show("memory", any_node.path(), "memory.oom.group") == "1"


def test_a_read_only_tree_is_named_with_its_fix(any_node: Node) -> None:
    for mount in any_node.kernel.mounts:
        mount.is_read_only = True
    with pytest.raises(PermissionDeniedError, match="hostPath, readOnly: false") as caught:
        any_node.tree.prepare_parent(any_node.place.yarn)
    assert caught.value.path.endswith(any_node.place.yarn)


def test_gives_the_parent_to_the_executors_user(v2_node: Node) -> None:
    prepared(v2_node).tree.give_to(v2_node.place.yarn, uid=1001, gid=1002)
    owned = [one for one in v2_node.kernel.operations if one.startswith("own ")]
    assert [one.rpartition("/")[2] for one in owned] == [
        "hadoop-yarn 1001:1002",
        "cgroup.procs 1001:1002",
        "cgroup.subtree_control 1001:1002",
    ]


def test_a_missing_group_is_young(node: Node) -> None:
    assert node.tree.age_seconds("no/such/group", 1e12) == 0.0


@pytest.mark.parametrize(
    ("vcores", "shares", "weight"),
    [(0, 2, 1), (1, 1024, 100), (4, 4096, 400), (100, 102_400, 10_000), (999, 262_144, 10_000)],
)
def test_clamps_what_containers_weigh(vcores: int, shares: int, weight: int) -> None:
    assert weights.container_shares(vcores, opportunistic=False) == shares
    assert weights.container_weight(vcores, opportunistic=False) == weight
    assert weights.container_shares(vcores, opportunistic=True) == 2
    assert weights.container_weight(vcores, opportunistic=True) == 1


@pytest.mark.parametrize(
    ("cpu_milli", "shares", "weight"),
    [(0, 2, 1), (1000, 1024, 39), (10_000, 10_240, 391), (256_000, 262_144, 10_000), (9_000_000, 262_144, 10_000)],
)
def test_clamps_what_the_parent_weighs(cpu_milli: int, shares: int, weight: int) -> None:
    assert weights.parent_shares(cpu_milli) == shares
    assert weights.parent_weight(cpu_milli) == weight


@pytest.mark.parametrize(
    ("asked", "limit"),
    [(0, 65_536), (1024 * MIB, 1024 * MIB), (1024 * MIB + 5, 1024 * MIB), (1 << 63, (1 << 62) - 65_536)],
)
def test_limits_are_whole_pages(asked: int, limit: int) -> None:
    assert weights.limit_bytes(asked) == limit


@pytest.mark.parametrize(
    ("number", "kind", "retryable"),
    [
        (errno.ENOENT, GroupGoneError, True),
        (errno.ENODEV, GroupGoneError, True),
        (errno.EBUSY, GroupBusyError, True),
        (errno.ENOTEMPTY, GroupBusyError, True),
        (errno.ESRCH, ProcessGoneError, True),
        (errno.EROFS, PermissionDeniedError, False),
        (errno.EACCES, PermissionDeniedError, False),
        (errno.EPERM, PermissionDeniedError, False),
        (errno.EINVAL, ValueRefusedError, True),
        (errno.ENOSPC, ValueRefusedError, True),
    ],
)
def test_every_error_number_has_a_class(number: int, kind: type[CgroupError], retryable: bool) -> None:
    error = errors.translated(OSError(number, os.strerror(number)), "cannot write", "/x/y")
    assert type(error) is kind
    assert error.retryable is retryable
    assert "/x/y" in str(error)


def test_the_real_files_raise_nothing_else(tmp_path: Path) -> None:
    files = KernelFiles()
    missing = str(tmp_path / "none" / "file")
    for call in (
        lambda: files.read(missing),
        lambda: files.write(missing, "1"),
        lambda: files.make_directory(missing),
        lambda: files.remove_directory(missing),
        lambda: files.directories(missing),
        lambda: files.age_seconds(missing, 0.0),
        lambda: files.change_owner(missing, uid=0, gid=0),
    ):
        with pytest.raises(GroupGoneError):
            call()
    assert not files.exists(missing)


def test_the_real_files_work_on_a_directory(tmp_path: Path) -> None:
    files = KernelFiles()
    group = str(tmp_path / "group")
    assert files.make_directory(group)
    assert not files.make_directory(group)
    assert Path(group).stat().st_mode & 0o777 == 0o755
    (tmp_path / "value").write_text("x" * 200_000)
    assert files.read(str(tmp_path / "value")) == "x" * 200_000
    files.write(str(tmp_path / "value"), "17")
    assert files.read(str(tmp_path / "value")).startswith("17")
    assert files.directories(str(tmp_path)) == ["group"]
    assert files.age_seconds(group, Path(group).stat().st_mtime + 5) == 5
    assert files.age_seconds(group, 0.0) == 0.0
    files.remove_directory(group)
    assert not files.exists(group)
