# SPDX-License-Identifier: Apache-2.0
"""Test how our own entries are told from somebody else's."""

from __future__ import annotations

from batch_resources.ledger import ManagerKey
from batch_resources.resources import BatchResources
from yarn_copilot.controller.memory import MAX_POSSIBLE, ClaimMemory, ManagerMemory
from yarn_copilot.controller.node_capacity.backoff import note_recognized, note_unrecognized


def amount(cpu_milli: int) -> BatchResources:
    return BatchResources(cpu_milli=cpu_milli, memory_bytes=0)


def test_what_is_on_its_way_is_ours_when_it_shows_up() -> None:
    claim = ClaimMemory()
    claim.note_sent(amount(1))
    assert claim.is_ours(amount(1), 7)
    assert (claim.written, claim.written_version) == (amount(1), 7)
    assert claim.is_ours(amount(1), 8)
    assert not claim.is_ours(amount(2), 9)


def test_a_removal_of_ours_is_ours_too() -> None:
    claim = ClaimMemory()
    claim.note_landed(amount(1), 5)
    assert not claim.is_ours(None, 6)
    claim.note_sent(None)
    assert claim.is_ours(None, 6)


def test_a_refused_patch_leaves_an_earlier_lost_one_possible() -> None:
    claim = ClaimMemory()
    claim.note_sent(amount(1))
    before = claim.note_sent(amount(1))
    claim.possible = before
    assert claim.is_ours(amount(1), 3)


def test_only_so_many_lost_patches_are_remembered() -> None:
    claim = ClaimMemory()
    for cpu in range(10 * MAX_POSSIBLE):
        claim.note_sent(amount(cpu))
    assert len(claim.possible) == MAX_POSSIBLE
    assert claim.is_ours(amount(10 * MAX_POSSIBLE - 1), 1)


def test_the_back_off_doubles_from_a_quarter_of_a_second_to_the_longest_and_restarts() -> None:
    manager = ManagerMemory(key=ManagerKey(cluster="a", node_id="n:1"), node_id=None, candidate=None)
    waits = [note_unrecognized(manager, now=100.0, longest_seconds=10) for _ in range(8)]
    assert waits == [0.25, 0.5, 1, 2, 4, 8, 10, 10]
    assert manager.retry_at == 110.0
    for _ in range(5000):
        note_unrecognized(manager, now=100.0, longest_seconds=10)
    note_recognized(manager)
    assert note_unrecognized(manager, now=100.0, longest_seconds=10) == 0.25
