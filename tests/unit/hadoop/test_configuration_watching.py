# SPDX-License-Identifier: Apache-2.0
"""The watcher tells which clusters came, changed or went; a broken one concerns only itself."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.unit.hadoop.test_configuration import HOSTNAME, write_site
from yarn_copilot.hadoop.configuration import Surroundings, read_cluster_files
from yarn_copilot.hadoop.configuration_watching import WHOLE_DIRECTORY, ClusterChanges, ClusterWatcher


class Watched:
    """A watcher on a directory, with everything it told."""

    def __init__(self, folder: Path) -> None:
        self.told: list[ClusterChanges] = []
        self.sleeps = 0
        surroundings = Surroundings(environ={"HOST": "from-environment"})
        self.watcher = ClusterWatcher(
            folder,
            running=read_cluster_files(folder, surroundings),
            surroundings=surroundings,
            on_change=self._take,
            sleep=self._sleep,
        )

    async def _take(self, changes: ClusterChanges) -> None:
        self.told.append(changes)

    async def _sleep(self, seconds: float) -> None:
        self.sleeps += 1
        if self.sleeps == 3:
            raise asyncio.CancelledError

    async def look(self) -> ClusterChanges:
        before = len(self.told)
        changes = await self.watcher.look()
        assert self.told[before:] == ([changes] if changes else [])
        return changes


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    for name in ("a", "b"):
        write_site(tmp_path, {HOSTNAME: name}, f"{name}.yarn-site.xml")
    return Watched(tmp_path)


async def test_says_nothing_while_the_meaning_stays_the_same(watched: Watched, tmp_path: Path) -> None:
    write_site(tmp_path, {HOSTNAME: "a", "another.key": "1"}, "a.yarn-site.xml")
    assert not await watched.look()


async def test_a_cluster_comes_and_another_changes(watched: Watched, tmp_path: Path) -> None:
    write_site(tmp_path, {HOSTNAME: "c"}, "c.yarn-site.xml")
    write_site(tmp_path, {HOSTNAME: "${env.HOST}"}, "b.yarn-site.xml")
    changes = await watched.look()
    assert list(changes.added) == ["c"]
    assert [str(cluster.client_addresses[0]) for cluster in changes.changed.values()] == ["from-environment:8032"]
    assert not await watched.look()


async def test_the_shared_core_site_changes_every_cluster_that_uses_it(watched: Watched, tmp_path: Path) -> None:
    write_site(tmp_path, {}, "a.core-site.xml")
    write_site(tmp_path, {"hadoop.security.authentication": "kerberos"}, "core-site.xml")
    assert list((await watched.look()).changed) == ["b"]


async def test_a_cluster_goes_when_its_file_was_missed_twice(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "b.yarn-site.xml").unlink()
    assert not await watched.look()
    assert (await watched.look()).removed == ("b",)
    assert not await watched.look()


async def test_a_file_that_is_away_for_a_moment_removes_nothing(watched: Watched, tmp_path: Path) -> None:
    path = tmp_path / "b.yarn-site.xml"
    content = path.read_bytes()
    for _ in range(3):
        path.unlink()
        assert not await watched.look()
        path.write_bytes(content)
        assert not await watched.look()


async def test_a_broken_cluster_stays_as_it_was_and_is_told_once(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "b.yarn-site.xml").write_text("<configuration>")
    write_site(tmp_path, {HOSTNAME: "a2"}, "a.yarn-site.xml")
    changes = await watched.look()
    assert list(changes.changed) == ["a"]
    assert "b.yarn-site.xml" in changes.broken["b"]
    for _ in range(3):
        assert not await watched.look()
    write_site(tmp_path, {HOSTNAME: "b"}, "b.yarn-site.xml")
    changes = await watched.look()
    assert (changes.mended, dict(changes.changed), changes.removed) == (("b",), {}, ())


async def test_a_new_cluster_that_is_broken_is_told_and_comes_when_it_is_mended(
    watched: Watched, tmp_path: Path
) -> None:
    write_site(tmp_path, {}, "c.yarn-site.xml")
    changes = await watched.look()
    assert (list(changes.broken), dict(changes.added)) == (["c"], {})
    write_site(tmp_path, {HOSTNAME: "c"}, "c.yarn-site.xml")
    changes = await watched.look()
    assert (list(changes.added), changes.mended) == (["c"], ("c",))


async def test_a_directory_that_cannot_be_read_removes_nothing(watched: Watched, tmp_path: Path) -> None:
    hidden = tmp_path.with_name(tmp_path.name + "-away")
    shutil.move(tmp_path, hidden)
    changes = await watched.look()
    assert "No such file" in changes.broken[WHOLE_DIRECTORY]
    for _ in range(3):
        assert not await watched.look()
    shutil.move(hidden, tmp_path)
    assert not await watched.look()
    assert watched.watcher.errors == {}


async def test_a_configmap_is_followed_through_its_symlink(tmp_path: Path) -> None:
    for version in ("one", "two"):
        folder = tmp_path / f"..{version}"
        folder.mkdir()
        write_site(folder, {HOSTNAME: version}, "yarn-site.xml")
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "yarn-site.xml").symlink_to("..data/yarn-site.xml")
    watched = Watched(tmp_path)
    (tmp_path / "..new").symlink_to("..two")
    (tmp_path / "..new").rename(tmp_path / "..data")
    changes = await watched.look()
    assert str(changes.changed["default"].client_addresses[0]) == "two:8032"


async def test_runs_until_cancelled(watched: Watched) -> None:
    with pytest.raises(asyncio.CancelledError):
        await watched.watcher.run()
    assert watched.sleeps == 3
