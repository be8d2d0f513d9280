# SPDX-License-Identifier: Apache-2.0
"""Read the state of every program beside a NodeManager in turn, and hand over asks for room.

An agent that hangs costs one of several workers its deadline and is asked less and less often; one that answers
rubbish is taken for one that does not answer. Either touches its own node only: what it last said stays believed for a
while (see `AgentMemory`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from batch_resources.giving_way import Stage
from batch_resources.resources import ZERO_BATCH, BatchResources
from yarn_copilot.controller.amounts import batch_words
from yarn_copilot.controller.context import LoopContext
from yarn_copilot.controller.identity.matching import AgentAddress
from yarn_copilot.controller.memory import SILENT_AFTER, ManagerMemory
from yarn_copilot.controller.ports import MakeNodeAgent, NodeAgent
from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.kube.errors import NotLeaderError

logger = logging.getLogger(__name__)

LARGEST_CPU_MILLI = 1 << 30
LARGEST_MEMORY_BYTES = 1 << 50
"""More than any machine has: an agent that says so is not believed."""

_LONGEST_WAIT_SECONDS = 300.0
_KILL_WAIT_SECONDS = 30.0
"""After an ask that freed too little, or failed, the same NodeManager is left alone for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Hold how the agents are asked: seconds between two reads, reads at once, seconds for a kill."""

    interval_seconds: float
    parallel: int
    kill_deadline_seconds: float


class NodeAgents:
    """Ask the agents of all NodeManagers."""

    def __init__(
        self,
        make: MakeNodeAgent | None,
        *,
        context: LoopContext,
        settings: AgentSettings,
        on_kill: Callable[[str, ManagerMemory, str, bool], None],
    ) -> None:
        """Take how an agent is reached (None: nobody is asked), and who is told of a kill and whether it was enough."""
        self._make = make
        self._book = context.book
        self._dirty = context.dirty
        self._gate = context.gate
        self._clock = context.clock
        self._metrics = context.metrics
        self._on_kill = on_kill
        self.settings = settings
        self._agents: dict[AgentAddress, NodeAgent] = {}
        self._asks: dict[str, tuple[ManagerMemory, BatchResources]] = {}
        self._has_ask = asyncio.Event()

    def submit(self, node: str, manager: ManagerMemory, ask: BatchResources) -> None:
        """Ask a NodeManager's agent to free so much as soon as it may be asked."""
        if self._clock.monotonic() >= manager.agent.kill_retry_at:
            self._asks[node] = (manager, ask)
            self._has_ask.set()

    def withdraw(self, node: str) -> None:
        """Do not ask: it has become unnecessary."""
        self._asks.pop(node, None)

    async def run(self) -> None:
        """Read and ask for ever."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._read_for_ever())
                group.create_task(self._kill_for_ever(group))
        finally:
            for agent in self._agents.values():
                await agent.aclose()
            self._agents = {}

    async def _read_for_ever(self) -> None:
        while True:
            await self.read_all()
            await self._clock.sleep(self.settings.interval_seconds)

    async def _kill_for_ever(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._has_ask.wait()
            self._has_ask.clear()
            asks, self._asks = self._asks, {}
            for node, (manager, ask) in asks.items():
                # The same node is not asked twice, and no node waits for another one's agent.
                manager.agent.kill_retry_at = self._clock.monotonic() + _KILL_WAIT_SECONDS
                group.create_task(self.make_room(node, manager, ask))

    async def read_all(self) -> None:
        """Read every agent that is due, several at once."""
        if self._make is None:
            return
        now = self._clock.monotonic()
        due = [
            (name, manager)
            for name, memory in self._book.memories.items()
            for manager in memory.managers.values()
            if self._address(manager) is not None and manager.agent.retry_at <= now
        ]
        await self._forget_gone()
        queue = iter(due)
        await asyncio.gather(*(self._work(queue) for _ in range(min(self.settings.parallel, len(due)))))

    async def _work(self, queue: Iterator[tuple[str, ManagerMemory]]) -> None:
        for name, manager in queue:
            await self.read(name, manager)

    async def read(self, node: str, manager: ManagerMemory) -> None:
        """Read one agent's state and keep it."""
        agent, memory = self._agent(manager), manager.agent
        if agent is None:
            return
        began_at = self._clock.monotonic()
        before = (memory.lingering, memory.running, memory.drain, memory.read_at is None)
        try:
            state = await agent.state()
            lingering = _checked(state.lingering.holds)
            running = None if state.running is None else _checked(state.running.to_batch())
        except (YarnCopilotError, ValueError) as problem:
            self._note_failure(node, manager, problem)
            return
        memory.lingering, memory.running, memory.drain = lingering, running, state.drain.value
        memory.read_at, memory.error, memory.failures, memory.retry_at = began_at, "", 0, 0.0
        if before != (lingering, running, memory.drain, False) or self._is_waited_for(node, manager):
            self._dirty.mark(node)

    def _is_waited_for(self, node: str, manager: ManagerMemory) -> bool:
        """Tell whether a plan waits for a new read before it asks for room."""
        memory = self._book.memory(node)
        plan = None if memory is None else memory.plan
        if plan is None:
            return False
        return any(decided.giving_way.stage is Stage.FORCED and decided.key == manager.key for decided in plan.managers)

    def _note_failure(self, node: str, manager: ManagerMemory, problem: Exception) -> None:
        memory = manager.agent
        if not memory.failures:
            keys = {"node": node, "cluster": manager.key.cluster, "node_id": manager.key.node_id}
            logger.warning("The agent beside a NodeManager does not answer, it is asked again: %s", problem, extra=keys)
        self._metrics.count_error("node_agents", problem)
        memory.error = str(problem)
        memory.failures += 1
        wait = min(self.settings.interval_seconds * 2.0 ** min(memory.failures - 1, 10), _LONGEST_WAIT_SECONDS)
        memory.retry_at = self._clock.monotonic() + wait
        hold_ends_at = (memory.read_at or memory.known_since or 0.0) + self._book.settings.lost_hold_seconds
        self._dirty.mark_at(node, hold_ends_at)
        if memory.failures == SILENT_AFTER:
            self._dirty.mark(node)  # it is told from now on

    async def make_room(self, node: str, manager: ManagerMemory, ask: BatchResources) -> None:
        """Ask one agent to free so much, if this replica may write."""
        agent, memory = self._agent(manager), manager.agent
        if agent is None or self._gate.refuse_yarn():
            return
        asked = batch_words(ask)
        try:
            self._gate.leadership.check()
            freed = await agent.kill(ask, deadline_seconds=self.settings.kill_deadline_seconds)
        except NotLeaderError:
            self._gate.was_refused = True
            return
        except YarnCopilotError as problem:
            self._metrics.count_error("node_agents", problem)
            memory.killed = (
                f"{asked} were to be freed on the node, and the agent did not say that it did: {problem}; "
                f"it may be asked again after {_KILL_WAIT_SECONDS:.0f} s"
            )
            self._on_kill(node, manager, memory.killed, False)
        else:
            memory.killed = f"tasks with {batch_words(freed)} were killed on the node, where {asked} were to be freed"
            self._on_kill(node, manager, memory.killed, ask.fits_in(freed))
        await self.read(node, manager)
        self._dirty.mark_at(node, memory.kill_retry_at)

    @staticmethod
    def _address(manager: ManagerMemory) -> AgentAddress | None:
        return None if manager.candidate is None else manager.candidate.agent

    def _agent(self, manager: ManagerMemory) -> NodeAgent | None:
        address = self._address(manager)
        if address is None or self._make is None:
            return None
        if address not in self._agents:
            self._agents[address] = self._make(str(address))
        return self._agents[address]

    async def _forget_gone(self) -> None:
        """Close the connections to agents that are gone."""
        if not self._agents:
            return
        memories = self._book.memories.values()
        here = {self._address(manager) for memory in memories for manager in memory.managers.values()}
        for address in [address for address in self._agents if address not in here]:
            await self._agents.pop(address).aclose()


def _checked(amount: BatchResources) -> BatchResources:
    largest = BatchResources(cpu_milli=LARGEST_CPU_MILLI, memory_bytes=LARGEST_MEMORY_BYTES)
    if not ZERO_BATCH.fits_in(amount) or not amount.fits_in(largest):
        raise ValueError(f"an amount that no machine has: {amount.cpu_milli} milli-cores, {amount.memory_bytes} bytes")
    return amount
