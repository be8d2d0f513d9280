# SPDX-License-Identifier: Apache-2.0
"""Test what may still be on its way to a ResourceManager."""

from __future__ import annotations

from batch_resources import sends
from tests.unit.batch_resources.builders import yarn


def test_a_send_stays_outstanding_until_it_is_answered_and_read_back() -> None:
    outstanding = sends.record_send((), yarn(4, 4096), now=1.0)
    assert sends.confirm(outstanding, yarn(4, 4096), read_began_at=2.0) == outstanding
    answered = sends.mark_answered(outstanding, sent_at=1.0, now=3.0)
    assert sends.confirm(answered, yarn(4, 4096), read_began_at=2.9) == answered
    assert sends.confirm(answered, yarn(4, 4096), read_began_at=3.0) == ()


def test_reading_a_newer_value_clears_no_older_send() -> None:
    two = sends.record_send(sends.record_send((), yarn(4, 4096), now=1.0), yarn(2, 2048), now=2.0)
    two = sends.mark_answered(sends.mark_answered(two, sent_at=1.0, now=1.5), sent_at=2.0, now=2.5)
    left = sends.confirm(two, yarn(2, 2048), read_began_at=3.0)
    assert [send.resources for send in left] == [yarn(4, 4096)]
    assert sends.highest_possible(yarn(2, 2048), left) == yarn(4, 4096)


def test_a_send_is_dead_when_its_lifetime_is_over() -> None:
    outstanding = sends.record_send((), yarn(4, 4096), now=1.0)
    assert sends.expire(outstanding, now=10.9, lifetime_seconds=10.0) == outstanding
    assert sends.expire(outstanding, now=11.0, lifetime_seconds=10.0) == ()
    assert sends.expire((), now=11.0, lifetime_seconds=10.0) == ()


def test_a_refused_call_leaves_nothing_and_a_lost_one_may_be_repeated() -> None:
    outstanding = sends.record_send((), yarn(4, 4096), now=1.0)
    assert sends.is_under_way(outstanding, yarn(4, 4096))
    assert not sends.is_under_way(outstanding, yarn(3, 4096))
    assert not sends.is_under_way((), yarn(4, 4096))
    lost = sends.mark_lost(outstanding, sent_at=1.0)
    assert not sends.is_under_way(lost, yarn(4, 4096))
    assert sends.highest_possible(yarn(1, 1024), lost) == yarn(4, 4096)
    assert sends.mark_refused(outstanding, sent_at=1.0) == ()
    assert sends.mark_refused(outstanding, sent_at=9.0) == outstanding


def test_marks_touch_only_the_call_they_name() -> None:
    two = sends.record_send(sends.record_send((), yarn(4, 4096), now=1.0), yarn(2, 2048), now=2.0)
    assert [s.answered_at for s in sends.mark_answered(two, sent_at=2.0, now=3.0)] == [None, 3.0]
    assert [s.is_lost for s in sends.mark_lost(two, sent_at=1.0)] == [True, False]


def test_nothing_known_gives_no_highest_value() -> None:
    assert sends.highest_possible(None, ()) is None
    assert sends.highest_possible(None, sends.record_send((), yarn(4, 4096), now=1.0)) == yarn(4, 4096)
    assert sends.confirm((), yarn(1, 1), read_began_at=1.0) == ()


def test_an_answered_send_overtaken_by_one_that_was_read_back_disturbs_no_use_but_stays_outstanding() -> None:
    two = sends.record_send((), yarn(4, 4096), now=1.0)
    two = sends.mark_answered(two, sent_at=1.0, now=1.5)
    two = sends.mark_answered(sends.record_send(two, yarn(2, 2048), now=2.0), sent_at=2.0, now=2.5)
    assert sends.may_disturb_use(two)
    left = sends.confirm(two, yarn(2, 2048), read_began_at=3.0)
    assert [send.resources for send in left] == [yarn(4, 4096)]
    assert not sends.may_disturb_use(left)
    assert sends.highest_possible(yarn(2, 2048), left) == yarn(4, 4096)


def test_a_send_that_was_not_answered_before_the_newer_one_left_may_still_disturb_use() -> None:
    two = sends.mark_lost(sends.record_send((), yarn(4, 4096), now=1.0), sent_at=1.0)
    two = sends.mark_answered(sends.record_send(two, yarn(2, 2048), now=2.0), sent_at=2.0, now=2.5)
    assert sends.may_disturb_use(sends.confirm(two, yarn(2, 2048), read_began_at=3.0))
    assert not sends.may_disturb_use(())


def test_a_value_that_was_read_back_is_not_repeated_because_an_older_update_may_still_land() -> None:
    older = sends.Send(resources=yarn(15, 15360), sent_at=100.0, answered_at=100.1)
    newest = sends.Send(resources=yarn(10, 10240), sent_at=100.2, answered_at=100.3, is_confirmed=True)
    assert not sends.changes_value((older, newest), yarn(10, 10240), yarn(10, 10240))
    assert sends.changes_value((older, newest), yarn(15, 15360), yarn(10, 10240)), "the older one landed over it"
    assert sends.changes_value((older, newest), yarn(10, 10240), yarn(9, 10240))


def test_a_value_is_sent_again_over_an_update_that_may_still_land() -> None:
    other = sends.Send(resources=yarn(15, 15360), sent_at=100.0, answered_at=100.1)
    assert sends.changes_value((other,), yarn(10, 10240), yarn(10, 10240))
    same = sends.Send(resources=yarn(10, 10240), sent_at=100.2, answered_at=100.3)
    assert not sends.changes_value((other, same), yarn(12, 10240), yarn(10, 10240)), "it is under way"
