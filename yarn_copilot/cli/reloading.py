# SPDX-License-Identifier: Apache-2.0
"""Apply and tell each look at the settings file that found something new."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from yarn_copilot.config.changes import describe_changes
from yarn_copilot.config.loading import settings_hash
from yarn_copilot.config.settings import HadoopSettings, Settings
from yarn_copilot.config.watching import Reload
from yarn_copilot.controller.view import ConfigView
from yarn_copilot.observability.logging import set_level
from yarn_copilot.observability.metrics import Metrics
from yarn_copilot.observability.reasons import Reason

logger = logging.getLogger(__name__)


class ControllerEvents(Protocol):
    """Record Events on the controller itself."""

    def controller_event(self, *, type: str, reason: str, message: str) -> None:
        """Record one."""


class ReloadTeller:
    """Be the watcher's callback: log level and controller first, then metric, Event and log line."""

    def __init__(
        self,
        path: Path,
        settings: Settings,
        *,
        metrics: Metrics,
        events: ControllerEvents,
        apply: Callable[[Settings], None],
        apply_to_later_clusters: Callable[[HadoopSettings], None],
    ) -> None:
        """Start from the settings that the program was started with.

        Args:
            path: of the file, for people.
            settings: of the start.
            metrics: tell whether the file is good.
            events: tell what changed.
            apply: takes the settings in force; called where a reloadable field changed.
            apply_to_later_clusters: takes what the file says of Hadoop, although it needs a restart for clusters that
                are connected.
        """
        self._metrics = metrics
        self._events = events
        self._apply = apply
        self._apply_to_later_clusters = apply_to_later_clusters
        self._view = ConfigView(path=str(path), hash=settings_hash(settings))
        metrics.set_reload(True, self._view.hash)

    def view(self) -> ConfigView:
        """Describe the configuration in force."""
        return self._view

    def __call__(self, reload: Reload[Settings]) -> None:
        """Take one outcome."""
        if reload.ok:
            self._accept(reload)
        else:
            self._refuse(reload)

    def _accept(self, reload: Reload[Settings]) -> None:
        changes = reload.changes
        if changes.reloadable:
            set_level(reload.settings.log.level)
            self._apply(reload.settings)
        self._apply_to_later_clusters(reload.wanted.hadoop)
        self._view = ConfigView(
            path=self._view.path, hash=settings_hash(reload.settings), needs_restart=list(changes.needs_restart)
        )
        self._metrics.set_reload(True, self._view.hash, needs_restart=len(changes.needs_restart))
        told = describe_changes(reload.previous, reload.settings, changes.reloadable) or "no change"
        self._tell(logging.INFO, Reason.CONFIGURATION_RELOADED, f"configuration accepted: {told}")
        if changes.needs_restart:
            fields = ", ".join(changes.needs_restart)
            self._tell(
                logging.WARNING,
                Reason.CONFIGURATION_NEEDS_RESTART,
                f"changed fields that take effect only after a restart: {fields}",
            )

    def _refuse(self, reload: Reload[Settings]) -> None:
        view = self._view
        self._view = ConfigView(
            path=view.path, hash=view.hash, ok=False, error=reload.error, needs_restart=view.needs_restart
        )
        self._metrics.set_reload(False)
        self._tell(
            logging.ERROR,
            Reason.CONFIGURATION_REJECTED,
            f"configuration refused, the last good one stays in force: {reload.error}",
        )

    def _tell(self, level: int, reason: Reason, message: str) -> None:
        logger.log(level, "%s", message, extra={"reason": reason.value})
        type = "Normal" if level == logging.INFO else "Warning"
        self._events.controller_event(type=type, reason=reason.value, message=message)
        self._metrics.count_event(type, reason.value)
