# SPDX-License-Identifier: Apache-2.0
"""Test `nm-proxy run` as a real process in front of a real NodeManager, with a real application, on real cgroups."""

from __future__ import annotations

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


@pytest.fixture(params=["3.5.0", "3.3.6"])
def yarn_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Run a ResourceManager and prepare one NodeManager, in the newest and in an old version."""
    options = YarnOptions(minimum_memory_mib=64, nameless=(1,), unstarted=(1,))
    with Lab(kubernetes=False, node_managers=1, hadoop_version=request.param, yarn_options=options) as lab:
        yield lab


def wait_inside(machine: Machine, count: int) -> dict[str, frozenset[int]]:
    """Wait until so many containers are in groups with their limits, and give their processes."""

    def inside() -> dict[str, frozenset[int]]:
        names = machine.tree.containers(machine.place.yarn)
        paths = {name: machine.place.container(name) for name in names}
        found = {
            name: machine.tree.processes(path)
            for name, path in paths.items()
            if machine.tree.processes(path) and machine.tree.values(path).memory_bytes == 256 * MIB
        }
        return found if len(found) == count else {}

    return probes.wait_until(inside, what=f"{count} containers are inside", timeout_seconds=60)


def submit(lab: Lab, proxy: Proxy, count: int) -> Application:
    lab.yarn.set_capacity(proxy.node_manager.node_id, 4096, 8)
    application = lab.submit()
    application.ask(count=count, memory_mib=256, vcores=2)
    application.wait_running(count)
    return application


def test_a_node_manager_is_run_kept_and_stopped_without_losing_a_container(yarn_lab: Lab, machine: Machine) -> None:
    node_manager = yarn_lab.yarn.node_managers[0]
    proxy = Proxy(yarn_lab, node_manager, hierarchy=machine.place.yarn)
    proxy.start()

    # The rendered configuration is what the NodeManager reports, and what the ResourceManager registered.
    assert yarn_lab.yarn.capacity(node_manager.node_id) == (64, 1)
    assert proxy.configured(keys.ADDRESS) == node_manager.node_id
    assert proxy.configured("yarn.nodemanager.resource.memory-mb") == "64"
    assert proxy.configured(keys.RECOVERY_ENABLED) == "true"
    assert proxy.configured(keys.RECOVERY_DIR) == str(node_manager.folder / "recovery")
    assert proxy.configured(keys.CPU_HANDLER) == "false"
    assert "yarn.nodemanager.resource.memory-mb</name><value>1024" not in (proxy.rendered / "yarn-site.xml").read_text()

    application = submit(yarn_lab, proxy, 2)
    before = wait_inside(machine, 2)

    # A crash of the supervisor costs nothing.
    first = proxy.pid_of("node-manager")
    proxy.kill("supervisor")
    proxy.wait_ready()
    assert proxy.pid_of("node-manager") == first
    assert proxy.metric("yarn_copilot_node_manager_takeovers_total") == 1
    assert wait_inside(machine, 2) == before

    # A crash of the NodeManager costs no container: the next one finds them again.
    proxy.kill("node-manager")
    probes.wait_until(
        lambda: proxy.metric("yarn_copilot_node_manager_ends_total") == 1, what="seen", timeout_seconds=30
    )
    proxy.wait_ready()
    assert proxy.pid_of("node-manager") != first
    assert wait_inside(machine, 2) == before
    assert len(application.running()) == 2

    # A stop waits for the containers, tells so, and signs off.
    proxy.process.signal(signal.SIGTERM)
    probes.wait_until(lambda: proxy.copilot_state()["drain"] == "draining", what="draining", timeout_seconds=30)
    assert proxy.probe("readyz")[0] == 503
    assert wait_inside(machine, 2) == before
    application.stop()
    proxy.process.wait(60.0)
    assert proxy.process.exit_code == 0
    assert "No container is left" in proxy.log()
    probes.wait_until(lambda: proxy.state_at_manager() in (None, "SHUTDOWN"), what="signed off", timeout_seconds=30)
    assert not any(machine.tree.processes(machine.place.container(name)) for name in before)
