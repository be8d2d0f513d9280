# SPDX-License-Identifier: Apache-2.0
"""Send a cluster's wanted capacities, all that differ in one call, or in a few where they are very many.

One call is in flight per cluster; what is decided meanwhile replaces what was waiting. A batch that fails because
one node is unknown is sent again at once without that node, which waits by itself. A batch is decided once more and
recorded as sent without letting anything happen between, so it is kept small enough for the event loop to wait. Every
update carries an over-commit timeout: the far one, which disarms what others set and kills nothing, or what is left
until a deadline of the plan.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from batch_resources.giving_way import Overcommit
from batch_resources.ledger import ManagerKey
from batch_resources.resources import YarnResources
from batch_resources.sends import mark_answered, mark_lost, mark_refused, record_send
from yarn_copilot.controller.context import LoopContext
from yarn_copilot.controller.memory import ManagerMemory
from yarn_copilot.controller.node_capacity.backoff import note_recognized, note_unrecognized
from yarn_copilot.controller.ports import ResourceManager
from yarn_copilot.controller.steps import Step
from yarn_copilot.controller.waiting import wait_at_most
from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.hadoop.errors import HadoopRPCError, NodeRefusedError
from yarn_copilot.hadoop.model import FAR_OVERCOMMIT_TIMEOUT_MILLIS, NodeId, NodeResourceUpdate, Resource
from yarn_copilot.kube.errors import NotLeaderError

logger = logging.getLogger(__name__)

NODES_PER_CALL = 500
"""Updates of one call: to decide so many once more takes some 50 ms, in which leases and watches have to wait."""

UNKNOWN_PER_CYCLE = 32
"""Answers "unrecognized node" after which a batch is given up for the moment; each of them costs a whole call."""

_FAILURE_WAIT_MAX_SECONDS = 10.0
_LATER_SECONDS = 0.5
_LEAST_TIMEOUT_SECONDS = 1.0
"""A timeout of 0 would kill before any ApplicationMaster is warned."""


class Wanted(Struct, frozen=True, kw_only=True):
    """Hold one update that waits.

    Attributes:
        node, manager: whom it is for.
        resources: the value.
        since: when its cause was seen.
        deadline: when containers above the value are killed, monotonic seconds; None for never.
    """

    node: str
    manager: ManagerMemory
    resources: YarnResources
    since: float
    deadline: float | None = None


class CapacityReconciler:
    """Write one cluster's capacities."""

    def __init__(
        self,
        cluster: str,
        resource_manager: ResourceManager,
        *,
        context: LoopContext,
        on_sent: Callable[[], None],
        on_refused: Callable[[str, ManagerMemory, NodeRefusedError, float], None],
    ) -> None:
        """Take the cluster's ResourceManager and the callbacks for a sent batch and an unknown node."""
        self.cluster = cluster
        self._resource_manager = resource_manager
        self._book = context.book
        self._dirty = context.dirty
        self._gate = context.gate
        self._clock = context.clock
        self._metrics = context.metrics
        self._on_step = context.on_step
        self._on_sent = on_sent
        self._on_refused = on_refused
        self.decide_again: Callable[[Wanted], Wanted | None] = lambda wanted: wanted
        """Gives what to send now, right before the call; None when it has become unnecessary or unsafe, and then the
        node is planned again, since nothing else need happen there."""
        self._wanted: dict[ManagerKey, Wanted] = {}
        self._wake = asyncio.Event()
        self._answers_again = asyncio.Event()
        self._failures = 0
        self.nodes_per_call = NODES_PER_CALL
        self.unrecognized_backoff_max_seconds = 60.0
        self.last_error = ""

    def submit(self, wanted: Wanted) -> None:
        """Send this value with the next batch, in place of whatever waited for the same NodeManager."""
        self._wanted[wanted.manager.key] = wanted
        self._wake.set()

    def withdraw(self, key: ManagerKey) -> None:
        """Do not send what waits for a NodeManager: it has become unnecessary."""
        self._wanted.pop(key, None)

    async def run(self) -> None:
        """Send batches for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.send_waiting()
            if self._failures:
                self._answers_again.clear()
                seconds = min(0.25 * 2.0 ** min(self._failures, 8), _FAILURE_WAIT_MAX_SECONDS)
                await wait_at_most(self._answers_again, self._clock, seconds)

    def end_wait(self) -> None:
        """Wait no longer after failures: the ResourceManager has answered another call."""
        self._answers_again.set()

    async def send_waiting(self) -> None:
        """Send all that waits, in as few calls as its number and the ResourceManager's answers allow."""
        began_at = self._clock.monotonic()
        while self._wanted:
            reason = self._gate.why_not_yarn()
            if reason:
                # The nodes stay as they are; becoming leader, or a word of the API server, marks them again.
                logger.debug("Updates wait: %s", reason, extra={"cluster": self.cluster, "nodes": len(self._wanted)})
                self._give_up()
                return
            failures = self._failures
            try:
                await self._send_some(self._take())
            except NotLeaderError:
                self._give_up()  # the next leader plans everything anew
                return
            if self._failures > failures:
                break  # what is left goes out after the wait
            await self._clock.sleep(0)
        if self._wanted:
            self._wake.set()
        self._metrics.observe_cycle("node_capacity", self._clock.monotonic() - began_at)

    def _take(self) -> dict[ManagerKey, Wanted]:
        """Take the updates of one call; what waits for a later one may still be replaced or withdrawn."""
        keys = list(islice(self._wanted, self.nodes_per_call))
        current = {}
        for key in keys:
            wanted = self._wanted.pop(key)
            if self._is_current(wanted):
                current[key] = wanted
            else:
                self._dirty.mark(wanted.node)
        return current

    def _give_up(self) -> None:
        """Send nothing of what waits: writing is not allowed now."""
        self._gate.was_refused = True
        self._wanted = {}

    async def _send_some(self, batch: dict[ManagerKey, Wanted]) -> None:
        """Send a batch, again without each node that the ResourceManager does not know."""
        for _ in range(UNKNOWN_PER_CYCLE):
            batch = self._decided_again(batch)
            if not batch:
                return
            unknown = await self._send(batch)
            if unknown is None:
                return
            batch = {key: wanted for key, wanted in batch.items() if wanted.manager.node_id != unknown}
        self._leave_for_later([*batch.values(), *self._wanted.values()])
        self._wanted = {}

    def _decided_again(self, batch: dict[ManagerKey, Wanted]) -> dict[ManagerKey, Wanted]:
        """Ask for the values once more: what was decided may have waited for another call to end."""
        decided = {}
        for key, wanted in batch.items():
            again = self.decide_again(wanted)
            if again is not None:
                decided[key] = again
            else:
                # What the update rested on has gone by while it waited, like a fresh read that is too old by now.
                self._dirty.mark(wanted.node)
        return decided

    def _is_current(self, wanted: Wanted) -> bool:
        """Tell whether the NodeManager is still what it was when the update was decided."""
        memory = self._book.memory(wanted.node)
        known = None if memory is None else memory.managers.get(wanted.manager.key)
        return known is wanted.manager and known.node_id is not None and known.candidate is not None

    def _leave_for_later(self, left: Iterable[Wanted]) -> None:
        """Leave the rest for later: so many unknown nodes mean that the node list has become another one."""
        self._on_sent()  # read it again soon
        for wanted in left:
            self._dirty.mark_at(wanted.node, self._clock.monotonic() + _LATER_SECONDS)

    async def _send(self, batch: dict[ManagerKey, Wanted]) -> NodeId | None:
        """Make one call.

        Returns:
            The node that the ResourceManager does not know, None when there is nothing to repeat.
        """
        self._gate.leadership.check()
        sent_at = self._clock.monotonic()
        updates = [self._update(wanted, sent_at) for wanted in batch.values()]
        left = {key: wanted.manager.overcommit for key, wanted in batch.items()}
        for wanted in batch.values():
            wanted.manager.overcommit = Overcommit(value=wanted.resources, deadline=wanted.deadline)
            wanted.manager.sends = record_send(wanted.manager.sends, wanted.resources, now=sent_at)
            wanted.manager.restart_evidence()
            self._on_step(Step.UPDATE_SENDING, wanted.node)
        self._on_sent()
        try:
            await self._resource_manager.update_node_resource(updates)
        except NodeRefusedError as problem:
            self._restore(batch, left)
            return self._note_refused(batch, problem, sent_at)
        except YarnCopilotError as problem:
            if _nothing_landed(problem):
                self._restore(batch, left)
            self._note_failure(batch, problem, sent_at)
            return None
        except asyncio.CancelledError:
            self._mark(batch, sent_at, landed=None)
            raise
        self._note_success(batch, sent_at)
        return None

    @staticmethod
    def _restore(batch: dict[ManagerKey, Wanted], left: dict[ManagerKey, Overcommit]) -> None:
        """Go back to what was in force before a call that changed nothing for certain."""
        for key, wanted in batch.items():
            wanted.manager.overcommit = left[key]

    def _update(self, wanted: Wanted, now: float) -> NodeResourceUpdate:
        manager = wanted.manager
        assert manager.node_id is not None  # noqa: S101  # the planner sends nothing to an unmatched NodeManager
        report = self._book.reports.of(manager)
        resource = Resource(
            memory_mib=wanted.resources.memory_mib,
            vcores=wanted.resources.vcores,
            # A type that an update does not name is set to zero by the ResourceManager.
            custom=() if report is None else report.capability.custom,
        )
        return NodeResourceUpdate(
            node_id=manager.node_id, resource=resource, overcommit_timeout_millis=_timeout_millis(wanted.deadline, now)
        )

    def _note_success(self, batch: dict[ManagerKey, Wanted], sent_at: float) -> None:
        now = self._clock.monotonic()
        for wanted in batch.values():
            wanted.manager.sends = mark_answered(wanted.manager.sends, sent_at=sent_at, now=now)
            wanted.manager.overcommit = replace(wanted.manager.overcommit, is_certain=True)
            note_recognized(wanted.manager)
            self._on_step(Step.UPDATE_ANSWERED, wanted.node)
            self._metrics.observe_propagation("sent", sent_at - wanted.since)
        self._failures = 0
        self.last_error = ""
        self._metrics.count_write("yarn", "applied")
        self._on_sent()
        if len(batch) > 1:
            logger.info("Capacities sent", extra={"cluster": self.cluster, "nodes": len(batch)})
            return
        wanted = next(iter(batch.values()))
        keys: dict[str, object] = {
            "node": wanted.node,
            "cluster": self.cluster,
            "node_id": str(wanted.manager.node_id),
            "memory_mib": wanted.resources.memory_mib,
            "vcores": wanted.resources.vcores,
        }
        if wanted.deadline is not None:
            keys["kills_after_seconds"] = round(wanted.deadline - sent_at, 1)
        logger.info("Capacity sent", extra=keys)

    def _note_refused(
        self, batch: dict[ManagerKey, Wanted], problem: NodeRefusedError, sent_at: float
    ) -> NodeId | None:
        now = self._clock.monotonic()
        self._metrics.count_write("yarn", "refused")
        found = None
        for wanted in batch.values():
            wanted.manager.sends = mark_refused(wanted.manager.sends, sent_at=sent_at)
            if wanted.manager.node_id == problem.node_id:
                found = wanted
        if found is None:
            # The answer names a node that was not asked for; repeating the batch would give the same answer.
            self._failures += 1
            self.last_error = str(problem)
            self._dirty.mark_all(wanted.node for wanted in batch.values())
            return None
        seconds = note_unrecognized(found.manager, now=now, longest_seconds=self.unrecognized_backoff_max_seconds)
        self._on_refused(found.node, found.manager, problem, seconds)
        self._dirty.mark_at(found.node, found.manager.retry_at)
        return problem.node_id

    def _note_failure(self, batch: dict[ManagerKey, Wanted], problem: YarnCopilotError, sent_at: float) -> None:
        self._failures += 1
        self.last_error = str(problem)
        self._mark(batch, sent_at, landed=False if _nothing_landed(problem) else None)
        self._metrics.count_write("yarn", "failed")
        self._metrics.count_error("node_capacity", problem)
        keys = {"cluster": self.cluster, "nodes": len(batch)}
        logger.warning("Capacities not sent, they are tried again: %s", problem, extra=keys)
        for wanted in batch.values():
            self._dirty.mark_at(wanted.node, self._clock.monotonic() + min(0.5 * self._failures, 5.0))

    def _mark(self, batch: dict[ManagerKey, Wanted], sent_at: float, *, landed: bool | None) -> None:
        """Note the end of a call without success: refused for certain (False), or unknown (None)."""
        mark = mark_lost if landed is None else mark_refused
        for wanted in batch.values():
            wanted.manager.sends = mark(wanted.manager.sends, sent_at=sent_at)


def _nothing_landed(problem: YarnCopilotError) -> bool:
    """Tell whether a call failed so that nothing of it is on its way: a refusal, or a connection that never came."""
    return isinstance(problem, HadoopRPCError) and not problem.may_have_been_applied


def _timeout_millis(deadline: float | None, now: float) -> int:
    """Give the over-commit timeout of an update; never zero, and never negative, which would leave an older one."""
    if deadline is None:
        return FAR_OVERCOMMIT_TIMEOUT_MILLIS
    return round(max(deadline - now, _LEAST_TIMEOUT_SECONDS) * 1000)
