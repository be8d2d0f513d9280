# SPDX-License-Identifier: Apache-2.0
"""Play koord-manager and kube-scheduler for the racing world, and an API server whose patches land late.

kube-scheduler may decide by any version of a Node that was current in the last `CACHE_SECONDS`, and a bind takes up to
`BIND_SECONDS`; together they stay below the product's settle time, as its documentation asks.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from batch_resources.annotations.third_party import read_third_party
from batch_resources.keys import BATCH_CPU, BATCH_MEMORY
from batch_resources.koordinator.publication import needs_status_update
from batch_resources.koordinator.strategy import Strategy
from batch_resources.resources import ZERO_BATCH, BatchResources
from tests.unit.controller.kubernetes import ORIGIN, THIRD, FakeKubernetes, connection_lost
from tests.unit.controller.world import origin_text
from yarn_copilot.kube.clock import Clock
from yarn_copilot.kube.errors import NotFoundError, PreconditionFailedError
from yarn_copilot.kube.model import Node

CACHE_SECONDS = 4.0
BIND_SECONDS = 4.0
CALL_SECONDS = 3.9
_STRATEGY = Strategy()


@dataclass(slots=True)
class PatchFate:
    """Say what becomes of the next patches."""

    landing_seconds: float = 0.0
    is_lost: bool = False
    answer_is_lost: bool = False


@dataclass(slots=True)
class LatePatch:
    """Hold one patch on its way."""

    due: float
    node: str
    expected: Mapping[str, str | None]
    changed: Mapping[str, str | None]
    answer: asyncio.Future[Node]


@dataclass(slots=True)
class Bind:
    """Hold one bind under way."""

    due: float
    pod: str
    node: str
    size: BatchResources


@dataclass(slots=True)
class NodeSide:
    """Hold what this side knows of one Node beside its stored body."""

    versions: list[tuple[float, BatchResources]] = field(default_factory=list)
    bound: dict[str, BatchResources] = field(default_factory=dict)
    published_at: float | None = None


class LateKubernetes(FakeKubernetes):
    """Land patches late, once, or never, whatever becomes of the caller."""

    def __init__(self, clock: Clock) -> None:
        """Take the time."""
        super().__init__(clock)
        self.fate = PatchFate()
        self.on_their_way: list[LatePatch] = []
        self.sides: dict[str, NodeSide] = {}
        self.binds: list[Bind] = []
        self.koord_manager_stops = False
        self._pods = 0

    def put(self, plural: str, key: str, body: dict[str, Any]) -> None:
        """Store an object, and remember what a Node permits kube-scheduler."""
        super().put(plural, key, body)
        if plural == "nodes":
            side = self.sides.setdefault(key, NodeSide())
            side.versions.append((self.clock.monotonic(), self.allocatable(key)))

    async def patch_node_annotations(
        self, node_name: str, *, expected: Mapping[str, str | None], changed: Mapping[str, str | None]
    ) -> Node:
        """Take a patch on its way."""
        self.patches.append((node_name, expected.get(THIRD), changed.get(THIRD)))
        fate, now = self.fate, self.clock.monotonic()
        answer: asyncio.Future[Node] = asyncio.get_running_loop().create_future()
        if not fate.is_lost:
            late = LatePatch(now + fate.landing_seconds, node_name, dict(expected), dict(changed), answer)
            self.on_their_way.append(late)
        if fate.is_lost or fate.answer_is_lost or fate.landing_seconds >= CALL_SECONDS:
            await self.clock.sleep(CALL_SECONDS)
            answer.cancel()
            raise connection_lost()
        return await answer

    async def tick(self) -> None:
        """Let everything happen that is due now."""
        now = self.clock.monotonic()
        for late in [late for late in self.on_their_way if late.due <= now]:
            self.on_their_way.remove(late)
            await self._land(late)
        for bind in [bind for bind in self.binds if bind.due <= now]:
            self.binds.remove(bind)
            self._bind(bind)
        if not self.koord_manager_stops:
            self._publish(now)
        for name, side in self.sides.items():
            current = [index for index, (moment, _) in enumerate(side.versions) if moment <= now - CACHE_SECONDS]
            side.versions = side.versions[current[-1] if current else 0 :]
            assert side.versions, name

    async def _land(self, late: LatePatch) -> None:
        body = self.objects["nodes"].get(late.node)
        problem: Exception | None = None
        if body is None:
            problem = NotFoundError("404")
        elif any(body["metadata"]["annotations"].get(key) != text for key, text in late.expected.items()):
            problem = PreconditionFailedError("422")
        else:
            self.annotate(late.node, **late.changed)
        if late.answer.done():
            return
        if problem is not None:
            late.answer.set_exception(problem)
        else:
            late.answer.set_result(await self.get_node(late.node))

    # koord-manager

    def origin(self, name: str) -> BatchResources:
        """Give origin as published; zero where it is unknown."""
        text = self.annotation(name, ORIGIN)
        amounts = json.loads(text)["resources"] if text else {}
        return BatchResources(cpu_milli=amounts.get(BATCH_CPU, 0), memory_bytes=amounts.get(BATCH_MEMORY, 0))

    def allocatable(self, name: str) -> BatchResources:
        """Give allocatable as published."""
        amounts = self.objects["nodes"][name]["status"]["allocatable"]
        return BatchResources(cpu_milli=int(amounts.get(BATCH_CPU, 0)), memory_bytes=int(amounts.get(BATCH_MEMORY, 0)))

    def publish_origin(self, name: str, origin: BatchResources | None) -> None:
        """Write another origin with what it leaves to Kubernetes, in one version; None degrades the Node."""
        body = json.loads(json.dumps(self.objects["nodes"][name]))
        known = origin or ZERO_BATCH
        body["metadata"]["annotations"][ORIGIN] = origin_text(known.cpu_milli, known.memory_bytes)
        body["status"]["allocatable"] = {} if origin is None else _texts(self._left(name, known))
        self.sides[name].published_at = self.clock.monotonic()
        self.put("nodes", name, body)

    def _left(self, name: str, origin: BatchResources) -> BatchResources:
        return (origin - read_third_party(self.annotation(name)).others("")).floored()

    def _publish(self, now: float) -> None:
        for name, side in self.sides.items():
            body = self.objects["nodes"][name]
            if not body["status"]["allocatable"]:
                continue  # degraded until a report comes
            after, before = self._left(name, self.origin(name)), self.allocatable(name)
            age = None if side.published_at is None else now - side.published_at
            if after != before and needs_status_update(before, after, age_seconds=age, strategy=_STRATEGY):
                fresh = json.loads(json.dumps(body))
                fresh["status"]["allocatable"] = _texts(after)
                side.published_at = now
                self.put("nodes", name, fresh)

    # kube-scheduler

    def cached(self, name: str) -> list[BatchResources]:
        """Give every allocatable that kube-scheduler may still decide by."""
        return [amount for _, amount in self.sides[name].versions]

    def booked(self, name: str) -> BatchResources:
        """Give what is bound and what is being bound."""
        total = ZERO_BATCH
        for size in self.sides[name].bound.values():
            total = total + size
        for bind in self.binds:
            total = total + bind.size if bind.node == name else total
        return total

    def schedule(self, name: str, size: BatchResources, *, bind_seconds: float) -> bool:
        """Begin a bind if a version that kube-scheduler may still have leaves room for it."""
        after = self.booked(name) + size
        if not any(after.fits_in(amount) for amount in self.cached(name)):
            return False
        self._pods += 1
        self.binds.append(Bind(self.clock.monotonic() + bind_seconds, f"batch-{self._pods}", name, size))
        return True

    def finish(self, name: str) -> None:
        """Let the oldest pod of a node end."""
        side = self.sides[name]
        if side.bound:
            pod = next(iter(side.bound))
            del side.bound[pod]
            self.delete("pods", f"yarn/{pod}")

    def _bind(self, bind: Bind) -> None:
        requests = _texts(bind.size)
        body = {
            "metadata": {
                "name": bind.pod,
                "namespace": "yarn",
                "labels": {},
                "annotations": {},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"nodeName": bind.node, "containers": [{"resources": {"requests": requests}}]},
            "status": {"phase": "Running", "podIP": ""},
        }
        self.sides[bind.node].bound[bind.pod] = bind.size
        self.put("pods", f"yarn/{bind.pod}", body)

    # The watch

    def lose_versions(self) -> None:
        """Drop what the watches hold back, and answer 410: everything is listed anew."""
        self.silent, self.held = False, []
        for plural in self.streams:
            status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            self._send(plural, {"type": "ERROR", "object": status})


def _texts(amount: BatchResources) -> dict[str, str]:
    return {BATCH_CPU: str(amount.cpu_milli), BATCH_MEMORY: str(amount.memory_bytes)}
