# SPDX-License-Identifier: Apache-2.0
"""Show how nodes come and go: every way to match a NodeManager, pods that leave, other writers of our entry."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from lab.cluster import Lab
from lab.kubernetes import bodies
from lab.kubernetes.bodies import NodeManagerPod, NodeSpec
from tests.lab.bridge import FAST, GIB, SETTLED_SECONDS, Bridge, BridgedNode, Claim, Unique, merged, now_text

FOREIGN = {
    "name": "other-writer",
    "priority": "koord-batch",
    "resources": {bodies.BATCH_CPU: "1000", bodies.BATCH_MEMORY: "1Gi"},
    "note": {"keep": [1, None]},
}
HOST_LABEL = {"lab/host-daemon": "true"}


def _entries(*entries: object) -> str:
    return json.dumps({"allocations": list(entries)})


def _ours(cpu: str, memory: str) -> dict[str, Any]:
    resources = {bodies.BATCH_CPU: cpu, bodies.BATCH_MEMORY: memory}
    return {"name": "hadoop-yarn", "priority": "koord-batch", "resources": resources}


def _check_each_follows(bridge: Bridge, nodes: Iterable[BridgedNode]) -> None:
    """Give each node an origin of its own and find it at the NodeManager that belongs there."""
    for number, node in enumerate(nodes):
        bridge.set_origin(node, (5 + number) * 1000, (5 + number) * GIB)
        bridge.wait_capacity(node, (5 + number) * 1024, 5 + number, seconds=SETTLED_SECONDS)
        bridge.wait_claim(node, Claim(1000, GIB))


# Matching, from pods


def test_pods_are_matched_by_host_name_by_full_name_and_by_address(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    lab.objects.create_namespace("internal")
    origin = {"cpu_milli": 8000, "memory_bytes": 8 * GIB}
    by_host_name = bridge.enroll(0, **origin, node_id=None, pod_ip=None)
    # Host name, subdomain and namespace make nm-2.lab.internal; the pod's own name says nothing.
    by_full_name = bridge.enroll(1, **origin, node_id=None, pod_ip=None, subdomain="lab", namespace="internal")
    # This NodeManager has an address only: its node id and its http address carry it.
    by_address = bridge.enroll(2, **origin, node_id=None, host_name=None)
    assert by_address.node_id.startswith(by_address.manager.address)
    bridge.start()
    _check_each_follows(bridge, [by_host_name, by_full_name, by_address])


def test_annotation_of_the_pod_wins_over_its_names(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    first, second = lab.yarn.node_managers[:2]
    node = bridge.enroll(
        0, cpu_milli=8000, memory_bytes=8 * GIB, node_id=second.node_id, host_name="nm-1", pod_ip=first.address
    )
    bridge.start()
    _check_each_follows(bridge, [BridgedNode(node.name, second)])
    assert lab.yarn.capacity(first.node_id) == (1024, 1)


def test_newest_running_pod_of_a_node_wins_and_terminal_ones_never_do(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    first, second, third = lab.yarn.node_managers
    node = bridge.enroll(0, cpu_milli=8000, memory_bytes=8 * GIB, node_id=None, pod_ip=None)
    bridge.start()
    _check_each_follows(bridge, [node])
    _wait_for_next_second(bridge, node)
    newer = NodeManagerPod(name=unique("pod"), node_name=node.name, host_name="nm-2")
    lab.objects.create_node_manager_pod(newer)
    _check_each_follows(bridge, [BridgedNode(node.name, second)])
    failed = NodeManagerPod(name=unique("pod"), node_name=node.name, pod_ip=third.address, phase="Failed")
    pending = NodeManagerPod(name=unique("pod"), node_name=node.name, pod_ip=third.address, phase="Pending")
    for pod in (failed, pending):
        lab.objects.create_node_manager_pod(pod)
    bridge.set_origin(node, 9000, 9 * GIB)
    bridge.wait_capacity(BridgedNode(node.name, second), 9 * 1024, 9)
    assert lab.yarn.capacity(third.node_id) == (1024, 1)
    lab.objects.set_pod_phase(newer.namespace, newer.name, "Succeeded")
    bridge.wait_capacity(BridgedNode(node.name, first), 9 * 1024, 9, seconds=SETTLED_SECONDS)


def _wait_for_next_second(bridge: Bridge, node: BridgedNode) -> None:
    """Wait until a new pod gets a later creation time: it has whole seconds."""
    created = bridge.objects.pod("default", f"{node.name}-nm")["metadata"]["creationTimestamp"]
    bridge.wait(lambda: now_text() > created, "the next second has begun")


# Matching, from Nodes


def _host_node(bridge: Bridge, number: int, **spec: Any) -> BridgedNode:
    """Create a labelled Node without a pod for a NodeManager that runs as a host daemon."""
    name = spec.pop("name", None) or bridge.unique("node")
    node = BridgedNode(name, bridge.lab.yarn.node_managers[number])
    bridge.objects.write_node_metric(name, {"updateTime": now_text()})
    described = NodeSpec(name=name, batch_cpu_milli=8000, batch_memory_bytes=8 * GIB, labels=HOST_LABEL, **spec)
    bridge.objects.create_node(described)
    return node


def test_host_daemons_are_matched_by_node_name_by_address_and_by_annotation(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    second, third = lab.yarn.node_managers[1:]
    nodes = [
        _host_node(bridge, 0, name=lab.yarn.node_managers[0].host_name),
        _host_node(bridge, 1, annotations={bodies.NODE_ID_ANNOTATION: second.node_id}),
        _host_node(bridge, 2, addresses={"InternalIP": third.address, "Hostname": "elsewhere"}),
    ]
    bridge.start({"node_managers": {"host_node_selector": "lab/host-daemon=true"}})
    _check_each_follows(bridge, nodes)


def test_node_without_the_label_is_left_alone(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    first, second = lab.yarn.node_managers[:2]
    name = first.host_name
    bridge.objects.write_node_metric(name, {"updateTime": now_text()})
    bridge.objects.create_node(NodeSpec(name=name, batch_cpu_milli=8000, batch_memory_bytes=8 * GIB))
    labelled = _host_node(bridge, 1, name=second.host_name)
    bridge.start({"node_managers": {"host_node_selector": "lab/host-daemon=true"}})
    _check_each_follows(bridge, [labelled])
    assert lab.yarn.capacity(first.node_id) == (1024, 1)
    assert bridge.objects.third_party(name) is None


# Other writers


def test_foreign_change_of_our_entry_stops_writes_on_that_node_only(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique, config=merged(FAST, {"capacity": {"foreign_writer_hold_seconds": 4}}))
    victim, witness, _ = nodes = bridge.enroll_all()
    bridge.start()
    for node in nodes:
        bridge.wait_capacity(node, 8192, 8, seconds=SETTLED_SECONDS)
        bridge.wait_claim(node, Claim(1000, GIB))
    text = _entries(_ours("3k", "3Gi"), FOREIGN)
    bridge.objects.annotate_node(victim.name, {bodies.THIRD_PARTY_ANNOTATION: text})
    bridge.wait_event(victim, "ForeignWriterOfOurEntry")
    bridge.set_origin(victim, 6000, 6 * GIB)
    bridge.set_origin(witness, 6000, 6 * GIB)
    bridge.wait_capacity(witness, 6144, 6)
    assert bridge.capacity(victim) == (8192, 8)
    assert bridge.third_party_text(victim) == text
    assert bridge.events(witness, "ForeignWriterOfOurEntry") == []
    # Quiet for as long as configured: the node is taken up again, and the other entry stays.
    bridge.wait_claim(victim, Claim(1000, GIB))
    bridge.wait_capacity(victim, 5120, 5)
    document = bridge.objects.third_party(victim.name)
    assert document is not None
    assert FOREIGN in document["allocations"]


def test_entry_goes_with_the_pod_once_use_is_zero_and_foreign_entries_stay(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    node = bridge.enroll(0, cpu_milli=8000, memory_bytes=8 * GIB)
    witness = bridge.enroll(1, cpu_milli=8000, memory_bytes=8 * GIB)
    bridge.objects.annotate_node(node.name, {bodies.THIRD_PARTY_ANNOTATION: _entries(FOREIGN)})
    bridge.start()
    bridge.wait_capacity(node, 7168, 7, seconds=SETTLED_SECONDS)
    application = lab.submit()
    application.ask(count=3, memory_mib=1024, node=node.node_id)
    application.wait_running(3)
    bridge.wait_claim(node, Claim(3000, 3 * GIB))

    bridge.objects.delete_pod("default", f"{node.name}-nm")
    bridge.set_origin(witness, 6000, 6 * GIB)
    bridge.wait_capacity(witness, 6144, 6)  # the bridge has seen later changes than the pod's end
    assert bridge.claim(node) == Claim(3000, 3 * GIB)
    application.release(2)
    bridge.wait_claim(node, Claim(1000, GIB))
    application.release(1)
    bridge.wait_claim(node, None)
    assert bridge.objects.third_party(node.name) == {"allocations": [FOREIGN]}
    assert application.killed() == []
