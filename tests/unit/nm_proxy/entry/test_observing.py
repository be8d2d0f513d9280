# SPDX-License-Identifier: Apache-2.0
"""The preflight's look at the node: it reads the machine, changes nothing, and goes on where something is broken."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from nm_proxy.exit_codes import ExitCode
from nm_proxy.preflight.findings import Severity
from nm_proxy.preflight.judging import judge
from nm_proxy.preflight.observing import (
    Surroundings,
    find_hadoop_version,
    observe,
    observe_name,
)
from nm_proxy.preflight.volumes import Volume, volume_of
from nm_proxy.rendering import keys
from tests.unit.nm_proxy.entry.site import rendered, settings, write_site
from tests.unit.nm_proxy.world import Node

MOUNTS = """
1 0 0:1 / / rw - overlay overlay rw
2 1 0:2 / /proc rw - proc proc rw
3 1 8:1 /x /var/lib/nm\\040proxy rw - ext4 /dev/sda1 rw
4 1 0:3 / /run rw - tmpfs tmpfs rw
"""


def test_a_whole_look_reads_the_machine_and_changes_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path)
    write_site(tmp_path / "conf/yarn-site.xml", {"yarn.nodemanager.address": "127.0.0.1:0"})
    java = tmp_path / "java/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    jars = tmp_path / "hadoop/share/hadoop/yarn"
    jars.mkdir(parents=True)
    (jars / "hadoop-yarn-server-nodemanager-3.4.2.jar").touch()
    around = Surroundings(
        environ={"JAVA_HOME": str(tmp_path / "java"), "HADOOP_HOME": str(tmp_path / "hadoop"), "PATH": os.defpath},
        files=node.kernel,
        mounts=node.mounts,
        may_write=lambda _: True,
        mountinfo=lambda: MOUNTS,
    )
    before = sorted(tmp_path.rglob("*"))
    found = settings(
        tmp_path,
        cgroup={"root": str(node.kernel.root)},
        recovery={"directory": "/var/lib/nm proxy/a/b"},
        identity={"port": 8041},
    )
    facts = observe(found, ("sh", "-c", "true"), around, tries_port=False)
    assert sorted(tmp_path.rglob("*")) == before
    assert facts.programs.java_version == 8
    assert facts.programs.hadoop_version == (3, 4, 2)
    assert facts.programs.command_path is not None
    assert facts.name is not None
    assert facts.name.addresses == ("127.0.0.1",)
    assert facts.recovery is not None
    assert facts.cgroup.detection is not None
    assert judge(facts)


def test_a_look_goes_on_when_hadoops_files_are_wrong(tmp_path: Path) -> None:
    node = Node(tmp_path)
    around = Surroundings(environ={}, files=node.kernel, mounts=node.mounts, mountinfo=lambda: MOUNTS)
    facts = observe(settings(tmp_path, cgroup={"root": str(node.kernel.root)}), ("sh",), around, tries_port=True)
    (first, *_) = [one for one in judge(facts) if one.severity is Severity.ERROR]
    assert first.code is ExitCode.CONFIGURATION
    assert "conf/yarn-site.xml" in first.found
    assert facts.cgroup.detection is not None


def test_a_recovery_directory_that_cannot_be_made_is_a_finding(tmp_path: Path) -> None:
    node = Node(tmp_path)
    write_site(tmp_path / "conf/yarn-site.xml", {"yarn.nodemanager.address": "127.0.0.1:0"})
    around = Surroundings(
        environ={}, files=node.kernel, mounts=node.mounts, may_write=lambda _: True, mountinfo=lambda: MOUNTS
    )
    found = settings(tmp_path, cgroup={"root": str(node.kernel.root)}, recovery={"directory": "/" + "a" * 300})
    facts = observe(found, ("sh",), around, tries_port=False)
    assert facts.recovery is not None
    assert facts.recovery.mount_point == "/"
    assert [one.code for one in judge(facts) if one.where == facts.recovery.directory] == [ExitCode.RECOVERY]


MACHINE = "1 0 8:1 / / rw - ext4 /dev/sda1 rw"


@pytest.mark.parametrize(
    ("own", "first", "is_host_pid", "is_container"),
    [
        pytest.param(MACHINE, MACHINE, True, False, id="a machine without containers"),
        pytest.param("7 0 8:1 / / ro - ext4 /dev/sda1 rw", MACHINE, True, False, id="a service with its own mounts"),
        pytest.param(f"1 1 0:2 / / rw - rootfs rootfs rw\n{MACHINE}", MACHINE, True, False, id="the last is visible"),
        pytest.param(MACHINE, MACHINE, False, True, id="PID 1 is the container's own"),
        pytest.param("7 0 253:4 / / rw - xfs /dev/dm-4 rw", MACHINE, True, True, id="devmapper with hostPID"),
        pytest.param("7 0 8:1 /snapshots/9 / rw - btrfs /dev/sda1 rw", MACHINE, True, True, id="btrfs with hostPID"),
        pytest.param(MACHINE, "", True, True, id="PID 1 cannot be looked at"),
        pytest.param("", "", True, True, id="nothing is mounted at the root"),
    ],
)
def test_a_container_is_known_by_what_is_at_its_root(
    tmp_path: Path, own: str, first: str, *, is_host_pid: bool, is_container: bool
) -> None:
    node = Node(tmp_path)
    write_site(tmp_path / "conf/yarn-site.xml", {"yarn.nodemanager.address": "127.0.0.1:0"})
    around = Surroundings(
        environ={},
        files=node.kernel,
        mounts=node.mounts,
        may_write=lambda _: True,
        mountinfo=lambda: own,
        first_mountinfo=lambda: first,
        is_host_pid=lambda: is_host_pid,
    )
    found = settings(tmp_path, cgroup={"root": str(node.kernel.root)}, recovery={"directory": "/opt/recovery"})
    facts = observe(found, ("sh",), around, tries_port=False)
    assert facts.recovery is not None
    assert facts.recovery.is_container is is_container
    recovery = [one.severity for one in judge(facts) if one.where == "/opt/recovery"]
    assert recovery == [Severity.ERROR if is_container else Severity.OK]


def test_a_port_in_use_is_seen(tmp_path: Path) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        identity = {"host_name": "127.0.0.1", "port": taken.getsockname()[1]}
        overlay = rendered(tmp_path, identity=identity).overlay
        assert observe_name(overlay, tries_port=True).port_error
        assert observe_name(overlay, tries_port=False).port_error == ""
    assert observe_name(overlay, tries_port=True).port_error == ""


FOREIGN = "192.0.2.7"
"""An address of documentation, which no machine has."""


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        pytest.param({}, "assign", id="the node's address is not the pod's"),
        pytest.param({keys.BIND_HOST: "0.0.0.0"}, "", id="bound to every address"),
        pytest.param({keys.BIND_HOST: "127.0.0.1"}, "", id="bound to one that is there"),
        pytest.param({keys.BIND_HOST: "192.0.2.8"}, "assign", id="bound to one that is not there"),
        pytest.param({keys.BIND_HOST: "no-such-host.invalid"}, "name", id="bound to a name that nobody knows"),
    ],
)
def test_the_port_is_tried_where_the_node_manager_will_listen(
    tmp_path: Path, properties: dict[str, str], error: str
) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", properties)
    overlay = rendered(tmp_path, identity={"host_name": FOREIGN, "port": _free_port()}).overlay
    found = observe_name(overlay, tries_port=True)
    assert found.addresses == (FOREIGN,)
    assert (error in found.port_error.lower()) if error else found.port_error == ""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def test_a_name_that_nobody_knows_is_an_error_in_words(tmp_path: Path) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {})
    overlay = rendered(tmp_path, identity={"host_name": "no-such-host.invalid"}).overlay
    assert observe_name(overlay, tries_port=True).error


@pytest.mark.parametrize(
    ("path", "volume"),
    [
        pytest.param("/opt/x", Volume("/", "overlay"), id="root"),
        pytest.param("/var/lib/nm proxy/recovery", Volume("/var/lib/nm proxy", "ext4"), id="blank in the path"),
        pytest.param("/runaway", Volume("/", "overlay"), id="not by letters"),
        pytest.param("/run/a", Volume("/run", "tmpfs"), id="tmpfs"),
    ],
)
def test_finds_the_mount_of_a_path(path: str, volume: Volume) -> None:
    assert volume_of(Path(path), MOUNTS) == volume


def test_the_settings_version_wins_and_the_class_path_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "hadoop-yarn-server-nodemanager-3.3.6.jar").touch()
    command = ("java", "-cp", f"/nowhere:{tmp_path}/*", "Main")
    assert find_hadoop_version(settings(tmp_path), command, {}) == (3, 3, 6)
    named = settings(tmp_path, hadoop={"version": "3.5.0"})
    assert find_hadoop_version(named, command, {}) == (3, 5, 0)
    assert find_hadoop_version(settings(tmp_path), ("java",), {}) is None
