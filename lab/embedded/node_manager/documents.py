# SPDX-License-Identifier: Apache-2.0
"""Write what a NodeManager's pages say; standard library only, since stand-ins in small machines serve them too.

Shape: org.apache.hadoop.yarn.server.nodemanager.webapp.dao of Hadoop 3.5.0, of which what the node side reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def info(node_id: str) -> dict[str, Any]:
    """Write the page of the node itself."""
    return {
        "nodeInfo": {
            "id": node_id,
            "nodeHealthy": True,
            "totalPmemAllocatedContainersMB": 8192,
            "totalVCoresAllocatedContainers": 8,
            "nodeManagerVersion": "3.5.0",
            "nmStartupTime": 1_700_000_000_000,
        }
    }


def applications() -> dict[str, Any]:
    """Write the page of applications, with one that runs."""
    return {"apps": {"app": [{"id": "application_1700000000000_0001", "state": "RUNNING"}]}}


def containers(listed: Sequence[tuple[str, Mapping[str, Any]]], *, single_as_object: bool = False) -> dict[str, Any]:
    """Write the page of containers.

    Args:
        listed: ids, each with `state`, `memory_mib`, `vcores` and perhaps `opportunistic`.
        single_as_object: write a list of one as a bare object, as Jersey 1 can.
    """
    entries = [_entry(name, one) for name, one in listed]
    if not entries:
        return {"containers": {}}
    return {"containers": {"container": entries[0] if single_as_object and len(entries) == 1 else entries}}


def _entry(name: str, one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": name,
        "state": one["state"],
        "user": "alice",
        "totalMemoryNeededMB": one["memory_mib"],
        "totalVCoresNeeded": one["vcores"],
        "executionType": "OPPORTUNISTIC" if one.get("opportunistic") else "GUARANTEED",
    }
