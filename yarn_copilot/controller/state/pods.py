# SPDX-License-Identifier: Apache-2.0
"""Add up what kube-scheduler has booked on each node, and remember the NodeManager pods.

Only pods that book batch resources or are NodeManagers are kept: of 50,000 pods most are neither, and a full pod costs
kilobytes. The sums follow every event; they are never recounted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from batch_resources.demand.placement import Placement
from batch_resources.keys import CLUSTER_ID_ANNOTATION, NODE_ID_ANNOTATION
from batch_resources.pods import PodRequestError, is_booked, pod_batch_request
from batch_resources.resources import ZERO_BATCH, BatchResources
from yarn_copilot.controller.state.selectors import LabelSelector
from yarn_copilot.kube.model import Pod
from yarn_copilot.kube.scheduling import is_gated, placement_of

AGENT_PORT_NAME: Final = "copilot"
"""Name of the port of the program beside a NodeManager."""


class ManagerPod(Struct, frozen=True, kw_only=True):
    """Hold what identifies a NodeManager pod.

    `created` is the API server's RFC 3339 text, which sorts by time; `agent_port` is 0 where no container names one.
    """

    key: str
    node: str
    name: str
    namespace: str
    hostname: str
    subdomain: str
    ip: str
    host_network: bool
    phase: str
    created: str
    node_id: str | None
    cluster: str | None
    terminating: bool
    agent_port: int = 0


class PodRecord(Struct, frozen=True, kw_only=True):
    """Hold what a pod means to the ledger; `request` None says that it cannot be read, `error` why.

    `placement` says where a pod that is not scheduled may run; None for one that is.
    """

    node: str = ""
    request: BatchResources | None = ZERO_BATCH
    error: str = ""
    manager: ManagerPod | None = None
    placement: Placement | None = None


IRRELEVANT = PodRecord()


_UNSCHEDULED_PHASES: Final = frozenset({"", "Pending"})


class PodReducer:
    """Turn a Pod into the little that is kept of it."""

    def __init__(self, selector: LabelSelector) -> None:
        """Take the selector of NodeManager pods."""
        self._selector = selector

    def __call__(self, pod: Pod) -> PodRecord:
        """Reduce one pod; a pod that books nothing and is no NodeManager gives the shared `IRRELEVANT`."""
        node = pod.spec.nodeName
        if not is_booked(node, pod.status.phase):
            return IRRELEVANT if node else _waiting_pod(pod)
        request: BatchResources | None
        error = ""
        try:
            request = pod_batch_request(pod)
        except PodRequestError as problem:
            request, error = None, f"pod {pod.metadata.namespace}/{pod.metadata.name}: {problem}"
        manager = _manager_pod(pod) if self._selector.matches(pod.metadata.labels) else None
        if manager is None and request == ZERO_BATCH:
            return IRRELEVANT
        return PodRecord(node=node, request=request, error=error, manager=manager)


def _waiting_pod(pod: Pod) -> PodRecord:
    """Reduce a pod without a node: it counts if kube-scheduler tries to place it and it wants batch resources."""
    if pod.status.phase not in _UNSCHEDULED_PHASES or pod.metadata.deletionTimestamp is not None:
        return IRRELEVANT
    try:
        request = pod_batch_request(pod)
    except PodRequestError:
        return IRRELEVANT  # kube-scheduler places it nowhere, so it waits for nothing that we could give
    if request == ZERO_BATCH or is_gated(pod.spec):
        return IRRELEVANT
    return PodRecord(request=request, placement=placement_of(pod.spec))


def _manager_pod(pod: Pod) -> ManagerPod:
    metadata = pod.metadata
    return ManagerPod(
        key=f"{metadata.namespace}/{metadata.name}",
        node=pod.spec.nodeName,
        name=metadata.name,
        namespace=metadata.namespace,
        hostname=pod.spec.hostname or metadata.name,
        subdomain=pod.spec.subdomain,
        ip=pod.status.podIP,
        host_network=pod.spec.hostNetwork,
        phase=pod.status.phase,
        created=metadata.creationTimestamp or "",
        node_id=metadata.annotations.get(NODE_ID_ANNOTATION),
        cluster=metadata.annotations.get(CLUSTER_ID_ANNOTATION),
        terminating=metadata.deletionTimestamp is not None,
        agent_port=_agent_port(pod),
    )


def _agent_port(pod: Pod) -> int:
    containers = (*pod.spec.containers, *pod.spec.initContainers)
    found = (port.containerPort for container in containers for port in container.ports if port.name == AGENT_PORT_NAME)
    return next(found, 0)


class PodLedger:
    """Be the sink of the pod watch: sums per node, NodeManager pods per node."""

    def __init__(
        self, mark: Callable[[str], None], *, count_node_manager_pod: bool, on_managers_changed: Callable[[str], None]
    ) -> None:
        """Take the callbacks for a node whose sum changed and for one whose NodeManager pods changed."""
        self._mark = mark
        self._on_managers_changed = on_managers_changed
        self._count_node_manager_pod = count_node_manager_pod
        self._records: dict[str, PodRecord] = {}
        self._requested: dict[str, BatchResources] = {}
        self._malformed: dict[str, dict[str, str]] = {}
        self._managers: dict[str, dict[str, ManagerPod]] = {}
        self.on_waiting: Callable[[str, PodRecord | None], None] = lambda key, record: None
        """Told of a pod that is not scheduled, and with None that it is no longer so."""

    def replaced(self, items: dict[str, PodRecord]) -> None:
        """Take a complete list; whatever is missing is gone."""
        for key in [key for key in self._records if key not in items]:
            self.removed(key)
        for key, record in items.items():
            self.upserted(key, record)

    def upserted(self, key: str, item: PodRecord) -> None:
        """Take one version of a pod."""
        before = self._records.get(key, IRRELEVANT)
        if before == item:
            return
        self._take_out(key, before)
        if item.placement is not None:
            self._records[key] = item
            self.on_waiting(key, item)
        elif item is not IRRELEVANT and item.node:
            self._put_in(key, item)
        self._tell(before, item)

    def removed(self, key: str) -> None:
        """Forget a pod."""
        before = self._records.get(key)
        if before is not None:
            self._take_out(key, before)
            self._tell(before, IRRELEVANT)

    def unavailable(self, reason: str) -> None:
        """Ignore that the list is refused for now: the views grow old, and that is what counts."""

    def malformed(self, key: str, reason: str) -> None:
        """Keep the last record of a pod that cannot be decoded."""

    def set_count_node_manager_pod(self, value: bool) -> None:
        """Change whether NodeManager pods' own requests count, and add up again."""
        if value == self._count_node_manager_pod:
            return
        self._count_node_manager_pod = value
        self._requested.clear()
        self._malformed.clear()
        for key, record in self._records.items():
            if record.node:
                self._add_up(key, record)
        for node in list(self._managers):
            self._mark(node)

    def requested(self, node: str) -> BatchResources | None:
        """Give K of a node; None while a booked pod's request cannot be read."""
        if self._malformed.get(node):
            return None
        return self._requested.get(node, ZERO_BATCH)

    def sum_of(self, node: str, records: Iterable[PodRecord]) -> BatchResources | None:
        """Give K of a node by other records than the watch's; None when a request cannot be read."""
        total = ZERO_BATCH
        for record in records:
            if record.node != node or not self._counts(record):
                continue
            if record.request is None:
                return None
            total = total + record.request
        return total

    def unreadable(self, node: str) -> Iterable[str]:
        """Say which pods of the node cannot be counted, and why."""
        return self._malformed.get(node, {}).values()

    def managers(self, node: str) -> Iterable[ManagerPod]:
        """Give the NodeManager pods that are bound to the node and not finished."""
        return self._managers.get(node, {}).values()

    def nodes_with_managers(self) -> Iterable[str]:
        """Name the nodes that carry a NodeManager pod."""
        return self._managers.keys()

    def _counts(self, record: PodRecord) -> bool:
        return record.manager is None or self._count_node_manager_pod

    def _put_in(self, key: str, record: PodRecord) -> None:
        self._records[key] = record
        if record.manager is not None:
            self._managers.setdefault(record.node, {})[key] = record.manager
        self._add_up(key, record)

    def _add_up(self, key: str, record: PodRecord) -> None:
        if not self._counts(record):
            return
        if record.request is None:
            self._malformed.setdefault(record.node, {})[key] = record.error
        elif record.request != ZERO_BATCH:
            self._requested[record.node] = self._requested.get(record.node, ZERO_BATCH) + record.request

    def _take_out(self, key: str, record: PodRecord) -> None:
        if self._records.pop(key, None) is None:
            return
        if record.placement is not None:
            self.on_waiting(key, None)
            return
        if record.manager is not None:
            managers = self._managers[record.node]
            del managers[key]
            if not managers:
                del self._managers[record.node]
        if not self._counts(record):
            return
        if record.request is None:
            malformed = self._malformed[record.node]
            del malformed[key]
            if not malformed:
                del self._malformed[record.node]
        elif record.request != ZERO_BATCH:
            rest = self._requested[record.node] - record.request
            if rest == ZERO_BATCH:
                del self._requested[record.node]
            else:
                self._requested[record.node] = rest

    def _tell(self, before: PodRecord, after: PodRecord) -> None:
        for record in (before, after):
            if record.node:
                self._mark(record.node)
                if record.manager is not None:
                    self._on_managers_changed(record.node)
