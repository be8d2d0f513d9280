# SPDX-License-Identifier: Apache-2.0
"""Keep our entry of each Node's third-party allocations equal to the claim that was planned.

The patch changes nothing but our entry and tests the old text, so another writer's entry is never lost. Steps on
one node are serial; several nodes are written at once. The plan is read when its turn comes, not when it was
queued.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from batch_resources.annotations.third_party import ThirdPartyError, read_third_party
from batch_resources.keys import (
    CLAIM_COUNTER_ANNOTATION,
    CPU_NORMALIZATION_RATIO_ANNOTATION,
    DRAIN_ANNOTATION,
    ENTRY_NAME,
    THIRD_PARTY_ANNOTATION,
)
from batch_resources.ledger import ClaimAction
from batch_resources.planner.policy import Mode
from batch_resources.resources import BatchResources
from yarn_copilot.controller.context import LoopContext
from yarn_copilot.controller.memory import ClaimMemory, NodeMemory
from yarn_copilot.controller.ports import NodeAnnotationWriter, NodeReader
from yarn_copilot.controller.state.nodes import NodeFacts
from yarn_copilot.controller.steps import Step
from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.kube.errors import (
    ConflictError,
    KubeAPIError,
    KubeConnectionError,
    NotFoundError,
    NotLeaderError,
    PreconditionFailedError,
    ServerError,
)
from yarn_copilot.kube.model import Node

logger = logging.getLogger(__name__)

_FAILURE_WAIT_MAX_SECONDS = 10.0
_REFUSED_WAIT_MAX_SECONDS = 30.0


class ClaimReconciler:
    """Write the claims of all nodes."""

    def __init__(
        self,
        writer: NodeAnnotationWriter,
        reader: NodeReader,
        *,
        context: LoopContext,
        on_refused: Callable[[str, str], None],
    ) -> None:
        """Take the API server's two ports and the callback for a refusal that a person has to mend."""
        self._writer = writer
        self._reader = reader
        self._book = context.book
        self._nodes = context.nodes
        self._reduce_node = context.reduce_node
        self._dirty = context.dirty
        self._gate = context.gate
        self._clock = context.clock
        self._metrics = context.metrics
        self._on_step = context.on_step
        self._on_refused = on_refused
        self._waiting: dict[str, None] = {}
        self._in_flight: set[str] = set()
        self._available = asyncio.Event()

    def submit(self, name: str) -> None:
        """Write a node's claim as soon as a worker is free."""
        self._waiting[name] = None
        self._available.set()

    def withdraw(self, name: str) -> None:
        """Do not write a node's claim: it has become unnecessary."""
        self._waiting.pop(name, None)

    async def run(self, *, parallel: int) -> None:
        """Write for ever with so many workers."""
        async with asyncio.TaskGroup() as group:
            for _ in range(parallel):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            name = self._next()
            if name is None:
                self._available.clear()
                await self._available.wait()
                continue
            self._in_flight.add(name)
            try:
                await self.write_node(name)
            finally:
                self._in_flight.discard(name)
                if self._waiting:
                    self._available.set()

    def _next(self) -> str | None:
        for name in self._waiting:
            if name not in self._in_flight:
                del self._waiting[name]
                return name
        return None

    async def write_node(self, name: str) -> None:
        """Write one node's claim if it still differs."""
        memory = self._book.memory(name)
        facts = self._nodes.get(name)
        if memory is None or facts is None or memory.plan is None:
            return
        plan = memory.plan
        if plan.claim_action is ClaimAction.KEEP:
            return
        if self._clock.monotonic() < memory.claim.retry_at:
            return  # the node is planned again at that moment
        if self._gate.refuse_kubernetes():
            return
        if plan.claim_action is ClaimAction.FORGET:
            await self._forget_order(memory, facts)
            return
        claim = None if plan.claim_action is ClaimAction.REMOVE else plan.claim
        if facts.claimed == claim and memory.mode is not Mode.STRICT:
            return
        try:
            text = _changed_text(facts, claim)
            self._gate.leadership.check()
        except (ThirdPartyError, NotLeaderError):
            return  # held by the planner, or the next leader's business
        await self._patch(memory, facts, claim, text)

    async def _patch(
        self, memory: NodeMemory, facts: NodeFacts, claim: BatchResources | None, text: str | None
    ) -> None:
        ours = memory.claim
        before = ours.note_sent(claim)
        expected, changed = {THIRD_PARTY_ANNOTATION: facts.third_party_text}, {THIRD_PARTY_ANNOTATION: text}
        had_one = False
        if memory.mode is Mode.STRICT or (claim is None and facts.counter_text is not None):
            # Whatever of ours tested this counter before and is still on its way dies with this write.
            expected[CLAIM_COUNTER_ANNOTATION] = facts.counter_text
            following = facts.counter.next(self._book.term_name).text()
            changed[CLAIM_COUNTER_ANNOTATION] = None if claim is None else following
            had_one = memory.permissions.note_patch_issued()
        if memory.plan is not None and memory.plan.forces_publication:
            # koord-manager publishes whatever differs when this is missing, and writes it back in the same patch.
            changed[CPU_NORMALIZATION_RATIO_ANNOTATION] = None
        self._on_step(Step.CLAIM_SENDING, facts.name)
        began_at = self._clock.monotonic()
        try:
            node = await self._writer.patch_node_annotations(facts.name, expected=expected, changed=changed)
        except YarnCopilotError as problem:
            if not isinstance(problem, KubeConnectionError | ServerError):
                ours.possible = before
                memory.permissions.note_patch_refused(others_are_unresolved=had_one)
            await self._note_failure(memory, problem, what="Claim not written")
            return
        self._metrics.count_write("kubernetes", "applied")
        self._metrics.observe_cycle("third_party", self._clock.monotonic() - began_at)
        self._note_success(memory, node, claim)
        self._on_step(Step.CLAIM_LANDED, facts.name)
        if claim is None:
            logger.info("Claim removed", extra={"node": facts.name})
        else:
            keys = {"node": facts.name, "cpu_milli": claim.cpu_milli, "memory_bytes": claim.memory_bytes}
            logger.info("Claim written", extra=keys)

    async def _forget_order(self, memory: NodeMemory, facts: NodeFacts) -> None:
        """Remove the order to release a node that has no NodeManager any more: nothing of ours is left then."""
        try:
            self._gate.leadership.check()
            node = await self._writer.patch_node_annotations(
                facts.name, expected={DRAIN_ANNOTATION: facts.drain_text}, changed={DRAIN_ANNOTATION: None}
            )
        except NotLeaderError:
            return
        except YarnCopilotError as problem:
            await self._note_failure(memory, problem, what=f"Annotation {DRAIN_ANNOTATION} not removed")
            return
        self._metrics.count_write("kubernetes", "applied")
        memory.claim.failures, memory.claim.retry_at = 0, 0.0
        self._nodes.learned(facts.name, self._reduce_node(node))
        logger.info("Node left: the order to release it has been carried out", extra={"node": facts.name})

    def _note_success(self, memory: NodeMemory, node: Node, claim: BatchResources | None) -> None:
        facts, ours = self._reduce_node(node), memory.claim
        memory.permissions.learn_counter(facts)
        self._book.lag.note_known(facts.version, now=self._clock.monotonic())
        if memory.mode is Mode.STRICT and memory.name in self._waiting:
            # What was submitted meanwhile rests on the version before, so it is planned again.
            self.withdraw(memory.name)
            self._dirty.mark(memory.name)
        ours.note_landed(claim, facts.version)
        ours.possible = ()
        self._nodes.learned(facts.name, facts)

    async def _note_failure(self, memory: NodeMemory, problem: YarnCopilotError, *, what: str) -> None:
        ours = memory.claim
        ours.failures += 1
        wait = self._wait_after(ours, problem)
        ours.retry_at = self._clock.monotonic() + wait
        if isinstance(problem, PreconditionFailedError | ConflictError):
            self._metrics.count_write("kubernetes", "conflict")
            await self._read_again(memory.name)
        elif isinstance(problem, NotFoundError):
            self._metrics.count_write("kubernetes", "refused")
        else:
            refused = not problem.retryable
            self._metrics.count_write("kubernetes", "refused" if refused else "failed")
            self._metrics.count_error("third_party", problem)
            if refused:
                self._on_refused(memory.name, str(problem))
            level = logging.WARNING if ours.failures == 1 else logging.DEBUG
            keys = {"node": memory.name, "next_seconds": round(wait, 1)}
            logger.log(level, "%s, it is tried again: %s", what, problem, extra=keys)
        self._dirty.mark_at(memory.name, ours.retry_at)

    @staticmethod
    def _wait_after(ours: ClaimMemory, problem: YarnCopilotError) -> float:
        """Give the seconds until the next try: none after the first conflict, else twice as long each time."""
        if isinstance(problem, PreconditionFailedError | ConflictError) and ours.failures == 1:
            return 0.0
        longest = _FAILURE_WAIT_MAX_SECONDS if problem.retryable else _REFUSED_WAIT_MAX_SECONDS
        asked = (problem.retry_after_seconds or 0.0) if isinstance(problem, KubeAPIError) else 0.0
        return max(min(0.5 * 2.0 ** min(ours.failures - 1, 8), longest), min(asked, _REFUSED_WAIT_MAX_SECONDS))

    async def _read_again(self, name: str) -> None:
        """Look at the Node as stored: the view that the patch was based on is behind."""
        try:
            facts = self._reduce_node(await self._reader.get_node(name))
        except YarnCopilotError as problem:
            self._metrics.count_error("third_party", problem)
            return
        self._nodes.learned(name, facts)


def _changed_text(facts: NodeFacts, claim: BatchResources | None) -> str | None:
    allocations = read_third_party(facts.third_party_text)
    return allocations.without_entry(ENTRY_NAME) if claim is None else allocations.with_entry(ENTRY_NAME, claim)
