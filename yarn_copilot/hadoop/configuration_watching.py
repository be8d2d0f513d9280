# SPDX-License-Identifier: Apache-2.0
"""Watch a Hadoop configuration directory and tell which clusters came, changed or went.

What counts is the meaning: files are read again and again and compared as clusters, so a ConfigMap's symlink swap, an
included file and a changed comment are all taken for what they are. A cluster whose files are broken stays as it was
and concerns no other. A cluster goes only when two looks in a row miss its file, as a file that is being replaced can
be away for a moment.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.configuration import ClusterConfiguration, ClusterFiles, Surroundings, read_cluster_files

DEFAULT_INTERVAL_SECONDS: Final = 2.0
WHOLE_DIRECTORY: Final = ""
"""Id under which an error of the directory itself is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChanges:
    """Tell what one look found.

    Attributes:
        added, changed: new configurations by id.
        removed: ids whose file is gone.
        broken: sentences of files that are newly broken, or broken in another way; "" stands for the directory.
        mended: ids whose files are right again.
    """

    added: Mapping[str, ClusterConfiguration] = field(default_factory=dict)
    changed: Mapping[str, ClusterConfiguration] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)
    mended: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.broken or self.mended)


class ClusterWatcher:
    """Look at one directory again and again. One task calls `run` or `look`; the callback is awaited in that task."""

    def __init__(
        self,
        conf_dir: Path,
        *,
        running: ClusterFiles,
        surroundings: Surroundings,
        on_change: Callable[[ClusterChanges], Awaitable[None]],
        sleep: Callable[[float], Awaitable[None]],
        interval_seconds: float = DEFAULT_INTERVAL_SECONDS,
    ) -> None:
        """Start from what the program runs with."""
        self._conf_dir = conf_dir
        self._running = dict(running.clusters)
        self._errors = dict(running.errors)
        self._surroundings = surroundings
        self._on_change = on_change
        self._sleep = sleep
        self._interval_seconds = interval_seconds
        self._missed: frozenset[str] = frozenset()

    @property
    def errors(self) -> Mapping[str, str]:
        """Say which clusters are broken now, and how."""
        return self._errors

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.look()
            await self._sleep(self._interval_seconds)

    async def look(self) -> ClusterChanges:
        """Look once; the callback is called if there is anything to tell."""
        changes = self._compare()
        if changes:
            await self._on_change(changes)
        return changes

    def _compare(self) -> ClusterChanges:
        try:
            found = read_cluster_files(self._conf_dir, self._surroundings)
        except ConfigError as error:
            return self._note_errors({**self._errors, WHOLE_DIRECTORY: str(error)}, ClusterChanges())
        added = {id_: cluster for id_, cluster in found.clusters.items() if id_ not in self._running}
        changed = {id_: new for id_, new in found.clusters.items() if self._running.get(id_, new) != new}
        missing = frozenset(self._running) - found.clusters.keys() - found.errors.keys()
        removed = tuple(sorted(missing & self._missed))
        self._missed = missing
        self._running.update(found.clusters)
        for id_ in removed:
            del self._running[id_]
        return self._note_errors(dict(found.errors), ClusterChanges(added=added, changed=changed, removed=removed))

    def _note_errors(self, errors: dict[str, str], changes: ClusterChanges) -> ClusterChanges:
        broken = {id_: error for id_, error in errors.items() if self._errors.get(id_) != error}
        mended = tuple(sorted(self._errors.keys() - errors.keys() - {WHOLE_DIRECTORY}))
        self._errors = errors
        return ClusterChanges(
            added=changes.added, changed=changes.changed, removed=changes.removed, broken=broken, mended=mended
        )
