# SPDX-License-Identifier: Apache-2.0
"""Test the election on a clock that the test owns; the last test looks for two leaders in random histories."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest

from tests.unit.kube.lease_store import MemoryLeases
from tests.unit.kube.manual_clock import ManualClock, settle
from yarn_copilot.kube.errors import NotLeaderError
from yarn_copilot.kube.lease import LeaseElector, LeaseSettings, Observer, SoleLeader, micro_time
from yarn_copilot.kube.model import Lease, LeaseSpec, ObjectMeta

Start = Callable[..., LeaseElector]


class SkewedClock:
    """Show a shared time under an own wall clock, which may jump."""

    def __init__(self, shared: ManualClock, wall: float = 0.0) -> None:
        self.shared = shared
        self.wall_seconds = wall
        self.frozen = False

    def monotonic(self) -> float:
        return self.shared.monotonic()

    def wall(self) -> float:
        return self.wall_seconds if self.frozen else self.wall_seconds + self.shared.now

    async def sleep(self, seconds: float) -> None:
        await self.shared.sleep(seconds)


def _settings(identity: str, **more: float) -> LeaseSettings:
    return LeaseSettings(name="lease", namespace="ns", identity=identity, **more)  # type: ignore[arg-type]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def leases(clock: ManualClock) -> MemoryLeases:
    return MemoryLeases(clock)


@pytest.fixture
async def start(clock: ManualClock, leases: MemoryLeases) -> AsyncIterator[Start]:
    tasks: list[asyncio.Task[None]] = []

    def _start(identity: str, elector_clock: object = None, **more: object) -> LeaseElector:
        elector = LeaseElector(leases, _settings(identity), clock=elector_clock or clock, **more)  # type: ignore[arg-type]
        elector.task = asyncio.ensure_future(elector.run())  # type: ignore[attr-defined]
        tasks.append(elector.task)  # type: ignore[attr-defined]
        return elector

    yield _start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_first_candidate_creates_the_lease_and_leads(start: Start, leases: MemoryLeases) -> None:
    changes: list[tuple[bool, int]] = []
    elector = start("a", on_change=lambda leader, term: changes.append((leader, term)))
    assert not elector.is_leader
    with pytest.raises(NotLeaderError, match="ns/lease is not held by a"):
        elector.check()
    await settle()
    elector.check()
    assert (elector.is_leader, elector.term, elector.holder) == (True, 1, "a")
    assert changes == [(True, 1)]
    assert leases.stored is not None
    spec = leases.stored.spec
    assert (spec.holderIdentity, spec.leaseDurationSeconds, spec.leaseTransitions) == ("a", 10, 0)


async def test_the_leader_renews_every_second_without_reading(
    start: Start, clock: ManualClock, leases: MemoryLeases
) -> None:
    elector = start("a")
    await settle()
    before = leases.calls
    await clock.advance(30)
    assert leases.calls - before == 30
    assert elector.is_leader
    assert elector.term == 1
    renewals = [lease.spec.renewTime or "" for lease in leases.history]
    assert renewals == sorted(set(renewals))


async def test_a_standby_takes_over_ten_seconds_after_the_last_change_it_saw(
    start: Start, clock: ManualClock, leases: MemoryLeases
) -> None:
    first = start("a")
    await settle()
    second = start("b")
    await clock.advance(5)
    assert not second.is_leader
    first.task.cancel()  # type: ignore[attr-defined]
    died_at = clock.now
    while not second.is_leader:
        await clock.advance(0.1)
        assert clock.now < died_at + 15
    assert clock.now - died_at >= 9
    assert not first.is_leader
    assert leases.stored is not None
    assert leases.stored.spec.leaseTransitions == 1


async def test_a_lease_left_behind_is_waited_for_in_full(
    start: Start, clock: ManualClock, leases: MemoryLeases
) -> None:
    old = LeaseSpec(holderIdentity="a", leaseDurationSeconds=10, renewTime="2001-01-01T00:00:00.000000Z")
    await leases.create_lease(Lease(ObjectMeta("lease", "ns"), old))
    elector = start("b")
    await clock.advance(9.5)
    assert not elector.is_leader
    await clock.advance(1)
    assert elector.is_leader


async def test_a_namesake_is_somebody_else(start: Start, clock: ManualClock, leases: MemoryLeases) -> None:
    first = start("same")
    await settle()
    second = start("same")
    await clock.advance(30)
    assert first.is_leader
    assert not second.is_leader


async def test_a_released_lease_is_taken_at_the_next_look(
    start: Start, clock: ManualClock, leases: MemoryLeases
) -> None:
    changes: list[tuple[bool, int]] = []
    first = start("a", on_change=lambda leader, term: changes.append((leader, term)))
    await settle()
    second = start("b")
    await clock.advance(3)
    await first.release()
    assert not first.is_leader
    assert changes == [(True, 1), (False, 1)]
    assert leases.stored is not None
    assert (leases.stored.spec.holderIdentity, leases.stored.spec.leaseDurationSeconds) == ("", 1)
    await clock.advance(1.1)
    assert second.is_leader
    await clock.advance(60)
    assert not first.is_leader


async def test_release_by_a_standby_changes_nothing(start: Start, clock: ManualClock, leases: MemoryLeases) -> None:
    first = start("a")
    await settle()
    second = start("b")
    await clock.advance(2)
    stored = leases.stored
    await second.release()
    assert leases.stored is stored
    assert first.is_leader


async def test_release_works_while_a_renewal_hangs_whose_effect_is_unknown(
    start: Start, clock: ManualClock, leases: MemoryLeases
) -> None:
    elector = start("a")
    await settle()
    leases.answer_seconds = 100.0
    await clock.advance(1)  # the renewal is stored, its answer does not come
    leases.answer_seconds = 0.0
    await elector.release()
    assert leases.stored is not None
    assert leases.stored.spec.holderIdentity == ""


async def test_leadership_ends_by_the_clock_while_the_renewal_hangs(
    start: Start, clock: ManualClock, leases: MemoryLeases
) -> None:
    changes: list[tuple[bool, int]] = []
    elector = start("a", on_change=lambda leader, term: changes.append((leader, term)))
    await settle()
    began = clock.now
    leases.hang_seconds = 1000.0
    await clock.advance(began + 5.99 - clock.now)
    assert elector.is_leader
    await clock.advance(0.02)
    assert not elector.is_leader
    with pytest.raises(NotLeaderError):
        elector.check()
    assert changes == [(True, 1), (False, 1)]


async def test_time_counts_from_before_the_renewal_was_sent(
    start: Start, clock: ManualClock, leases: MemoryLeases
) -> None:
    elector = start("a")
    await settle()
    await clock.advance(0.5)
    leases.answer_seconds = 2.0
    await clock.advance(3)  # sent at 1.0, answered at 3.0
    leases.hang_seconds = 1000.0
    await clock.advance(3.4)  # 6.9
    assert elector.is_leader
    await clock.advance(0.2)
    assert not elector.is_leader


async def test_the_longest_call_shortens_the_term(clock: ManualClock, leases: MemoryLeases) -> None:
    settings = _settings("a", longest_call_seconds=7.0)
    assert settings.term_seconds == 3.0
    assert _settings("a").term_seconds == 6.0


@pytest.mark.parametrize(
    "wrong", [{"renew_deadline_seconds": 10.0}, {"renew_deadline_seconds": 0.0}, {"longest_call_seconds": 10.0}]
)
def test_times_that_cannot_be_safe_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be below"):
        _settings("a", **wrong)


async def test_each_return_to_leadership_is_a_new_term(start: Start, clock: ManualClock, leases: MemoryLeases) -> None:
    elector = start("a")
    await settle()
    for term in (2, 3):
        leases.down = True
        await clock.advance(8)
        assert not elector.is_leader
        leases.down = False
        await clock.advance(6)
        assert elector.is_leader
        assert elector.term == term


async def test_a_renewal_whose_answer_was_lost_costs_no_leadership(
    start: Start, clock: ManualClock, leases: MemoryLeases
) -> None:
    elector = start("a")
    await settle()
    leases.lose_answers = True
    await clock.advance(2)
    leases.lose_answers = False
    await clock.advance(20)
    assert elector.is_leader
    assert elector.term == 1


async def test_a_foreign_label_on_the_lease_costs_no_leadership(
    start: Start, clock: ManualClock, leases: MemoryLeases
) -> None:
    elector = start("a")
    await settle()
    for _ in range(5):
        leases.touch()
        await clock.advance(3)
    assert elector.is_leader
    assert elector.term == 1


async def test_a_deleted_lease_is_created_again(start: Start, clock: ManualClock, leases: MemoryLeases) -> None:
    elector = start("a")
    await settle()
    leases.stored = None
    await clock.advance(3)
    assert elector.is_leader
    assert leases.stored is not None


@pytest.mark.parametrize("jump", [pytest.param(1e8, id="forward"), pytest.param(-1e8, id="back")])
async def test_wall_clock_jumps_do_not_matter(
    start: Start, clock: ManualClock, leases: MemoryLeases, jump: float
) -> None:
    skewed = SkewedClock(clock, 1.7e9)
    first = start("a", skewed)
    await settle()
    second = start("b", SkewedClock(clock, 1.6e9))
    await clock.advance(3)
    skewed.wall_seconds += jump
    await clock.advance(30)
    assert first.is_leader
    assert first.term == 1
    assert not second.is_leader


async def test_a_wall_clock_that_stands_still_does_not_matter(
    start: Start, clock: ManualClock, leases: MemoryLeases
) -> None:
    skewed = SkewedClock(clock, 1.7e9)
    skewed.frozen = True
    start("a", skewed)
    await settle()
    await clock.advance(5)
    renewals = [lease.spec.renewTime for lease in leases.history]
    assert len(set(renewals)) == len(renewals) == 6


async def test_a_standby_backs_off_while_the_server_is_down(
    start: Start, clock: ManualClock, leases: MemoryLeases
) -> None:
    leases.down = True
    elector = start("a")
    await clock.advance(60)
    assert 12 <= leases.calls <= 40
    leases.down = False
    await clock.advance(5)
    assert elector.is_leader


async def test_a_listener_that_fails_costs_no_leadership(
    start: Start, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(leader: bool, term: int) -> None:
        raise ValueError("listener")

    elector = start("a", on_change=fail)
    await clock.advance(5)
    assert elector.is_leader
    assert "A listener of leadership changes failed" in caplog.text


async def test_no_history_has_two_leaders() -> None:
    """Run candidates with wrong wall clocks against a server that hangs, fails and loses answers."""
    led = 0
    for seed in range(12):
        rng = random.Random(seed)
        clock = ManualClock()
        leases = MemoryLeases(clock, rng)
        electors: list[LeaseElector] = []
        tasks: list[asyncio.Task[None]] = []
        skews: list[SkewedClock] = []
        dead: list[LeaseElector] = []
        for number in range(3):
            skews.append(SkewedClock(clock, rng.uniform(0, 3e9)))
            electors.append(LeaseElector(leases, _settings(f"e{number}"), clock=skews[-1]))
            tasks.append(asyncio.ensure_future(electors[-1].run()))
        for _ in range(200):
            await clock.advance(rng.uniform(0.05, 1.5))
            leaders = [elector for elector in [*electors, *dead] if elector.is_leader]
            assert len(leaders) <= 1, f"seed {seed}"
            led += len(leaders)
            if rng.random() < 0.05:
                rng.choice(skews).wall_seconds = rng.uniform(0, 3e9)
            if rng.random() < 0.02:
                victim = rng.randrange(3)
                tasks[victim].cancel()
                with suppress(asyncio.CancelledError):
                    await tasks[victim]
                # The killed process may have had a call in flight for the whole of its term.
                dead.append(electors[victim])
                electors[victim] = LeaseElector(leases, _settings(f"e{victim}"), clock=skews[victim])
                tasks[victim] = asyncio.ensure_future(electors[victim].run())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await clock.advance(60)
    assert led > 300


def test_a_sole_leader_always_leads() -> None:
    leader = SoleLeader("one")
    leader.check()
    assert (leader.is_leader, leader.term, leader.holder) == (True, 1, "one")


def test_an_observer_never_leads() -> None:
    observer = Observer()
    with pytest.raises(NotLeaderError):
        observer.check()
    assert (observer.is_leader, observer.term, observer.holder) == (False, 0, "")


def test_times_are_written_as_the_api_server_reads_them() -> None:
    assert micro_time(1_700_000_000_000_001) == "2023-11-14T22:13:20.000001Z"
    assert micro_time(0) == "1970-01-01T00:00:00.000000Z"
