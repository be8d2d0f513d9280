# SPDX-License-Identifier: Apache-2.0
"""Test `nm-proxy run` as a real process in front of a real NodeManager, with a real application, on real cgroups."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from lab.cluster import Lab
from lab.hadoop.application import Application
from lab.hadoop.options import YarnOptions
from lab.node.machine import Machine
from lab.node.proxy import Proxy
from lab.processes import probes
from nm_proxy.rendering import keys

MIB = 1 << 20
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def yarn_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Run a ResourceManager and prepare one NodeManager."""
    # A slow machine must not make the ResourceManager give the node up while its NodeManager starts again.
    options = YarnOptions(minimum_memory_mib=64, nameless=(1,), unstarted=(1,), expiry_millis=600_000)
    with Lab(kubernetes=False, node_managers=1, hadoop_version=request.param, yarn_options=options) as lab:
        yield lab


class Scene:
    """Hold one nm-proxy with its application and the processes that must live on."""

    def __init__(self, lab: Lab, machine: Machine) -> None:
        self.lab, self.machine = lab, machine
        self.node_manager = lab.yarn.node_managers[0]
        self.proxy = Proxy(lab, self.node_manager, hierarchy=machine.place.yarn)
        self.site = self.node_manager.folder / "conf" / "yarn-site.xml"
        self.good_site = self.site.read_text()
        self.before: dict[str, int] = {}

    def submit(self) -> Application:
        self.lab.yarn.set_capacity(self.node_manager.node_id, 4096, 8)
        application = self.lab.submit()
        application.ask(count=2, memory_mib=256, vcores=2)
        application.wait_running(2)
        self.before = self.wait_inside(2)
        return application

    def wait_inside(self, count: int) -> dict[str, int]:
        """Wait until so many containers are in groups with their limits, and give their first processes."""

        def inside() -> dict[str, int]:
            tree, found = self.machine.tree, {}
            for name in tree.containers(self.machine.place.yarn):
                path = self.machine.place.container(name)
                processes, values = tree.processes(path), tree.values(path)
                if processes and (values.memory_bytes, values.cpu) == (256 * MIB, 2048):
                    found[name] = min(processes)
            return found if len(found) == count else {}

        return probes.wait_until(inside, what=f"{count} containers are inside", timeout_seconds=240)

    def assert_nothing_is_lost(self, application: Application) -> None:
        assert self.wait_inside(2) == self.before
        assert len(application.running()) == 2
        assert application.completed() == []


def starts_after_being_answered_shutdown(scene: Scene) -> None:
    """Let the ResourceManager refuse registrations, until the operator mends the mounted files."""
    minimum = "<name>yarn.scheduler.minimum-allocation-mb</name>\n    <value>64</value>"
    assert minimum in scene.good_site
    scene.site.write_text(scene.good_site.replace(minimum, minimum.replace("64", "1")))
    scene.proxy.process.start()
    probes.wait_until(
        lambda: scene.proxy.probe("readyz")[0] and scene.proxy.metric("yarn_copilot_node_manager_ends_total") >= 1,
        what="a NodeManager was answered SHUTDOWN",
        timeout_seconds=240,
        processes=[scene.proxy.process],
    )
    assert "Received SHUTDOWN signal from Resourcemanager" in scene.proxy.log()
    code, told = scene.proxy.probe("readyz")
    assert code == 503
    assert told["reasons"]
    scene.site.write_text(scene.good_site)
    scene.proxy.wait_ready()


def reports_what_was_rendered(scene: Scene) -> None:
    proxy, node_manager = scene.proxy, scene.node_manager
    assert scene.lab.yarn.capacity(node_manager.node_id) == (64, 1)
    for key, value in (
        (keys.ADDRESS, node_manager.node_id),
        ("yarn.nodemanager.resource.memory-mb", "64"),
        ("yarn.nodemanager.resource.cpu-vcores", "1"),
        (keys.RECOVERY_ENABLED, "true"),
        (keys.RECOVERY_DIR, str(node_manager.folder / "recovery")),
        (keys.RECOVERY_SUPERVISED, "false"),
        (keys.CPU_HANDLER, "false"),
        (keys.KILL_DELAY, "250"),
    ):
        assert proxy.configured(key) == value
    assert scene.site.read_text() == scene.good_site


def a_crash_of_the_supervisor_costs_nothing(scene: Scene, application: Application) -> None:
    first = scene.proxy.pid_of("node-manager")
    scene.proxy.kill("supervisor")
    scene.proxy.wait_ready()
    assert scene.proxy.pid_of("node-manager") == first
    assert scene.proxy.metric("yarn_copilot_node_manager_takeovers_total") == 1
    scene.assert_nothing_is_lost(application)


def a_crash_of_the_node_manager_costs_no_container(scene: Scene, application: Application) -> None:
    ends = scene.proxy.metric("yarn_copilot_node_manager_ends_total")
    first = scene.proxy.kill("node-manager")
    probes.wait_until(
        lambda: scene.proxy.metric("yarn_copilot_node_manager_ends_total") == ends + 1, what="seen", timeout_seconds=120
    )
    scene.proxy.wait_ready()
    assert scene.proxy.pid_of("node-manager") != first
    scene.assert_nothing_is_lost(application)


def with_host_pid_a_crash_of_the_whole_container_costs_no_task(scene: Scene, application: Application) -> None:
    """End what a container runtime ends: everything in the pod's own group, where the tasks are not any more."""
    node_manager = scene.proxy.pid_of("node-manager")
    scene.proxy.process.kill()
    os.kill(node_manager, signal.SIGKILL)
    probes.wait_until(lambda: scene.proxy.probe("readyz")[0] == 0, what="gone", timeout_seconds=120)
    scene.proxy.start()
    assert scene.proxy.metric("yarn_copilot_node_manager_takeovers_total") == 0
    scene.assert_nothing_is_lost(application)


def a_stop_drains_and_signs_off(scene: Scene, application: Application) -> None:
    proxy = scene.proxy
    proxy.process.signal(signal.SIGTERM)
    probes.wait_until(lambda: proxy.copilot_state()["drain"] == "draining", what="draining", timeout_seconds=120)
    assert proxy.probe("readyz")[0] == 503
    scene.assert_nothing_is_lost(application)
    application.stop()
    proxy.process.wait(120.0)
    assert proxy.process.exit_code == 0
    assert "No container is left" in proxy.log()
    probes.wait_until(lambda: proxy.state_at_manager() in (None, "SHUTDOWN"), what="signed off", timeout_seconds=120)
    assert not any(scene.machine.tree.processes(scene.machine.place.container(name)) for name in scene.before)


@pytest.mark.parametrize("yarn_lab", ["3.5.0"], indirect=True)
def test_a_node_manager_is_run_kept_and_stopped_without_losing_a_container(yarn_lab: Lab, machine: Machine) -> None:
    scene = Scene(yarn_lab, machine)
    starts_after_being_answered_shutdown(scene)
    reports_what_was_rendered(scene)
    application = scene.submit()
    a_crash_of_the_supervisor_costs_nothing(scene, application)
    with_host_pid_a_crash_of_the_whole_container_costs_no_task(scene, application)
    a_stop_drains_and_signs_off(scene, application)


@pytest.mark.parametrize("yarn_lab", ["3.3.6"], indirect=True)
def test_an_old_node_manager_is_run_kept_and_stopped_too(yarn_lab: Lab, machine: Machine) -> None:
    scene = Scene(yarn_lab, machine)
    scene.proxy.start()
    reports_what_was_rendered(scene)
    application = scene.submit()
    a_crash_of_the_node_manager_costs_no_container(scene, application)
    a_stop_drains_and_signs_off(scene, application)
