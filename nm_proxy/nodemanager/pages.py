# SPDX-License-Identifier: Apache-2.0
"""Read the JSON of the NodeManager's pages, whatever shape its JSON library gave them; pure.

A list with several entries is a list, with one it may be a bare object, with none it may be `{}`, null or missing
(Jersey 1 and Jersey 2 differ, and so do Hadoop versions). Numbers may be texts. An entry that cannot be read is left
out and counted, the others are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from batch_resources.victims import ExecutionType
from nm_proxy.container_ids import is_container_id
from nm_proxy.nodemanager.errors import NodeManagerAnswerError, cut
from nm_proxy.nodemanager.model import ContainerReport, NodeInfo

MAX_CONTAINERS: Final = 20_000
_MAX_NUMBER: Final = 2_147_483_647


def parse_containers(document: object) -> tuple[dict[str, ContainerReport], int]:
    """Read `{"containers": {"container": [...]}}`.

    Returns:
        The containers by id, and how many entries could not be read.

    Raises:
        NodeManagerAnswerError: it is not the page of containers at all.
    """
    entries = _entries(document, "containers", "container")
    reports = [_container(entry) for entry in entries]
    found = {report.container_id: report for report in reports if report is not None}
    return found, sum(report is None for report in reports)


def parse_applications(document: object) -> dict[str, str]:
    """Read `{"apps": {"app": [{"id": ..., "state": ...}]}}` into states by id.

    Raises:
        NodeManagerAnswerError: it is not the page of applications at all.
    """
    entries = _entries(document, "apps", "app")
    return {
        str(entry["id"])[:128]: str(entry.get("state", ""))[:64]
        for entry in entries
        if isinstance(entry, Mapping) and "id" in entry
    }


def parse_info(document: object) -> NodeInfo:
    """Read `{"nodeInfo": {...}}`.

    Raises:
        NodeManagerAnswerError: it is not the page of the node at all.
    """
    info = document.get("nodeInfo") if isinstance(document, Mapping) else None
    if not isinstance(info, Mapping):
        raise NodeManagerAnswerError(f"no nodeInfo in the NodeManager's answer: {_shown(document)}")
    started_millis = _whole(info.get("nmStartupTime"), limit=1 << 62)
    return NodeInfo(
        node_id=str(info.get("id") or "")[:300],
        is_healthy=info.get("nodeHealthy") in (True, "true"),
        health_report=cut(str(info.get("healthReport") or "")),
        memory_mib=_whole(info.get("totalPmemAllocatedContainersMB")) or 0,
        vcores=_whole(info.get("totalVCoresAllocatedContainers")) or 0,
        version=str(info.get("nodeManagerVersion") or "")[:64],
        started_at=started_millis / 1000 if started_millis else None,
    )


def _entries(document: object, outer: str, inner: str) -> list[Any]:
    if not isinstance(document, Mapping) or outer not in document:
        raise NodeManagerAnswerError(f"no {outer} in the NodeManager's answer: {_shown(document)}")
    holder = document[outer]
    if holder is None or holder == {} or holder == "":
        return []
    entries = holder.get(inner) if isinstance(holder, Mapping) else holder
    if entries is None or entries == {} or entries == "":
        return []
    listed = entries if isinstance(entries, list) else [entries]
    if len(listed) > MAX_CONTAINERS:
        raise NodeManagerAnswerError(f"{len(listed)} entries in {outer}, the most believed are {MAX_CONTAINERS}")
    return listed


def _container(entry: object) -> ContainerReport | None:
    if not isinstance(entry, Mapping):
        return None
    container_id = entry.get("id")
    state = entry.get("state")
    if not isinstance(container_id, str) or not is_container_id(container_id) or not isinstance(state, str):
        return None
    opportunistic = entry.get("executionType") == ExecutionType.OPPORTUNISTIC.value
    return ContainerReport(
        container_id=container_id,
        state=state[:64],
        memory_mib=_whole(entry.get("totalMemoryNeededMB")),
        vcores=_whole(entry.get("totalVCoresNeeded")),
        execution_type=ExecutionType.OPPORTUNISTIC if opportunistic else ExecutionType.GUARANTEED,
        user=str(entry.get("user") or "")[:256],
    )


def _whole(value: object, *, limit: int = _MAX_NUMBER) -> int | None:
    """Read a number that is not negative and not absurd; a text of one counts too."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = int(value) if not isinstance(value, str) else int(value[:32])
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number <= limit else None


def _shown(document: object) -> str:
    if not isinstance(document, Mapping):
        return cut(repr(document))
    return cut(f"an object with {sorted(map(cut, map(str, document)))[:8]}")
