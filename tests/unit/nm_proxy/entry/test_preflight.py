# SPDX-License-Identifier: Apache-2.0
"""Each kind of trouble is found, named with its exact path and a way to mend it, and has an exit code of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nm_proxy.agent_settings import ParentingMode
from nm_proxy.cgroup.layout import Driver
from nm_proxy.exit_codes import ExitCode
from nm_proxy.preflight.facts import NameFacts
from nm_proxy.preflight.findings import Severity, exit_code
from nm_proxy.preflight.judging import as_document, as_text, judge
from tests.unit.nm_proxy.entry.checked import World


@pytest.mark.parametrize("kind", ["v1", "v1-joined", "v1-hybrid", "mixed", "v2"])
@pytest.mark.parametrize("driver", list(Driver))
@pytest.mark.parametrize("mode", list(ParentingMode))
def test_a_good_node_is_found_good(tmp_path: Path, kind: str, driver: Driver, mode: ParentingMode) -> None:
    world = World(tmp_path, kind=kind, driver=driver, mode=mode)
    findings = judge(world.facts)
    assert [one for one in findings if one.severity is not Severity.OK] == []
    assert exit_code(findings) is ExitCode.OK
    place = next(one for one in findings if one.code is ExitCode.CGROUP_DRIVER)
    assert place.where == f"/{driver.best_effort}/hadoop-yarn"
    assert f"driver {driver.value}" in place.found


def _no_tree(world: World) -> None:
    world.sections["cgroup"] = {"root": str(world.folder / "nowhere")}
    world.facts = world.look()


def _no_best_effort(world: World) -> None:
    world.sections["cgroup"] = {"hierarchy": "other/hadoop-yarn"}
    world.facts = world.look()


def _read_only(world: World) -> None:
    (first, *rest) = world.facts.cgroup.groups
    group = replace(first, hierarchy=replace(first.hierarchy, read_only=True))
    world.facts = replace(world.facts, cgroup=replace(world.facts.cgroup, groups=(group, *rest)))


def _forbidden(world: World) -> None:
    world.may_write = lambda path: "memory" not in path
    world.facts = world.look()


def _name(world: World, host: str) -> None:
    assert world.facts.overlay is not None
    world.facts = replace(world.facts, overlay=replace(world.facts.overlay, host=host))


def _unresolved(world: World) -> None:
    world.facts = replace(world.facts, name=NameFacts(error="Name or service not known"))


def _taken(world: World) -> None:
    world.facts = replace(world.facts, name=NameFacts(addresses=("10.0.0.7",), port_error="Address already in use"))


def _small(world: World, **sizes: int) -> None:
    assert world.facts.overlay is not None
    world.facts = replace(world.facts, overlay=replace(world.facts.overlay, **sizes))  # type: ignore[arg-type] # whole numbers


def _programs(world: World, **changes: Any) -> None:
    world.facts = replace(world.facts, programs=replace(world.facts.programs, **changes))


def _recovery(world: World, **changes: Any) -> None:
    assert world.facts.recovery is not None
    world.facts = replace(world.facts, recovery=replace(world.facts.recovery, **changes))


BROKEN = [
    pytest.param(_no_tree, ExitCode.CGROUP_TREE, "/nowhere", "set cgroup.root", id="no tree"),
    pytest.param(_no_best_effort, ExitCode.CGROUP_DRIVER, "/cpu/other", "run on a node with kubelet", id="no kubelet"),
    pytest.param(_read_only, ExitCode.CGROUP_READ_ONLY, "/cpu", "readOnly: false", id="read-only mount"),
    pytest.param(_forbidden, ExitCode.CGROUP_READ_ONLY, "/memory/kubepods/besteffort", "privileged", id="forbidden"),
    pytest.param(
        lambda world: _name(world, "nm-3." + "x" * 60 + ".internal"),
        ExitCode.HOST_NAME,
        "yarn.nodemanager.address",
        "setHostnameAsFQDN off",
        id="long name",
    ),
    pytest.param(
        lambda world: _name(world, "nm_3.internal"), ExitCode.HOST_NAME, "yarn.", "identity.host_name", id="underscore"
    ),
    pytest.param(_taken, ExitCode.PORT, ":8041", "end the other NodeManager", id="port taken"),
    pytest.param(_unresolved, ExitCode.RESOLUTION, "nm-3.nodes", "publishNotReadyAddresses", id="unresolved"),
    pytest.param(
        lambda world: _small(world, memory_mib=512), ExitCode.CAPACITY, "capacity.memory_mib", "leave", id="memory"
    ),
    pytest.param(
        lambda world: _small(world, minimum_vcores=4), ExitCode.CAPACITY, "capacity.vcores", "leave", id="vcores"
    ),
    pytest.param(lambda world: _programs(world, command_path=None), ExitCode.JAVA, "yarn", "behind --", id="command"),
    pytest.param(
        lambda world: _programs(world, java_path=None), ExitCode.JAVA, "JAVA_HOME", "set JAVA_HOME", id="no Java"
    ),
    pytest.param(
        lambda world: _programs(world, java_version=11),
        ExitCode.JAVA,
        "/opt/java/bin/java",
        "newer Java",
        id="old Java",
    ),
    pytest.param(
        lambda world: _programs(world, java_version=None, java_error="does not run"),
        ExitCode.JAVA,
        "/opt/java/bin/java",
        "set JAVA_HOME",
        id="broken Java",
    ),
    pytest.param(
        lambda world: _programs(world, hadoop_version=(3, 2, 4)),
        ExitCode.HADOOP_VERSION,
        "hadoop.version",
        "newer Hadoop",
        id="old Hadoop",
    ),
    pytest.param(
        lambda world: _recovery(world, mount_point="/", file_system="overlay"),
        ExitCode.RECOVERY,
        "/var/lib/nm-proxy/recovery",
        "emptyDir",
        id="recovery in the container's layer",
    ),
    pytest.param(
        lambda world: _recovery(world, mount_point="/", file_system="btrfs", is_host_pid=True),
        ExitCode.RECOVERY,
        "/var/lib/nm-proxy/recovery",
        "emptyDir",
        id="recovery in the container's layer of a snapshotter",
    ),
    pytest.param(
        lambda world: _recovery(world, is_writable=False),
        ExitCode.RECOVERY,
        "/var/lib/nm-proxy/recovery",
        "emptyDir",
        id="recovery not writable",
    ),
    pytest.param(
        lambda world: _recovery(world, keep_on_stop=True),
        ExitCode.RECOVERY,
        "recovery.keep_on_stop",
        "hostPID: true",
        id="kept containers without hostPID",
    ),
]


@pytest.mark.parametrize(("breaks", "code", "where", "fix"), BROKEN)
def test_one_broken_thing_is_the_one_error(
    tmp_path: Path, breaks: Callable[[World], None], code: ExitCode, where: str, fix: str
) -> None:
    world = World(tmp_path)
    assert world.errors() == []
    breaks(world)
    found = world.the_error()
    assert found.code is code
    assert where in found.where
    assert fix in found.fix
    assert found.expected
    assert exit_code(judge(world.facts)) is code
    text = as_text(judge(world.facts))
    for part in (found.where, found.found, found.expected, found.fix, f"exit code {int(code)} ({found.code.kind})"):
        assert part in text
    short = as_text(judge(world.facts), shows_well=False)
    assert short.splitlines()[-1] == text.splitlines()[-1]
    assert found.found in short
    assert not any(line.startswith(Severity.OK) for line in short.splitlines())


def test_an_old_executor_does_not_know_version_2(tmp_path: Path) -> None:
    world = World(tmp_path, kind="v2", mode=ParentingMode.EXECUTOR)
    _programs(world, hadoop_version=(3, 3, 6))
    assert world.the_error().code is ExitCode.HADOOP_VERSION
    _programs(world, hadoop_version=None)
    assert world.the_error().where == "hadoop.version"


def test_an_unknown_version_and_a_loopback_address_are_warnings_and_do_not_stop(tmp_path: Path) -> None:
    world = World(tmp_path)
    _programs(world, hadoop_version=None, java_version=8)
    world.facts = replace(world.facts, name=NameFacts(addresses=("127.0.1.1",)))
    warned = {one.code for one in judge(world.facts) if one.severity is Severity.WARNING}
    assert warned == {ExitCode.HADOOP_VERSION, ExitCode.RESOLUTION}
    assert exit_code(judge(world.facts)) is ExitCode.OK


@pytest.mark.parametrize(
    ("kind", "obstacle", "warned"),
    [
        ("v1", "/c/devices is mounted read-only", {"recovery.keep_on_stop"}),
        ("v1", "", set()),
        ("v2", "/c/devices is mounted read-only", set()),
    ],
)
def test_keeping_containers_over_a_stop_is_doubtful_where_the_runtime_ends_them(
    tmp_path: Path, kind: str, obstacle: str, warned: set[str]
) -> None:
    world = World(tmp_path, kind=kind)
    _recovery(world, keep_on_stop=True, is_host_pid=True, obstacle=obstacle)
    found = [one for one in judge(world.facts) if one.severity is Severity.WARNING]
    assert {one.where for one in found} == warned
    assert world.errors() == []


@pytest.mark.parametrize("file_system", ["ext4", "overlay"])
def test_a_machine_without_containers_has_its_recovery_directory_where_it_likes(
    tmp_path: Path, file_system: str
) -> None:
    world = World(tmp_path)
    _recovery(world, mount_point="/", file_system=file_system, is_host_pid=True, is_container=False)
    assert world.errors() == []


@pytest.mark.parametrize(
    ("login", "where", "fix"),
    [
        ("kerberos", "hadoop.http.authentication.type", "to simple in the yarn-site.xml"),
        ("a name", "hadoop.http.authentication.simple.anonymous.allowed", "node_manager.user"),
    ],
)
def test_pages_that_the_agent_cannot_read_are_a_warning(tmp_path: Path, login: str, where: str, fix: str) -> None:
    world = World(tmp_path)
    assert world.facts.overlay is not None
    world.facts = replace(world.facts, overlay=replace(world.facts.overlay, page_login=login))
    (found,) = [one for one in judge(world.facts) if one.severity is not Severity.OK]
    assert (found.severity, found.code, found.where) == (Severity.WARNING, ExitCode.CONFIGURATION, where)
    assert fix in found.fix
    assert exit_code(judge(world.facts)) is ExitCode.OK


def test_a_port_that_cannot_be_bound_is_named_by_where_it_was_tried(tmp_path: Path) -> None:
    world = World(tmp_path)
    _taken(world)
    assert world.facts.overlay is not None
    world.facts = replace(world.facts, overlay=replace(world.facts.overlay, listens_at="0.0.0.0"))
    found = world.the_error()
    assert found.where == "0.0.0.0:8041"
    assert "yarn.nodemanager.bind-host" in found.fix


def test_every_problem_is_reported_and_the_first_gives_the_code(tmp_path: Path) -> None:
    world = World(tmp_path)
    _unresolved(world)
    _forbidden_facts = replace(world.facts, recovery=None)
    world.facts = _forbidden_facts
    _programs(world, java_path=None)
    assert [one.code for one in world.errors()] == [ExitCode.RESOLUTION, ExitCode.JAVA]
    assert as_document(judge(world.facts))["exit_code"] == 22
