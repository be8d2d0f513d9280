# SPDX-License-Identifier: Apache-2.0
"""Read the ledger of each node from Kubernetes as an outsider does: plain watches, plain JSON, own sums."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import Any, Final

from batch_resources.keys import BATCH_CPU, BATCH_MEMORY, ENTRY_NAME, ORIGIN_ANNOTATION, THIRD_PARTY_ANNOTATION
from batch_resources.quantities import quantity_ceil
from batch_resources.resources import ZERO_BATCH, BatchResources
from lab.koordinator.api import Api, JsonObject
from lab.koordinator.watching import WatchedObjects

NAMESPACE: Final = "default"
PODS_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODES_PATH: Final = "/api/v1/nodes"
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLedger:
    """Hold one node as Kubernetes shows it.

    Attributes:
        origin: Batch resources before third parties.
        offered: What kube-scheduler may book; None when the keys are absent.
        held: What pods that are bound and not finished have booked.
        claimed: What the bridge claims for YARN; None before its first claim.
    """

    origin: BatchResources
    offered: BatchResources | None
    held: BatchResources
    claimed: BatchResources | None


class KubernetesLedger:
    """Watch Nodes and pods, inside `async with`."""

    def __init__(self, api: Api) -> None:
        """Prepare the watches of an open client."""
        self.bound: set[str] = set()
        self._nodes = WatchedObjects(api, NODES_PATH, lambda _: None)
        self._pods = WatchedObjects(api, PODS_PATH, self._note_pod)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> KubernetesLedger:
        self._tasks = [asyncio.create_task(watched.run()) for watched in (self._nodes, self._pods)]
        await self._nodes.synced.wait()
        await self._pods.synced.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    @property
    def pods(self) -> dict[str, JsonObject]:
        """Give the pods as watched, by name."""
        return self._pods.objects

    def read(self, node: str) -> NodeLedger | None:
        """Give the newest ledger of a node; None until its origin is published, since nothing can be judged before."""
        found = self._nodes.objects[node]
        annotations = found["metadata"].get("annotations") or {}
        origin = json.loads(annotations.get(ORIGIN_ANNOTATION) or "{}").get("resources")
        if not origin:
            return None
        allocatable = found.get("status", {}).get("allocatable") or {}
        held = ZERO_BATCH
        for pod in self._pods.objects.values():
            if pod["spec"].get("nodeName") == node and pod.get("status", {}).get("phase") not in _TERMINAL:
                held += pod_request(pod)
        return NodeLedger(
            origin=_amount(origin),
            offered=_amount(allocatable) if BATCH_CPU in allocatable else None,
            held=held,
            claimed=_claim(annotations.get(THIRD_PARTY_ANNOTATION)),
        )

    def _note_pod(self, name: str) -> None:
        pod = self._pods.objects.get(name)
        if pod is not None and pod["spec"].get("nodeName"):
            self.bound.add(name)


def pod_request(pod: JsonObject) -> BatchResources:
    """Add up what the containers of a demo pod request; it has no init containers and no overhead."""
    total = ZERO_BATCH
    for container in pod["spec"].get("containers") or []:
        total += _amount((container.get("resources") or {}).get("requests") or {})
    return total


def _claim(text: str | None) -> BatchResources | None:
    for entry in json.loads(text or "{}").get("allocations") or []:
        if entry.get("name") == ENTRY_NAME:
            return _amount(entry.get("resources") or {})
    return None


def _amount(quantities: dict[str, Any]) -> BatchResources:
    return BatchResources(
        cpu_milli=quantity_ceil(quantities.get(BATCH_CPU)), memory_bytes=quantity_ceil(quantities.get(BATCH_MEMORY))
    )
