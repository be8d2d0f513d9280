# SPDX-License-Identifier: Apache-2.0
"""Publish batch resources on Nodes by koord-manager's rules.

Only an event on a Node or a NodeMetric makes a node be looked at again: no timer runs, so a koordlet that died is
noticed at the next event after its limit, and a small change waits for the first event after the write threshold.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction

import aiohttp

from batch_resources.keys import CPU_NORMALIZATION_RATIO_ANNOTATION, ORIGIN_ANNOTATION
from batch_resources.koordinator.prepare import PreparedNode, origin_annotation
from batch_resources.koordinator.strategy import Strategy
from batch_resources.quantities import QuantityError
from batch_resources.resources import BatchResources
from lab.koordinator import node_metric
from lab.koordinator.api import Api, ApiError, JsonObject
from lab.koordinator.keyed_queue import KeyedQueue
from lab.koordinator.publication import Publication, calculate, prepare_node, reason_to_write, with_publication
from lab.koordinator.watching import WatchedObjects

_NODES_PATH = "/api/v1/nodes"
_NOT_FOUND, _CONFLICT = 404, 409
_CONFLICT_TRIES = 20
_RETRY_SECONDS = 0.2
_log = logging.getLogger(__name__)


class Manager:
    """Watch Nodes and NodeMetrics and write Nodes. One task runs `run`; one worker at a time works on a node."""

    def __init__(
        self,
        api: Api,
        strategy: Strategy,
        *,
        now: Callable[[], datetime],
        covers: Callable[[str], bool] = lambda _: True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with every node enabled.

        Args:
            api: An open client.
            strategy: The strategy of all nodes, its times already scaled.
            now: The wall clock, compared with `status.updateTime`.
            covers: Tells by its name whether a node is this stand-in's; others are left alone.
            monotonic: The clock of the write threshold and of the records.
        """
        self.publications: list[Publication] = []
        self.on_publication: Callable[[Publication], None] = lambda _: None
        self._api = api
        self._strategy = strategy
        self._now = now
        self._monotonic = monotonic
        self._covers = covers
        self._queue = KeyedQueue()
        self.nodes = WatchedObjects(api, _NODES_PATH, self._look_at)
        self.metrics = WatchedObjects(api, node_metric.COLLECTION_PATH, self._look_at)
        self._disabled: set[str] = set()
        self._ratios: dict[str, Fraction] = {}
        self._written_at: dict[str, float] = {}

    def set_enabled(self, node: str, enabled: bool) -> None:
        """Switch colocation on a node on or off; off takes its batch resources away."""
        (self._disabled.discard if enabled else self._disabled.add)(node)
        self._look_at(node)

    def set_normalization_ratio(self, node: str, ratio: Fraction | None) -> None:
        """Set a node's CPU normalization ratio; it is kept in the node's annotation from now on."""
        if ratio is None:
            self._ratios.pop(node, None)
        else:
            self._ratios[node] = ratio
        self._look_at(node)

    def _look_at(self, node: str) -> None:
        if self._covers(node):
            self._queue.add(node)

    async def run(self, workers: int) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.nodes.run())
            tasks.create_task(self.metrics.run())
            await self.nodes.synced.wait()
            await self.metrics.synced.wait()
            for _ in range(workers):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            name = await self._queue.get()
            try:
                await self._reconcile(name)
            except (ApiError, aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                _log.info("publishing failed node=%s error=%s", name, error)
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._queue.add, name)
            except (KeyError, QuantityError, ValueError) as error:
                # koord-manager leaves such a node as it is until the object is mended.
                _log.warning("objects cannot be read, node left alone node=%s error=%r", name, error)
            finally:
                self._queue.done(name)

    async def _reconcile(self, name: str) -> None:
        node = self.nodes.objects.get(name)
        if node is None:
            self._written_at.pop(name, None)
            return
        calculated = None
        if name not in self._disabled:
            calculated = calculate(node, self.metrics.objects.get(name), self._strategy, now=self._now())
        prepared = prepare_node(node, calculated, self._ratios.get(name))
        written_at = self._written_at.get(name)
        age_seconds = None if written_at is None else self._monotonic() - written_at
        reason = reason_to_write(node, prepared, age_seconds=age_seconds, strategy=self._strategy)
        if reason is not None:
            await self._write_status(name, node, calculated, reason)
        await self._write_ratio(name, node, prepared)

    async def _write_status(self, name: str, node: JsonObject, calculated: BatchResources | None, reason: str) -> None:
        """Put the status; on a conflict read the Node again and subtract anew, so no third party is overlooked."""
        for _ in range(_CONFLICT_TRIES):
            prepared = prepare_node(node, calculated, self._ratios.get(name))
            sent_at = self._monotonic()
            try:
                answer = await self._api.call(
                    "PUT", f"{_NODES_PATH}/{name}/status", body=with_publication(node, prepared)
                )
            except ApiError as error:
                if error.status == _NOT_FOUND:
                    return
                if error.status != _CONFLICT:
                    raise
                node = await self._api.call("GET", f"{_NODES_PATH}/{name}")
                continue
            self._written_at[name] = self._monotonic()
            self.nodes.accept(answer)
            self._record(answer, prepared, sent_at, reason)
            return
        raise ApiError(_CONFLICT, f"node {name} changed {_CONFLICT_TRIES} times while it was being written")

    async def _write_ratio(self, name: str, node: JsonObject, prepared: PreparedNode) -> None:
        """Put a missing or changed ratio back; koord-manager's patch carries the origin annotation with it."""
        ratio = self._ratios.get(name)
        annotations = node["metadata"].get("annotations") or {}
        text = None if ratio is None else f"{float(ratio):.2f}"
        if text is None or annotations.get(CPU_NORMALIZATION_RATIO_ANNOTATION) == text:
            return
        sent_at = self._monotonic()
        changed = {
            CPU_NORMALIZATION_RATIO_ANNOTATION: text,
            ORIGIN_ANNOTATION: origin_annotation(annotations.get(ORIGIN_ANNOTATION), prepared.origin),
        }
        answer = await self._api.call(
            "PATCH",
            f"{_NODES_PATH}/{name}",
            body={"metadata": {"annotations": changed}},
            content_type="application/merge-patch+json",
        )
        self.nodes.accept(answer)
        self._record(answer, prepared, sent_at, "normalization ratio missing")

    def _record(self, answer: JsonObject, prepared: PreparedNode, sent_at: float, reason: str) -> None:
        made = Publication(
            node=answer["metadata"]["name"],
            sent_at=sent_at,
            answered_at=self._monotonic(),
            resource_version=answer["metadata"]["resourceVersion"],
            origin=prepared.origin,
            allocatable=prepared.allocatable,
            reason=reason,
        )
        self.publications.append(made)
        _log.info(
            "published node=%s origin=%s allocatable=%s reason=%s", made.node, made.origin, made.allocatable, reason
        )
        self.on_publication(made)
