# SPDX-License-Identifier: Apache-2.0
"""Elect one writer among replicas by a coordination.k8s.io/v1 Lease, and fence its writes.

Two rules make it safe without comparing clocks of two machines:

1. A leader counts its time from the moment *before* it sent the renewal that succeeded, and stops at
   `renew_deadline` (or earlier, so that one more call still ends within `lease_duration`). A hanging call, a paused
   process or a jump of the wall clock cannot lengthen that: only the monotonic clock of this process is asked.
2. A candidate takes over only after the Lease has not changed for its whole duration *while the candidate watched*,
   counted on the candidate's own monotonic clock from the moment it received that version.

Every write carries the resourceVersion read before, so two candidates cannot both win. `renewTime` is for people and
other tools; it is made to increase so that a renewal is a change of the object also when the wall clock stands still.
Source: client-go `tools/leaderelection`, whose record format this is; Kubernetes API `LeaseSpec`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.kube.backoff import Backoff
from yarn_copilot.kube.clock import Clock, SystemClock
from yarn_copilot.kube.errors import ConflictError, KubeTimeoutError, NotFoundError, NotLeaderError
from yarn_copilot.kube.model import Lease, LeaseSpec, ObjectMeta

logger = logging.getLogger(__name__)

T = TypeVar("T")
OnChange = Callable[[bool, int], None]
"""Called with `is_leader` and `term` after each change, on the event loop; must be quick."""


class LeaseStore(Protocol):
    """Be the API server as far as this module needs it; `KubeClient` is one."""

    async def get_lease(self, name: str, namespace: str) -> Lease:
        """Read a Lease; raises NotFoundError."""

    async def create_lease(self, lease: Lease) -> Lease:
        """Create a Lease; raises ConflictError where it exists."""

    async def replace_lease(self, lease: Lease) -> Lease:
        """Write a Lease; raises ConflictError unless its resourceVersion is the stored one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Say which Lease and which times.

    Attributes:
        name: of the Lease.
        namespace: of the Lease.
        identity: unique to this process.
        lease_duration_seconds: a candidate takes over after so long without a change.
        renew_deadline_seconds: a leader stops so long after its last successful renewal was sent.
        retry_period_seconds: time between two tries.
        longest_call_seconds: deadline of the longest fenced call; the leader stops early enough for it to end
            within `lease_duration_seconds`.
    """

    name: str
    namespace: str
    identity: str
    lease_duration_seconds: int = 10
    renew_deadline_seconds: float = 6.0
    retry_period_seconds: float = 1.0
    longest_call_seconds: float = 4.0

    def __post_init__(self) -> None:
        if not 0 < self.renew_deadline_seconds < self.lease_duration_seconds:
            raise ValueError("renew_deadline_seconds must be below lease_duration_seconds")
        if self.longest_call_seconds >= self.lease_duration_seconds:
            raise ValueError("longest_call_seconds must be below lease_duration_seconds")

    @property
    def term_seconds(self) -> float:
        """Give how long one renewal lets the leader start calls."""
        return min(self.renew_deadline_seconds, self.lease_duration_seconds - self.longest_call_seconds)


@dataclass(frozen=True, slots=True)
class _Observed:
    """Hold a version of the Lease and when it was first seen here."""

    lease: Lease
    at: float


class LeaseElector:
    """Take, keep and give back the Lease; satisfies `Leadership` of the controller's ports.

    Args:
        client: calls the API server.
        settings: Lease and times.
        clock: injected time.
        on_change: told about every change of leadership.
    """

    def __init__(
        self,
        client: LeaseStore,
        settings: LeaseSettings,
        *,
        clock: Clock | None = None,
        on_change: OnChange | None = None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock: Clock = clock or SystemClock()
        self._listeners: list[OnChange] = [on_change] if on_change else []
        self._backoff = Backoff(settings.retry_period_seconds, 4 * settings.retry_period_seconds)
        self._observed: _Observed | None = None
        self._acquire_time = ""
        self._last_renew_micros = 0
        self._valid_until = float("-inf")
        self._term = 0
        self._told = (False, 0)
        self._released = False
        self._must_read = True
        self._work: asyncio.Future[Any] | None = None

    @property
    def is_leader(self) -> bool:
        """Tell whether the last renewal still covers one more call, by the monotonic clock, now."""
        return self._clock.monotonic() < self._valid_until

    @property
    def term(self) -> int:
        """Count how often this process became leader."""
        return self._term

    @property
    def holder(self) -> str:
        """Give the identity in the Lease as last seen, "" where it is free or unknown; for people."""
        return (self._observed.lease.spec.holderIdentity or "") if self._observed else ""

    def check(self) -> None:
        """Raise NotLeaderError unless this process may start a write now."""
        if not self.is_leader:
            raise NotLeaderError(
                f"lease {self._settings.namespace}/{self._settings.name} is not held by {self._settings.identity}"
            )

    def on_change(self, listener: OnChange) -> None:
        """Add a listener."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Take the Lease when it is free and renew it, until cancelled or released; survives all API errors."""
        while not self._released:
            await self._clock.sleep(await self._turn())

    async def release(self) -> None:
        """Give the Lease back so that another takes over at once; never raises, does nothing for a standby.

        Stop writing first: from here on `check` fails.
        """
        self._released = True
        self._valid_until = float("-inf")
        self._tell()
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait((self._work,))
        try:
            if await self._bounded(self._give_back(), 2 * self._settings.retry_period_seconds):
                logger.info("Released the lease identity=%s term=%d", self._settings.identity, self._term)
        except YarnCopilotError as error:
            logger.warning("Could not release the lease, a standby has to wait for its end: %s", error)

    async def _give_back(self) -> bool:
        for _ in range(2):
            if self._observed is None or not self._is_ours():
                return False
            held = self._observed.lease
            spec = LeaseSpec(
                holderIdentity="",
                leaseDurationSeconds=1,
                acquireTime=held.spec.acquireTime,
                renewTime=self._now_text(),
                leaseTransitions=held.spec.leaseTransitions,
            )
            try:
                await self._client.replace_lease(Lease(held.metadata, spec))
            except ConflictError:
                await self._read()  # a renewal of ours may have been stored without our seeing the answer
            else:
                return True
        return False

    async def _turn(self) -> float:
        """Do one step and give the time to wait before the next."""
        self._tell()
        try:
            await self._bounded(self._step(), self._step_deadline_seconds())
        except ConflictError:
            self._must_read = True
            # A leader learns at once who wrote; a standby lost the race and has time.
            wait_seconds = self._settings.retry_period_seconds * (0.1 if self.is_leader else 1.0)
        except YarnCopilotError as error:
            wait_seconds = self._wait_after(error)
        except Exception as error:  # a fault here must not end the election: nobody would renew
            logger.exception("Lease election failed unexpectedly and goes on")
            wait_seconds = self._wait_after(error)
        else:
            self._backoff.reset()
            wait_seconds = self._settings.retry_period_seconds
        self._tell()
        left = self._valid_until - self._clock.monotonic()
        return min(wait_seconds, left) if left > 0 else wait_seconds

    def _wait_after(self, error: Exception) -> float:
        self._must_read = True  # the write may have happened
        # A leader's time runs: it keeps its short period. A standby backs off.
        wait_seconds = self._settings.retry_period_seconds if self.is_leader else self._backoff.next_seconds()
        logger.warning("Lease could not be taken or renewed retry_seconds=%.1f: %s", wait_seconds, error)
        return wait_seconds

    def _step_deadline_seconds(self) -> float:
        # Two tries fit into one term, and none outlasts it, so that its end is told at that moment.
        half = self._settings.term_seconds / 2
        left = self._valid_until - self._clock.monotonic()
        return min(left, half) if left > 0 else half

    async def _step(self) -> None:
        if self._observed is not None and self._is_ours() and not self._must_read:
            held = self._observed.lease
            await self._put(held.metadata, held.spec.leaseTransitions or 0)
            return
        lease = await self._read()
        if lease is None:
            self._acquire_time = self._now_text()
            await self._put(ObjectMeta(self._settings.name, self._settings.namespace), 0, create=True)
        elif self._is_ours():
            await self._put(lease.metadata, lease.spec.leaseTransitions or 0)
        elif self._may_take(lease):
            self._acquire_time = self._now_text()
            await self._put(lease.metadata, (lease.spec.leaseTransitions or 0) + 1)

    async def _read(self) -> Lease | None:
        try:
            lease = await self._client.get_lease(self._settings.name, self._settings.namespace)
        except NotFoundError:
            self._observed = None
            return None
        version = lease.metadata.resourceVersion
        self._must_read = False
        if self._observed is None or self._observed.lease.metadata.resourceVersion != version:
            self._observed = _Observed(lease, self._clock.monotonic())
        return lease

    def _may_take(self, lease: Lease) -> bool:
        if not lease.spec.holderIdentity:
            return True
        duration = lease.spec.leaseDurationSeconds or self._settings.lease_duration_seconds
        return self._observed is not None and self._clock.monotonic() - self._observed.at >= duration

    def _is_ours(self) -> bool:
        """Tell whether the Lease as last seen was written by this process, not by a namesake or a former life."""
        if self._observed is None or not self._acquire_time:
            return False
        spec = self._observed.lease.spec
        return spec.holderIdentity == self._settings.identity and spec.acquireTime == self._acquire_time

    async def _put(self, metadata: ObjectMeta, transitions: int, *, create: bool = False) -> None:
        spec = LeaseSpec(
            holderIdentity=self._settings.identity,
            leaseDurationSeconds=self._settings.lease_duration_seconds,
            acquireTime=self._acquire_time,
            renewTime=self._now_text(),
            leaseTransitions=transitions,
        )
        sent_at = self._clock.monotonic()
        write = self._client.create_lease if create else self._client.replace_lease
        stored = await write(Lease(metadata, spec))
        self._observed = _Observed(stored, self._clock.monotonic())
        self._must_read = False
        now, valid_until = self._clock.monotonic(), sent_at + self._settings.term_seconds
        if self._released or now >= valid_until:
            return
        if not self.is_leader:
            self._term += 1
        self._valid_until = valid_until

    def _tell(self) -> None:
        leader = self.is_leader
        state = (leader, self._term if leader else 0)
        if state == self._told:
            return
        self._told = state
        logger.info(
            "%s lease=%s/%s identity=%s term=%d",
            "Became leader" if leader else "Is no longer leader",
            self._settings.namespace,
            self._settings.name,
            self._settings.identity,
            self._term,
        )
        for listener in self._listeners:
            try:
                listener(leader, self._term)
            except Exception:  # a listener's fault must not cost the lease
                logger.exception("A listener of leadership changes failed")

    def _now_text(self) -> str:
        self._last_renew_micros = max(int(self._clock.wall() * 1_000_000), self._last_renew_micros + 1)
        return micro_time(self._last_renew_micros)

    async def _bounded(self, call: Coroutine[Any, Any, T], seconds: float) -> T:
        """Await the call, but not longer than so many seconds of the injected clock."""
        work = asyncio.ensure_future(call)
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        self._work = work
        try:
            await asyncio.wait((work, timer), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise KubeTimeoutError(f"lease call: no answer within {seconds:g} s")
            if work.cancelled():
                raise KubeTimeoutError("lease call: given up because the lease is released")
            return work.result()
        finally:
            self._work = None
            for task in (work, timer):
                task.cancel()
            await asyncio.gather(work, timer, return_exceptions=True)


class SoleLeader:
    """Be the leader without a Lease, where `leader_election.enabled` is false; satisfies `Leadership`."""

    is_leader: bool = True
    term: int = 1

    def __init__(self, identity: str) -> None:
        """Lead under a name."""
        self.holder = identity

    def check(self) -> None:
        """Never raise."""


class Observer:
    """Never lead: a process that only observes holds no Lease; satisfies `Leadership`."""

    is_leader: bool = False
    term: int = 0
    holder: str = ""

    def check(self) -> None:
        """Refuse every write."""
        raise NotLeaderError("this process only observes and writes nothing")


def micro_time(micros: int) -> str:
    """Write microseconds since 1970 as Kubernetes MicroTime: RFC 3339, UTC, six digits, `Z`."""
    seconds, fraction = divmod(micros, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:06d}Z"
