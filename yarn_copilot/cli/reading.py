# SPDX-License-Identifier: Apache-2.0
"""Print what a running controller knows: the commands `nodes`, `queues`, `clusters`, `explain` and `status`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from yarn_copilot.cli import amounts
from yarn_copilot.cli.api_client import APIClient
from yarn_copilot.cli.tables import Table, print_table

Json = Mapping[str, Any]

_NODE_COLUMNS = ("node", "origin", "kubernetes", "yarn used", "yarn offered", "claimed", "age", "reasons")
_WIDE_COLUMNS = ("reserve", "others", "window minimum", "target", "allocatable", "node managers")


def print_nodes(client: APIClient, *, output: str, problems: bool) -> None:
    """Print one line for each node; `problems` leaves out nodes without a reason."""
    answer = client.get("nodes")
    shown = [node for node in answer["nodes"] if node["reasons"] or not problems]
    if output == "json":
        _print_json({**answer, "nodes": shown})
        return
    wide = output == "wide"
    columns = (*_NODE_COLUMNS[:-1], *(_WIDE_COLUMNS if wide else ()), _NODE_COLUMNS[-1])
    rows = [_node_row(node, wide=wide) for node in shown]
    right = frozenset(columns) - {"node", "reasons", "node managers"}
    empty = "No node has a reason to look at." if problems else "No node is known; see `yarn-copilot status`."
    print_table(Table(columns, rows, right, "Amounts are cores/memory."), empty=empty)
    _warn(answer)


def _node_row(node: Json, *, wide: bool) -> list[str]:
    stages = [amounts.batch(node[key]) for key in ("kubernetes_requested", "used", "capacity", "claimed")]
    row = [node["node"], _origin(node["origin"]), *stages, amounts.age(node["origin"]["age_seconds"])]
    if wide:
        more = ("reserve", "others", "window_minimum", "target", "allocatable")
        row += [*(amounts.batch(node[key]) for key in more), ",".join(map(_node_manager, node["node_managers"]))]
    names = [reason["reason"] for reason in node["reasons"]]
    return [*row, ",".join(names if node["managed"] else ["NotManaged", *names])]


def _origin(origin: Json) -> str:
    return amounts.batch(origin) if origin["state"] == "known" else str(origin["state"])


def _node_manager(manager: Json) -> str:
    return f"{manager['cluster']}/{manager['node_id']}={manager['state']}"


def print_queues(client: APIClient, *, output: str) -> None:
    """Print one line for each queue."""
    answer = client.get("queues")
    if output == "json":
        _print_json(answer)
        return
    columns = ["cluster", "queue", "state", "capacity", "maximum", "used", "allocated", "pending", "containers"]
    if output == "wide":
        columns += ["waiting", "apps running", "apps pending", "age"]
    rows = [_queue_row(queue)[: len(columns)] for queue in answer["queues"]]
    right = frozenset(columns) - {"cluster", "queue", "state"}
    print_table(
        Table(columns, rows, right, "Amounts are vcores/memory."),
        empty="No queue has been read yet; see `yarn-copilot status`.",
    )
    _warn(answer)


def _queue_row(queue: Json) -> list[str]:
    fractions = [amounts.percent(queue[f"{key}_fraction"]) for key in ("capacity", "maximum_capacity", "used")]
    counts = ("containers_allocated", "containers_pending", "applications_running", "applications_pending")
    return [
        queue["cluster"],
        queue["path"],
        queue["state"],
        *fractions,
        amounts.yarn(queue["allocated"]),
        amounts.yarn(queue["pending"]),
        *(amounts.count(queue[key]) for key in counts),
        amounts.age(queue["age_seconds"]),
    ]


def print_explain(client: APIClient, name: str, *, output: str) -> None:
    """Print why a node is as it is, one sentence on a line."""
    answer = client.get_node(name, "/explain")
    if output == "json":
        _print_json(answer)
        return
    for sentence in answer["sentences"]:
        print(sentence)
    _warn(answer)


def print_status(client: APIClient, *, output: str) -> None:
    """Print how the controller itself is and how it reaches each side."""
    answer = client.get("status")
    if output == "json":
        _print_json(answer)
        return
    for label, value in _status_lines(answer):
        print(f"{label + ':':<14}{value}")
    for sentence in (*answer["controller"]["ready_missing"], *answer["controller"]["stuck"]):
        print(f"{'missing:':<14}{sentence}")
    rows = [_cluster_row(cluster) for cluster in answer["clusters"]]
    print()
    print_table(
        Table(("cluster", "reachable", "age", "pending", "nodes", "addresses", "error"), rows),
        empty="No YARN cluster is configured.",
    )


def _status_lines(answer: Json) -> list[tuple[str, str]]:
    controller, config, nodes = answer["controller"], answer["controller"]["config"], answer["nodes"]
    role = _role(controller)
    state = "in force" if config["ok"] else f"file on disk refused, last good one in force: {config['error']}"
    lines = [
        ("identity", controller["identity"]),
        ("role", f"{role}, term {controller['term']}"),
        ("ready", "yes" if controller["ready"] else "no"),
        ("mode", controller["mode"] or amounts.UNKNOWN),
        ("running for", amounts.age(controller["started_seconds"])),
        ("version", controller["version"] or amounts.UNKNOWN),
        ("kubernetes", f"last heard {amounts.age(controller['kubernetes_age_seconds'])} ago"),
        ("nodes", f"{nodes['known']} known, {nodes['managed']} managed, {nodes['with_reasons']} with a reason"),
        ("config", f"{config['path']} ({config['hash']}), {state}"),
    ]
    if config["needs_restart"]:
        lines.append(("restart for", ", ".join(config["needs_restart"])))
    return lines


def _role(controller: Json) -> str:
    if controller["leader"]:
        return "leader"
    if controller["mode"] == "observe":
        return "observer, writes nothing"
    return f"standby (leader: {controller['leader_identity'] or 'unknown'})"


def _cluster_row(cluster: Json) -> list[str]:
    states = ",".join(f"{state}={number}" for state, number in sorted(cluster["nodes_by_state"].items()) if number)
    return [
        cluster["id"],
        "yes" if cluster["reachable"] else "no",
        amounts.age(cluster["age_seconds"]),
        str(cluster["pending_updates"]),
        states,
        ",".join(cluster["addresses"]),
        cluster["error"],
    ]


def print_clusters(client: APIClient, *, output: str) -> None:
    """Print one line for each YARN cluster."""
    answer = client.get("clusters")
    if output == "json":
        _print_json(answer)
        return
    columns: Sequence[str] = ("cluster", "reachable", "age", "pending", "nodes", "addresses", "error")
    print_table(
        Table(columns, [_cluster_row(item) for item in answer["clusters"]]), empty="No YARN cluster is configured."
    )


def _warn(answer: Json) -> None:
    """Say on stderr what the figures rest on, where that is not a leader with fresh data."""
    if answer["age_seconds"] is None:
        print("note: not every side has answered yet; see `yarn-copilot status`", file=sys.stderr)
    elif answer["age_seconds"] > 60:
        print(f"note: these figures are {amounts.age(answer['age_seconds'])} old", file=sys.stderr)


def _print_json(answer: Json) -> None:
    print(json.dumps(answer, indent=2, sort_keys=False))
