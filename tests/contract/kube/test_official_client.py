# SPDX-License-Identifier: Apache-2.0
"""Read the embedded server with the official Python client: proof of the wire format by independent code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config
from kubernetes import watch as kubernetes_watch

from lab.embedded.kubernetes import EmbeddedKubernetes
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.lease import micro_time
from yarn_copilot.kube.model import Lease, LeaseSpec, ObjectMeta

official: Any = kubernetes_client


@pytest.fixture
def api_client(server: EmbeddedKubernetes, tmp_path: Path) -> Any:
    """Give an official client configured by the kubeconfig of the embedded server."""
    loader: Any = kubernetes_config
    return loader.new_client_from_config(config_file=str(server.kubeconfig(tmp_path / "kubeconfig")))


async def _in_thread(call: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(call)


async def test_the_official_client_lists_nodes_page_by_page(server: EmbeddedKubernetes, api_client: Any) -> None:
    for number in range(5):
        server.objects.create_node(f"n{number}", allocatable={"cpu": "64", "kubernetes.io/batch-cpu": 50000})
    core = official.CoreV1Api(api_client)
    first = await _in_thread(lambda: core.list_node(limit=3))
    second = await _in_thread(lambda: core.list_node(limit=3, _continue=first.metadata._continue))
    assert [node.metadata.name for node in [*first.items, *second.items]] == [f"n{number}" for number in range(5)]
    assert first.metadata.remaining_item_count == 2
    assert first.items[0].status.allocatable["kubernetes.io/batch-cpu"] == "50k"


async def test_the_official_client_reads_a_lease_that_the_product_wrote(
    server: EmbeddedKubernetes, client: KubeClient, api_client: Any
) -> None:
    text = micro_time(1_700_000_000_123_456)
    spec = LeaseSpec("me", 10, text, text, 3)
    await client.create_lease(Lease(ObjectMeta("l", "koordinator-system"), spec))
    coordination = official.CoordinationV1Api(api_client)
    lease = await _in_thread(lambda: coordination.read_namespaced_lease("l", "koordinator-system"))
    assert lease.spec.holder_identity == "me"
    assert lease.spec.lease_transitions == 3
    assert lease.spec.renew_time.timestamp() == pytest.approx(1_700_000_000.123456)


async def test_the_official_client_watches_what_the_product_patches(
    server: EmbeddedKubernetes, client: KubeClient, api_client: Any
) -> None:
    node = server.objects.create_node("n", annotations={"k": "1"})
    await client.patch_node_annotations("n", expected={"k": "1"}, changed={"k": "2"})
    server.objects.delete("nodes", "n")
    core = official.CoreV1Api(api_client)
    stream: Any = kubernetes_watch

    def watch() -> list[tuple[str, str]]:
        events = stream.Watch().stream(
            core.list_node, resource_version=node["metadata"]["resourceVersion"], timeout_seconds=1
        )
        return [(event["type"], event["object"].metadata.annotations["k"]) for event in events]

    assert await _in_thread(watch) == [("MODIFIED", "2"), ("DELETED", "2")]


async def test_the_official_client_reads_an_event_and_a_refusal(
    server: EmbeddedKubernetes, client: KubeClient, api_client: Any
) -> None:
    await client.create_event(
        "default",
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Node", "name": "n"},
            "reason": "R",
            "message": "m",
            "type": "Warning",
            "count": 2,
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:05Z",
        },
    )
    core = official.CoreV1Api(api_client)
    events = await _in_thread(
        lambda: core.list_namespaced_event("default", field_selector="involvedObject.name=n,reason=R")
    )
    assert [(event.type, event.count, event.message) for event in events.items] == [("Warning", 2, "m")]
    with pytest.raises(official.ApiException) as refusal:
        await _in_thread(lambda: core.read_node("missing"))
    assert refusal.value.status == 404
