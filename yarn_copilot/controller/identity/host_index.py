# SPDX-License-Identifier: Apache-2.0
"""Index a cluster's node list by every name under which a NodeManager can be recognised."""

from __future__ import annotations

from collections.abc import Iterable

from yarn_copilot.hadoop.model import NodeId, NodeReport

_SERVICE_LABEL = ".svc"


class HostIndex:
    """Hold, for each lower-case name, the node ids that answer to it.

    Names are the host of the node id, the host of its http address, a service FQDN cut behind `.svc`
    (`nm-0.node-manager.hadoop.svc.cluster.local` is found as `nm-0.node-manager.hadoop.svc`), and the first label of a
    host outside a cluster domain.
    """

    def __init__(self, reports: Iterable[NodeReport] = ()) -> None:
        """Index the reports."""
        self._by_name: dict[str, list[NodeId]] = {}
        self._by_first_label: dict[str, list[NodeId]] = {}
        for report in reports:
            self._add(report)

    def _add(self, report: NodeReport) -> None:
        host = report.node_id.host.lower()
        names = {host}
        http_host = report.http_address.rpartition(":")[0].lower()
        if http_host:
            names.add(http_host)
        service = host.find(_SERVICE_LABEL)
        if service > 0:
            names.add(host[: service + len(_SERVICE_LABEL)])
        for name in names:
            self._by_name.setdefault(name, []).append(report.node_id)
        label, dot, _ = host.partition(".")
        if dot and service < 0 and not label.isdigit():
            self._by_first_label.setdefault(label, []).append(report.node_id)

    def named(self, name: str) -> list[NodeId]:
        """Give the node ids that have exactly this name."""
        return self._by_name.get(name.lower(), [])

    def with_first_label(self, label: str) -> list[NodeId]:
        """Give the node ids whose host begins with this label, service names left out."""
        return self._by_first_label.get(label.lower(), [])
