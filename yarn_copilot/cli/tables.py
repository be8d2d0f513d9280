# SPDX-License-Identifier: Apache-2.0
"""Print tables: with rich on a terminal, as plain aligned columns when piped.

The plain form has one header line in capitals, one line for each row, two spaces between columns, `-` for nothing
and no wrapping, so that `awk` and `grep` work on it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """Hold a table's cells; `right` names the columns that are aligned to the right."""

    columns: Sequence[str]
    rows: Sequence[Row]
    right: frozenset[str] = field(default_factory=frozenset)
    caption: str = ""


def print_table(table: Table, *, empty: str) -> None:
    """Print to stdout; with no rows print the sentence `empty` to stderr instead."""
    if not table.rows:
        print(empty, file=sys.stderr)
        return
    if sys.stdout.isatty():
        _print_rich(table)
    else:
        print(plain(table))


def plain(table: Table) -> str:
    """Lay a table out as text."""
    header = [column.upper().replace(" ", "-") for column in table.columns]
    lines = [header, *([cell.replace("\n", " ") or "-" for cell in row] for row in table.rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(header))]
    right = [column in table.right for column in table.columns]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def _print_rich(table: Table) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=None, header_style="bold", pad_edge=False, caption=table.caption, caption_justify="left")
    for column in table.columns:
        drawn.add_column(column, justify="right" if column in table.right else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(drawn)
