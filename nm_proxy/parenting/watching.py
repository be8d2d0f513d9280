# SPDX-License-Identifier: Apache-2.0
"""Turn the kernel's directory events into "these containers are being prepared" and "these pid files appeared".

A directory is listed right after it is watched, so nothing that was made in between is missed. Without inotify
(limits of the kernel, an exotic file system) everything is found by the periodic look instead, only later.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from nm_proxy.container_ids import is_container_id
from nm_proxy.nodemanager.errors import WatchError
from nm_proxy.nodemanager.inotify import DirectoryWatch
from nm_proxy.nodemanager.pid_files import PidFile, PidFiles, container_of, is_application_id, read_pid_file

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class News:
    """Hold what happened since the last time.

    Attributes:
        preparing: containers whose private directory appeared.
        launched: pid files that appeared, by container id.
        is_incomplete: events were lost; look everywhere.
    """

    preparing: set[str] = field(default_factory=set)
    launched: dict[str, PidFile] = field(default_factory=dict)
    is_incomplete: bool = False

    def add(self, later: News) -> None:
        """Add what happened after this."""
        self.preparing |= later.preparing
        self.launched |= later.launched
        self.is_incomplete |= later.is_incomplete

    def __bool__(self) -> bool:
        return bool(self.preparing or self.launched or self.is_incomplete)


class PidFileWatch:
    """Watch the NodeManager's private directories; one thread at a time."""

    def __init__(self, files: PidFiles) -> None:
        self._files = files
        self._watch: DirectoryWatch | None = None
        try:
            self._watch = DirectoryWatch()
        except WatchError as error:
            logger.warning("Launches are found by looking only", extra={"error": str(error)})

    @property
    def descriptor(self) -> int | None:
        """Give the descriptor that becomes readable with events; None without inotify."""
        return self._watch.descriptor if self._watch is not None else None

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def follow(self) -> News:
        """Watch every directory there is now; those watched already cost nothing. For the start and each periodic look.

        Returns:
            What newly watched directories hold.
        """
        news = News()
        self._enter([path for path in self._files.directories() if not self._is_watched(path)], news)
        return news

    def take(self) -> News:
        """Take the events that are there, watch new directories and read new pid files."""
        news = News()
        if self._watch is None:
            return news
        for event in self._watch.read():
            if event.path is None:
                news.is_incomplete = True
            else:
                self._appeared(event.path, news)
        return news

    def _appeared(self, path: str, news: News) -> None:
        name = path.rpartition("/")[2]
        if is_application_id(name) or is_container_id(name):
            self._enter([path], news)
        elif container_of(path) is not None:
            self._launched(path, news)

    def _enter(self, paths: Iterable[str], news: News) -> None:
        """Watch directories, then look into them, and so on downwards."""
        waiting = list(paths)
        while waiting:
            path = waiting.pop()
            if not self._add(path):
                continue
            name = path.rpartition("/")[2]
            if is_container_id(name):
                news.preparing.add(name)
                self._launched(f"{path}/{name}.pid", news)
            else:
                waiting.extend(_inner(path))

    def _launched(self, path: str, news: News) -> None:
        file = read_pid_file(path)
        if file is not None:
            news.launched[file.container_id] = file

    def _is_watched(self, path: str) -> bool:
        return self._watch is not None and self._watch.is_watched(path)

    def _add(self, path: str) -> bool:
        if self._watch is None:
            return False
        try:
            return self._watch.add(path)
        except WatchError as error:
            logger.warning("Launches are found by looking only", extra={"error": str(error)})
            self.close()
            return False


def _inner(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [f"{path}/{name}" for name in names if is_application_id(name) or is_container_id(name)]
