# SPDX-License-Identifier: Apache-2.0
"""Be `python -m lab demo`: choose the servers, play, print the summary, give the exit code."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import time
from collections.abc import Coroutine
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer
from rich.console import Console

from lab.demo.backend import Mode
from lab.demo.embedded import EmbeddedBackend
from lab.demo.performance import Options, perform
from lab.demo.summary import Summary

DEFAULT_SECONDS: Final = 60.0
_TOOLS: Final = ("go", "java")


def demo(
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the summary to this file too.")] = None,
    duration: Annotated[float, typer.Option(min=5.0, help="Length of the played day, seconds.")] = DEFAULT_SECONDS,
    minutes: Annotated[float | None, typer.Option(min=0.1, help="Length in minutes, instead.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same day, pods and waves.")] = 1,
    mode: Annotated[Mode, typer.Option(help="The controller's mode; shared shows what strict is for.")] = Mode.STRICT,
    node_managers: Annotated[int, typer.Option("--node-managers", min=1, max=50, help="Number of nodes.")] = 3,
) -> None:
    """Play a compressed day on real servers (LAB=embedded: on servers inside the process)."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in a shell's background starts with it ignored
    logging.basicConfig(level=logging.WARNING)
    console = Console(highlight=False)
    options = Options(
        seed=seed, duration_seconds=duration if minutes is None else minutes * 60, console=console, mode=mode
    )
    console.print(
        f"mode {mode} with growth_window_seconds 0 and times of a second, so that capacity follows the compressed day; "
        f"seed {seed}",
        soft_wrap=True,
    )
    if _use_embedded(console):
        summary = _run(_perform_embedded(options, node_managers))
    else:
        summary = _perform_real(options, node_managers)
    report(console, summary)
    if json_file is not None:
        json_file.write_text(json.dumps(summary.to_json(), indent=2) + "\n", encoding="utf-8")
    if summary.failures():
        raise typer.Exit(1)


def report(console: Console, summary: Summary) -> None:
    """Print the summary and the verdict."""
    for sentence in summary.sentences():
        console.print(sentence, markup=False, soft_wrap=True)
    for failure in summary.failures():
        console.print(f"FAILED: {failure}", markup=False, soft_wrap=True)
    if not summary.failures():
        sold = "no unit was sold twice, " if summary.mode == "strict" else ""
        console.print(
            f"{sold}no container was killed, claims and capacities are as mode {summary.mode} has them", soft_wrap=True
        )


def _use_embedded(console: Console) -> bool:
    choice = os.environ.get("LAB", "")
    if choice not in {"", "real", "embedded"}:
        raise typer.BadParameter(f"LAB is {choice!r}; it may be real or embedded", param_hint="LAB")
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if choice == "" and missing:
        console.print(f"{' and '.join(missing)} not found: using the servers inside the process (LAB=embedded)")
    elif choice == "embedded":
        console.print("LAB=embedded: using the servers inside the process; pods are placed first fit")
    return choice == "embedded" or (choice == "" and bool(missing))


def _perform_real(options: Options, node_managers: int) -> Summary:
    # Imported here: the embedded demo must work where these parts' tools are missing.
    from lab.cluster import Lab, prepare
    from lab.demo.real import RealBackend, lab_users, yarn_options
    from lab.processes.progress import Progress

    async def play(lab: Lab) -> Summary:
        async with RealBackend(lab) as backend:
            return await perform(backend, options, began_at=began_at)

    progress = Progress()
    prepare(progress=progress)
    began_at = time.monotonic()
    with Lab(node_managers=node_managers, users=lab_users(), yarn_options=yarn_options(), progress=progress) as lab:
        return _run(play(lab))


async def _perform_embedded(options: Options, node_count: int) -> Summary:
    began_at = time.monotonic()
    async with EmbeddedBackend(node_count) as backend:
        return await perform(backend, options, began_at=began_at)


def _run(play: Coroutine[None, None, Summary]) -> Summary:
    """Run a play; SIGTERM ends it as Ctrl-C does, so that everything is stopped in order."""

    async def cancellable() -> Summary:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine that runs is in a task
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await play

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None
    finally:
        signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
