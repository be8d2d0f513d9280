# SPDX-License-Identifier: Apache-2.0
"""Show that the rights of `deploy/kubernetes` are enough for all the controller does, and what lacks without one."""

from __future__ import annotations

from lab.cluster import Lab
from lab.kubernetes import bodies
from lab.kubernetes.bodies import BatchPod
from tests.lab import access
from tests.lab.bridge import GIB, SETTLED_SECONDS, Bridge, Claim, Unique

_NO_METRICS_ACCOUNT = "yarn-copilot-no-metrics"
_FORBIDDEN = 403


def test_granted_rights_are_enough_for_all_work_and_nothing_is_refused(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    node = bridge.enroll(0, cpu_milli=8000, memory_bytes=8 * GIB)
    refused = _refused(lab)
    controller = bridge.start()
    bridge.wait_capacity(node, 8192, 8, seconds=SETTLED_SECONDS)
    application = lab.submit()
    application.ask(count=2, memory_mib=1024, node=node.node_id)
    application.wait_running(2)
    bridge.wait_claim(node, Claim(2000, 2 * GIB))  # patches Nodes
    bridge.objects.create_batch_pod(BatchPod(name=unique("pod"), cpu_milli=3000, memory_bytes=GIB, node_name=node.name))
    bridge.wait_capacity(node, 7168, 5)  # watches pods
    bridge.objects.annotate_node(node.name, {bodies.ORIGIN_ANNOTATION: "{"})
    bridge.wait_event(node, "OriginMalformed")  # writes Events on Nodes
    bridge.wait(lambda: bridge.controller_events("BecameLeader"), "writes Events on itself")
    assert bridge.events(node, "NodeMetricUnavailable") == []  # watches NodeMetrics
    assert controller.terminate() == 0  # holds and releases the Lease
    lease = bridge.objects.get(f"/apis/coordination.k8s.io/v1/namespaces/{access.NAMESPACE}/leases/{access.ACCOUNT}")
    assert lease["spec"].get("holderIdentity", "") == ""
    assert _refused(lab) == refused


def _refused(lab: Lab) -> int:
    """Count the requests of the controller's account that the API server refused for lack of rights."""
    user = access.user_of(access.ACCOUNT)
    return sum(each.user == user and each.code == _FORBIDDEN for each in lab.kubernetes.audit.requests())


def test_without_node_metrics_capacity_falls_and_never_grows(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    token = access.grant_access(lab, _NO_METRICS_ACCOUNT, without_resource="nodemetrics")
    nodes = bridge.enroll_all()
    lab.yarn.set_capacity(nodes[0].node_id, 4096, 4)
    controller = bridge.controller(token=token).start()
    controller.wait_ready()
    bridge.wait(lambda: bridge.controller_events("NodeMetricUnavailable"), "an Event says so")
    for node in nodes:
        bridge.wait_claim(node, Claim(1000, GIB))
    bridge.set_origin(nodes[0], 3000, 3 * GIB)
    bridge.wait_capacity(nodes[0], 3072, 3)
    bridge.set_origin(nodes[0], 6000, 6 * GIB)
    bridge.set_origin(nodes[1], 6000, 6 * GIB)
    planned = controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": "cluster_view"})
    bridge.wait(
        lambda: controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": "cluster_view"}) > planned + 8,
        "it has had time to plan",
    )
    assert [bridge.capacity(node) for node in nodes] == [(3072, 3), (1024, 1), (1024, 1)]
    (event,) = bridge.controller_events("NodeMetricUnavailable")
    assert event["count"] == 1
    assert "nodemetrics" in event["message"]
    assert [bridge.events(node, "NodeMetricUnavailable") for node in nodes] == [[], [], []]

    controller.write_config(
        {**controller.config, "capacity": {**controller.config["capacity"], "require_node_metric": False}}
    )
    bridge.wait_capacity(nodes[0], 6144, 6, seconds=SETTLED_SECONDS)
    bridge.wait_capacity(nodes[2], 8192, 8)
