# SPDX-License-Identifier: Apache-2.0
"""A reload is applied, counted, logged and told as an Event; a refused one leaves everything as it was."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from yarn_copilot.cli.reloading import ReloadTeller
from yarn_copilot.config.changes import changed_fields, with_reloadable
from yarn_copilot.config.loading import parse_settings, settings_hash
from yarn_copilot.config.settings import HadoopSettings, Settings
from yarn_copilot.config.watching import Reload
from yarn_copilot.observability.metrics import Metrics


class Heard:
    """What was applied and told."""

    def __init__(self) -> None:
        self.applied: list[Settings] = []
        self.for_later_clusters: list[HadoopSettings] = []
        self.events: list[tuple[str, str, str]] = []
        self.metrics = Metrics()
        self.teller = ReloadTeller(
            Path("/c.yaml"),
            Settings(),
            metrics=self.metrics,
            events=self,
            apply=self.applied.append,
            apply_to_later_clusters=self.for_later_clusters.append,
        )

    def controller_event(self, *, type: str, reason: str, message: str) -> None:
        self.events.append((type, reason, message))

    def metric(self, name: str) -> float | None:
        return self.metrics.registry.get_sample_value(name)


@pytest.fixture
def heard() -> Iterator[Heard]:
    logger = logging.getLogger("yarn_copilot")
    level = logger.level
    yield Heard()
    logger.setLevel(level)


def accepted(text: str) -> Reload[Settings]:
    wanted = parse_settings(text.encode(), "/c.yaml")
    return Reload(
        settings=with_reloadable(Settings(), wanted),
        previous=Settings(),
        wanted=wanted,
        changes=changed_fields(Settings(), wanted),
    )


def test_the_start_counts_as_a_good_configuration(heard: Heard) -> None:
    assert heard.metric("yarn_copilot_config_last_reload_successful") == 1
    assert heard.teller.view().hash == settings_hash(Settings())


def test_a_good_reload_is_applied_and_told(heard: Heard) -> None:
    heard.teller(accepted("log: {level: DEBUG}\ncapacity: {growth_window_seconds: 5}"))
    assert heard.applied[0].capacity.growth_window_seconds == 5
    assert logging.getLogger("yarn_copilot").level == logging.DEBUG
    assert heard.events == [
        (
            "Normal",
            "ConfigurationReloaded",
            "configuration accepted: capacity.growth_window_seconds: 60 -> 5, log.level: INFO -> DEBUG",
        )
    ]


def test_a_changed_fixed_field_needs_a_restart_and_is_not_applied(heard: Heard) -> None:
    heard.teller(accepted("server: {port: 1}"))
    assert heard.applied == []
    assert heard.events[-1][:2] == ("Warning", "ConfigurationNeedsRestart")
    assert heard.teller.view().needs_restart == ["server.port"]
    assert heard.metric("yarn_copilot_config_fields_needing_restart") == 1


def test_a_fixed_field_of_hadoop_is_handed_on_for_clusters_that_are_not_connected_yet(heard: Heard) -> None:
    heard.teller(accepted("hadoop: {transport: rest}"))
    assert heard.applied == []
    assert [hadoop.transport for hadoop in heard.for_later_clusters] == ["rest"]


def test_a_refused_reload_changes_nothing_and_is_told(heard: Heard) -> None:
    before = heard.teller.view().hash
    error = "/c.yaml:1: log.level: is 'x'"
    heard.teller(Reload(settings=Settings(), previous=Settings(), wanted=Settings(), error=error))
    assert (heard.applied, heard.for_later_clusters) == ([], [])
    assert heard.metric("yarn_copilot_config_last_reload_successful") == 0
    assert heard.events[0][:2] == ("Warning", "ConfigurationRejected")
    view = heard.teller.view()
    assert (view.ok, view.hash, view.error) == (False, before, "/c.yaml:1: log.level: is 'x'")
