# SPDX-License-Identifier: Apache-2.0
"""Read a node's pods and then the Node from the API server's storage, where a growth lacks nothing else.

Both are consistent reads, so everything that was committed before they began is in them. What they gave is kept in the
node's memory; it counts as soon as the watch has delivered the version of the Node that was read.
"""

from __future__ import annotations

import asyncio
import logging

from yarn_copilot.controller.context import LoopContext
from yarn_copilot.controller.permissions import FreshRead
from yarn_copilot.controller.ports import NodeReader, PodLister
from yarn_copilot.controller.state.pods import PodLedger, PodReducer
from yarn_copilot.controller.steps import Step
from yarn_copilot.errors import YarnCopilotError

logger = logging.getLogger(__name__)

_FAILURE_WAIT_SECONDS = 1.0
_WATCH_WAIT_SECONDS = 1.0
"""A read that waits for the watch is looked at again after so long, should no version of the Node bring it up."""


class FreshReads:
    """Read the nodes that plans ask for, several at once, each at most once at a time."""

    def __init__(
        self,
        lister: PodLister,
        reader: NodeReader,
        *,
        context: LoopContext,
        pods: PodLedger,
        reduce_pod: PodReducer,
    ) -> None:
        """Take the API server's two ports and how pods are added up."""
        self._lister = lister
        self._reader = reader
        self._book = context.book
        self._dirty = context.dirty
        self._gate = context.gate
        self._clock = context.clock
        self._metrics = context.metrics
        self._reduce_node = context.reduce_node
        self._pods = pods
        self._reduce_pod = reduce_pod
        self._on_step = context.on_step
        self._waiting: dict[str, None] = {}
        self._in_flight: set[str] = set()
        self._available = asyncio.Event()

    def submit(self, name: str) -> None:
        """Read a node as soon as a worker is free, unless it is being read."""
        if name not in self._in_flight:
            self._waiting[name] = None
            self._available.set()

    def withdraw(self, name: str) -> None:
        """Do not read a node: nothing waits for it any more."""
        self._waiting.pop(name, None)

    async def run(self, *, parallel: int) -> None:
        """Read for ever with so many workers."""
        async with asyncio.TaskGroup() as group:
            for _ in range(parallel):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            name = next(iter(self._waiting), None)
            if name is None:
                self._available.clear()
                await self._available.wait()
                continue
            del self._waiting[name]
            self._in_flight.add(name)
            try:
                await self.read_node(name)
            finally:
                self._in_flight.discard(name)

    async def read_node(self, name: str) -> None:
        """Read one node and keep what it gave."""
        memory = self._book.memory(name)
        if memory is None or self._gate.refuse_yarn():
            return
        self._on_step(Step.READ_BEGUN, name)
        began_at = self._clock.monotonic()
        try:
            pods = await self._lister.list_node_pods(name)
            facts = self._reduce_node(await self._reader.get_node(name))
        except YarnCopilotError as problem:
            self._metrics.count_error("fresh_reads", problem)
            logger.debug("Node not read afresh, it is tried again: %s", problem, extra={"node": name})
            self._dirty.mark_at(name, self._clock.monotonic() + _FAILURE_WAIT_SECONDS)
            return
        self._book.lag.note_known(facts.version, now=self._clock.monotonic())
        requested = self._pods.sum_of(name, map(self._reduce_pod, pods))
        read = FreshRead(requested=requested, facts=facts, began_at=began_at)
        if self._book.memory(name) is memory and facts.uid == memory.uid and memory.permissions.take_read(read):
            self._dirty.mark(name)
        else:
            self._dirty.mark_at(name, self._clock.monotonic() + _WATCH_WAIT_SECONDS)
        self._on_step(Step.READ_DONE, name)
        self._metrics.observe_cycle("fresh_reads", self._clock.monotonic() - began_at)
