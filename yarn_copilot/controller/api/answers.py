# SPDX-License-Identifier: Apache-2.0
"""Build the API's answers from views. Every answer has `leader` and `age_seconds` in it.

`age_seconds` is the age of what the answer rests on: the longest silence among the sides it was read from, null as
long as one of them has never answered. A standby answers from its own watches and polls, with `leader` false.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from yarn_copilot.controller.api.reader import ControllerReader
from yarn_copilot.controller.view import ClusterView, ControllerView, NodeView, QueueView


class Answer(msgspec.Struct, kw_only=True, frozen=True):
    """Be the envelope of every answer."""

    leader: bool
    age_seconds: float | None


class StatusAnswer(Answer, kw_only=True, frozen=True):
    """Answer /api/v1/status."""

    controller: ControllerView
    clusters: list[ClusterView]
    nodes: dict[str, int]


class NodesAnswer(Answer, kw_only=True, frozen=True):
    """Answer /api/v1/nodes."""

    nodes: list[NodeView]


class NodeAnswer(Answer, kw_only=True, frozen=True):
    """Answer /api/v1/nodes/NAME."""

    node: NodeView


class ExplainAnswer(Answer, kw_only=True, frozen=True):
    """Answer /api/v1/nodes/NAME/explain."""

    node: str
    sentences: list[str]


class ClustersAnswer(Answer, kw_only=True, frozen=True):
    """Answer /api/v1/clusters."""

    clusters: list[ClusterView]


class QueuesAnswer(Answer, kw_only=True, frozen=True):
    """Answer /api/v1/queues."""

    queues: list[QueueView]


class ErrorAnswer(Answer, kw_only=True, frozen=True):
    """Answer whatever went wrong: a sentence, never a stack trace."""

    error: str


class HealthAnswer(Answer, kw_only=True, frozen=True):
    """Answer /healthz and /readyz: `ok`, and one sentence for each thing that is missing."""

    ok: bool
    missing: list[str]


def status(reader: ControllerReader) -> StatusAnswer:
    """Describe the replica, the clusters and how many nodes are how."""
    nodes = reader.nodes()
    counts = {
        "known": len(nodes),
        "managed": sum(node.managed for node in nodes),
        "with_reasons": sum(bool(node.reasons) for node in nodes),
    }
    return StatusAnswer(controller=reader.controller(), clusters=reader.clusters(), nodes=counts, **envelope(reader))


def nodes(reader: ControllerReader) -> NodesAnswer:
    """Describe all nodes."""
    return NodesAnswer(nodes=reader.nodes(), **envelope(reader))


def node(reader: ControllerReader, name: str) -> NodeAnswer | None:
    """Describe one node; None if it is unknown. Its age counts only the clusters it belongs to."""
    view = reader.node(name)
    if view is None:
        return None
    return NodeAnswer(node=view, **envelope(reader, {manager.cluster for manager in view.node_managers}))


def explain(reader: ControllerReader, name: str) -> ExplainAnswer | None:
    """Explain one node; None if it is unknown."""
    sentences = reader.explain(name)
    if sentences is None:
        return None
    return ExplainAnswer(node=name, sentences=sentences, **envelope(reader))


def clusters(reader: ControllerReader) -> ClustersAnswer:
    """Describe all clusters."""
    return ClustersAnswer(clusters=reader.clusters(), **envelope(reader))


def queues(reader: ControllerReader) -> QueuesAnswer:
    """Describe all queues; their age is the oldest queue's."""
    views = reader.queues()
    ages = [view.age_seconds for view in views]
    return QueuesAnswer(queues=views, leader=reader.controller().leader, age_seconds=_oldest(ages))


def error(reader: ControllerReader, message: str) -> ErrorAnswer:
    """Say what went wrong."""
    return ErrorAnswer(error=message, **envelope(reader))


def health(reader: ControllerReader) -> HealthAnswer:
    """Say whether the process works: every loop finishes its cycles."""
    stuck = reader.controller().stuck
    return HealthAnswer(ok=not stuck, missing=stuck, **envelope(reader))


def readiness(reader: ControllerReader) -> HealthAnswer:
    """Say whether the first complete view exists."""
    view = reader.controller()
    return HealthAnswer(ok=view.ready, missing=view.ready_missing, **envelope(reader))


def envelope(reader: ControllerReader, cluster_ids: set[str] | None = None) -> dict[str, Any]:
    """Give `leader` and `age_seconds` over Kubernetes and the named clusters, all unless some are named."""
    view = reader.controller()
    ages = [cluster.age_seconds for cluster in reader.clusters() if cluster_ids is None or cluster.id in cluster_ids]
    return {"leader": view.leader, "age_seconds": _oldest([view.kubernetes_age_seconds, *ages])}


def _oldest(ages: Iterable[float | None]) -> float | None:
    known = list(ages)
    if not known or any(age is None for age in known):
        return None
    return round(max(age for age in known if age is not None), 3)
