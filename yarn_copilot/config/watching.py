# SPDX-License-Identifier: Apache-2.0
"""Watch the settings file and reload it when its content changes.

A ConfigMap volume is updated by swapping the symlink `..data`, so neither the file's own inode nor inotify on it
says anything reliable: the content is read and compared. A good file takes effect (reloadable fields only), a bad
one leaves the last good settings in force and is reported once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic

from yarn_copilot.config.changes import ChangedFields, changed_fields, with_reloadable
from yarn_copilot.config.loading import S, Schema, parse_as, read_file
from yarn_copilot.errors import ConfigError

DEFAULT_INTERVAL_SECONDS: Final = 2.0
"""Look at the file so often: the kubelet itself needs up to a minute to bring a new ConfigMap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload(Generic[S]):
    """Tell how a look at changed content ended.

    `settings` are the ones in force afterwards, `wanted` those of the last good file, fixed fields included.
    `error` is empty for a good file. `changes.reloadable` were taken
    over now; `changes.needs_restart` lists every fixed field whose value on disk differs from the running one.
    """

    settings: S
    previous: S
    wanted: S
    error: str = ""
    changes: ChangedFields = ChangedFields()  # noqa: RUF009  (frozen)

    @property
    def ok(self) -> bool:
        """Tell whether the file on disk was accepted."""
        return not self.error


class ConfigWatcher(Generic[S]):
    """Look at one file again and again. One task calls `run` or `look`; the callback runs in that task."""

    def __init__(
        self,
        path: Path,
        *,
        schema: Schema[S],
        running: S,
        environ: Mapping[str, str],
        on_reload: Callable[[Reload[S]], None],
        sleep: Callable[[float], Awaitable[None]],
        interval_seconds: float = DEFAULT_INTERVAL_SECONDS,
    ) -> None:
        """Start from the settings that the program runs with; the file is taken as seen only if it yields them."""
        self._path = path
        self._schema = schema
        self._running = running
        self._environ = environ
        self._on_reload = on_reload
        self._sleep = sleep
        self._interval_seconds = interval_seconds
        self._seen = ""
        self._reported_error = ""
        self._wanted = running

    @property
    def settings(self) -> S:
        """Give the settings in force."""
        return self._running

    async def run(self) -> None:
        """Look for ever."""
        while True:
            self.look()
            await self._sleep(self._interval_seconds)

    def look(self) -> Reload[S] | None:
        """Look once; the callback is called, and the outcome returned, only if there is something new to tell."""
        try:
            raw = read_file(self._path)
        except ConfigError as error:
            self._seen = ""
            return self._refuse(str(error))
        seen = hashlib.sha256(raw).hexdigest()
        if seen == self._seen:
            return None
        self._seen = seen
        try:
            wanted = parse_as(self._schema, raw, str(self._path), self._environ)
            return self._accept(wanted)
        except ConfigError as error:
            return self._refuse(str(error))

    def _accept(self, wanted: S) -> Reload[S] | None:
        previous = self._running
        changes = changed_fields(previous, wanted)
        merged = with_reloadable(previous, wanted)
        problems = self._schema.rules(merged)
        if problems:
            # Good as a whole, but its reloadable half does not go with the fixed values that still run.
            fixed = ", ".join(changes.needs_restart)
            text = "; ".join(f"{problem.path}: {problem.message}" for problem in problems)
            raise ConfigError(f"{self._path}: takes effect only after a restart, because {fixed} changed too: {text}")
        # A fixed field may go from one value to another although its name was told already.
        news = bool(self._reported_error or wanted != self._wanted)
        self._reported_error = ""
        self._wanted = wanted
        self._running = merged
        if not news:
            return None
        return self._tell(Reload(settings=merged, previous=previous, wanted=wanted, changes=changes))

    def _refuse(self, error: str) -> Reload[S] | None:
        if error == self._reported_error:
            return None
        self._reported_error = error
        return self._tell(Reload(settings=self._running, previous=self._running, wanted=self._wanted, error=error))

    def _tell(self, reload: Reload[S]) -> Reload[S]:
        self._on_reload(reload)
        return reload
