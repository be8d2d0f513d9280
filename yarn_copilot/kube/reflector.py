# SPDX-License-Identifier: Apache-2.0
"""Mirror one kind of objects into a sink, for ever: paged list, then watch, and again.

States: without a version (must list) and with one (may watch from it). A cut or silent watch keeps the version, so
nothing is lost and nothing listed again; 410, and whatever makes the stream doubtful, drops it. After every failure
there is a wait (`backoff`), also after a watch that ends sooner than a second: this loop cannot spin.
One writer: only `run` calls the sink, on the event loop, never two calls at once.
Source: Kubernetes API concepts, "Efficient detection of changes" and "410 Gone responses".
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.kube.backoff import Backoff, Random
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.clock import Clock
from yarn_copilot.kube.errors import (
    ForbiddenError,
    GoneError,
    KubeAPIError,
    KubeConnectionError,
    KubeProtocolError,
    NotFoundError,
    ServerError,
    Status,
    ThrottledError,
    cut,
    decode_status,
    error_from_status,
)
from yarn_copilot.kube.framing import LineSplitter, LineTooLongError
from yarn_copilot.kube.kinds import (
    DECODE_ERRORS,
    LEASES,
    NODE_METRICS,
    NODES,
    PODS,
    Malformed,
    ResourceKind,
    version_of,
)
from yarn_copilot.kube.transport import ByteStream

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

EVENTS_PER_TURN: Final = 64
"""Events handled before other tasks get the event loop; about 2 ms of work."""
HEALTHY_WATCH_SECONDS: Final = 1.0
RESUMES_AFTER_SERVER_ERROR: Final = 3
INITIAL_BACKOFF_SECONDS: Final = 0.2


class Sink(Protocol[R]):
    """Receive the mirrored objects; keys are `name` or `namespace/name`. Calls must be quick and must not block."""

    def replaced(self, items: dict[str, R]) -> None:
        """Take the complete collection: what is missing is gone, and versions in between may have been missed."""

    def upserted(self, key: str, item: R) -> None:
        """Take the next version of one object; every version is delivered, in order."""

    def removed(self, key: str) -> None:
        """Forget one object."""

    def unavailable(self, reason: str) -> None:
        """Learn that the kind is not served (its CRD is absent) or forbidden; it is tried again slowly."""

    def malformed(self, key: str, reason: str) -> None:
        """Learn that an object exists whose content cannot be read; key is "" where even the name cannot.

        During a list these calls come after `replaced`, whose items lack the object.
        """


@dataclass(slots=True)
class ReflectorStats:
    """Count what a reflector did, for metrics."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    failures: int = 0
    malformed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorOptions:
    """Hold what only tests and rare set-ups change.

    Attributes:
        random: source of jitter.
        unavailable_retry_seconds: wait after 403 or 404, with a quarter of jitter.
        patience_seconds: a kind that could be read before counts as unavailable only after so long: an API server
            that has just started knows no roles and serves no custom kinds for its first seconds.
    """

    random: Random = random_module.random
    unavailable_retry_seconds: float = 30.0
    patience_seconds: float = 15.0


class Reflector(Generic[T, R]):
    """Mirror the objects of a kind, each reduced to what the program keeps.

    Args:
        client: where to read.
        kind: what to read.
        reduce: keeps of an object what is needed; what it raises makes the object malformed.
        sink: receives the result.
        label_selector: restricts the collection.
        field_selector: restricts the collection.
        clock: injected time; the client's own where absent.
        options: jitter and rare times.
    """

    def __init__(
        self,
        client: KubeClient,
        kind: ResourceKind[T],
        *,
        reduce: Callable[[T], R],
        sink: Sink[R],
        label_selector: str = "",
        field_selector: str = "",
        clock: Clock | None = None,
        options: ReflectorOptions | None = None,
    ) -> None:
        self.kind = kind
        self.stats = ReflectorStats()
        self.last_error: str | None = None
        self._client = client
        self._reduce = reduce
        self._sink = sink
        self._selectors = {"label_selector": label_selector, "field_selector": field_selector}
        self._clock = clock or client.clock
        self._options = options or ReflectorOptions()
        self._random = self._options.random
        self._backoff = Backoff(INITIAL_BACKOFF_SECONDS, client.settings.backoff_max_seconds, self._random)
        self._version = ""
        self._last_contact: float | None = None
        self._synced = asyncio.Event()
        self._server_errors = 0
        self._refused_since: float | None = None

    @property
    def has_synced(self) -> bool:
        """Tell whether a complete list was delivered since the start."""
        return self._synced.is_set()

    @property
    def last_contact(self) -> float | None:
        """Give the monotonic time of the last bytes of a list or watch; None before the first."""
        return self._last_contact

    async def wait_synced(self) -> None:
        """Wait for the first complete list."""
        await self._synced.wait()

    async def run(self) -> None:
        """List and watch until cancelled; errors end in a wait, never in an exception."""
        while True:
            wait_seconds = await self._round()
            if wait_seconds > 0:
                await self._clock.sleep(wait_seconds)

    async def _round(self) -> float:
        """List if needed, watch until the watch ends, and give the time to wait before the next round."""
        started: float | None = None
        try:
            if not self._version:
                await self._list()
            started = self._clock.monotonic()
            await self._watch()
        except (NotFoundError, ForbiddenError) as error:
            return self._refused(error)
        except KubeAPIError as error:
            self._keep_or_drop_version(error)
            return self._failed(error, self._lasted(started))
        except YarnCopilotError as error:  # no credentials at the moment
            return self._failed(error, self._lasted(started))
        except Exception as error:  # a fault of this program or of the sink: list again
            self._version = ""
            logger.exception("Mirroring stopped by an unexpected error and starts again kind=%s", self.kind.plural)
            return self._failed(error, self._lasted(started))
        if self._lasted(started):
            self._recovered()
            return 0.0
        return self._backoff.next_seconds()

    def _lasted(self, started: float | None) -> bool:
        return started is not None and self._clock.monotonic() - started >= HEALTHY_WATCH_SECONDS

    async def _list(self) -> None:
        self.stats.lists += 1
        items: dict[str, R] = {}
        broken: list[Malformed] = []
        version = ""
        async for page in self._client.list_pages(self.kind, **self._selectors):
            self._touch()
            version = page.metadata.resourceVersion
            for item in page.items:
                reduced = item if isinstance(item, Malformed) else self._reduced(item)
                if isinstance(reduced, Malformed):
                    broken.append(reduced)
                else:
                    items[self.kind.key_of(item)] = reduced
            await asyncio.sleep(0)
        if not version:
            raise KubeProtocolError(f"GET {self.kind.path}: the list has no resourceVersion")
        self._sink.replaced(items)
        for malformed in broken:
            self._report(malformed)
        self._version = version
        self._server_errors = 0
        self._refused_since = None
        self._synced.set()
        logger.debug("Listed kind=%s objects=%d version=%s", self.kind.plural, len(items), version)

    async def _watch(self) -> None:
        self.stats.watches += 1
        timeout_seconds = int(300 + 300 * self._random())  # spread, so that watches do not all end together
        opening = self._client.watch(
            self.kind, resource_version=self._version, timeout_seconds=timeout_seconds, **self._selectors
        )
        async with opening as stream:
            self._touch()
            await self._consume(stream)

    async def _consume(self, stream: ByteStream) -> None:
        splitter = LineSplitter()
        while chunk := await stream.read():
            self._touch()
            try:
                lines = splitter.feed(chunk)
            except LineTooLongError as error:
                raise KubeProtocolError(f"watch of {self.kind.plural}: {error}") from error
            for number, line in enumerate(lines, start=1):
                self._handle(line)
                if number % EVENTS_PER_TURN == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(0)

    def _handle(self, line: bytes) -> None:
        try:
            type_, item = self.kind.decode_event(line)
        except DECODE_ERRORS as error:
            # What it was about is unknown, so a version may be missing: list again.
            self.stats.malformed += 1
            self._sink.malformed("", f"watch line: {cut(str(error))}")
            raise KubeProtocolError(f"watch of {self.kind.plural}: not an event: {cut(str(error))}") from error
        self.stats.events += 1
        if isinstance(item, msgspec.Raw):
            self._handle_control(type_, item)
        elif isinstance(item, Malformed):
            self._handle_malformed(type_, item)
        else:
            self._handle_object(type_, item)

    def _handle_object(self, type_: str, item: T) -> None:
        key = self.kind.key_of(item)
        if type_ == "DELETED":
            self._sink.removed(key)
        elif type_ in ("MODIFIED", "ADDED"):
            reduced = self._reduced(item)
            if isinstance(reduced, Malformed):
                self._report(reduced)
            else:
                self._sink.upserted(key, reduced)
        self._advance(item.metadata.resourceVersion)  # type: ignore[attr-defined]  # every kind has ObjectMeta

    def _handle_malformed(self, type_: str, item: Malformed) -> None:
        if type_ == "DELETED" and item.key:
            self._sink.removed(item.key)
        else:
            self._report(item)
        self._advance(item.version)

    def _handle_control(self, type_: str, raw: msgspec.Raw) -> None:
        if type_ == "BOOKMARK":
            self._advance(version_of(raw))
            return
        raise error_from_status(f"watch of {self.kind.plural}", decode_status(raw) or Status(code=500))

    def _reduced(self, item: T) -> R | Malformed:
        try:
            return self._reduce(item)
        except Exception as error:  # whatever is wrong with one object must not stop the others
            return Malformed(key=self.kind.key_of(item), reason=cut(f"{type(error).__name__}: {error}"))

    def _report(self, item: Malformed) -> None:
        self.stats.malformed += 1
        logger.warning("Object cannot be read kind=%s key=%s: %s", self.kind.plural, item.key or "?", item.reason)
        self._sink.malformed(item.key, item.reason)

    def _advance(self, version: str) -> None:
        if version:
            self._version = version
            self._server_errors = 0

    def _touch(self) -> None:
        self._last_contact = self._clock.monotonic()

    def _keep_or_drop_version(self, error: KubeAPIError) -> None:
        if isinstance(error, (KubeConnectionError, ThrottledError)):
            return
        if isinstance(error, ServerError):
            # It may pass; but an event that the server cannot produce would fail at the same version for ever.
            self._server_errors += 1
            if self._server_errors < RESUMES_AFTER_SERVER_ERROR:
                return
        self._version = ""

    def _refused(self, error: KubeAPIError) -> float:
        # A refusal is no contact: it says nothing of the objects, and what is known of them grows old.
        self._version = ""
        now = self._clock.monotonic()
        if self._refused_since is None:
            self._refused_since = now
        if self.has_synced and now - self._refused_since < self._options.patience_seconds:
            return self._failed(error, was_healthy=False)
        self.stats.failures += 1
        if self.last_error != str(error):
            logger.warning("Kind is not available kind=%s: %s", self.kind.plural, error)
        self.last_error = str(error)
        self._sink.unavailable(str(error))
        return self._options.unavailable_retry_seconds * (0.75 + 0.5 * self._random())

    def _failed(self, error: Exception, was_healthy: bool) -> float:
        if was_healthy:
            self._backoff.reset()
        self.stats.failures += 1
        asked: Any = getattr(error, "retry_after_seconds", None)
        wait_seconds = self._backoff.next_seconds(asked)
        quiet = isinstance(error, GoneError) or (was_healthy and isinstance(error, KubeConnectionError))
        logger.log(
            logging.INFO if quiet else logging.WARNING,
            "Mirroring is interrupted kind=%s retry_seconds=%.1f: %s",
            self.kind.plural,
            wait_seconds,
            error,
        )
        self.last_error = str(error)
        return wait_seconds

    def _recovered(self) -> None:
        self._backoff.reset()
        self.last_error = None


__all__ = ["LEASES", "NODES", "NODE_METRICS", "PODS", "Reflector", "ReflectorOptions", "ReflectorStats", "Sink"]
