# SPDX-License-Identifier: Apache-2.0
"""Find the pid files that a NodeManager writes for its containers.

Path: LOCAL_DIR/nmPrivate/APPLICATION_ID/CONTAINER_ID/CONTAINER_ID.pid, in one of the directories of
yarn.nodemanager.local-dirs (ContainerLaunch, Hadoop 2.7 to 3.5). The file holds one number; it is written under
another name and renamed, so it is never seen half. It goes with its directory when the container is cleaned up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from nm_proxy.container_ids import is_container_id

PRIVATE_DIRECTORY: Final = "nmPrivate"
_APPLICATION_PATTERN: Final = re.compile(r"application_[0-9]{1,19}_[0-9]{4,10}")
_MAX_PID_TEXT: Final = 32
_MAX_PID: Final = 4_194_304
"""PID_MAX_LIMIT of the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PidFile:
    """Hold one pid file.

    Attributes:
        container_id: from its name.
        path: absolute.
        pid: the number in it.
        written_at: seconds since 1970.
    """

    container_id: str
    path: str
    pid: int
    written_at: float


class PidFiles:
    """Look for pid files below the local directories of one NodeManager."""

    def __init__(self, local_directories: Iterable[str]) -> None:
        """Take the directories of yarn.nodemanager.local-dirs, without `file:`."""
        self.roots = tuple(f"{directory.rstrip('/')}/{PRIVATE_DIRECTORY}" for directory in local_directories)

    def scan(self) -> dict[str, PidFile]:
        """Read all pid files, by container id; what cannot be read is left out and read the next time."""
        found = (read_pid_file(path) for path in self._candidates())
        return {file.container_id: file for file in found if file is not None}

    def directories(self) -> Iterator[str]:
        """List the directories in which new ones can appear: roots, applications, containers."""
        for root in self.roots:
            yield root
            for application in _directories(root):
                if is_application_id(application.rpartition("/")[2]):
                    yield application
                    yield from (one for one in _directories(application) if is_container_id(one.rpartition("/")[2]))

    def _candidates(self) -> Iterator[str]:
        for directory in self.directories():
            name = directory.rpartition("/")[2]
            if is_container_id(name):
                yield f"{directory}/{name}.pid"


def is_application_id(name: str) -> bool:
    """Tell whether a directory's name is an application's."""
    return _APPLICATION_PATTERN.fullmatch(name) is not None


def container_of(path: str) -> str | None:
    """Give the container id that a pid file's path names; None if it is not the path of a pid file."""
    directory, _, name = path.rpartition("/")
    container_id = name.removesuffix(".pid")
    return container_id if name.endswith(".pid") and directory.endswith(f"/{container_id}") else None


def read_pid_file(path: str) -> PidFile | None:
    """Read one pid file; None if it does not exist or holds no process number above 1."""
    container_id = container_of(path)
    if container_id is None or not is_container_id(container_id):
        return None
    try:
        # Not through a link: the directory belongs to the NodeManager's user, not to root.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        text = os.read(descriptor, _MAX_PID_TEXT).strip()
        written_at = os.fstat(descriptor).st_mtime
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if not text.isdigit() or not 1 < int(text) <= _MAX_PID:
        return None
    return PidFile(container_id=container_id, path=path, pid=int(text), written_at=written_at)


def _directories(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
