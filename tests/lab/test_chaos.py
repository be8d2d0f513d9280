# SPDX-License-Identifier: Apache-2.0
"""Interrupt transfers of mode strict everywhere, under load, and judge that nothing was sold twice, lost or killed."""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.cluster import Lab
from lab.hadoop.application import EXIT_ABORTED, Application, Container
from lab.hadoop.options import YarnOptions
from lab.judge.events import Event
from lab.judge.judging import Tolerance, in_order
from tests.lab.bridge import SETTLED_SECONDS, Bridge, BridgedNode, Unique, merged
from tests.lab.chaos import REPLICAS, Chaos
from tests.lab.figures import record_figures
from tests.lab.races import Races, figures
from tests.lab.strict import STRICT, strict_lab
from yarn_copilot.controller.steps import Step

_SOAK_SECONDS = float(os.environ.get("CHAOS_SECONDS", "1800"))
_CONVERGED_SECONDS = 120.0
_NODES, _FEW_NODES = 3, 2
_SHORT_STEPS = 3
_ORDERED = frozenset({137, 143})
"""Exit codes of tasks that were sent a signal; YARN's own decisions are negative."""
_LOST = frozenset({-1, EXIT_ABORTED, -1000})
"""Negative too, but no decision: the launch failed (shell of the NodeManager, ContainerExitStatus.INVALID), or the
ResourceManager gave up what a NodeManager did not know after its return."""
_NUMBERS = re.compile(r"\d+")
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
        problems, killed = found.recording.problems, _killed(application, chaos.killed_managers)
        broken = [each for each in application.killed() if each not in killed]
        gaps = found.recording.gaps
        application.stop()
    counts = figures(verdict, len(races.played))
    disturbances = {f"{name.replace(' ', '_')}_count": count for name, count in chaos.done.items()}
    missed = {f"missed_{name}_count": count for name, count in chaos.missed.items()}
    record_figures("chaos", {**counts, **disturbances, **missed, "killed": len(killed), "gaps": gaps}, folder=folder)
    assert problems == [], f"seed {seed}"
    assert chaos.crashes == [], f"seed {seed}"
    if verdict.violations or verdict.claims_below_use:
        _keep_log(found.recording.events(), folder)
    for finding in (*verdict.violations, *verdict.claims_below_use, *killed, *broken, *_kinds(application.errors)):
        print(finding)
    assert verdict.violations == (), f"seed {seed}"
    assert verdict.claims_below_use == (), f"seed {seed}"
    assert killed == [], f"seed {seed}"
    # Both sides were at work meanwhile.
    assert min(verdict.growths["kubernetes"], verdict.growths["yarn"]) > 0, f"seed {seed}: {verdict.growths}"
    return chaos


def _kinds(errors: Iterable[str]) -> Iterator[str]:
    """Give the first line of each kind of error, with how often it came: each has a trace, and is tried again."""
    counts = Counter(_NUMBERS.sub("N", error.partition("\n")[0]) for error in errors)
    yield from (f"{count} times: {line}" for line, count in counts.most_common())


def _keep_log(events: Iterable[Event], folder: Path) -> None:
    path = folder / "events.log"
    path.write_text("".join(f"{event}\n" for event in in_order(events)))
    print(f"all that was recorded is in {path}")


def _killed(application: Application, restarted: Collection[str]) -> list[Container]:
    """List the containers that somebody decided to kill.

    A NodeManager that is killed in the middle of a launch recovers a container that never ran, or whose end nobody
    saw, and lets it fail. That is its own doing; only on those that were killed is it left out.
    """
    return [each for each in application.killed() if each.node not in restarted or _is_decision(each.exit_status or 0)]


def _is_decision(exit_status: int) -> bool:
    """Tell whether an exit status means that a task was killed on purpose, by YARN or by a signal."""
    return exit_status in _ORDERED or (exit_status < 0 and exit_status not in _LOST)


def _is_covered(bridge: Bridge, node: BridgedNode) -> bool:
    memory, vcores = bridge.capacity(node)
    claim = bridge.claim(node)
    return claim is not None and claim.cpu_milli >= vcores * 1000 and claim.memory_bytes >= memory << 20


def _seed() -> int:
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"seed {seed}; CHAOS_SEED={seed} plays the same again")
    return seed


def _kill_each_once(unique: Unique, folder: Path, steps: int) -> None:
    """Kill the controller at so many steps that the seed chooses, and every other part meanwhile."""
    seed = _seed()

    def disturb(chaos: Chaos, choices: random.Random) -> None:
        others = list(chaos.others)
        choices.shuffle(others)
        chaos.disturb_at_once(choices.sample(list(chaos.deaths), steps), others)

    with _lab(_FEW_NODES) as lab:
        chaos = _run(lab, unique, folder, seed, disturb)
    assert not chaos.missed, f"seed {seed}"


@pytest.mark.timeout(900)
def test_every_server_and_a_controller_in_a_transfer_are_killed_at_once(unique: Unique, tmp_path: Path) -> None:
    _kill_each_once(unique, tmp_path, _SHORT_STEPS)


@pytest.mark.soak  # each death costs a lease and a message lifetime
@pytest.mark.timeout(1800)
def test_the_controller_is_killed_at_each_step_of_a_transfer(unique: Unique, tmp_path: Path) -> None:
    _kill_each_once(unique, tmp_path, len(Step))


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
