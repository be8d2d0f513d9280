# SPDX-License-Identifier: Apache-2.0
"""Turn changes of the Kubernetes views into nodes to identify and to plan.

A Node changes several times a minute without any meaning for the ledger (conditions, images); such versions end here.
"""

from __future__ import annotations

from collections.abc import Callable

from yarn_copilot.controller.book import NodeBook
from yarn_copilot.controller.dirty import DirtyNodes
from yarn_copilot.controller.ports import Clock
from yarn_copilot.controller.state.nodes import NodeFacts


class KubernetesIntake:
    """Receive the callbacks of the node table, the pod ledger and the report ages."""

    def __init__(self, dirty: DirtyNodes, clock: Clock, on_foreign_writer: Callable[[str, str], None]) -> None:
        """Take where nodes are marked; the book is joined later, since it needs the views first."""
        self._dirty = dirty
        self._clock = clock
        self._on_foreign_writer = on_foreign_writer
        self._book: NodeBook | None = None

    def join(self, book: NodeBook) -> None:
        """Connect the book; changes before that are found by its first identification."""
        self._book = book

    def node_changed(self, before: NodeFacts | None, after: NodeFacts | None) -> None:
        """Take one version of a Node, or its end."""
        book = self._book
        if book is None:
            return
        now = self._clock.monotonic()
        if after is None:
            assert before is not None  # noqa: S101  # a removal has facts
            book.residents.identify(before.name, now=now)
            self._dirty.mark(before.name)
            return
        had_memory = book.memory(after.name) is not None
        if before is None or _identity(before) != _identity(after) or _has_ours(before) != _has_ours(after):
            book.residents.identify(after.name, now=now)
        if book.note_node_change(before, after, now=now):
            self._on_foreign_writer(after.name, str(after.claimed))
        is_managed = had_memory or book.memory(after.name) is not None
        if is_managed and (before is None or _ledger(before) != _ledger(after)):
            self._dirty.mark(after.name)

    def version_seen(self, facts: NodeFacts) -> None:
        """Take every version of a Node that the watch delivers, in order."""
        if self._book is not None and self._book.note_version(facts, now=self._clock.monotonic()):
            self._dirty.mark(facts.name)

    def versions_missed(self) -> None:
        """Take note of a new list: what happened since the last word is not known."""
        if self._book is not None:
            self._book.note_gap(now=self._clock.monotonic())

    def pod_changed(self, node: str) -> None:
        """Take a change of a node's booked sum."""
        if self._book is not None and self._book.memory(node) is not None:
            self._dirty.mark(node)

    def managers_changed(self, node: str) -> None:
        """Take a change of the NodeManager pods on a node."""
        if self._book is not None:
            self._book.residents.identify(node, now=self._clock.monotonic())
            self._dirty.mark(node)

    def age_changed(self, node: str) -> None:
        """Take a report that made a node's origin young again, or the end of its reports."""
        self.pod_changed(node)


def _identity(facts: NodeFacts) -> tuple[object, ...]:
    return (facts.uid, facts.host_daemon, facts.node_id, facts.cluster, facts.addresses, facts.mode)


def _has_ours(facts: NodeFacts) -> tuple[bool, bool]:
    return (facts.claimed is not None, facts.orders.releases)


def _ledger(facts: NodeFacts) -> tuple[object, ...]:
    return (
        facts.origin,
        facts.allocatable,
        facts.third_party_text,
        facts.counter,
        facts.normalization_ratio,
        facts.orders,
        facts.is_cordoned,
        _identity(facts),
        facts.host,
        facts.has_ratio,
    )
