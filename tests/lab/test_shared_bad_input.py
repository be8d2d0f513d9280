# SPDX-License-Identifier: Apache-2.0
"""Show that what others write wrongly holds the node that it concerns, is told, and harms nothing else."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
import requests

from batch_resources.giving_way import NUDGE_LIMIT_MIB
from lab.cluster import Lab
from lab.controller import ControllerProcess
from lab.hadoop.application import Application
from lab.kubernetes import bodies
from lab.kubernetes.bodies import BatchPod
from tests.lab.bridge import FAST, GIB, MIB, SETTLED_SECONDS, Bridge, Claim, Unique, merged

INT64_MAX = 9_223_372_036_854_775_807
FOREIGN: list[dict[str, Any]] = [
    {
        "name": "other-writer",
        "priority": "koord-batch",
        "resources": {bodies.BATCH_CPU: "1000", bodies.BATCH_MEMORY: "1Gi"},
        "note": {"keep": [1, 2, {"deep": None}]},
    },
    {"name": "mid-writer", "priority": "koord-mid", "resources": {"kubernetes.io/mid-cpu": "5k"}},
]


class Scene:
    """Hold a node with two running containers that bad input is written to, and a second node as witness."""

    def __init__(self, lab: Lab, unique: Unique) -> None:
        self.bridge = Bridge(lab, unique, config=merged(FAST, {"capacity": {"foreign_writer_hold_seconds": 2}}))
        self.victim = self.bridge.enroll(0, cpu_milli=8000, memory_bytes=8 * GIB)
        self.witness = self.bridge.enroll(1, cpu_milli=8000, memory_bytes=8 * GIB)
        self.controller = self.bridge.start()
        self.application: Application = lab.submit()
        self.wait_free()
        self.application.ask(count=2, memory_mib=1024, node=self.victim.node_id)
        self.application.wait_running(2)
        self.bridge.wait_claim(self.victim, Claim(2000, 2 * GIB))
        self._sizes = itertools.count(5)

    def wait_free(self) -> None:
        """Wait until the victim has all of its 8 vcores again."""
        self.bridge.wait_capacity(self.victim, 8192, 8, seconds=SETTLED_SECONDS)

    def check_held(self, reason: str, text: str) -> None:
        """Check that the victim keeps its containers and claim and does not grow, and that the witness goes on."""
        self.bridge.wait_event(self.victim, reason, text=text)
        self.bridge.wait_capacity(self.victim, 2048, 2)
        self.check_witness()
        assert self.bridge.used(self.victim) == (2048, 2)
        assert self.controller.metric("yarn_copilot_nodes_by_reason", {"reason": reason}) == 1
        assert self.application.killed() == []

    def check_witness(self) -> None:
        """Check that the other node follows its origin."""
        size = next(self._sizes)
        self.bridge.set_origin(self.witness, size * 1000, size * GIB)
        self.bridge.wait_capacity(self.witness, size * 1024, size)

    def annotate(self, key: str, text: str | None) -> None:
        """Write an annotation of the victim."""
        self.bridge.objects.annotate_node(self.victim.name, {key: text})


def _amounts(cpu: object, memory: object) -> str:
    return json.dumps({"resources": {bodies.BATCH_CPU: cpu, bodies.BATCH_MEMORY: memory}})


MALFORMED_ORIGINS = [
    ('{"resources":', "JSON"),
    ("[]", "array"),
    (_amounts("-1", "1Gi"), "-1"),
    (_amounts("8000", "-8Gi"), "-8Gi"),
    (_amounts("eight", "1Gi"), "eight"),
    (_amounts("99999999999999999999", "1Gi"), "99999999999999999999"),
    (_amounts("8000", str(INT64_MAX + 1)), str(INT64_MAX + 1)),
    (_amounts("1e30", "1Gi"), "1e30"),
    (_amounts({"deep": 1}, "1Gi"), bodies.BATCH_CPU),
]


def test_malformed_origin_holds_its_node_only(lab: Lab, unique: Unique) -> None:
    scene = Scene(lab, unique)
    for text, told in MALFORMED_ORIGINS:
        scene.annotate(bodies.ORIGIN_ANNOTATION, text)
        scene.check_held("OriginMalformed", told)
        assert scene.bridge.claim(scene.victim) == Claim(2000, 2 * GIB), text
        scene.bridge.set_origin(scene.victim, 8000, 8 * GIB)
        scene.wait_free()
    scene.bridge.wait_event(scene.victim, "OriginRecovered")
    assert scene.controller.metric("yarn_copilot_nodes_by_reason", {"reason": "OriginMalformed"}) == 0


def test_fractions_round_down_in_origin_and_sixty_four_bits_are_taken(lab: Lab, unique: Unique) -> None:
    scene = Scene(lab, unique)
    bridge, victim = scene.bridge, scene.victim
    bridge.set_origin(victim, "7999999m", "6442450943.9")  # one thousandth below 8000, a tenth below 6 GiB
    bridge.wait_capacity(victim, 6143, 7)
    bridge.set_origin(victim, str(INT64_MAX), str(INT64_MAX))
    bridge.wait_capacity(victim, INT64_MAX // MIB, 2_147_483_647)
    scene.check_witness()
    bridge.set_origin(victim, "8k", "8Gi")
    scene.wait_free()
    assert scene.application.killed() == []
    assert bridge.claim(victim) == Claim(2000, 2 * GIB)


def _third_party(*entries: object) -> str:
    return json.dumps({"allocations": list(entries), "owner": "somebody"})


def _batch_entry(cpu: object) -> dict[str, Any]:
    return {"name": "bad-writer", "priority": "koord-batch", "resources": {bodies.BATCH_CPU: cpu}}


OURS = {
    "name": "hadoop-yarn",
    "priority": "koord-batch",
    "resources": {bodies.BATCH_CPU: "2k", bodies.BATCH_MEMORY: "2Gi"},
}
MALFORMED_THIRD_PARTIES = [
    (_third_party(*FOREIGN, OURS)[:-1], "JSON"),
    (_third_party(*FOREIGN, OURS, _batch_entry("much")), "much"),
    (_third_party(*FOREIGN, OURS, _batch_entry("-1")), "-1"),
    (_third_party(*FOREIGN, OURS, _batch_entry("99999999999999999999")), "99999999999999999999"),
    (_third_party(*FOREIGN, OURS, "text"), "allocations"),
    ('{"allocations":{}}', "object"),
]


def test_malformed_third_parties_are_left_as_they_are_and_hold_their_node_only(lab: Lab, unique: Unique) -> None:
    scene = Scene(lab, unique)
    for text, told in MALFORMED_THIRD_PARTIES:
        scene.annotate(bodies.THIRD_PARTY_ANNOTATION, text)
        scene.check_held("ThirdPartyAllocationsMalformed", told)
        assert scene.bridge.third_party_text(scene.victim) == text
        scene.annotate(bodies.THIRD_PARTY_ANNOTATION, _third_party(*FOREIGN, OURS))
        scene.bridge.wait_capacity(scene.victim, 7 * 1024, 7, seconds=SETTLED_SECONDS)
    scene.application.ask(count=1, memory_mib=1024, node=scene.victim.node_id)
    scene.application.wait_running(3)
    scene.bridge.wait_claim(scene.victim, Claim(3000, 3 * GIB))
    document = scene.bridge.objects.third_party(scene.victim.name)
    assert document is not None
    assert document["owner"] == "somebody"
    assert [entry for entry in document["allocations"] if entry["name"] != "hadoop-yarn"] == FOREIGN


def test_fractions_of_foreign_entries_and_pods_round_up(lab: Lab, unique: Unique) -> None:
    scene = Scene(lab, unique)
    bridge, victim = scene.bridge, scene.victim
    scene.annotate(bodies.THIRD_PARTY_ANNOTATION, _third_party(OURS, _batch_entry("1000001m")))  # 1000.001
    bridge.wait_capacity(victim, 8192, 6)
    pod = BatchPod(name=unique("pod"), cpu_milli="1998999m", memory_bytes=GIB, node_name=victim.name)  # 1998.999
    bridge.objects.create_batch_pod(pod)
    bridge.wait_capacity(victim, 7168, 5)  # 8000 - 1001 - 1999 = 5000
    scene.check_witness()
    assert bridge.claim(victim) == Claim(2000, 2 * GIB)


def test_pod_with_an_impossible_request_holds_its_node_only(lab: Lab, unique: Unique) -> None:
    scene = Scene(lab, unique)
    bridge, victim = scene.bridge, scene.victim
    name = unique("pod")
    with pytest.raises(requests.HTTPError, match="422"):  # the API server itself refuses negative requests
        bridge.objects.create_batch_pod(BatchPod(name=name, cpu_milli="-1", node_name=victim.name))
    bridge.objects.create_batch_pod(
        BatchPod(name=name, cpu_milli="99999999999999999999", memory_bytes=GIB, node_name=victim.name)
    )
    stored = bridge.objects.pod("default", name)["spec"]["containers"][0]["resources"]["requests"][bodies.BATCH_CPU]
    scene.check_held("PodRequestMalformed", f"default/{name}")
    bridge.wait_event(victim, "PodRequestMalformed", text=stored)
    bridge.objects.delete_pod("default", name)
    scene.wait_free()


def test_pod_with_the_largest_request_leaves_the_floor(lab: Lab, unique: Unique) -> None:
    scene = Scene(lab, unique)
    bridge, victim = scene.bridge, scene.victim
    name = unique("pod")
    bridge.objects.create_batch_pod(
        BatchPod(name=name, cpu_milli=str(INT64_MAX), memory_bytes=str(INT64_MAX), node_name=victim.name)
    )
    # Its containers use more, so it keeps the few MiB above the floor by which a deadline could be set and called off.
    bridge.wait_capacity(victim, 1024 + NUDGE_LIMIT_MIB, 1)
    bridge.wait_event(victim, "FloorExceedsOrigin")
    scene.check_witness()
    assert bridge.claim(victim) == Claim(2000, 2 * GIB)
    assert scene.application.killed() == []


def test_odd_allocatable_of_a_node_changes_nothing(lab: Lab, unique: Unique) -> None:
    scene = Scene(lab, unique)
    bridge, victim = scene.bridge, scene.victim
    with pytest.raises(requests.HTTPError, match="422"):  # the API server itself refuses negative amounts
        bridge.objects.set_batch_allocatable(victim.name, "-1", "1Gi")
    for size, allocatable in enumerate(["1500m", "99999999999999999999", str(INT64_MAX)], start=5):
        bridge.objects.set_batch_allocatable(victim.name, allocatable, allocatable)
        bridge.set_origin(victim, size * 1000, size * GIB)
        bridge.wait_capacity(victim, size * 1024, size)
        scene.check_witness()
        assert bridge.claim(victim) == Claim(2000, 2 * GIB), allocatable


# An id that the ResourceManager does not know


def test_wrong_node_id_of_one_pod_holds_that_node_only(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    wrong = f"{lab.yarn.node_managers[0].host_name}:1"
    victim = bridge.enroll(0, cpu_milli=8000, memory_bytes=8 * GIB, node_id=wrong)
    others = [bridge.enroll(number, cpu_milli=8000, memory_bytes=8 * GIB) for number in (1, 2)]
    controller = bridge.start()
    for node in others:
        bridge.wait_capacity(node, 8192, 8)
    assert wrong in bridge.wait_event(victim, "NodeManagerNotMatched")
    assert controller.metric("yarn_copilot_nodes_by_reason", {"reason": "NodeManagerNotMatched"}) == 1
    assert bridge.capacity(victim) == (1024, 1)
    lines = [line for line in controller.log_path.read_text().splitlines() if wrong in line]
    assert len(lines) == 1
    bridge.objects.merge(
        f"/api/v1/namespaces/default/pods/{victim.name}-nm",
        {"metadata": {"annotations": {bodies.NODE_ID_ANNOTATION: victim.node_id}}},
    )
    bridge.wait_capacity(victim, 8192, 8)


def test_node_that_signs_off_before_an_update_does_not_keep_it_from_the_others(lab: Lab, unique: Unique) -> None:
    # Between two reads the controller believes in a NodeManager that has gone; the ResourceManager refuses the batch.
    bridge = Bridge(lab, unique, config=merged(FAST, {"yarn": {"poll_interval_seconds": 60}}))
    victim, *others = bridge.enroll_all()
    controller = bridge.start()
    for node in (victim, *others):
        bridge.wait_capacity(node, 8192, 8, seconds=SETTLED_SECONDS)
    _wait_for_quiet_reads(bridge, controller)
    victim.manager.stop()
    bridge.wait(lambda: lab.yarn.node(victim.node_id)["state"] == "SHUTDOWN", "the ResourceManager has let it go")
    for node in (victim, *others):
        bridge.set_origin(node, 6000, 6 * GIB)
    for node in others:
        bridge.wait_capacity(node, 6144, 6)
    assert victim.node_id in bridge.wait_event(victim, "NodeManagerUnknownToResourceManager")
    refused = controller.metric("yarn_copilot_writes_total", {"target": "yarn", "result": "refused"})
    assert refused >= 1
    lines = [line for line in controller.log_path.read_text().splitlines() if "does not know" in line]
    assert len(lines) == refused
    assert all(victim.name in line for line in lines)
    victim.manager.start()
    lab.yarn.wait_for_nodes([victim.manager])
    bridge.set_origin(others[0], 7000, 7 * GIB)  # an update is followed by a read, which shows the new registration
    bridge.wait_capacity(victim, 6144, 6, seconds=SETTLED_SECONDS)


def _wait_for_quiet_reads(bridge: Bridge, controller: ControllerProcess) -> None:
    """Wait until a second has passed without a read, so that the next one is most of a minute away."""
    seen = -1.0

    def is_quiet() -> bool:
        nonlocal seen
        before, seen = seen, controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": "cluster_view"})
        return before == seen

    bridge.wait(is_quiet, "all updates are confirmed", poll=1.0)
