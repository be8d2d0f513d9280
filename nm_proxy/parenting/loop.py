# SPDX-License-Identifier: Apache-2.0
"""Run the adopter: at once when a pid file appears, and completely from time to time.

Passes run in one thread beside the event loop, one after the other; it is served before other threads of the node
where the kernel allows that, since a task runs without limits until its pass is done. A pass that fails is counted
and tried again; it never ends the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, Final, ParamSpec, TypeVar

from nm_proxy.agent_metrics import AgentMetrics
from nm_proxy.clock import Clock
from nm_proxy.node_view import NodeManagerReader, NodeManagerView
from nm_proxy.nodemanager.pid_files import PidFile, PidFiles
from nm_proxy.parenting.adopter import Adopter
from nm_proxy.parenting.records import PassReport
from nm_proxy.parenting.watching import News, PidFileWatch
from yarn_copilot.errors import YarnCopilotError

logger = logging.getLogger(__name__)

HURRY_SECONDS: Final = 2.0
"""So long after a launch the NodeManager is asked again at once when its list does not have the container yet."""

CALM_SECONDS: Final = 0.1
"""A complete look takes long where many containers run, so it waits until none was launched for so long."""

PATIENCE_SECONDS: Final = 0.15
"""It waits no longer than so in all: what somebody rewrote is to be repaired within a second."""

NICENESS: Final = -5
"""Of the thread that does passes; the NodeManager and its tasks, which other threads start, do not inherit it."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class ParentingLoop:
    """Keep all containers parented; one per process."""

    def __init__(
        self,
        adopter: Adopter,
        files: PidFiles,
        reader: NodeManagerReader,
        *,
        metrics: AgentMetrics,
        clock: Clock,
        interval_seconds: float,
    ) -> None:
        self._adopter = adopter
        self._files = files
        self._reader = reader
        self._metrics = metrics
        self._clock = clock
        self.interval_seconds = interval_seconds
        self._events = asyncio.Event()
        self._awaiting: dict[str, PidFile] = {}
        self._preparing: dict[str, float] = {}
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="parenting", initializer=_hurry)
        self._told: dict[str, str] = {}
        self._launched_at = -CALM_SECONDS

    async def run(self) -> None:
        """Work until cancelled."""
        watch = PidFileWatch(self._files)
        self._reader.on_list = self._events.set
        try:
            while True:
                await self._round(watch)
        finally:
            self._deafen(watch.descriptor)
            watch.close()
            self._worker.shutdown(wait=False)

    async def _round(self, watch: PidFileWatch) -> None:
        """Do one complete look, then serve launches until the next one is due."""
        due = self._clock.monotonic() + self.interval_seconds
        news = watch.follow()
        news.add(watch.take())
        await self._launch(news, watch)
        await self.look()
        while (left := self._seconds_until_look(due)) > 0:
            if not await self._event_within(left, watch):
                return
            news = watch.take()
            await self._launch(news, watch)
            await self._limit()
            if news.is_incomplete:
                return

    def _seconds_until_look(self, due: float) -> float:
        """Give how long a complete look is put off, as long as tasks are being launched, which would wait for it."""
        calm = min(self._launched_at + CALM_SECONDS, due + PATIENCE_SECONDS)
        return max(due, calm) - self._clock.monotonic()

    async def _event_within(self, seconds: float, watch: PidFileWatch) -> bool:
        self._listen(watch.descriptor)
        try:
            async with asyncio.timeout(seconds):
                await self._events.wait()
        except TimeoutError:
            return False
        finally:
            self._deafen(watch.descriptor)
        self._events.clear()
        return True

    def _listen(self, descriptor: int | None) -> None:
        """Hear of events while nothing else is done: during a pass, which takes them itself, the loop would spin."""
        if descriptor is not None:
            asyncio.get_running_loop().add_reader(descriptor, self._heard, descriptor)

    def _heard(self, descriptor: int) -> None:
        self._deafen(descriptor)
        self._events.set()

    @staticmethod
    def _deafen(descriptor: int | None) -> None:
        if descriptor is not None:
            asyncio.get_running_loop().remove_reader(descriptor)

    async def look(self) -> None:
        """Do one complete pass."""
        files = await self._in_worker(self._files.scan)
        self._awaiting = {name: file for name, file in self._awaiting.items() if name in files}
        await self._pass("full", self._adopter.full_pass, self._reader.view, files)

    async def _launch(self, news: News, watch: PidFileWatch) -> None:
        """Prepare what is being launched, and bring in what was; what happens meanwhile is added to the news."""
        if not news:
            return
        self._launched_at = self._clock.monotonic()
        if news.is_incomplete or not self._reader.view.containers.keys() >= news.preparing | news.launched.keys():
            self._reader.want()
        await self._expect(news.preparing - news.launched.keys())
        if not news.launched:
            return
        later = News()

        def more() -> dict[str, PidFile]:
            # In the worker, which nobody but this pass uses: a round through the event loop would cost a millisecond.
            seen = watch.take()
            later.add(seen)
            return seen.launched

        await self._pass("launch", self._adopter.launch_pass, self._reader.view, news.launched, more)
        self._launched_at = self._clock.monotonic()
        news.add(later)
        await self._expect(later.preparing - later.launched.keys())
        for name, file in news.launched.items():
            self._preparing.pop(name, None)
            if name not in self._reader.view.containers:
                self._awaiting[name] = file

    async def _expect(self, names: Iterable[str]) -> None:
        """Prepare groups; those that the NodeManager does not list yet get their limits when it does."""
        view = self._reader.view
        now = self._clock.monotonic()
        ahead = list(names)
        self._preparing |= {name: now for name in ahead if name not in view.containers}
        if ahead:
            await self._in_worker(self._adopter.expect, ahead, view)

    async def _limit(self) -> None:
        """Go on with launches whose figures the NodeManager has given meanwhile."""
        listed = self._reader.view.containers
        known = {name: file for name, file in self._awaiting.items() if name in listed}
        for name in known:
            del self._awaiting[name]
        if known:
            await self._pass("launch", self._adopter.launch_pass, self._reader.view, known)
        prepared = [name for name in self._preparing if name in listed]
        oldest = self._clock.monotonic() - HURRY_SECONDS
        self._preparing = {
            name: since for name, since in self._preparing.items() if name not in listed and since > oldest
        }
        await self._expect(prepared)
        waits = any(self._clock.wall() - file.written_at < HURRY_SECONDS for file in self._awaiting.values())
        if waits or self._preparing:
            self._reader.want()

    async def _in_worker(self, work: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> _T:
        call = functools.partial(work, *arguments, **options)
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)

    async def _pass(
        self,
        kind: str,
        work: Callable[Concatenate[NodeManagerView, Mapping[str, PidFile], _P], PassReport],
        view: NodeManagerView,
        files: Mapping[str, PidFile],
        *further: _P.args,
        **none: _P.kwargs,
    ) -> None:
        begun = self._clock.monotonic()
        try:
            report = await self._in_worker(work, view, files, *further, **none)
        except YarnCopilotError as error:
            self._metrics.count_error("parenting")
            logger.warning("A pass over the containers failed", extra={"kind": kind, "error": str(error)})
            return
        except Exception:
            self._metrics.count_error("parenting")
            logger.exception("A pass over the containers failed", extra={"kind": kind})
            return
        self._metrics.observe_pass(kind, self._clock.monotonic() - begun)
        self._tell(report, is_complete=kind == "full")

    def _tell(self, report: PassReport, *, is_complete: bool) -> None:
        for seconds in report.latencies:
            self._metrics.observe_latency(seconds)
        self._tell_repairs(report)
        self._metrics.count_groups(adopted=len(report.adopted), removed=len(report.removed))
        if report.adopted:
            logger.info("Adopted containers", extra={"containers": ", ".join(sorted(report.adopted))})
        if report.removed:
            logger.info("Removed empty groups", extra={"containers": ", ".join(sorted(report.removed))})
        self._tell_errors({**report.errors, **dict.fromkeys(report.unbelieved, _UNBELIEVED)}, is_complete=is_complete)

    def _tell_repairs(self, report: PassReport) -> None:
        """Write one line for each kind, whoever and however many were concerned."""
        for repair, count in Counter(report.repairs).items():
            self._metrics.count_repairs(repair.value, count)
            whose = ", ".join(sorted({name or "(all)" for name, one in report.repaired if one is repair}))
            logger.warning(
                "Put right what somebody else had changed",
                extra={"what": repair.value, "count": count, "containers": whose},
            )

    def _tell_errors(self, errors: Mapping[str, str], *, is_complete: bool) -> None:
        """Write each trouble once, and that it ended once."""
        if errors:
            self._metrics.count_error("parenting", len(errors))
        for name, error in errors.items():
            if self._told.get(name) != error:
                logger.warning("Cannot parent", extra={"container": name or "(all)", "error": error})
                self._told[name] = error
        if is_complete:
            for name in [name for name in self._told if name not in errors]:
                logger.info("Parenting works again", extra={"container": name or "(all)"})
                del self._told[name]


def _hurry() -> None:
    """Let this thread be served first; without the right to do so it waits its turn."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


_UNBELIEVED: Final = "the pid file names no process that was launched with it; it is left alone"
