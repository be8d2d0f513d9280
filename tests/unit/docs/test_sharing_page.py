# SPDX-License-Identifier: Apache-2.0
"""The page on sharing names what exists, and shows what the controller does: pictures and figures are made anew."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

import pytest

from batch_resources.ledger import Hold
from tests.pictures.gallery import Gallery, paint
from yarn_copilot.config.settings import Settings
from yarn_copilot.observability.reasons import Reason

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = DOCS / "sharing.md"
RESULTS = DOCS.parent / "benchmarks" / "results"
PICTURES = ("shared-and-strict.svg", "strict-day.svg", "transfer.svg")


@lru_cache(maxsize=1)
def _gallery() -> Gallery:
    return paint()


def test_the_pictures_are_what_the_controller_does() -> None:
    pictures = _gallery().pictures
    assert sorted(pictures) == list(PICTURES)
    for name, text in pictures.items():
        assert (DOCS / "pictures" / name).read_text() == text, f"{name}: run `make docs`"


def test_the_figures_are_those_of_the_runs() -> None:
    text = PAGE.read_text()
    for row in _gallery().rows:
        assert row in text, row
    steps = text.partition("## The steps of a transfer")[2].partition("\n## ")[0]
    assert re.findall(r"^\| \d [a-z ]+ \| ([\d.]+ s) \|", steps, re.MULTILINE) == list(_gallery().steps)


def test_the_figures_of_real_servers_are_the_recorded_ones() -> None:
    race, day = (json.loads((RESULTS / name).read_text())["figures"] for name in ("sharing.json", "utilisation.json"))
    rows = [
        f"| strict | {race['strict_violations']} | {day['strict_unusable_percent']}% |",
        f"| shared | {race['shared_violations']} | {day['shared_unusable_percent']}% |",
        f"| the whole origin to YARN, use claimed | {race['upstream_violations']} | not measured |",
        f"| half of origin to each, for ever | not measured | {day['static_unusable_percent']}% |",
    ]
    text = PAGE.read_text()
    assert [row for row in rows if row not in text] == []
    assert f"{race['loads']} loads" in text


def test_the_times_of_a_move_are_the_recorded_ones() -> None:
    times = json.loads((RESULTS / "strict.json").read_text())["figures"]
    paragraph = " ".join(PAGE.read_text().partition("How long a move takes")[2].partition("\n\n")[0].split())
    assert f"gets it after {times['yarn_demand_to_usable_p50_seconds']:.0f} s" in paragraph
    assert f"within {times['yarn_demand_to_usable_p99_seconds']:.1f} s" in paragraph
    assert f"is bound after {times['kubernetes_demand_to_usable_p50_seconds']:.0f} s" in paragraph
    assert times["steady_kubernetes_writes"] == times["steady_yarn_writes"] == 0
    assert f"With {times['many_nodes']:,} nodes" in paragraph
    assert f"published, after {times['many_first_convergence_seconds']:.0f} s" in paragraph
    assert f"are out {times['many_shrink_sent_p50_seconds']:.0f} s" in paragraph
    assert f"(99 of 100: {times['many_shrink_sent_p99_seconds']:.0f} s)" in paragraph
    assert f"on offer to pods after {times['many_shrink_returned_seconds']:.0f} s" in paragraph


def test_strict_hands_nothing_out_twice_and_shared_does() -> None:
    shared, strict = (int(row.split("|")[2]) for row in _gallery().rows)
    assert strict == 0 < shared


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_shown(name: str) -> None:
    assert f"](pictures/{name})" in PAGE.read_text()


def test_every_reason_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", PAGE.read_text())) | {"Drained"}
    assert len(named) > 10
    assert named <= {reason.value for reason in Reason}


def test_every_hold_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", PAGE.read_text())) - {"_memory_bytes"}
    holds = {hold.value for hold in Hold}
    assert {"settling", "publication_awaited", "capacity_fall_unproven"} <= holds
    assert {word for word in named if not word.startswith("yarn_copilot_")} <= holds


def test_the_defaults_that_the_page_derives_are_in_force() -> None:
    text, settings = PAGE.read_text(), Settings()
    assert f"**`capacity.strict.settle_seconds`** ({settings.capacity.strict.settle_seconds:g})" in text
    assert f"**`yarn.message_lifetime_seconds`** ({settings.yarn.message_lifetime_seconds:g})" in text
    assert f"(`hadoop.call_timeout_seconds`, {settings.hadoop.call_timeout_seconds:g})" in text


def test_every_heading_that_the_page_links_to_exists() -> None:
    for page, anchor in re.findall(r"\]\(([a-z]*\.?m?d?)#([a-z-]+)\)", PAGE.read_text()):
        text = (DOCS / (page or PAGE.name)).read_text()
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        assert anchor in {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in headings}, anchor
