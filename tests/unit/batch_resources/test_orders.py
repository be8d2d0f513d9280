# SPDX-License-Identifier: Apache-2.0
"""An operator's orders are read exactly or refused with a sentence that says what is allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from batch_resources.annotations.catalogue import CATALOGUE, ORDER_KEYS
from batch_resources.annotations.orders import (
    NO_ORDERS,
    Drain,
    Limit,
    OrderError,
    Orders,
    Pause,
    parse_order,
    read_orders,
    write_order,
)
from batch_resources.keys import CAP_ANNOTATION, DRAIN_ANNOTATION, FIX_ANNOTATION, PAUSE_ANNOTATION
from batch_resources.resources import BatchResources

GIB = 1 << 30
THREE_O_CLOCK = 1_796_180_400.0
"""2026-12-02T03:00:00Z"""


@pytest.mark.parametrize(
    ("key", "text", "order"),
    [
        pytest.param(DRAIN_ANNOTATION, "true", Drain(), id="drain"),
        pytest.param(DRAIN_ANNOTATION, " true ", Drain(), id="blanks"),
        pytest.param(DRAIN_ANNOTATION, "release=true", Drain(releases=True), id="release"),
        pytest.param(
            DRAIN_ANNOTATION,
            "deadline=2026-12-02T04:00:00+01:00;reason=new disk = soon",
            Drain(deadline=THREE_O_CLOCK, reason="new disk = soon"),
            id="deadline and a reason with an equals sign",
        ),
        pytest.param(PAUSE_ANNOTATION, "until=2026-12-02T03:00:00Z", Pause(until=THREE_O_CLOCK), id="pause"),
        pytest.param(CAP_ANNOTATION, "cpu=3500m; memory=8Gi", Limit(cpu_milli=3500, memory_bytes=8 * GIB), id="cap"),
        pytest.param(CAP_ANNOTATION, "memory=0", Limit(memory_bytes=0), id="one resource, zero"),
        pytest.param(FIX_ANNOTATION, "cpu=4", Limit(cpu_milli=4000), id="cores"),
    ],
)
def test_reads_what_the_grammar_allows(key: str, text: str, order: Drain | Pause | Limit) -> None:
    assert parse_order(key, text) == order


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        pytest.param(DRAIN_ANNOTATION, "", "the word true alone, or name=value", id="empty"),
        pytest.param(DRAIN_ANNOTATION, "false", "remove the annotation", id="false"),
        pytest.param(DRAIN_ANNOTATION, "yes", "deadline, release, reason", id="yes"),
        pytest.param(DRAIN_ANNOTATION, "release=false", "allowed is release=true", id="release false"),
        pytest.param(DRAIN_ANNOTATION, "deadline=2026-12-02T03:00:00", "2026-12-02T03:00:00Z", id="no offset"),
        pytest.param(DRAIN_ANNOTATION, "deadline=10m", "such as 2026-12-02T03:00:00Z", id="a duration"),
        pytest.param(PAUSE_ANNOTATION, "until=2026-12-02T03:00:00Z; until=x", "names until twice", id="twice"),
        pytest.param(CAP_ANNOTATION, "true", "names cpu, memory, until, reason", id="cap true"),
        pytest.param(CAP_ANNOTATION, "reason=why", "names no amount", id="no amount"),
        pytest.param(CAP_ANNOTATION, "cpu=-1", "from 0 on", id="negative"),
        pytest.param(CAP_ANNOTATION, "cpu=0.5m", "whole milli-cores", id="half a milli-core"),
        pytest.param(FIX_ANNOTATION, "memory=1500m", "whole bytes", id="milli-bytes"),
        pytest.param(FIX_ANNOTATION, "memory=8GB", "is no quantity", id="no suffix"),
        pytest.param(FIX_ANNOTATION, "memory=99999999999999999999", "from 0 on", id="above 64 bits"),
        pytest.param(FIX_ANNOTATION, "cpu=4, memory=8Gi", "is no quantity", id="comma"),
        pytest.param(PAUSE_ANNOTATION, "x" * 2000, "2000 characters", id="long"),
    ],
)
def test_refuses_everything_else_and_names_key_and_remedy(key: str, text: str, words: str) -> None:
    with pytest.raises(OrderError) as caught:
        parse_order(key, text)
    assert key in str(caught.value)
    assert words in str(caught.value)


def test_one_bad_order_does_not_hide_the_others() -> None:
    orders = read_orders({DRAIN_ANNOTATION: "maybe", CAP_ANNOTATION: "cpu=1", "other": "x"})
    assert orders.drain is None
    assert orders.cap == Limit(cpu_milli=1000)
    assert len(orders.errors) == 1


def test_no_annotation_is_no_order() -> None:
    assert read_orders({"a": "b"}) is NO_ORDERS


def test_orders_end_at_their_time_and_a_deadline_does_not_end_a_drain() -> None:
    drain = Drain(deadline=10.0)
    orders = Orders(drain=drain, pause=Pause(until=20.0), cap=Limit(cpu_milli=1, until=30.0))
    assert orders.at(9.9) == orders
    assert orders.at(10.0) == replace(orders, is_overdue=True)
    assert orders.at(20.0) == Orders(drain=drain, cap=Limit(cpu_milli=1, until=30.0), is_overdue=True)
    assert orders.at(30.0) == Orders(drain=drain, is_overdue=True)
    assert [orders.next_moment(moment) for moment in (0.0, 10.0, 20.0, 30.0)] == [10.0, 20.0, 30.0, None]


def test_an_open_resource_takes_the_amounts_own_value() -> None:
    assert Limit(cpu_milli=5).of(BatchResources(cpu_milli=9, memory_bytes=7)) == BatchResources(
        cpu_milli=5, memory_bytes=7
    )


REASONS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters=";\r\n"), max_size=100).map(str.strip)
MOMENTS = st.none() | st.integers(min_value=0, max_value=4_000_000_000).map(float)
AMOUNTS = st.integers(min_value=0, max_value=2**62)


@given(deadline=MOMENTS, releases=st.booleans(), reason=REASONS)
def test_a_drain_that_is_written_reads_back_the_same(deadline: float | None, releases: bool, reason: str) -> None:
    drain = Drain(deadline=deadline, releases=releases, reason=reason)
    assert parse_order(DRAIN_ANNOTATION, write_order(drain)) == drain


@given(cpu=AMOUNTS, memory=st.none() | AMOUNTS, until=MOMENTS, reason=REASONS)
def test_a_limit_that_is_written_reads_back_the_same(
    cpu: int, memory: int | None, until: float | None, reason: str
) -> None:
    limit = Limit(cpu_milli=cpu, memory_bytes=memory, until=until, reason=reason)
    assert parse_order(CAP_ANNOTATION, write_order(limit)) == limit


def test_a_reason_that_would_break_the_grammar_is_not_written() -> None:
    with pytest.raises(OrderError, match="no semicolon"):
        write_order(Pause(reason="a; until=x"))


def test_the_catalogue_names_every_order_once() -> None:
    named = [each.key for each in CATALOGUE]
    assert len(named) == len(set(named))
    assert set(ORDER_KEYS) <= set(named)
