# SPDX-License-Identifier: Apache-2.0
"""Put a whole performance together: start what plays and what watches, play, let everything settle, sum up."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from lab.controller import Program
from lab.demo import table
from lab.demo.backend import Backend, Mode, controller_settings
from lab.demo.ledger import KubernetesLedger
from lab.demo.observer import Observer
from lab.demo.propagation import percentile
from lab.demo.scenario import Scenario
from lab.demo.summary import Summary
from lab.koordinator.api import Api
from lab.koordinator.stand_in import Pace, StandIn

TIME_SCALE: Final = 60.0
"""koord-manager's 300 s become 5 s and its 15 minutes 15 s."""

_REPORT_INTERVAL_SECONDS: Final = 120.0
_SETTLE_SECONDS: Final = 30.0
_STILL_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Hold what the user chose."""

    seed: int
    duration_seconds: float
    console: Console
    mode: Mode = Mode.STRICT
    program: Program | None = None


async def perform(backend: Backend, options: Options, *, began_at: float) -> Summary:
    """Play on an open backend.

    Args:
        backend: The cluster, its servers running, nothing on it yet.
        options: Seed, length, where to show.
        began_at: Monotonic seconds when starting the servers began.

    Raises:
        LabError: The controller or the application did not start.
    """
    async with Api(backend.kubernetes()) as api:
        pace = Pace(time_scale=TIME_SCALE, report_interval_seconds=_REPORT_INTERVAL_SECONDS)
        async with StandIn(backend.kubernetes(), pace=pace) as stand_in, KubernetesLedger(api) as ledger:
            scenario = Scenario(backend, api, stand_in, ledger, seed=options.seed)
            await scenario.make_nodes()
            settings = controller_settings(options.mode)
            await asyncio.gather(
                backend.start_controller(settings, options.program), backend.start_workload(), scenario.first_offers()
            )
            startup_seconds = time.monotonic() - began_at
            observer = Observer(
                backend,
                ledger,
                lambda: stand_in.publications,
                strict=options.mode is Mode.STRICT,
                waiting=scenario.waiting,
            )
            async with _running(observer.run(), table.show(options.console, observer, scenario.clock_text)):
                play_began = time.monotonic()
                await scenario.play(options.duration_seconds)
                await _settle(backend, observer)
                duration_seconds = time.monotonic() - play_began
            return await _sum_up(
                backend,
                options,
                observer,
                scenario,
                bound=sum(not name.startswith("node-manager-") for name in ledger.bound),
                startup_seconds=startup_seconds,
                duration_seconds=duration_seconds,
            )


@contextlib.asynccontextmanager
async def _running(*coroutines: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run tasks beside the body; one that fails ends the body with its error."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(coroutine) for coroutine in coroutines]
        yield
        for task in tasks:
            task.cancel()


async def _settle(backend: Backend, observer: Observer) -> None:
    """Wait until everything agrees for a second without a break, or for half a minute."""
    deadline, still_since = time.monotonic() + _SETTLE_SECONDS, time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - still_since < _STILL_SECONDS:
        await asyncio.sleep(_POLL_SECONDS)
        if _unsettled_claims(observer) or _unsettled_capacities(backend, observer):
            still_since = time.monotonic()


def _unsettled_claims(observer: Observer) -> tuple[str, ...]:
    return tuple(
        f"{view.node.name} {wrong}" for view in observer.views.values() if (wrong := observer.wrong_claim(view))
    )


def _unsettled_capacities(backend: Backend, observer: Observer) -> tuple[str, ...]:
    absent = [node.name for node in backend.nodes if node.name not in observer.views]
    wrong = [(view, observer.wrong_capacity(view)) for view in observer.views.values()]
    return (
        *(f"{name} is not RUNNING at the ResourceManager or has no origin" for name in absent),
        *(f"{view.node.name} {sentence}" for view, sentence in wrong if sentence),
    )


async def _sum_up(
    backend: Backend,
    options: Options,
    observer: Observer,
    scenario: Scenario,
    *,
    bound: int,
    startup_seconds: float,
    duration_seconds: float,
) -> Summary:
    writes = await backend.count_writes()
    capacity = controller_settings(options.mode)["capacity"]
    samples = observer.meter.samples_seconds
    claim_samples = observer.claim_meter.samples_seconds
    return Summary(
        backend=backend.name,
        mode=options.mode.value,
        growth_window_seconds=float(capacity["growth_window_seconds"]),
        settle_seconds=float(capacity["strict"]["settle_seconds"]),
        seed=options.seed,
        nodes=len(backend.nodes),
        duration_seconds=round(duration_seconds, 3),
        startup_seconds=round(startup_seconds, 3),
        samples=observer.samples,
        oversold_samples=observer.oversold_samples,
        excess_after_fall_samples=observer.excess_after_fall_samples,
        highest_held_over_origin=round(observer.highest_held_over_origin, 4),
        highest_held_over_origin_node=observer.highest_on,
        kubernetes_writes=writes.kubernetes,
        yarn_writes=writes.yarn,
        other_kubernetes_writes=dict(writes.other),
        origin_changes=observer.origin_changes,
        propagation_samples=len(samples),
        propagation_p50_seconds=percentile(samples, 0.5),
        propagation_p99_seconds=percentile(samples, 0.99),
        unusable_percent=round(observer.usage.unusable_percent, 2),
        pod_wait_seconds=observer.usage.pod_wait_seconds(scenario.asked_pods),
        container_wait_seconds=observer.usage.container_wait_seconds(scenario.asked_containers),
        claim_samples=len(claim_samples),
        claim_p50_seconds=percentile(claim_samples, 0.5),
        claim_p99_seconds=percentile(claim_samples, 0.99),
        pending_changes=observer.meter.pending,
        pods_bound=bound,
        containers_started=backend.workload.started(),
        containers_killed=await backend.workload.killed(),
        unsettled_claims=_unsettled_claims(observer),
        unsettled_capacities=_unsettled_capacities(backend, observer),
        controller_trouble=await backend.controller_trouble(),
    )
