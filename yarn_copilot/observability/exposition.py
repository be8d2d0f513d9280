# SPDX-License-Identifier: Apache-2.0
"""Write the figures per node in Prometheus' text format 0.0.4, straight from the rows.

prometheus-client builds one object for each sample, which takes seconds for the 90,000 samples of 5,000 nodes and
would keep the event loop from renewing the lease. The text here is the same format, written line by line and one
family at a time, so that a server can let other tasks run between two families.

There is one metric name for each stage rather than a `stage` label: a sum over stages means nothing, and
`origin - claimed` then needs no label matching. Units are Prometheus' base units: cores and bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from batch_resources.units import BYTES_PER_MIB
from yarn_copilot.observability.reasons import Reason
from yarn_copilot.observability.table import STAGES, MetricsTable, NodeManagerRow, PipelineRow

NODE_MANAGER_FAMILIES: Final[tuple[tuple[str, str], ...]] = (
    ("yarn_copilot_node_manager_capacity_vcores", "vcores that the RM offers on a NodeManager"),
    ("yarn_copilot_node_manager_capacity_memory_bytes", "Memory that the RM offers on a NodeManager"),
    ("yarn_copilot_node_manager_used_vcores", "vcores that the RM has handed out on a NodeManager"),
    ("yarn_copilot_node_manager_used_memory_bytes", "Memory that the RM has handed out on a NodeManager"),
)
COUNT_FAMILIES: Final[tuple[tuple[str, str], ...]] = (
    ("yarn_copilot_nodes_managed", "Nodes that are managed"),
    ("yarn_copilot_nodes_held", "Nodes for which any reason holds"),
    ("yarn_copilot_nodes_by_reason", "Nodes for which a reason holds"),
)


def escape_label(value: str) -> str:
    """Escape backslash, quote and line feed in a label value."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def format_cores(cpu_milli: int) -> str:
    """Write milli-cores as cores, exactly: 60646 becomes 60.646."""
    whole, rest = divmod(cpu_milli, 1000)
    return str(whole) if rest == 0 else str(Decimal(cpu_milli).scaleb(-3))


def stage_families() -> Iterator[tuple[str, str, str]]:
    """Name the families per stage: metric name, help, unit."""
    for stage, text in STAGES:
        yield f"yarn_copilot_node_{stage}_cpu_cores", f"{text}, CPU", "cores"
        yield f"yarn_copilot_node_{stage}_memory_bytes", f"{text}, memory", "bytes"


def render_table(table: MetricsTable) -> Iterator[bytes]:
    """Write one scrape's rows, one chunk of text for each metric family."""
    yield from _render_counts(table)
    yield from _render_pipeline(list(table.pipeline))
    yield from _render_node_managers(list(table.node_managers))


def _family(name: str, text: str, lines: Iterable[str]) -> bytes:
    return "\n".join((f"# HELP {name} {text}", f"# TYPE {name} gauge", *lines, "")).encode()


def _render_counts(table: MetricsTable) -> Iterator[bytes]:
    managed, held, by_reason = COUNT_FAMILIES
    yield _family(*managed, [f"{managed[0]} {table.managed_nodes}"])
    yield _family(*held, [f"{held[0]} {table.held_nodes}"])
    names = dict.fromkeys((*(reason.value for reason in Reason), *table.reasons))
    yield _family(
        *by_reason,
        [f'{by_reason[0]}{{reason="{escape_label(name)}"}} {table.reasons.get(name, 0)}' for name in names],
    )


def _render_pipeline(rows: Sequence[PipelineRow]) -> Iterator[bytes]:
    labels = [f'{{node="{escape_label(row.node)}"}} ' for row in rows]
    for index, (stage, text) in enumerate(STAGES, start=1):
        amounts = [row[index] for row in rows]
        known = [(label, amount) for label, amount in zip(labels, amounts, strict=True) if isinstance(amount, tuple)]
        cpu, memory = f"yarn_copilot_node_{stage}_cpu_cores", f"yarn_copilot_node_{stage}_memory_bytes"
        yield _family(cpu, f"{text}, CPU", (f"{cpu}{label}{format_cores(amount[0])}" for label, amount in known))
        yield _family(memory, f"{text}, memory", (f"{memory}{label}{amount[1]}" for label, amount in known))


def _render_node_managers(rows: Sequence[NodeManagerRow]) -> Iterator[bytes]:
    labels = [
        f'{{cluster="{escape_label(row.cluster)}",node_id="{escape_label(row.node_id)}",'
        f'node="{escape_label(row.node)}"}} '
        for row in rows
    ]
    values: tuple[Callable[[NodeManagerRow], int | None], ...] = (
        lambda row: row.capacity[1] if row.capacity else None,
        lambda row: row.capacity[0] * BYTES_PER_MIB if row.capacity else None,
        lambda row: row.used[1] if row.used else None,
        lambda row: row.used[0] * BYTES_PER_MIB if row.used else None,
    )
    for (name, text), read in zip(NODE_MANAGER_FAMILIES, values, strict=True):
        pairs = ((label, read(row)) for label, row in zip(labels, rows, strict=True))
        yield _family(name, text, (f"{name}{label}{value}" for label, value in pairs if value is not None))
