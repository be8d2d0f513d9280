# SPDX-License-Identifier: Apache-2.0
"""Show on real servers that orders are carried out, a release leaves nothing, and observing writes nothing."""

from __future__ import annotations

import json
from typing import Any

from lab.cluster import Lab
from lab.kubernetes import bodies
from lab.kubernetes.bodies import BatchPod
from tests.lab import access
from tests.lab.bridge import FAST, GIB, SETTLED_SECONDS, Bridge, BridgedNode, Claim, Unique, merged
from tests.lab.commanding import Operator

FLOOR = (1024, 1)
DRAIN = "yarn-copilot/drain"
READS = {"get", "list", "watch"}
SHARED = merged(FAST, {"capacity": {"mode": "shared"}})


def _annotations(bridge: Bridge, node: BridgedNode) -> dict[str, str]:
    found: dict[str, str] = bridge.objects.node(node.name)["metadata"].get("annotations", {})
    return found


def _foreign(cpu: str) -> str:
    resources = {bodies.BATCH_CPU: cpu, bodies.BATCH_MEMORY: "1Gi"}
    entry = {"name": "other-writer", "priority": "koord-batch", "resources": resources, "note": {"keep": [1, None]}}
    return json.dumps({"allocations": [entry]})


def _container_count(application: Any) -> int:
    return len(application.running())


def test_a_drain_waits_for_real_containers_and_its_undoing_gives_the_capacity_back(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique, config=SHARED)
    node, other = bridge.enroll_all()[:2]
    controller = bridge.start()
    operator = Operator(lab, controller.url)
    bridge.wait_capacity(node, 8192, 8, seconds=SETTLED_SECONDS)
    application = lab.submit()
    application.ask(count=3, memory_mib=2048, node=node.node_id)
    application.wait_running(3)
    bridge.wait_claim(node, Claim(3000, 6 * GIB))
    waiting = operator.start("drain", node.name, "--wait", "--reason", "new disk")
    bridge.wait_capacity(node, *FLOOR)
    bridge.wait_event(node, "Draining", text="new disk")
    assert application.killed() == []
    assert _container_count(application) == 3
    application.release(2)
    bridge.wait_claim(node, Claim(1000, 2 * GIB))
    application.release(1)
    lines = operator.ended(waiting).splitlines()
    assert lines[0] == f"{node.name}: drain ordered"
    assert lines[-1] == f"{node.name}: drained"
    assert f"{node.name}: draining, 3 containers left" in lines
    assert bridge.claim(node) == Claim(1000, GIB)
    assert bridge.capacity(other) == (8192, 8)
    operator.run("drain", node.name, "--undo")
    bridge.wait_capacity(node, 8192, 8)
    assert application.killed() == []


def test_a_release_leaves_every_node_as_it_was_and_foreign_entries_untouched(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique, config=SHARED)
    nodes = bridge.enroll_all()
    bridge.objects.annotate_node(nodes[0].name, {bodies.THIRD_PARTY_ANNOTATION: _foreign("1000")})
    before = {node.name: _annotations(bridge, node) for node in nodes}
    controller = bridge.start()
    operator = Operator(lab, controller.url)
    bridge.wait_capacity(nodes[1], 8192, 8, seconds=SETTLED_SECONDS)
    application = lab.submit()
    application.ask(count=2, memory_mib=1024, node=nodes[0].node_id)
    application.wait_running(2)
    bridge.wait_claim(nodes[0], Claim(2000, 2 * GIB))
    operator.run("cap", nodes[1].name, "cpu=4")
    releasing = operator.start("release", "--all", "--yes", "--lease", f"{access.NAMESPACE}/yarn-copilot")
    bridge.wait_capacity(nodes[0], *FLOOR)
    application.release(2)
    out = operator.ended(releasing)
    for node in nodes:
        assert f"{node.name}: given back; the order {DRAIN} stays" in out
        assert bridge.capacity(node) == FLOOR
        assert _annotations(bridge, node).keys() - before[node.name].keys() == {DRAIN}
    assert application.killed() == []
    assert controller.terminate() == 0
    out = operator.run("release", "--all", "--yes", "--lease", f"{access.NAMESPACE}/yarn-copilot")
    for node in nodes:
        assert f"{node.name}: nothing of ours is left" in out
        left = _annotations(bridge, node)
        if node is nodes[0]:  # the text may be written in another way, what it says may not change
            text = left.pop(bodies.THIRD_PARTY_ANNOTATION)
            assert json.loads(text) == json.loads(before[node.name].pop(bodies.THIRD_PARTY_ANNOTATION))
        assert left == before[node.name]
        assert bridge.capacity(node) == FLOOR


def test_observing_writes_nothing_to_either_server_while_everything_changes(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique, config=merged(FAST, {"capacity": {"mode": "observe", "observed_mode": "shared"}}))
    nodes = bridge.enroll_all()
    user = access.user_of(access.ACCOUNT)
    before = [each for each in lab.kubernetes.audit.requests() if each.user == user and each.verb not in READS]
    updates = lab.yarn.count_update_calls()
    controller = bridge.start()
    operator = Operator(lab, controller.url)
    application = lab.submit()
    application.ask(count=1, memory_mib=700, node=nodes[0].node_id)
    application.wait_running(1)
    pod = BatchPod(name=unique("pod"), cpu_milli=3000, memory_bytes=GIB, node_name=nodes[0].name)
    bridge.objects.create_batch_pod(pod)
    bridge.objects.annotate_node(nodes[1].name, {bodies.ORIGIN_ANNOTATION: "{"})  # would be told by an Event
    bridge.objects.annotate_node(nodes[2].name, {bodies.THIRD_PARTY_ANNOTATION: _foreign("2000")})

    def planned() -> dict[str, Any]:
        report = json.loads(operator.run("nodes", "--planned", "-o", "json"))
        return {node["node"]: node["planned"] for node in report["nodes"]}

    def has_seen_everything() -> bool:
        seen = planned()
        capacities = [seen[node.name]["capacity"] for node in nodes]
        wanted = [(5000, 7 * GIB), None, (6000, 7 * GIB)]
        return all(
            want is None or (got["cpu_milli"], got["memory_bytes"]) == want
            for got, want in zip(capacities, wanted, strict=True)
        )

    bridge.wait(has_seen_everything, "the report shows what would be done", poll=0.5)
    for plan in planned().values():
        assert plan["because"] == "observing"
        assert "claim" in plan["writes"]
    reads = controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": "cluster_view"})
    bridge.wait(
        lambda: controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": "cluster_view"}) > reads + 20,
        "it has had time for every kind of write",
    )
    assert controller.terminate() == 0
    after = [each for each in lab.kubernetes.audit.requests() if each.user == user and each.verb not in READS]
    assert after == before
    assert lab.yarn.count_update_calls() == updates
    assert [bridge.capacity(node) for node in nodes] == [FLOOR] * 3
    assert [bridge.claim(node) for node in nodes] == [None] * 3


def test_takes_over_from_the_go_bridge_while_its_jobs_run(lab: Lab, unique: Unique) -> None:
    """Start on what that bridge leaves: all of origin offered, vcores rounded up, decimal MB, its entry, no counter."""
    bridge = Bridge(lab, unique, config=SHARED)
    node = bridge.enroll(0, cpu_milli=7600, memory_bytes=8 * GIB)
    lab.yarn.set_capacity(node.node_id, 8590, 8)
    application = lab.submit()
    application.ask(count=6, memory_mib=1024, node=node.node_id)
    application.wait_running(6)
    entry = {
        "name": "hadoop-yarn",
        "priority": "koord-batch",
        "resources": {bodies.BATCH_CPU: "6k", bodies.BATCH_MEMORY: str(6 * GIB)},
    }
    foreign = json.loads(_foreign("100"))["allocations"][0]
    text = json.dumps({"allocations": [foreign, entry]})
    bridge.objects.annotate_node(node.name, {bodies.THIRD_PARTY_ANNOTATION: text})
    pod = BatchPod(name=unique("pod"), cpu_milli=1000, memory_bytes=GIB, node_name=node.name)
    bridge.objects.create_batch_pod(pod)
    bridge.start()
    bridge.wait_capacity(node, 6144, 6, seconds=SETTLED_SECONDS)  # 7.6 - 0.1 - 1 cores, 8 - 1 - 1 GiB
    assert bridge.claim(node) == Claim(6000, 6 * GIB)
    application.release(2)
    bridge.wait_claim(node, Claim(4000, 4 * GIB))
    assert application.killed() == []
    assert len(application.running()) == 4
    assert bridge.events(node, "ForeignWriterOfOurEntry") == []
    document = bridge.objects.third_party(node.name)
    assert document is not None
    assert foreign in document["allocations"]
