# SPDX-License-Identifier: Apache-2.0
"""Write, read, compare and print results: one JSON file for each benchmark, numbers with their unit in the key."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from rich.console import Console
from rich.table import Table

from benchmarks import machine

FOLDER: Final = Path(__file__).parent / "results"
Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Hold what one benchmark measured.

    Attributes:
        name: of the benchmark and its file.
        when: UTC, RFC 3339.
        machine: see `machine.describe_machine`.
        versions: see `machine.describe_versions`.
        figures: numbers by name; the name ends with the unit.
        notes: sentences that a reader of the figures needs.
    """

    name: str
    when: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    figures: Figures
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def of_now(
        cls, name: str, figures: Figures, *, started_on: Mapping[str, Any], hadoop_version: str, notes: tuple[str, ...]
    ) -> Self:
        """Make the result of a measurement that has just ended.

        Args:
            name: of the benchmark.
            figures: what it measured; rounded to four digits.
            started_on: the machine as it was before the measurement.
            hadoop_version: the lab's.
            notes: see the class.
        """
        return cls(
            name=name,
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=started_on,
            versions=machine.describe_versions(hadoop_version),
            figures={key: round(value, 4) for key, value in figures.items()},
            notes=notes,
        )

    def write(self, folder: Path = FOLDER) -> Path:
        """Replace the result of the last run and return the file's path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")
        return path


def read_or_none(name: str, folder: Path = FOLDER) -> Result | None:
    """Read the last result of a benchmark; None where there is none, or one of another shape."""
    try:
        document = json.loads((folder / f"{name}.json").read_text())
        return Result(**{**document, "notes": tuple(document.get("notes", ()))})
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return None


def run(name: str, measure: Callable[[], Result], *, aims: Figures, folder: Path = FOLDER) -> None:
    """Measure, write the result and print it beside the one before.

    Args:
        name: of the benchmark.
        measure: does the work.
        aims: see `show`.
        folder: of the result.
    """
    console = Console()
    before = read_or_none(name, folder)
    result = measure()
    path = result.write(folder)
    show(result, before, aims=aims, console=console)
    console.print(f"written to {path}")


def show(result: Result, before: Result | None, *, aims: Figures, console: Console) -> None:
    """Print the figures beside those of the run before and the aims.

    Args:
        result: what was measured.
        before: the run before.
        aims: largest value that is good, by figure.
        console: where to print.
    """
    table = Table(title=f"{result.name} ({result.when})", title_justify="left")
    for column in ("figure", "before", "now", "change", "aim"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for name, value in result.figures.items():
        old = before.figures.get(name) if before else None
        aim = aims.get(name)
        verdict = "" if aim is None else f"{'<=' if value <= aim else 'MISSED'} {aim:g}"
        table.add_row(name, _text(old), _text(value), change(old, value), verdict)
    console.print(table)
    for note in result.notes:
        console.print(f"- {note}", highlight=False)


def change(before: float | None, now: float) -> str:
    """Say by how many percent a figure changed; empty where there is nothing to compare with."""
    if before is None or before == 0:
        return ""
    return f"{(now - before) / abs(before):+.0%}"


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
