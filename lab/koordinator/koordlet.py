# SPDX-License-Identifier: Apache-2.0
"""Report the load of nodes in NodeMetric objects, as the koordlets of all nodes do together.

The load itself is told by whoever plays the day. A report goes out every interval, and at once when the load was
changed, where asked for: a real koordlet averages over minutes, which a short play has no time for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

import aiohttp

from batch_resources.koordinator.demand import NodeLoad
from lab.koordinator import node_metric
from lab.koordinator.api import Api, ApiError

_NOT_FOUND, _CONFLICT = 404, 409
_PARALLEL_REPORTS = 32
_log = logging.getLogger(__name__)


class Koordlet:
    """Hold the load of each node and write its reports. One task runs `run`."""

    def __init__(self, api: Api, *, interval_seconds: float, at_once: bool, now: Callable[[], datetime]) -> None:
        """Start without any node.

        Args:
            api: An open client.
            interval_seconds: Time between two reports of a node.
            at_once: Whether a changed load is reported without waiting for the interval.
            now: The wall clock, for `status.updateTime`.
        """
        self._api = api
        self._interval_seconds = interval_seconds
        self._at_once = at_once
        self._now = now
        self._loads: dict[str, NodeLoad] = {}
        self._silent: set[str] = set()
        self._changed: set[str] = set()
        self._wake = asyncio.Event()
        self._slots = asyncio.Semaphore(_PARALLEL_REPORTS)

    def set_load(self, node: str, load: NodeLoad) -> None:
        """Set a node's load from now on."""
        self._loads[node] = load
        if self._at_once:
            self._changed.add(node)
            self._wake.set()

    def stop(self, node: str) -> None:
        """Stop reporting a node, as if its koordlet had died; the object stays as it is."""
        self._silent.add(node)

    def resume(self, node: str) -> None:
        """Report a node again, at once."""
        self._silent.discard(node)
        self._changed.add(node)
        self._wake.set()

    async def run(self) -> None:
        """Report until cancelled."""
        loop = asyncio.get_running_loop()
        next_round = loop.time() + self._interval_seconds
        while True:
            try:
                async with asyncio.timeout_at(next_round):
                    await self._wake.wait()
                due = list(self._changed)
            except TimeoutError:
                due = list(self._loads)
                next_round = loop.time() + self._interval_seconds
            self._wake.clear()
            self._changed.difference_update(due)
            await asyncio.gather(*(self._report_safely(node) for node in due))

    async def report(self, node: str) -> None:
        """Write one report now.

        Raises:
            ApiError: The server refused it.
        """
        path = f"{node_metric.COLLECTION_PATH}/{node}/status"
        body = {"status": node_metric.status(self._loads[node], self._now())}
        try:
            await self._api.call("PATCH", path, body=body, content_type="application/merge-patch+json")
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            await self._create(node)
            await self._api.call("PATCH", path, body=body, content_type="application/merge-patch+json")

    async def _create(self, node: str) -> None:
        body = {"apiVersion": node_metric.API_VERSION, "kind": node_metric.KIND, "metadata": {"name": node}, "spec": {}}
        try:
            await self._api.call("POST", node_metric.COLLECTION_PATH, body=body)
        except ApiError as error:
            if error.status != _CONFLICT:
                raise

    async def _report_safely(self, node: str) -> None:
        if node in self._silent or node not in self._loads:
            return
        async with self._slots:
            try:
                await self.report(node)
            except (ApiError, aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                # The next interval reports again, as a koordlet would.
                _log.info("report failed node=%s error=%s", node, error)
