# SPDX-License-Identifier: Apache-2.0
"""Interrupt transfers of mode strict everywhere, under load, and judge that nothing was sold twice, lost or killed."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.cluster import Lab
from lab.hadoop.application import EXIT_ABORTED, Application, Container
from lab.hadoop.options import YarnOptions
from lab.judge.judging import Tolerance
from tests.lab.bridge import SETTLED_SECONDS, Bridge, BridgedNode, Unique, merged
from tests.lab.chaos import REPLICAS, Chaos
from tests.lab.figures import record_figures
from tests.lab.races import Races, figures
from tests.lab.strict import STRICT, strict_lab

_SOAK_SECONDS = float(os.environ.get("CHAOS_SECONDS", "1800"))
_CONVERGED_SECONDS = 120.0
_NODES, _FEW_NODES = 3, 2
_LOST_WITH_NODE_MANAGER = 154
"""Exit code of a container whose launch its killed NodeManager had not recorded yet (Hadoop's ExitCode.LOST)."""
_TOLERANCE = Tolerance(order_seconds=2.0, flight_seconds=2.0, fall_seconds=60.0, claim_seconds=3.0)
"""While the API server is away its versions are told late, and a permission may live as long as an outage."""


@contextmanager
def _lab(node_managers: int) -> Iterator[Lab]:
    """Run a lab whose NodeManagers keep their containers over a restart."""
    with Lab(
        node_managers=node_managers, yarn_options=YarnOptions(minimum_memory_mib=1, recover_containers=True)
    ) as lab:
        yield lab


def _run(lab: Lab, unique: Unique, folder: Path, seed: int, disturb: Callable[[Chaos, random.Random], None]) -> Chaos:
    choices = random.Random(f"chaos/{seed}")
    with strict_lab(lab, unique, config=merged(STRICT, REPLICAS)) as found:
        chaos = Chaos(found, folder / "death", seed)
        for node in found.nodes:
            found.bridge.wait(
                lambda node=node: found.bridge.capacity(node) != (1024, 1),  # type: ignore[misc]
                f"YARN has a part of {node.name}",
                seconds=3 * SETTLED_SECONDS,
            )
        application = lab.submit()
        races = Races(found, application, survives_errors=True)
        is_over = threading.Event()
        load = threading.Thread(target=races.play_until, args=(is_over.is_set, seed), name="load")
        load.start()
        try:
            disturb(chaos, choices)
        finally:
            is_over.set()
            load.join(120)
        for node in found.nodes:
            found.bridge.wait(
                lambda node=node: _is_covered(found.bridge, node),  # type: ignore[misc]
                f"the claim of {node.name} covers what YARN has",
                seconds=_CONVERGED_SECONDS,
            )
        verdict = found.recording.verdict(_TOLERANCE)
        problems, killed = found.recording.problems, _killed_by_others(application)
        gaps = found.recording.gaps
        application.stop()
    counts = figures(verdict, len(races.played))
    disturbances = {f"{name.replace(' ', '_')}_count": count for name, count in chaos.done.items()}
    missed = {f"missed_{name}_count": count for name, count in chaos.missed.items()}
    record_figures("chaos", {**counts, **disturbances, **missed, "killed": len(killed), "gaps": gaps}, folder=folder)
    assert problems == [], f"seed {seed}"
    assert chaos.crashes == [], f"seed {seed}"
    for finding in (*verdict.violations, *verdict.claims_below_use):
        print(finding)
    assert verdict.violations == (), f"seed {seed}"
    assert verdict.claims_below_use == (), f"seed {seed}"
    assert killed == [], f"seed {seed}"
    return chaos


def _killed_by_others(application: Application) -> list[Container]:
    """List what was killed, without what was lost with a killed NodeManager: unrecorded, or given up by the RM."""
    return [each for each in application.killed() if each.exit_status not in {_LOST_WITH_NODE_MANAGER, EXIT_ABORTED}]


def _is_covered(bridge: Bridge, node: BridgedNode) -> bool:
    memory, vcores = bridge.capacity(node)
    claim = bridge.claim(node)
    return claim is not None and claim.cpu_milli >= vcores * 1000 and claim.memory_bytes >= memory << 20


def _seed() -> int:
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"seed {seed}; CHAOS_SEED={seed} plays the same again")
    return seed


@pytest.mark.timeout(900)
def test_every_part_is_killed_once_in_the_middle_of_transfers(unique: Unique, tmp_path: Path) -> None:
    seed = _seed()

    def once(chaos: Chaos, choices: random.Random) -> None:
        deaths, others = list(chaos.deaths), list(chaos.others)
        choices.shuffle(deaths)
        choices.shuffle(others)
        chaos.disturb_at_once(deaths, others)

    with _lab(_FEW_NODES) as lab:
        chaos = _run(lab, unique, tmp_path, seed, once)
    assert not chaos.missed, f"seed {seed}"


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_half_an_hour_of_random_kills(unique: Unique, tmp_path: Path) -> None:
    seed = _seed()

    def for_long(chaos: Chaos, choices: random.Random) -> None:
        end_at = time.monotonic() + _SOAK_SECONDS
        while time.monotonic() < end_at:
            chaos.disturb(choices.choice(list(chaos.disturbances)))
            time.sleep(choices.uniform(0, 5))

    with _lab(_NODES) as lab:
        _run(lab, unique, tmp_path, seed, for_long)
