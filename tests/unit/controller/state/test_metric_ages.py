# SPDX-License-Identifier: Apache-2.0
"""Test how old Koordinator's reports are held to be."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.unit.kube.manual_clock import ManualClock
from yarn_copilot.controller.state.metric_ages import MetricAges, reduce_node_metric
from yarn_copilot.kube.model import NodeMetric, NodeMetricMeta, NodeMetricStatus


class Ages(MetricAges):
    """Keep who became fresh again."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.fresh: list[str] = []
        super().__init__(self.clock, self.fresh.append, fresh_seconds=100)

    def text(self, seconds_ago: float) -> str:
        """Write a time that lies so far back."""
        return datetime.fromtimestamp(self.clock.wall() - seconds_ago, UTC).isoformat()

    def age(self) -> float | None:
        """Give the age of node n."""
        return self.age_seconds("n", self.clock.now)


def test_only_the_update_time_is_kept() -> None:
    assert reduce_node_metric(NodeMetric(NodeMetricMeta("n"), NodeMetricStatus("t"))) == "t"
    assert reduce_node_metric(NodeMetric(NodeMetricMeta("n"))) is None


def test_first_sight_asks_the_wall_clock_and_later_the_change_counts() -> None:
    ages = Ages()
    assert ages.age() is None
    ages.upserted("n", ages.text(40))
    assert ages.age() == pytest.approx(40, abs=0.01)
    ages.clock.now += 10
    ages.upserted("n", "2020-01-01T00:00:00Z")  # another text: koordlet's clock may be anything
    assert ages.age() == 0


def test_the_same_text_seen_again_does_not_make_it_young() -> None:
    ages = Ages()
    text = ages.text(0)
    ages.upserted("n", text)
    ages.clock.now += 70
    ages.upserted("n", text)
    ages.upserted("n", None)
    assert ages.age() == pytest.approx(70)


@pytest.mark.parametrize("text", ["nonsense", "", "2099-01-01T00:00:00Z"], ids=["word", "empty", "future"])
def test_a_time_that_says_nothing_counts_from_first_sight(text: str) -> None:
    ages = Ages()
    ages.upserted("n", text)
    assert ages.age() == 0


def test_a_time_without_a_zone_is_utc() -> None:
    ages = Ages()
    ages.upserted("n", ages.text(30).removesuffix("+00:00"))
    assert ages.age() == pytest.approx(30, abs=0.01)


def test_only_a_report_that_ends_an_old_age_is_told() -> None:
    ages = Ages()
    ages.upserted("n", "1")
    ages.clock.now += 60
    ages.upserted("n", "2")
    ages.clock.now += 100
    ages.upserted("n", "3")
    assert ages.fresh == ["n", "n"]
    ages.set_fresh_seconds(10)
    ages.clock.now += 11
    ages.upserted("n", "4")
    assert ages.fresh == ["n", "n", "n"]


def test_a_report_that_is_gone_makes_the_age_unknown_and_is_told() -> None:
    ages = Ages()
    ages.upserted("n", "1")
    ages.replaced({"m": "1"})
    assert ages.age() is None
    assert ages.fresh == ["n", "n", "m"]
    ages.removed("n")
    ages.malformed("m", "broken")
    assert ages.fresh == ["n", "n", "m"]


def test_a_kind_that_cannot_be_read_is_told_once_and_makes_ages_unknown() -> None:
    ages = Ages()
    told: list[str] = []
    ages.on_availability = told.append
    ages.upserted("n", "1")
    ages.unavailable("404")
    ages.unavailable("404 again")
    assert ages.age() is None
    ages.replaced({"n": "1"})
    assert told == ["404", ""]
    assert ages.unavailable_reason == ""
