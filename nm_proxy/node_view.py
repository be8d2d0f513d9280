# SPDX-License-Identifier: Apache-2.0
"""Keep the newest believable picture of what the NodeManager says, and how it answers.

The container list that was read last stays in force while the NodeManager hangs, babbles or restarts; whoever decides
to kill or to remove looks at `answering` and at the ages first. One writer (the loop here), any number of readers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from nm_proxy.clock import Clock
from nm_proxy.nodemanager.errors import (
    NodeManagerError,
    NodeManagerLoginError,
    NodeManagerRefusedError,
    NodeManagerTimeoutError,
    NodeManagerUnreachableError,
)
from nm_proxy.nodemanager.model import Answering, ContainerReport, NodeInfo

logger = logging.getLogger(__name__)

INFO_INTERVAL_SECONDS: Final = 10.0
MIN_INTERVAL_SECONDS: Final = 0.02
"""Launches of many containers at once share one question."""


class NodeManagerPages(Protocol):
    """Ask a NodeManager; raises `NodeManagerError` and nothing else."""

    async def containers(self) -> tuple[dict[str, ContainerReport], int]:
        """Ask for all containers, and how many entries could not be read."""

    async def info(self) -> NodeInfo:
        """Ask for the node itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeManagerView:
    """Hold one picture.

    Attributes:
        containers: the last list that was read, by id.
        answering: how the last question ended.
        answering_since: since when it ends so, monotonic seconds.
        asked_at: when the list that was read last was asked for, monotonic seconds; None before the first. It shows
            what was so at some moment after that.
        info: the node itself; None before the first.
        malformed: entries of the list that could not be read.
        detail: what went wrong, in words.
        is_running: whether its process runs, as told by who started it; None where nobody here did.
    """

    containers: Mapping[str, ContainerReport] = field(default_factory=dict)
    answering: Answering = Answering.NEVER_ASKED
    answering_since: float = 0.0
    asked_at: float | None = None
    info: NodeInfo | None = None
    malformed: int = 0
    detail: str = ""
    is_running: bool | None = None

    def dead_for(self, now: float) -> float | None:
        """Tell for how many seconds the NodeManager has been dead; None if it is not, or nobody knows.

        Nobody listening at its address is not enough: the address may be wrong. Either whoever started it says that
        its process is gone, or, where nobody here started it, it has answered at this address before.
        """
        if self.answering is not Answering.REFUSES or self.is_running:
            return None
        if self.is_running is None and self.asked_at is None:
            return None
        return now - self.answering_since


class NodeManagerReader:
    """Ask again and again, and at once when somebody needs it."""

    def __init__(self, pages: NodeManagerPages, *, clock: Clock, poll_interval_seconds: float) -> None:
        self._pages = pages
        self._clock = clock
        self.poll_interval_seconds = poll_interval_seconds
        self.view = NodeManagerView()
        self.on_list: Callable[[], None] = lambda: None
        self.is_running: Callable[[], bool | None] = lambda: None
        self._wanted = asyncio.Event()
        self._turn = asyncio.Condition()
        self._rounds_begun = 0
        self._rounds_done = 0
        self._info_at: float | None = None

    async def run(self) -> None:
        """Ask for ever; never raises but on cancellation."""
        while True:
            self._wanted.clear()
            await self.refresh()
            ended = self._clock.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.poll_interval_seconds):
                    await self._wanted.wait()
            rest = MIN_INTERVAL_SECONDS - (self._clock.monotonic() - ended)
            if rest > 0:
                await self._clock.sleep(rest)

    def want(self) -> None:
        """Ask soon: something was launched."""
        self._wanted.set()

    async def next_view(self, *, timeout_seconds: float) -> NodeManagerView:
        """Wait for a picture whose question is put after this call; after the timeout give what there is."""
        target = self._rounds_begun + 1
        self.want()
        try:
            async with asyncio.timeout(timeout_seconds), self._turn:
                await self._turn.wait_for(lambda: self._rounds_done >= target)
        except TimeoutError:
            logger.debug("The NodeManager did not answer in time", extra={"timeout_seconds": timeout_seconds})
        return self.view

    async def refresh(self) -> None:
        """Ask once and keep the result."""
        self._rounds_begun += 1
        begun = self._rounds_begun
        asked_at = self._clock.monotonic()
        try:
            containers, malformed = await self._pages.containers()
            info = await self._info()
        except NodeManagerError as error:
            self._failed(error)
        else:
            self._succeeded(containers, malformed, info, asked_at)
        async with self._turn:
            self._rounds_done = begun
            self._turn.notify_all()

    async def _info(self) -> NodeInfo | None:
        now = self._clock.monotonic()
        if self._info_at is not None and now - self._info_at < INFO_INTERVAL_SECONDS and self._answers():
            return self.view.info
        info = await self._pages.info()
        self._info_at = now
        return info

    def _answers(self) -> bool:
        return self.view.answering is Answering.ANSWERS

    def _succeeded(
        self, containers: Mapping[str, ContainerReport], malformed: int, info: NodeInfo | None, asked_at: float
    ) -> None:
        now = self._clock.monotonic()
        if malformed and malformed != self.view.malformed:
            logger.warning("Some containers of the NodeManager's list cannot be read", extra={"count": malformed})
        if not self._answers():
            logger.info("The NodeManager answers", extra={"containers": len(containers)})
        self.view = NodeManagerView(
            containers=dict(containers),
            answering=Answering.ANSWERS,
            answering_since=self.view.answering_since if self._answers() else now,
            asked_at=asked_at,
            info=info,
            malformed=malformed,
            is_running=self.is_running(),
        )
        self.on_list()

    def _failed(self, error: NodeManagerError) -> None:
        state = _answering(error)
        now = self._clock.monotonic()
        if state is not self.view.answering:
            logger.warning("The NodeManager does not answer", extra={"how": state.value, "error": str(error)})
        since = self.view.answering_since if state is self.view.answering else now
        self.view = replace(
            self.view, answering=state, answering_since=since, detail=str(error), is_running=self.is_running()
        )


def _answering(error: NodeManagerError) -> Answering:
    if isinstance(error, NodeManagerRefusedError):
        return Answering.REFUSES
    if isinstance(error, NodeManagerUnreachableError):
        return Answering.UNREACHABLE
    if isinstance(error, NodeManagerLoginError):
        return Answering.WANTS_LOGIN
    return Answering.HANGS if isinstance(error, NodeManagerTimeoutError) else Answering.BABBLES
