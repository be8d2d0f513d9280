# SPDX-License-Identifier: Apache-2.0
"""The watcher follows content, also through a ConfigMap's symlinks; a bad file keeps the last good settings."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from yarn_copilot.config.loading import CONTROLLER, load_settings
from yarn_copilot.config.settings import Settings
from yarn_copilot.config.watching import ConfigWatcher, Reload


class Watched:
    """A watcher on a file, with everything it told."""

    def __init__(self, path: Path) -> None:
        self.told: list[Reload[Settings]] = []
        self.slept: list[float] = []
        self.watcher = ConfigWatcher(
            path,
            schema=CONTROLLER,
            running=load_settings(path),
            environ={},
            on_reload=self.told.append,
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == 3:
            raise asyncio.CancelledError

    def look(self) -> Reload[Settings]:
        outcome = self.watcher.look()
        assert outcome is not None
        assert self.told[-1] is outcome
        return outcome


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text("log: {level: INFO}\n")
    return path


@pytest.fixture
def watched(path: Path) -> Watched:
    return Watched(path)


def test_says_nothing_while_the_content_stays_the_same(watched: Watched, path: Path) -> None:
    assert watched.watcher.look() is None
    path.write_text("log: {level: INFO}\n")
    assert watched.watcher.look() is None


def test_says_nothing_when_only_comments_change(watched: Watched, path: Path) -> None:
    path.write_text("# a comment\nlog: {level: INFO}\n")
    assert watched.watcher.look() is None


def test_takes_over_a_reloadable_field(watched: Watched, path: Path) -> None:
    path.write_text("log: {level: DEBUG}\n")
    outcome = watched.look()
    assert outcome.ok
    assert outcome.changes.reloadable == ("log.level",)
    assert outcome.previous.log.level == "INFO"
    assert watched.watcher.settings.log.level == "DEBUG"


def test_reports_a_fixed_field_and_keeps_its_value(watched: Watched, path: Path) -> None:
    path.write_text("log: {level: DEBUG, format: json}\n")
    outcome = watched.look()
    assert outcome.changes.needs_restart == ("log.format",)
    assert watched.watcher.settings.log.format == "text"
    assert watched.watcher.settings.log.level == "DEBUG"


def test_says_so_when_a_fixed_field_is_put_back(watched: Watched, path: Path) -> None:
    path.write_text("log: {format: json}\n")
    watched.look()
    path.write_text("log: {format: text}\n")
    assert watched.look().changes.needs_restart == ()


def test_says_so_when_a_fixed_field_goes_on_to_another_value(watched: Watched, path: Path) -> None:
    path.write_text("hadoop: {user: a}\n")
    watched.look()
    path.write_text("hadoop: {user: b}\n")
    outcome = watched.look()
    assert outcome.changes.needs_restart == ("hadoop.user",)
    assert (outcome.settings.hadoop.user, outcome.wanted.hadoop.user) == ("yarn", "b")


def test_keeps_the_last_good_settings_when_the_file_is_bad(watched: Watched, path: Path) -> None:
    path.write_text("log: {level: DEBUG}\n")
    watched.look()
    path.write_text("log: {level: loud}\n")
    outcome = watched.look()
    assert not outcome.ok
    assert f"{path}:1: log.level: is 'loud'" in outcome.error
    assert watched.watcher.settings.log.level == "DEBUG"
    assert watched.watcher.look() is None


def test_reports_recovery_even_when_nothing_changed(watched: Watched, path: Path) -> None:
    path.write_text("nonsense\n")
    watched.look()
    path.write_text("log: {level: INFO}\n")
    assert watched.look().ok


def test_survives_a_missing_file_and_tells_once(watched: Watched, path: Path) -> None:
    path.unlink()
    assert "does not exist" in watched.look().error
    assert watched.watcher.look() is None
    path.write_text("log: {level: INFO}\n")
    assert watched.look().ok


def test_follows_the_symlink_swap_of_a_configmap(tmp_path: Path) -> None:
    for name, level in (("..first", "INFO"), ("..second", "ERROR")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(f"log: {{level: {level}}}\n")
    (tmp_path / "..data").symlink_to("..first")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")
    watched = Watched(tmp_path / "config.yaml")
    assert watched.watcher.look() is None
    (tmp_path / "..data_tmp").symlink_to("..second")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    assert watched.look().settings.log.level == "ERROR"


def test_refuses_a_file_whose_reloadable_half_does_not_go_with_what_runs(watched: Watched, path: Path) -> None:
    path.write_text("hadoop: {call_timeout_seconds: 2}\nyarn: {message_lifetime_seconds: 3}\n")
    outcome = watched.look()
    assert "takes effect only after a restart, because hadoop.call_timeout_seconds changed too" in outcome.error
    assert watched.watcher.settings.yarn.message_lifetime_seconds == 10


def test_run_looks_at_its_interval(watched: Watched, path: Path) -> None:
    path.write_text("log: {level: DEBUG}\n")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(watched.watcher.run())
    assert watched.slept == [2.0, 2.0, 2.0]
    assert len(watched.told) == 1
