# SPDX-License-Identifier: Apache-2.0
"""Test that launches are heard of from the real kernel's directory events, and that nothing is missed."""

from __future__ import annotations

import select
from pathlib import Path

import pytest

from nm_proxy.nodemanager.inotify import DirectoryWatch
from nm_proxy.nodemanager.pid_files import PidFiles
from nm_proxy.parenting.watching import News, PidFileWatch
from tests.unit.nm_proxy.world import APPLICATION, container_id


def taken(watch: PidFileWatch) -> News:
    """Take all events that come within a moment."""
    news = News()
    descriptor = watch.descriptor
    assert descriptor is not None
    while select.select([descriptor], [], [], 0.2)[0]:
        more = watch.take()
        news.preparing |= more.preparing
        news.launched.update(more.launched)
        news.is_incomplete |= more.is_incomplete
    return news


def launch(local: Path, number: int = 2, pid: int = 4711) -> None:
    """Write a pid file as the launch script does: under another name, then renamed."""
    folder = local / "nmPrivate" / APPLICATION / container_id(number)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{container_id(number)}.pid.tmp").write_text(f"{pid}\n")
    (folder / f"{container_id(number)}.pid.tmp").rename(folder / f"{container_id(number)}.pid")


@pytest.fixture
def local(tmp_path: Path) -> Path:
    (tmp_path / "nmPrivate").mkdir()
    return tmp_path


def test_hears_of_preparing_and_launching(local: Path) -> None:
    watch = PidFileWatch(PidFiles([str(local)]))
    try:
        assert not watch.follow()
        (local / "nmPrivate" / APPLICATION / container_id(2)).mkdir(parents=True)
        news = taken(watch)
        assert news.preparing == {container_id(2)}
        assert news.launched == {}
        launch(local)
        assert {name: file.pid for name, file in taken(watch).launched.items()} == {container_id(2): 4711}
    finally:
        watch.close()


def test_misses_nothing_that_is_made_at_once(local: Path) -> None:
    watch = PidFileWatch(PidFiles([str(local)]))
    try:
        watch.follow()
        for number in range(2, 52):
            launch(local, number)
        assert len(taken(watch).launched) == 50
    finally:
        watch.close()


def test_finds_at_the_start_what_is_there(local: Path) -> None:
    launch(local)
    watch = PidFileWatch(PidFiles([str(local)]))
    try:
        assert list(watch.follow().launched) == [container_id(2)]
        assert not watch.follow()
    finally:
        watch.close()


def test_follows_a_local_directory_that_appears_later(tmp_path: Path) -> None:
    watch = PidFileWatch(PidFiles([str(tmp_path)]))
    try:
        assert not watch.follow()
        launch(tmp_path)
        assert list(watch.follow().launched) == [container_id(2)]
    finally:
        watch.close()


def test_follows_a_container_that_is_prepared_again(local: Path) -> None:
    watch = PidFileWatch(PidFiles([str(local)]))
    try:
        launch(local)
        watch.follow()
        folder = local / "nmPrivate" / APPLICATION / container_id(2)
        (folder / f"{container_id(2)}.pid").unlink()
        folder.rmdir()
        taken(watch)
        launch(local, pid=4712)
        assert taken(watch).launched[container_id(2)].pid == 4712
    finally:
        watch.close()


def test_ignores_other_names(local: Path) -> None:
    watch = PidFileWatch(PidFiles([str(local)]))
    try:
        launch(local)
        watch.follow()
        (local / "nmPrivate" / "other").mkdir()
        (local / "nmPrivate" / APPLICATION / container_id(2) / "launch_container.sh").write_text("")
        assert not taken(watch)
    finally:
        watch.close()


def test_says_that_events_were_lost(local: Path) -> None:
    watch = PidFileWatch(PidFiles([str(local)]))
    try:
        watch.follow()
        limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        one, other = local / "nmPrivate" / "one", local / "nmPrivate" / "other"
        one.touch()
        for _ in range(limit // 2 + 10):
            one.rename(other)
            other.rename(one)
        assert taken(watch).is_incomplete
    finally:
        watch.close()


def test_a_missing_directory_is_not_watched(tmp_path: Path) -> None:
    watch = DirectoryWatch()
    try:
        assert not watch.add(str(tmp_path / "none"))
        assert watch.add(str(tmp_path))
        assert watch.add(str(tmp_path))
        assert watch.is_watched(str(tmp_path))
        assert not watch.is_watched(str(tmp_path / "none"))
        assert watch.read() == []
    finally:
        watch.close()
        watch.close()
