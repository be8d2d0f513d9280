# SPDX-License-Identifier: Apache-2.0
"""Show the ledger of every node: a live table on a terminal, a plain line per node now and then when piped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table

from batch_resources.resources import BatchResources, YarnResources
from lab.demo.observer import NodeView, Observer

_LIVE_SECONDS: Final = 0.25
_PLAIN_SECONDS: Final = 5.0
_GIB: Final = 2**30
_MIB_PER_GIB: Final = 1024
_COLUMNS: Final = (
    "node",
    "origin O",
    "Kubernetes holds K",
    "is offered A",
    "YARN uses Y",
    "capacity C",
    "claim T",
    "(K+Y)/O",
)


async def show(console: Console, observer: Observer, clock: Callable[[], str]) -> None:
    """Show until cancelled; `clock` gives the title, for example the time of the played day."""
    if not console.is_terminal:
        while True:
            await asyncio.sleep(_PLAIN_SECONDS)
            console.print("\n".join(plain_lines(observer.views.values(), clock())), markup=False, soft_wrap=True)
    with Live(table(observer.views.values(), clock()), console=console, auto_refresh=False) as live:
        while True:
            await asyncio.sleep(_LIVE_SECONDS)
            live.update(table(observer.views.values(), clock()), refresh=True)


def table(views: Iterable[NodeView], title: str) -> Table:
    """Render all nodes."""
    rendered = Table(title=title)
    for column in _COLUMNS:
        rendered.add_column(column, justify="left" if column == "node" else "right", no_wrap=True)
    for view in views:
        rendered.add_row(*_cells(view), style="yellow" if view.is_oversold else None)
    return rendered


def plain_lines(views: Iterable[NodeView], title: str) -> list[str]:
    """Render all nodes as lines that a program can read too."""
    keys = ("node", "O", "K", "A", "Y", "C", "T", "used")
    return [
        f"{title} " + " ".join(f"{key}={cell.replace(' ', '/')}" for key, cell in zip(keys, _cells(view), strict=True))
        for view in views
    ]


def _cells(view: NodeView) -> tuple[str, ...]:
    ledger = view.ledger
    return (
        view.node.name,
        _batch(ledger.origin),
        _batch(ledger.held),
        _batch(ledger.offered),
        _yarn(view.used),
        _yarn(view.capacity),
        _batch(ledger.claimed),
        f"{view.held_over_origin():.0%}",
    )


def _batch(amount: BatchResources | None) -> str:
    return "-" if amount is None else f"{amount.cpu_milli / 1000:.1f}c {amount.memory_bytes / _GIB:.1f}Gi"


def _yarn(amount: YarnResources) -> str:
    return f"{amount.vcores}v {amount.memory_mib / _MIB_PER_GIB:.1f}Gi"
