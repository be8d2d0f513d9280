# SPDX-License-Identifier: Apache-2.0
"""Changed fields are told apart by whether they take effect at once."""

from __future__ import annotations

from yarn_copilot.config.changes import changed_fields, describe_changes, with_reloadable
from yarn_copilot.config.loading import parse_settings
from yarn_copilot.config.settings import Settings


def settings(text: str) -> Settings:
    return parse_settings(text.encode(), "conf.yaml")


def test_equal_settings_have_no_changes() -> None:
    assert not changed_fields(Settings(), settings("log: {level: INFO}"))


def test_reloadable_and_fixed_fields_are_listed_apart() -> None:
    changes = changed_fields(
        Settings(),
        settings("log: {level: DEBUG, format: json}\ncapacity: {reserve: {cpu_percent: 5}}\nserver: {port: 1}"),
    )
    assert changes.reloadable == ("capacity.reserve.cpu_percent", "log.level")
    assert changes.needs_restart == ("server.port", "log.format")


def test_only_reloadable_fields_are_taken_over() -> None:
    merged = with_reloadable(
        Settings(), settings("log: {level: DEBUG, format: json}\nnode_managers: {cluster_weights: {a: 2}}")
    )
    assert merged == settings("log: {level: DEBUG}\nnode_managers: {cluster_weights: {a: 2}}")


def test_changes_are_described_with_both_values() -> None:
    new = settings("capacity: {growth_window_seconds: 0, require_node_metric: false}")
    paths = changed_fields(Settings(), new).reloadable
    assert describe_changes(Settings(), new, paths) == (
        "capacity.growth_window_seconds: 60 -> 0, capacity.require_node_metric: true -> false"
    )
