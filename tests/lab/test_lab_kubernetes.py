# SPDX-License-Identifier: Apache-2.0
"""Check that the lab's control plane does what the tests rely on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import requests

from lab.cluster import Lab
from lab.kubernetes.bodies import BatchPod, NodeSpec
from lab.processes import probes

Unique = Callable[[str], str]
GIB = 1 << 30


def _node(name: str, cpu_milli: int = 10_000) -> NodeSpec:
    return NodeSpec(name=name, batch_cpu_milli=cpu_milli, batch_memory_bytes=10 * GIB)


def test_every_start_is_timed(lab: Lab, record_property: Callable[[str, object], None]) -> None:
    record_property("startup_seconds", lab.startup_seconds)
    assert {"etcd", "kube-apiserver", "kube-scheduler", "resourcemanager", "nodemanagers", "all"} <= set(
        lab.startup_seconds
    )


def test_scheduler_binds_a_batch_pod_to_the_node_with_batch_resources(lab: Lab, unique: Unique) -> None:
    objects = lab.objects
    node, small, pod = unique("node"), unique("node"), unique("pod")
    objects.create_nodes([_node(node), _node(small, cpu_milli=500)])
    objects.create_batch_pod(BatchPod(name=pod, cpu_milli=2000, memory_bytes=GIB))
    bound = probes.wait_until(lambda: objects.node_of_pod("default", pod), what="the pod is bound", timeout_seconds=30)
    assert bound == node


def test_scheduler_leaves_a_batch_pod_pending_until_the_node_has_room(lab: Lab, unique: Unique) -> None:
    objects = lab.objects
    node, pod = unique("node"), unique("pod")
    objects.create_node(_node(node, cpu_milli=1000))
    objects.create_batch_pod(BatchPod(name=pod, cpu_milli=2000, memory_bytes=GIB))
    probes.wait_until(
        lambda: any(
            condition.get("reason") == "Unschedulable"
            for condition in objects.pod("default", pod)["status"].get("conditions", [])
        ),
        what="the scheduler has found no room",
        timeout_seconds=30,
    )
    objects.set_batch_allocatable(node, 3000, 10 * GIB)
    probes.wait_until(lambda: objects.node_of_pod("default", pod) == node, what="it is bound", timeout_seconds=60)


def test_requests_are_counted_by_verb_and_resource(lab: Lab, unique: Unique) -> None:
    node = unique("node")
    lab.objects.create_node(_node(node))
    before = lab.kubernetes.count_requests("patch", "nodes")
    lab.objects.annotate_node(node, {"a": "1"})
    lab.objects.annotate_node(node, {"a": "2"})
    assert lab.kubernetes.count_requests("patch", "nodes") == before + 2


def test_service_account_without_a_role_may_not_read_nodes(lab: Lab) -> None:
    token = lab.kubernetes.service_account_token("koordinator-system", "nobody")
    with lab.kubernetes.session(token) as session:
        answer = session.get(f"{lab.kubernetes.url}/api/v1/nodes", timeout=10)
    assert answer.status_code == requests.codes.forbidden
    assert "system:serviceaccount:koordinator-system:nobody" in answer.json()["message"]


def test_objects_survive_a_kill_of_the_api_server(lab: Lab, unique: Unique) -> None:
    node = unique("node")
    lab.objects.create_node(_node(node))
    lab.kubernetes.stop_api_server(kill=True)
    with pytest.raises(requests.ConnectionError):
        lab.objects.node(node)
    lab.kubernetes.start_api_server()
    assert lab.objects.node(node)["metadata"]["name"] == node


def test_a_tidied_lab_has_a_scheduler_that_missed_no_deletion(lab: Lab) -> None:
    first = lab.kubernetes.scheduler.pid
    lab.tidy()
    assert lab.kubernetes.scheduler.pid == first
    lab.kubernetes.api_server.pause()
    lab.tidy()
    second = lab.kubernetes.scheduler.pid
    assert second not in {first, None}
    lab.kubernetes.stop_etcd(kill=True)
    lab.tidy()
    assert lab.kubernetes.scheduler.pid not in {first, second, None}


def test_node_metric_status_is_stored(lab: Lab, unique: Unique) -> None:
    name = unique("node")
    lab.objects.write_node_metric(name, {"updateTime": "2026-01-02T03:04:05Z", "nodeMetric": {"any": {"thing": 1}}})
    metric = lab.objects.get(f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{name}")
    assert metric["status"] == {"updateTime": "2026-01-02T03:04:05Z", "nodeMetric": {"any": {"thing": 1}}}
