# SPDX-License-Identifier: Apache-2.0
"""Report what the controller would do: for each node what it has, what it would get, and what would be written now."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from yarn_copilot.cli import amounts
from yarn_copilot.cli.api_client import APIClient
from yarn_copilot.cli.tables import Table, print_table

Json = Mapping[str, Any]

_COLUMNS: Final = (
    "node",
    "mode",
    "capacity",
    "planned capacity",
    "claim",
    "planned claim",
    "left alone",
    "would be written",
)
_SUMMED: Final = ("cpu_milli", "memory_bytes")


def print_planned(client: APIClient, *, output: str) -> None:
    """Print one line for each managed node, and a summary of all."""
    answer = client.get("nodes")
    nodes = [node for node in answer["nodes"] if node["planned"] is not None]
    summary = summarise(nodes)
    if output == "json":
        report = [{key: node[key] for key in ("node", "mode", "capacity", "claimed", "planned")} for node in nodes]
        print(json.dumps({"nodes": report, "summary": summary}, indent=2))
        return
    right = frozenset({"capacity", "planned capacity", "claim", "planned claim"})
    print_table(
        Table(_COLUMNS, [_row(node) for node in nodes], right, "Amounts are cores/memory."),
        empty="No node is planned; see `yarn-copilot status`.",
    )
    if nodes:
        print(_sentence(summary), file=sys.stderr)


def _row(node: Json) -> list[str]:
    planned = node["planned"]
    return [
        node["node"],
        node["mode"],
        amounts.batch(node["capacity"]),
        amounts.batch(planned["capacity"]),
        amounts.batch(node["claimed"]) if node["claimed"] else "none",
        amounts.batch(planned["claim"]) if planned["claim"] else "none",
        planned["because"],
        ", ".join(planned["writes"]),
    ]


def summarise(nodes: list[Json]) -> dict[str, Any]:
    """Add up what all nodes have and would get; nodes with an unknown figure are counted and left out of that sum."""
    capacity = [node for node in nodes if node["capacity"] and node["planned"]["capacity"]]
    return {
        "nodes": len(nodes),
        "left_alone": sum(bool(node["planned"]["because"]) for node in nodes),
        "would_be_written": sum(bool(node["planned"]["writes"]) for node in nodes),
        "unknown": len(nodes) - len(capacity),
        "capacity": _sum(node["capacity"] for node in capacity),
        "planned_capacity": _sum(node["planned"]["capacity"] for node in capacity),
        "claim": _sum(node["claimed"] for node in nodes),
        "planned_claim": _sum(node["planned"]["claim"] for node in nodes),
    }


def _sum(values: Any) -> dict[str, int]:
    known = [value for value in values if value]
    return {key: sum(value[key] for value in known) for key in _SUMMED}


def _sentence(summary: Json) -> str:
    parts = [
        f"{summary['nodes']} nodes, {summary['left_alone']} left alone, {summary['would_be_written']} would be written",
        f"capacity {amounts.batch(summary['capacity'])} -> {amounts.batch(summary['planned_capacity'])}",
        f"claims {amounts.batch(summary['claim'])} -> {amounts.batch(summary['planned_claim'])}",
    ]
    if summary["unknown"]:
        parts.append(f"{summary['unknown']} nodes with unknown figures are not in the capacities")
    return "; ".join(parts) + "."
