# SPDX-License-Identifier: Apache-2.0
"""Decide which node id of the ResourceManager's list a NodeManager has.

An annotation on the pod (or Node) decides where it is present. Otherwise names are tried from the most to the least
specific, and the first kind of name that finds anything wins. Of several ids found (an old registration on another
port, say) the active one that reported last is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from yarn_copilot.controller.identity.host_index import HostIndex
from yarn_copilot.controller.state.nodes import NodeFacts
from yarn_copilot.controller.state.pods import ManagerPod
from yarn_copilot.hadoop.model import NodeId, NodeReport


class AgentAddress(Struct, frozen=True):
    """Say where the program beside a NodeManager serves the controller."""

    ip: str
    port: int

    def __str__(self) -> str:
        return f"[{self.ip}]:{self.port}" if ":" in self.ip else f"{self.ip}:{self.port}"


class Candidate(Struct, frozen=True, kw_only=True):
    """Hold one NodeManager that should exist on a node.

    Attributes:
        source: what it was derived from, for messages: `pod NAMESPACE/NAME` or `node NAME`.
        cluster: cluster id from the annotation; None: the default cluster.
        override: node id from the annotation.
        names: groups of names to try, the most specific first.
        is_pod: an NM pod is bound to the node, so its floor is claimed even before it registers.
        is_terminating: the pod has a deletionTimestamp.
        agent: where the program beside it answers; None where the pod names no such port.
    """

    source: str
    cluster: str | None
    override: str | None
    names: tuple[tuple[str, ...], ...]
    first_label: str | None
    is_pod: bool
    is_terminating: bool = False
    agent: AgentAddress | None = None


def candidates(pods: Iterable[ManagerPod], node: NodeFacts | None) -> list[Candidate]:
    """List the NodeManagers that the pods of a node, or the Node itself, stand for.

    Of several pods for the same cluster the newest Running one counts, else the newest. Pods that are annotated with
    different node ids are different NodeManagers.
    """
    winners: dict[tuple[str | None, str | None], ManagerPod] = {}
    for pod in pods:
        place = (pod.cluster, pod.node_id)
        best = winners.get(place)
        if best is None or _rank(pod) > _rank(best):
            winners[place] = pod
    # A pod without the annotation is the same NodeManager as an annotated one of its cluster: one replaces the other.
    annotated = {cluster for cluster, node_id in winners if node_id is not None}
    found = [_of_pod(pod, node) for (cluster, node_id), pod in winners.items() if node_id or cluster not in annotated]
    if not found and node is not None and node.host_daemon:
        found.append(_of_node(node))
    return found


def _rank(pod: ManagerPod) -> tuple[bool, bool, str, str]:
    return (pod.phase == "Running", not pod.terminating, pod.created, pod.key)


def _of_pod(pod: ManagerPod, node: NodeFacts | None) -> Candidate:
    names: list[tuple[str, ...]] = []
    if pod.subdomain:
        full = f"{pod.hostname}.{pod.subdomain}.{pod.namespace}"
        names.append((f"{full}.svc", full, f"{pod.hostname}.{pod.subdomain}"))
    names.append((pod.hostname, pod.name))
    if pod.ip:
        names.append((pod.ip,))
    if pod.host_network and node is not None:
        names.append((node.name, *node.addresses))
    return Candidate(
        source=f"pod {pod.key}",
        cluster=pod.cluster,
        override=pod.node_id,
        names=tuple(names),
        first_label=None if pod.subdomain else pod.hostname,
        is_pod=True,
        agent=AgentAddress(pod.ip, pod.agent_port) if pod.ip and pod.agent_port else None,
        is_terminating=pod.terminating,
    )


def _of_node(node: NodeFacts) -> Candidate:
    return Candidate(
        source=f"node {node.name}",
        cluster=node.cluster,
        override=node.node_id,
        names=((node.name,), node.addresses),
        first_label=node.name if "." not in node.name else None,
        is_pod=False,
    )


def match(candidate: Candidate, index: HostIndex, reports: Mapping[NodeId, NodeReport]) -> NodeId | None:
    """Find the node id of a candidate; None when the ResourceManager does not list it."""
    if candidate.override is not None:
        try:
            node_id = NodeId.parse(candidate.override)
        except ValueError:
            return None
        return node_id if node_id in reports else None
    for found in _found(candidate, index):
        if found:
            return max(found, key=lambda node_id: _freshness(reports[node_id]))
    return None


def _found(candidate: Candidate, index: HostIndex) -> Iterator[list[NodeId]]:
    for group in candidate.names:
        for name in group:
            yield index.named(name)
    if candidate.first_label is not None:
        by_label = index.with_first_label(candidate.first_label)
        # A first label that several hosts share says nothing.
        yield by_label if len({node_id.host for node_id in by_label}) == 1 else []


def _freshness(report: NodeReport) -> tuple[bool, int, int]:
    return (report.state.is_active, report.last_health_report_millis, report.node_id.port)
