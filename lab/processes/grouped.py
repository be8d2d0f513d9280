# SPDX-License-Identifier: Apache-2.0
"""Give a set of servers its own process group for as long as it is used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from lab.processes.group import ProcessGroup
from lab.processes.state import StateFolder


class GroupedServers(ABC):
    """Start servers on entry, in a group and a temporary folder of their own, and end all of them on exit."""

    _group: ProcessGroup | None = None

    @abstractmethod
    def _start(self, group: ProcessGroup) -> None:
        """Start everything and wait until it is ready; what was started ends when this raises."""

    def __enter__(self) -> Self:
        self._group = group = ProcessGroup(StateFolder())
        try:
            self._start(group)
        except BaseException:
            group.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._group is not None:
            self._group.close()
