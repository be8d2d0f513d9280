# SPDX-License-Identifier: Apache-2.0
"""Show that the bridge finds back by itself after every part of the system was restarted, killed or frozen."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Lab
from lab.controller import ControllerProcess
from lab.hadoop.application import Application
from lab.processes import probes
from tests.lab.bridge import FAST, GIB, SETTLED_SECONDS, Bridge, BridgedNode, Claim, Unique, merged
from tests.lab.figures import record_figures
from tests.lab.watching import ClaimWatch, ContainerTruth, claims_below_use

_KILLS = 20
_LAG_SECONDS = 1.0
_RECOVERY_SECONDS = 60.0
_ALONE = {
    "kubernetes": {"request_timeout_seconds": 2, "backoff_max_seconds": 1},
    "leader_election": {"enabled": False},
}


class _Load:
    """Change origins and containers at random; some containers of each node are never given back."""

    def __init__(
        self, bridge: Bridge, nodes: list[BridgedNode], application: Application, truth: ContainerTruth
    ) -> None:
        self._bridge = bridge
        self._nodes = nodes
        self._application = application
        self._truth = truth
        self._kept: set[str] = set()

    def begin(self) -> None:
        """Fill the nodes."""
        for node in self._nodes:
            self._application.ask(count=3, memory_mib=1024, node=node.node_id)
        running = self._application.wait_running(3 * len(self._nodes))
        self._kept = {each.id for node in self._nodes for each in [c for c in running if c.node == node.node_id][:2]}
        self._bridge.wait(lambda: len(self._truth.held()) == len(running), "the containers are seen")

    def step(self, choices: random.Random) -> None:
        """Make one change of origin and perhaps one of containers."""
        node = choices.choice(self._nodes)
        vcores = choices.randrange(2, 16)
        self._bridge.set_origin(node, vcores * 1000, vcores * GIB)
        spare = [each for each in self._truth.held() if each.id not in self._kept]
        if spare and choices.random() < 0.3:
            self._truth.release([choices.choice(spare)])
        elif len(spare) < 6 and choices.random() < 0.3:
            self._application.ask(memory_mib=1024, node=node.node_id)


@pytest.mark.timeout(900)  # a minute on a quiet machine, several on a busy one
def test_kills_at_random_moments_never_lower_a_claim_below_use(lab: Lab, unique: Unique, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    choices = random.Random(seed)
    bridge = Bridge(lab, unique, config=merged(FAST, _ALONE))
    nodes = bridge.enroll_all(cpu_milli=16_000, memory_bytes=16 * GIB)
    controller = bridge.start()
    for node in nodes:
        bridge.wait_capacity(node, 16_384, 16, seconds=SETTLED_SECONDS)
    application = lab.submit()
    with ClaimWatch(lab) as watch, ContainerTruth(application) as truth:
        load = _Load(bridge, nodes, application, truth)
        load.begin()
        bridge.wait_settled(*nodes)
        for _ in range(_KILLS):
            # Some lives end while the program starts, most at work.
            if choices.random() < 0.7:
                _change_until(lambda: _is_ready(controller), load, choices)
            end_at = time.monotonic() + choices.uniform(0.1, 2.0)
            _change_until(lambda end_at=end_at: time.monotonic() > end_at, load, choices)  # type: ignore[misc]
            controller.sigkill()
            controller.start()
        seconds = _seconds_of(lambda: _converge(bridge, nodes))
        assert watch.problems == []
        faults = [
            fault
            for node in nodes
            for fault in claims_below_use(watch.history(node), truth, node, lag_seconds=_LAG_SECONDS)
        ]
        assert faults == [], f"seed {seed}"
        versions = sum(len(watch.history(node)) for node in nodes)
    record_figures(
        "restart-kills", {"kills": _KILLS, "claim_versions": versions, "converged_seconds": seconds}, folder=tmp_path
    )
    assert versions > 3 * len(nodes)  # claims rose and fell meanwhile
    assert application.killed() == []


def _change_until(is_over: Callable[[], bool], load: _Load, choices: random.Random) -> None:
    until = time.monotonic() + _RECOVERY_SECONDS
    while not is_over():
        assert time.monotonic() < until
        load.step(choices)


def _is_ready(controller: ControllerProcess) -> bool:
    try:
        return probes.http_ok(f"{controller.url}/readyz")
    except probes.NotReadyError:
        return False


def _seconds_of(action: Callable[[], object]) -> float:
    began_at = time.monotonic()
    action()
    return time.monotonic() - began_at


def _converge(bridge: Bridge, nodes: list[BridgedNode]) -> None:
    for number, node in enumerate(nodes):
        bridge.set_origin(node, (20 + number) * 1000, (20 + number) * GIB)
    for number, node in enumerate(nodes):
        bridge.wait_capacity(node, (20 + number) * 1024, 20 + number, seconds=_RECOVERY_SECONDS)
    bridge.wait_settled(*nodes, seconds=_RECOVERY_SECONDS)


def _use_two_vcores(bridge: Bridge, nodes: list[BridgedNode]) -> Application:
    application = bridge.lab.submit()
    for node in nodes:
        application.ask(count=2, memory_mib=1024, node=node.node_id)
    application.wait_running(2 * len(nodes))
    for node in nodes:
        bridge.wait_claim(node, Claim(2000, 2 * GIB))
    return application


def _started(bridge: Bridge, *configs: dict[str, object]) -> tuple[list[BridgedNode], ControllerProcess]:
    nodes = bridge.enroll_all()
    controller = bridge.start(*configs)
    for node in nodes:
        bridge.wait_capacity(node, 8192, 8, seconds=SETTLED_SECONDS)
    return nodes, controller


def test_restart_of_the_resource_manager_leaves_claims_and_ends_in_agreement(
    lab: Lab, unique: Unique, tmp_path: Path
) -> None:
    bridge = Bridge(lab, unique)
    nodes, controller = _started(bridge)
    application = _use_two_vcores(bridge, nodes)
    with ClaimWatch(lab) as watch:
        lab.yarn.stop_rm(kill=True)
        for node in nodes:
            bridge.set_origin(node, 5000, 5 * GIB)
        bridge.wait(
            lambda: controller.metric("yarn_copilot_cluster_reachable") == 0, "the bridge has noticed", seconds=60
        )
        errors = controller.metric("yarn_copilot_loop_errors_total", {"loop": "cluster_view"})
        bridge.wait(
            lambda: controller.metric("yarn_copilot_loop_errors_total", {"loop": "cluster_view"}) > errors + 3,
            "it has tried again three times",
        )
        assert [bridge.claim(node) for node in nodes] == [Claim(2000, 2 * GIB)] * 3
        lab.yarn.start_rm()
        began_at = time.monotonic()
        for node in nodes:
            bridge.wait(lambda node=node: _is_at(bridge, node, (5120, 5)), "it is applied", seconds=_RECOVERY_SECONDS)  # type: ignore[misc]
        applied_seconds = time.monotonic() - began_at
        bridge.wait_settled(*nodes, seconds=_RECOVERY_SECONDS)
        # While it was down, and while NodeManagers came back one after the other, no claim fell.
        assert {version.claim for node in nodes for version in watch.history(node)} == {Claim(2000, 2 * GIB)}
    assert bridge.controller_events("ResourceManagerUnreachable")
    assert bridge.controller_events("ResourceManagerReachable")
    record_figures("restart-resource-manager", {"applied_seconds": applied_seconds}, folder=tmp_path)
    assert application.killed() == []


def _is_at(bridge: Bridge, node: BridgedNode, size: tuple[int, int]) -> bool:
    found = {each["id"]: each["totalResource"] for each in bridge.lab.yarn.nodes()}.get(node.node_id)
    if found is None or (found["memory"], found["vCores"]) != size:
        raise probes.NotReadyError(f"{node.name} has {found}, wanted {size}")
    return True


def test_node_manager_that_restarts_gets_its_capacity_again(lab: Lab, unique: Unique, tmp_path: Path) -> None:
    bridge = Bridge(lab, unique)
    nodes, _ = _started(bridge)
    victim = nodes[0]
    figures = {}
    for way, end in (("killed", victim.manager.kill), ("stopped", victim.manager.stop)):
        since = _last_registration(lab, victim)
        end()
        victim.manager.start()
        # It registers with its configured floor; the bridge may be faster than any look at that.
        bridge.wait(
            lambda since=since: _last_registration(lab, victim) > since,  # type: ignore[misc]
            "it is registered again",
            seconds=_RECOVERY_SECONDS,
        )
        figures[f"{way}_seconds"] = _seconds_of(lambda: bridge.wait_capacity(victim, 8192, 8, seconds=SETTLED_SECONDS))
    assert [bridge.capacity(node) for node in nodes] == [(8192, 8)] * 3
    bridge.wait_settled(*nodes)
    record_figures("restart-node-manager", figures, folder=tmp_path)


def _last_registration(lab: Lab, node: BridgedNode) -> int:
    """Count in the ResourceManager's log how often it has taken the NodeManager's registration."""
    text = lab.yarn.resource_manager.log_path.read_text(errors="replace")
    return sum("registered with capability" in line and node.node_id in line for line in text.splitlines())


def test_restart_of_the_api_server_and_a_frozen_etcd_are_survived(lab: Lab, unique: Unique, tmp_path: Path) -> None:
    bridge = Bridge(lab, unique)
    nodes, controller = _started(bridge)
    application = _use_two_vcores(bridge, nodes)
    figures = {}
    for way, kill in (("killed", True), ("stopped", False)):
        lab.kubernetes.stop_api_server(kill=kill)
        lab.kubernetes.start_api_server()
        figures[f"api_server_{way}_seconds"] = _seconds_of(lambda: _converge(bridge, nodes))
        _back_to_eight(bridge, nodes)
    errors = _kubernetes_errors(controller)
    lab.kubernetes.etcd.pause()
    bridge.wait(lambda: _kubernetes_errors(controller) > errors, "calls fail", seconds=_RECOVERY_SECONDS)
    lab.kubernetes.etcd.resume()
    bridge.wait(
        lambda: probes.http_ok(
            f"{lab.kubernetes.url}/readyz", ca_file=lab.kubernetes.ca_file, token=lab.kubernetes.admin_token
        ),
        "it is ready again",
        seconds=60,
    )
    figures["etcd_frozen_seconds"] = _seconds_of(lambda: _converge(bridge, nodes))
    assert controller.is_running
    assert application.killed() == []
    assert [bridge.claim(node) for node in nodes] == [Claim(2000, 2 * GIB)] * 3
    record_figures("restart-kubernetes", figures, folder=tmp_path)


def _kubernetes_errors(controller: ControllerProcess) -> int:
    """Count in the log how often the lease could not be renewed."""
    return controller.log_path.read_text().count("Lease could not be taken or renewed")


def _back_to_eight(bridge: Bridge, nodes: list[BridgedNode]) -> None:
    for node in nodes:
        bridge.set_origin(node, 8000, 8 * GIB)
    for node in nodes:
        bridge.wait_capacity(node, 8192, 8, seconds=_RECOVERY_SECONDS)


def test_silent_api_server_ends_updates_to_yarn_after_the_limit(lab: Lab, unique: Unique) -> None:
    # Without a lease, so that nothing but the limit on silence can be what stops it.
    bridge = Bridge(lab, unique, config=merged(FAST, _ALONE))
    limits: dict[str, Any] = {
        "capacity": {"kubernetes_max_silence_seconds": 5},
        "kubernetes": {"watch_silence_timeout_seconds": 5},
    }
    nodes, controller = _started(bridge, limits)
    victim = nodes[0]
    lab.kubernetes.stop_api_server()
    bridge.wait(
        lambda: controller.metric("yarn_copilot_watch_silence_seconds", {"kind": "nodes"}) > 6, "it has been silent"
    )
    before = lab.yarn.count_update_calls()
    since = _last_registration(lab, victim)
    victim.manager.stop()
    victim.manager.start()  # registers with its floor, which differs from what origin said when last heard
    bridge.wait(lambda: _last_registration(lab, victim) > since, "it is registered again", seconds=_RECOVERY_SECONDS)
    lab.yarn.wait_for_nodes()
    polls = controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": "cluster_view"})
    bridge.wait(
        lambda: controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": "cluster_view"}) > polls + 8,
        "the bridge has read the new registration several times",
    )
    assert bridge.capacity(victim) == (1024, 1)
    assert lab.yarn.count_update_calls() == before
    lab.kubernetes.start_api_server()
    bridge.wait_capacity(victim, 8192, 8, seconds=_RECOVERY_SECONDS)
