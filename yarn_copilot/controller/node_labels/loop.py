# SPDX-License-Identifier: Apache-2.0
"""Look at one cluster's partitions and attributes now and then, and write what differs.

NodeManagers that change to the same partition share a call, so that a partition that the cluster does not have holds up
its own nodes only. Nothing is written for a paused node, by a standby, or in mode observe.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from yarn_copilot.controller.context import LoopContext
from yarn_copilot.controller.node_labels.plan import LabelChanges, Labelled, LabelRules, plan_labels
from yarn_copilot.controller.notices import NodeNotices
from yarn_copilot.controller.ports import LabelKeeper
from yarn_copilot.controller.state.cluster import ClusterState
from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.hadoop.model import AttributeOperation, NodeAttribute
from yarn_copilot.kube.errors import NotLeaderError

logger = logging.getLogger(__name__)

_MOST_HOSTS = 1000
"""Hosts whose attributes change in one call."""


class NodeLabelLoop:
    """Keep one cluster in step."""

    def __init__(
        self,
        state: ClusterState,
        keeper: LabelKeeper | None,
        *,
        context: LoopContext,
        notices: NodeNotices,
        rules: LabelRules,
        interval_seconds: float,
    ) -> None:
        """Take the cluster, who reads and writes its labels (None: nobody can), and the rules."""
        self._state = state
        self._keeper = keeper
        self._context = context
        self._notices = notices
        self._rules = rules
        self.interval_seconds = interval_seconds
        self._refused: dict[str, str] = {}

    async def run(self) -> None:
        """Look for ever; without rules there is nothing to do."""
        while True:
            if self._rules and self._state.reachable:
                await self.step()
            await self._context.clock.sleep(self.interval_seconds)

    async def step(self) -> None:
        """Look once, and write what differs."""
        if self._keeper is None or self._context.gate.why_not_yarn():
            return
        managers = list(self._managers())
        began_at = self._context.clock.monotonic()
        try:
            partitions = await self._keeper.get_nodes_to_labels() if self._rules.partition_label else {}
            attributes = await self._keeper.get_nodes_to_attributes() if self._rules.attributes else {}
            changes = plan_labels(managers, self._rules, partitions=partitions, attributes=attributes)
            await self._write(self._keeper, changes)
        except NotLeaderError:
            return  # the next leader looks itself
        except YarnCopilotError as problem:
            self._context.metrics.count_error("node_labels", problem)
            logger.warning("Node labels not kept in step: %s", problem, extra={"cluster": self._state.cluster})
            return
        differing = {each.node for group in changes.partitions.values() for each in group}
        for name in self._refused.keys() - differing:
            del self._refused[name]
        self._context.metrics.observe_cycle("node_labels", self._context.clock.monotonic() - began_at)

    def _managers(self) -> Iterator[Labelled]:
        """Give the NodeManagers whose node is known, present and not paused."""
        wall = self._context.clock.wall()
        for name, manager in self._context.book.residents.managers_of_cluster(self._state.cluster):
            facts = self._context.nodes.get(name)
            report = self._context.book.reports.of(manager)
            if facts is None or report is None or not report.state.is_active or manager.candidate is None:
                continue
            if facts.orders.at(wall).pause is None:
                yield Labelled(node=name, node_id=report.node_id, labels=dict(facts.mapped_labels))

    async def _write(self, keeper: LabelKeeper, changes: LabelChanges) -> None:
        for partition, group in sorted(changes.partitions.items()):
            self._context.gate.leadership.check()
            labels = {each.node_id: [partition] if partition else [] for each in group}
            try:
                await keeper.replace_labels_on_nodes(labels, fail_on_unknown_nodes=False)
            except YarnCopilotError as problem:
                self._note_refused(partition, group, problem)
                continue
            self._context.metrics.count_write("yarn", "applied")
            logger.info(
                "Partition set",
                extra={"cluster": self._state.cluster, "partition": partition or "default", "nodes": len(group)},
            )
        for operation, given in (
            (AttributeOperation.ADD, changes.added),
            (AttributeOperation.REPLACE, changes.replaced),
            (AttributeOperation.REMOVE, changes.removed),
        ):
            await self._write_attributes(keeper, operation, given)

    async def _write_attributes(
        self, keeper: LabelKeeper, operation: AttributeOperation, given: Mapping[str, Sequence[NodeAttribute]]
    ) -> None:
        hosts = sorted(given)
        for start in range(0, len(hosts), _MOST_HOSTS):
            part = {host: given[host] for host in hosts[start : start + _MOST_HOSTS]}
            self._context.gate.leadership.check()
            await keeper.map_attributes_to_nodes(operation, part, fail_on_unknown_nodes=False)
            self._context.metrics.count_write("yarn", "applied")
            keys = {"cluster": self._state.cluster, "operation": operation.name, "hosts": len(part)}
            logger.info("Node attributes changed", extra=keys)

    def _note_refused(self, partition: str, group: Sequence[Labelled], problem: YarnCopilotError) -> None:
        """Tell each node once for each refusal that is new."""
        self._context.metrics.count_write("yarn", "refused")
        self._context.metrics.count_error("node_labels", problem)
        for each in group:
            message = (
                f"the ResourceManager of cluster {self._state.cluster} does not put {each.node_id} into partition "
                f"{partition or 'default'!r}, which the Node's label {self._rules.partition_label} asks for: {problem}"
            )
            if self._refused.get(each.node) != message:
                self._refused[each.node] = message
                self._notices.tell_label_refused(each.node, message)
