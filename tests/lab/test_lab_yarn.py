# SPDX-License-Identifier: Apache-2.0
"""Check that the lab's YARN and its application do what the tests rely on, on each Hadoop version."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from lab.cluster import Lab
from lab.errors import LabError
from lab.hadoop.application import EXIT_ABORTED, EXIT_PREEMPTED
from lab.hadoop.options import YarnOptions
from lab.processes import probes


@pytest.fixture(params=["3.3.6", "3.4.3"])
def older_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Run YARN alone in an older version, one of its NodeManagers without a name."""
    options = YarnOptions(nameless=(2,))
    with Lab(kubernetes=False, node_managers=2, hadoop_version=request.param, yarn_options=options) as lab:
        yield lab


def _give_room(lab: Lab) -> None:
    for node_manager in lab.yarn.node_managers:
        # All of one test fits on each of them: nothing says where the first containers go.
        lab.yarn.set_capacity(node_manager.node_id, 8192, 16)


def _check_application(lab: Lab, *, managed: bool) -> None:
    _give_room(lab)
    application = lab.submit(managed=managed)
    application.ask(count=3, memory_mib=256)
    application.ask(count=1, queue="root.interactive", memory_mib=512, vcores=2)
    application.wait_running(4)
    own = lab.yarn.node_managers[1].node_id
    application.ask(count=2, node=own)
    running = application.wait_running(6)
    assert [each.node for each in running][-2:] == [own, own]
    application.release(2)
    application.wait_running(4)
    application.ask(count=1, duration_seconds=0.5)
    application.wait_for(lambda: len(application.completed()) == 3, what="the short one has ended")
    assert sorted(each.exit_status or 0 for each in application.completed()) == [EXIT_ABORTED, EXIT_ABORTED, 0]
    application.stop()
    assert application.errors == []
    probes.wait_until(
        lambda: all(lab.yarn.used(each.node_id) == (0, 0) for each in lab.yarn.node_managers),
        what="nothing is used",
        timeout_seconds=60,
    )


@pytest.mark.parametrize("managed", [False, True], ids=["unmanaged", "managed"])
def test_application_holds_and_releases_containers(lab: Lab, managed: bool) -> None:
    _check_application(lab, managed=managed)


def test_application_holds_and_releases_containers_on_older_versions(older_lab: Lab) -> None:
    _check_application(older_lab, managed=False)
    _check_application(older_lab, managed=True)


def test_node_ids_carry_the_names_and_addresses_of_the_node_managers(older_lab: Lab) -> None:
    named, nameless = older_lab.yarn.node_managers
    assert named.node_id.startswith("nm-1.lab.internal:")
    assert nameless.node_id.startswith("127.0.1.2:")
    assert {node["id"] for node in older_lab.yarn.nodes()} == {named.node_id, nameless.node_id}


def test_application_sees_preempted_containers(lab: Lab) -> None:
    _give_room(lab)
    application = lab.submit()
    node_id = lab.yarn.node_managers[0].node_id
    application.ask(count=4, memory_mib=512, node=node_id)
    application.wait_running(4)
    lab.yarn.set_capacity(node_id, 1024, 8, overcommit_timeout_millis=0)
    application.wait_for(lambda: len(application.killed()) == 2, what="two containers are taken away")
    assert {each.exit_status for each in application.killed()} == {EXIT_PREEMPTED}


def test_far_deadline_takes_nothing_away_and_sends_a_notice(lab: Lab) -> None:
    _give_room(lab)
    application = lab.submit()
    node_id = lab.yarn.node_managers[0].node_id
    application.ask(count=4, memory_mib=512, node=node_id)
    application.wait_running(4)
    lab.yarn.set_capacity(node_id, 1024, 8)
    application.wait_for(lambda: bool(application.preemption_notices), what="a notice has come")
    assert application.killed() == []
    assert len(application.running()) == 4


def test_capacity_and_application_survive_a_restart_of_the_resource_manager(lab: Lab) -> None:
    _give_room(lab)
    application = lab.submit()
    application.ask(count=2)
    application.wait_running(2)
    lab.yarn.stop_rm(kill=True)
    lab.yarn.start_rm()
    lab.yarn.wait_for_nodes()
    node_ids = [each.node_id for each in lab.yarn.node_managers]
    assert [lab.yarn.capacity(node_id) for node_id in node_ids] == [(8192, 16)] * 3
    application.ask(count=1)
    application.wait_running(3)


def test_tidied_lab_has_no_application_and_the_floor_again(lab: Lab) -> None:
    _give_room(lab)
    lab.submit().ask(count=2)
    held = lab.submit(managed=True)
    held.ask(count=2)
    held.wait_running(2)
    lab.yarn.resource_manager.pause()
    lab.yarn.node_managers[1].kill()
    lab.tidy()
    node_ids = [each.node_id for each in lab.yarn.node_managers]
    assert [lab.yarn.used(node_id) for node_id in node_ids] == [(0, 0)] * 3
    assert [lab.yarn.capacity(node_id) for node_id in node_ids] == [(1024, 1)] * 3


def test_what_cannot_be_ended_is_gone_after_a_new_start(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    _give_room(lab)
    lab.submit().ask(count=2)
    end = lab.yarn.kill_applications
    calls: list[str] = []

    def fail_once() -> None:
        calls.append("end")
        if len(calls) == 1:
            raise LabError("no node is used: not within 60 s")
        end()

    monkeypatch.setattr(lab.yarn, "kill_applications", fail_once)
    lab.tidy()
    assert len(calls) == 2
    node_ids = [each.node_id for each in lab.yarn.node_managers]
    assert [lab.yarn.used(node_id) for node_id in node_ids] == [(0, 0)] * 3
    assert [lab.yarn.capacity(node_id) for node_id in node_ids] == [(1024, 1)] * 3


def test_update_calls_are_counted_at_the_resource_manager(lab: Lab) -> None:
    node_id = lab.yarn.node_managers[0].node_id
    before = lab.yarn.count_update_calls()
    succeeded_before = lab.yarn.count_update_calls(succeeded_only=True)
    assert _update_with_the_command_line(lab, node_id, user="yarn") == 0
    assert _update_with_the_command_line(lab, "unknown.lab.internal:1", user="yarn") != 0
    assert _update_with_the_command_line(lab, node_id, user="mallory") != 0
    lab.yarn.set_capacity(node_id, 3072, 3)
    assert lab.yarn.count_update_calls() == before + 3
    assert lab.yarn.count_update_calls(succeeded_only=True) == succeeded_before + 1


def _update_with_the_command_line(lab: Lab, node_id: str, *, user: str) -> int:
    """Change a capacity with Hadoop's own `yarn rmadmin`; returns its exit code."""
    tool = lab.yarn.java.command("org.apache.hadoop.yarn.client.cli.RMAdminCLI", lab.yarn.conf_dir, heap_mib=128)
    done = subprocess.run(
        [*tool, "-updateNodeResource", node_id, "2048", "2"],
        env={**os.environ, "HADOOP_USER_NAME": user, "HADOOP_HOME": str(lab.yarn.folder)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode


def test_killed_node_manager_comes_back_with_its_floor(lab: Lab) -> None:
    node_manager = lab.yarn.node_managers[0]
    lab.yarn.set_capacity(node_manager.node_id, 4096, 8)
    node_manager.kill()
    node_manager.start()
    probes.wait_until(
        lambda: lab.yarn.capacity(node_manager.node_id) == (1024, 1),
        what="it is registered again",
        timeout_seconds=60,
        processes=[node_manager.process],
    )
