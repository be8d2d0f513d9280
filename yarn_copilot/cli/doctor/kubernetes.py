# SPDX-License-Identifier: Apache-2.0
"""Compare the NodeManagers of the ResourceManagers' lists with pods and Nodes, as the controller will."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from yarn_copilot.cli.doctor.facts import MatchFacts
from yarn_copilot.config.settings import NodeManagerSettings
from yarn_copilot.controller.identity.host_index import HostIndex
from yarn_copilot.controller.identity.matching import Candidate, candidates, match
from yarn_copilot.controller.state.nodes import NodeFacts, NodeReducer
from yarn_copilot.controller.state.pods import ManagerPod, PodReducer
from yarn_copilot.controller.state.selectors import LabelSelector
from yarn_copilot.hadoop.configuration import DEFAULT_CLUSTER_ID
from yarn_copilot.hadoop.model import NodeReport
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.kinds import NODES, PODS
from yarn_copilot.kube.model import Node, Pod


async def read_candidates(client: KubeClient, settings: NodeManagerSettings) -> list[Candidate]:
    """List the NodeManagers that pods and Nodes stand for.

    Raises:
        KubeAPIError: nodes or pods cannot be listed.
    """
    host_selector = LabelSelector.parse(settings.host_node_selector) if settings.host_node_selector else None
    reduce_node = NodeReducer(host_selector, physical_cpu=False)
    reduce_pod = PodReducer(LabelSelector.parse(settings.pod_selector))
    nodes: dict[str, NodeFacts] = {}
    async for page in client.list_pages(NODES):
        nodes.update((item.metadata.name, reduce_node(item)) for item in page.items if isinstance(item, Node))
    managers: dict[str, list[ManagerPod]] = {}
    async for page in client.list_pages(PODS, label_selector=settings.pod_selector):
        for item in page.items:
            found = reduce_pod(item).manager if isinstance(item, Pod) else None
            if found is not None and found.node:
                managers.setdefault(found.node, []).append(found)
    return [
        candidate
        for name in sorted(nodes.keys() | managers.keys())
        for candidate in candidates(managers.get(name, ()), nodes.get(name))
    ]


def match_clusters(
    found: Iterable[Candidate],
    reports: Mapping[str, Sequence[NodeReport] | None],
    settings: NodeManagerSettings,
) -> dict[str, MatchFacts]:
    """Match candidates with the node lists.

    Args:
        found: NodeManagers by pods and Nodes.
        reports: node list of each cluster; None where it could not be read.
        settings: the default cluster.

    Returns:
        Cluster id to outcome. What names an unknown cluster is told with the first cluster.
    """
    by_cluster: dict[str, list[Candidate]] = {}
    for candidate in found:
        by_cluster.setdefault(_cluster_of(candidate, settings, tuple(reports)), []).append(candidate)
    unknown = tuple(
        f"{candidate.source} ({cluster[:64]})"
        for cluster, members in sorted(by_cluster.items())
        if cluster not in reports
        for candidate in members
    )
    outcome: dict[str, MatchFacts] = {}
    for number, (cluster, listed) in enumerate(reports.items()):
        index, by_id = HostIndex(listed or ()), {report.node_id: report for report in listed or ()}
        matches = [(candidate, match(candidate, index, by_id)) for candidate in by_cluster.get(cluster, ())]
        outcome[cluster] = MatchFacts(
            matched=frozenset(node_id for _, node_id in matches if node_id is not None),
            unmatched_sources=tuple(candidate.source for candidate, node_id in matches if node_id is None),
            unknown_clusters=() if number else unknown,
        )
    return outcome


def _cluster_of(candidate: Candidate, settings: NodeManagerSettings, configured: tuple[str, ...]) -> str:
    if candidate.cluster:
        return candidate.cluster
    if settings.default_cluster:
        return settings.default_cluster
    return configured[0] if len(configured) == 1 else DEFAULT_CLUSTER_ID
