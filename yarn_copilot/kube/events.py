# SPDX-License-Identifier: Apache-2.0
"""Write Kubernetes Events, best effort, without ever slowing or failing the caller.

core/v1 Events are used, not events.k8s.io/v1: both are one storage, but core/v1 lets a repetition be folded by raising
`count` and `lastTimestamp`, needs no `action`, is what `kubectl describe node` prints in full, and is covered by the
RBAC rule ("" events create, patch) that clusters already give to controllers.

Callers put records into a bounded table; `run` writes them at a bounded rate. Equal records (object, type, reason,
message) that wait, or were written in the last ten minutes, become one Event with a count. Where the table is full the
new record is dropped and counted: telling is less important than working.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.clock import Clock
from yarn_copilot.kube.errors import NotFoundError

logger = logging.getLogger(__name__)

MESSAGE_LIMIT: Final = 1024
FOLD_SECONDS: Final = 600.0
CLUSTER_SCOPED_NAMESPACE: Final = "default"
"""Events on Nodes have to be in this namespace (API server validation of core/v1 Event)."""


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """Name the object that an Event is about."""

    kind: str
    name: str
    namespace: str = ""
    api_version: str = "v1"
    uid: str = ""

    def as_json(self) -> dict[str, str]:
        """Give a core/v1 ObjectReference."""
        fields = {
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "apiVersion": self.api_version,
            "uid": self.uid,
        }
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class _Record:
    about: ObjectReference
    type: str
    reason: str
    message: str


@dataclass(slots=True)
class _Written:
    """Hold an Event in the API server, to fold repetitions into."""

    namespace: str
    name: str
    count: int
    at: float


class EventRecorder:
    """Record Events; satisfies `EventSink` of the controller's ports.

    Args:
        client: writes them.
        namespace: of Events on the controller itself.
        about: the controller's own pod, or its Lease where the pod is unknown.
        component: `source.component` and `reportingComponent`.
        instance: `reportingInstance`, normally the pod's name.
        clock: injected time; the client's own where absent.
        queue_size: records that may wait.
        per_second: writes allowed per second in the long run.
        burst: writes allowed at once.

    Attributes:
        is_muted: nothing is recorded, for a process that writes nothing at all.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        about: ObjectReference,
        component: str = "yarn-copilot",
        instance: str = "",
        clock: Clock | None = None,
        queue_size: int = 1000,
        per_second: float = 5.0,
        burst: int = 25,
    ) -> None:
        self.is_muted = False
        self.dropped = 0
        self.written = 0
        self._client = client
        self._about = about
        self._component = component
        self._instance = instance or about.name
        self._clock = clock or client.clock
        self._queue_size = queue_size
        self._per_second = per_second
        self._burst = burst
        self._tokens = float(burst)
        self._tokens_at = self._clock.monotonic()
        self._waiting: dict[_Record, int] = {}
        self._recent: dict[_Record, _Written] = {}
        self._wakeup = asyncio.Event()

    def node_event(self, node_name: str, *, type: str, reason: str, message: str) -> None:
        """Record an Event on a Node.

        Its uid is the name, as kubelet does, so that `kubectl describe node` finds it.
        """
        self._put(_Record(ObjectReference("Node", node_name, uid=node_name), type, str(reason), message))

    def controller_event(self, *, type: str, reason: str, message: str) -> None:
        """Record an Event on the controller itself."""
        self._put(_Record(self._about, type, str(reason), message))

    @property
    def waiting(self) -> int:
        """Count the records not written yet."""
        return len(self._waiting)

    async def run(self) -> None:
        """Write what is recorded until cancelled; an Event that cannot be written is logged and dropped."""
        while True:
            await self._wakeup.wait()
            while self._waiting:
                await self._take_token()
                record = next(iter(self._waiting))
                await self._write(record, self._waiting.pop(record))
            self._wakeup.clear()

    async def drain(self, timeout_seconds: float) -> None:
        """Write what waits, for at most so long; called at the end, after `run` was cancelled."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._waiting:
                    record = next(iter(self._waiting))
                    await self._write(record, self._waiting.pop(record))
        except TimeoutError:
            logger.debug("Events were left unwritten count=%d", len(self._waiting))

    def _put(self, record: _Record) -> None:
        if self.is_muted:
            return
        if record in self._waiting:
            self._waiting[record] += 1
        elif len(self._waiting) >= self._queue_size:
            self.dropped += 1
        else:
            self._waiting[record] = 1
        self._wakeup.set()

    async def _take_token(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(float(self._burst), self._tokens + (now - self._tokens_at) * self._per_second)
        self._tokens_at = now
        if self._tokens < 1.0:
            wait_seconds = (1.0 - self._tokens) / self._per_second
            await self._clock.sleep(wait_seconds)
            self._tokens += wait_seconds * self._per_second
            self._tokens_at = self._clock.monotonic()
        self._tokens -= 1.0

    async def _write(self, record: _Record, times: int) -> None:
        try:
            if not await self._folded(record, times):
                await self._create(record, times)
            self.written += 1
        except YarnCopilotError as error:
            self.dropped += 1
            logger.debug("Event could not be written reason=%s object=%s: %s", record.reason, record.about.name, error)
        except Exception:  # telling must not end because of one record
            self.dropped += 1
            logger.exception("Event could not be written reason=%s object=%s", record.reason, record.about.name)

    async def _folded(self, record: _Record, times: int) -> bool:
        written = self._recent.get(record)
        if written is None or self._clock.monotonic() - written.at > FOLD_SECONDS:
            return False
        patch = {"count": written.count + times, "lastTimestamp": self._now_text()}
        try:
            await self._client.patch_event(written.namespace, written.name, patch)
        except NotFoundError:
            return False
        written.count += times
        written.at = self._clock.monotonic()
        return True

    async def _create(self, record: _Record, times: int) -> None:
        namespace = record.about.namespace or CLUSTER_SCOPED_NAMESPACE
        name = f"{record.about.name[:200]}.{uuid4().hex[:16]}"
        await self._client.create_event(namespace, self._body(record, namespace, name, times))
        self._remember(record, _Written(namespace, name, times, self._clock.monotonic()))

    def _body(self, record: _Record, namespace: str, name: str, times: int) -> dict[str, Any]:
        now = self._now_text()
        message = record.message
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": record.about.as_json(),
            "type": record.type,
            "reason": record.reason,
            "message": message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…",
            "source": {"component": self._component, "host": self._instance},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": times,
        }

    def _remember(self, record: _Record, written: _Written) -> None:
        self._recent.pop(record, None)
        self._recent[record] = written
        while len(self._recent) > self._queue_size:
            del self._recent[next(iter(self._recent))]  # the oldest

    def _now_text(self) -> str:
        return f"{datetime.fromtimestamp(int(self._clock.wall()), UTC):%Y-%m-%dT%H:%M:%SZ}"
