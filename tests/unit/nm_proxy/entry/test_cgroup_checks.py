# SPDX-License-Identifier: Apache-2.0
"""Trouble with the cgroup tree is found and named by the file that has to change."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from nm_proxy.agent_settings import ParentingMode
from nm_proxy.cgroup.holding import Hold, is_taken_by_another
from nm_proxy.cgroup.layout import Driver
from nm_proxy.cgroup.namespace import HOST_CGROUP_NAMESPACE, is_host_cgroup_namespace
from nm_proxy.exit_codes import ExitCode
from nm_proxy.preflight.findings import Severity
from nm_proxy.preflight.judging import judge
from tests.unit.nm_proxy.entry.checked import World


def test_version_2_without_delegation_names_the_file_to_write(tmp_path: Path) -> None:
    world = World(tmp_path, kind="v2")
    mount = world.node.found.hierarchies.every[0]
    control = f"{mount.at(Driver.CGROUPFS.best_effort)}/cgroup.subtree_control"
    Path(control).write_text("cpu pids\n")
    world.facts = world.look()
    found = world.the_error()
    assert (found.code, found.where, found.expected) == (ExitCode.CGROUP_DELEGATION, control, "+memory")


def test_version_2_with_processes_in_the_way_is_named(tmp_path: Path) -> None:
    world = World(tmp_path, kind="v2")
    (group,) = world.facts.cgroup.groups
    world.facts = replace(
        world.facts, cgroup=replace(world.facts.cgroup, groups=(replace(group, has_yarn=True, yarn_processes=3),))
    )
    found = world.the_error()
    assert found.code is ExitCode.CGROUP_INTERNAL_PROCESSES
    assert found.where == f"{group.yarn}/cgroup.procs"
    assert found.found == "lists 3 processes"


@pytest.mark.parametrize("mode", list(ParentingMode))
@pytest.mark.parametrize("kind", ["v2", "mixed"])
@pytest.mark.parametrize("root", ["/..", "/../../../.."])
def test_version_2_lets_no_task_out_of_a_cgroup_namespace(
    tmp_path: Path, mode: ParentingMode, kind: str, root: str
) -> None:
    world = World(tmp_path, mode=mode, kind=kind)
    world.options, world.root, world.is_host_cgroup = "rw,nsdelegate,memory_recursiveprot", root, False
    world.facts = world.look()
    found = world.the_error()
    assert found.code is ExitCode.CGROUP_DELEGATION
    assert found.where.endswith("/kubepods/besteffort/hadoop-yarn/cgroup.procs")
    assert "nsdelegate" in found.found
    assert "privileged" in found.fix
    assert "--cgroupns=host" in found.fix


@pytest.mark.parametrize(
    ("kind", "options", "root", "is_host_cgroup"),
    [
        pytest.param("v2", "rw,nsdelegate", "/", True, id="the host's namespace"),
        pytest.param("v2", "rw", "/../..", False, id="no boundary"),
        pytest.param("v2", "rw,nsdelegate", "/", False, id="a node in a container: the whole tree is in its namespace"),
        pytest.param("v2", "rw,nsdelegate", "/..x", False, id="an odd name below the namespace's root"),
        pytest.param("v1", "rw,nsdelegate", "/../..", False, id="version 1"),
        pytest.param("v1-hybrid", "rw,nsdelegate", "/../..", False, id="version 2 without limits"),
    ],
)
def test_tasks_can_be_moved_elsewhere(
    tmp_path: Path, kind: str, options: str, root: str, *, is_host_cgroup: bool
) -> None:
    world = World(tmp_path, kind=kind)
    world.options, world.root, world.is_host_cgroup = options, root, is_host_cgroup
    world.facts = world.look()
    assert world.errors() == []


def test_the_machines_cgroup_namespace_is_known_by_its_number(tmp_path: Path) -> None:
    assert is_host_cgroup_namespace(str(tmp_path / "a kernel without namespaces"))
    link = tmp_path / "self/ns/cgroup"
    link.parent.mkdir(parents=True)
    link.touch()
    assert not is_host_cgroup_namespace(str(tmp_path))
    assert HOST_CGROUP_NAMESPACE == 4026531835


@pytest.mark.parametrize(
    ("mode", "severity"), [(ParentingMode.ADOPT, Severity.WARNING), (ParentingMode.EXECUTOR, Severity.ERROR)]
)
def test_a_stale_version_1_tree_beside_version_2_is_seen(
    tmp_path: Path, mode: ParentingMode, severity: Severity
) -> None:
    world = World(tmp_path, kind="v2", mode=mode)
    stale = world.kernel.root / "cpu,cpuacct"
    stale.mkdir()
    world.facts = world.look()
    (found,) = [one for one in judge(world.facts) if one.severity is not Severity.OK]
    assert (found.code, found.severity, found.where) == (ExitCode.CGROUP_SHADOWED, severity, str(stale))


def test_hadoops_executor_cannot_read_a_controller_in_the_last_place(tmp_path: Path) -> None:
    world = World(tmp_path, kind="v2", mode=ParentingMode.EXECUTOR)
    (group,) = world.facts.cgroup.groups
    changed = replace(group, top_controllers=("cpu", "memory"))
    world.facts = replace(world.facts, cgroup=replace(world.facts.cgroup, groups=(changed,)))
    assert world.the_error().where.endswith("/cgroup.controllers")
    world.facts = replace(world.facts, cgroup=replace(world.facts.cgroup, mode=ParentingMode.ADOPT))
    assert world.errors() == []


def test_both_drivers_directories_without_pods_are_ambiguous(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.kernel.make_kubelet_directories(Driver.SYSTEMD.best_effort, "kubepods-besteffort-pod1")
    world.facts = world.look()
    assert world.the_error().code is ExitCode.CGROUP_DRIVER


def test_a_directory_in_which_another_container_works_is_an_error_and_ones_own_is_not(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.node.tree.prepare_parent(world.node.place.yarn)
    directory = world.node.found.hierarchies.required("memory").at(world.node.place.yarn)
    with Hold(directory):
        assert not world.look().cgroup.is_taken, "this container's own agent holds it"
        world.facts = replace(world.facts, cgroup=replace(world.facts.cgroup, is_taken=True))
    found = world.the_error()
    assert (found.code, found.where) == (ExitCode.CGROUP_TAKEN, f"/{world.node.place.yarn}")
    assert "cgroup.hierarchy" in found.fix


@pytest.mark.parametrize(
    ("locks", "is_taken"),
    [
        pytest.param("", True, id="of a PID namespace that is not seen"),
        pytest.param("1: FLOCK  ADVISORY  WRITE 77 {id} 0 EOF\n", True, id="of a process that cannot be looked at"),
        pytest.param("1: FLOCK  ADVISORY  WRITE {pid} {id} 0 EOF\n", False, id="of this container"),
        pytest.param("1: POSIX  ADVISORY  WRITE {pid} {id} 0 EOF\nrubbish\n", True, id="of another kind"),
        pytest.param("1: FLOCK  ADVISORY  WRITE {pid} 00:00:1 0 EOF\n", True, id="of another file"),
    ],
)
def test_whose_a_lock_is_is_read_from_the_kernels_list(tmp_path: Path, locks: str, is_taken: bool) -> None:
    directory, proc = tmp_path / "yarn", tmp_path / "proc"
    directory.mkdir()
    for name in ("self", str(os.getpid())):
        (proc / name / "ns").mkdir(parents=True)
    (proc / "self/ns/mnt").touch()
    (proc / str(os.getpid()) / "ns/mnt").hardlink_to(proc / "self/ns/mnt")
    seen = directory.stat()
    number = f"{os.major(seen.st_dev):02x}:{os.minor(seen.st_dev):02x}:{seen.st_ino}"
    (proc / "locks").write_text(locks.format(pid=os.getpid(), id=number))
    with Hold(str(directory)):
        assert is_taken_by_another(str(directory), proc=str(proc)) is is_taken
    assert not is_taken_by_another(str(directory), proc=str(proc))
    assert not is_taken_by_another(str(tmp_path / "missing"), proc=str(proc))
