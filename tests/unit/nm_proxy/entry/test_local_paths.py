# SPDX-License-Identifier: Apache-2.0
"""Directories of Hadoop's configuration are read as Hadoop reads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nm_proxy.nodemanager.pid_files import PidFiles
from nm_proxy.rendering import keys
from nm_proxy.rendering.local_paths import parse_local_path
from tests.unit.nm_proxy.entry.site import rendered, write_site
from tests.unit.nm_proxy.world import APPLICATION, container_id
from yarn_copilot.errors import ConfigError

ANSWERS = (
    ("/a", "/a"),
    ("/a/", "/a"),
    ("//a//b/", "/b"),
    ("file:/a", "/a"),
    ("file:///a", "/a"),
    ("file://localhost/a", "/a"),
    ("file://h/a", "/a"),
    ("file:/a%20b", "/a%20b"),
    ("/a%20b", "/a%20b"),
    ("file:///a b", "/a b"),
    ("FILE:/a", None),
    ("file:a", None),
    ("file:", None),
    ("file://", "/"),
    ("file:///", "/"),
    ("file://x", None),
    ("hdfs://n/a", None),
    ("hdfs:/a", None),
    (":/a", None),
    ("1x:/a", None),
    ("a", "a"),
    ("a/b", "a/b"),
    ("./a", "a"),
    ("a/../b", "b"),
    (".", None),
    ("/", "/"),
    ("/..", "/.."),
    ("/../a", "/../a"),
    ("/a/./b/../c", "/a/c"),
    ("file:/a/../../b", "/../b"),
    ("a:b", None),
    ("/a:b", "/a:b"),
    ("file:/ä", "/ä"),
    ("file:////a", "/a"),
    ("file:/a?x#y", "/a?x#y"),
    ("file:/a\\b", "/a\\b"),
    ("[SSD]/a", "[SSD]/a"),
    ("[SSD]file:///a", None),
    ("file:/a/%zz", "/a/%zz"),
    ("file://h h/a", "/a"),
    ("/a/..", "/"),
    ("file:/a/..", "/"),
    ("..", ".."),
    ("../a", "../a"),
    ("file:/.", "/"),
    ("///", "/"),
    ("file:/a;b", "/a;b"),
    ("c:/a", None),
    ("file:[x]/a", None),
    ("file:////h/a", "/h/a"),
    ("//h/a", "/a"),
    ("//h", None),
)
"""What LocalDirsHandlerService.validatePaths of 3.3.6 and 3.5.0 answers; None is a YarnRuntimeException."""


@pytest.mark.parametrize(("text", "path"), ANSWERS)
def test_a_directory_is_what_hadoop_takes_it_for(text: str, path: str | None) -> None:
    if path is None:
        with pytest.raises(ValueError, match=r"is not local|has no path"):
            parse_local_path(text)
    else:
        # Hadoop leaves `..` above the root, which the kernel passes over.
        assert parse_local_path(text) == (os.path.normpath(path) if path.startswith("/") else path)


def test_pid_files_are_seen_however_the_directory_is_written(tmp_path: Path) -> None:
    name = container_id(2)
    pid_file = tmp_path / "local" / "nmPrivate" / APPLICATION / name / f"{name}.pid"
    pid_file.parent.mkdir(parents=True)
    pid_file.write_text("4711")
    for prefix in ("", "file:", "file://", "file://localhost"):
        write_site(tmp_path / "conf/yarn-site.xml", {keys.LOCAL_DIRS: f"{prefix}{tmp_path}/local/"})
        assert list(PidFiles(rendered(tmp_path).overlay.local_directories).scan()) == [name]


@pytest.mark.parametrize("key", [keys.LOCAL_DIRS, keys.RECOVERY_DIR])
def test_a_directory_elsewhere_is_refused_by_file_and_key(tmp_path: Path, key: str) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {key: "hdfs://n/a"})
    with pytest.raises(ConfigError, match=rf"yarn-site\.xml: {key} = 'hdfs://n/a': 'hdfs://n/a' is not local"):
        rendered(tmp_path)


@pytest.mark.parametrize("text", ["file:/data/rec", "file:///data/rec"])
def test_a_recovery_directory_with_a_scheme_is_rendered_as_a_path(tmp_path: Path, text: str) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {keys.RECOVERY_DIR: text})
    overlay = rendered(tmp_path).overlay
    assert overlay.recovery_directory == Path("/data/rec")
    assert overlay.properties[keys.RECOVERY_DIR] == "/data/rec"
