# SPDX-License-Identifier: Apache-2.0
"""Send raw requests to the API server as fast as it takes them: no models, no decoding of answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from lab.errors import LabError
from lab.koordinator.api import Credentials, read_kubeconfig

MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
_TIMEOUT: Final = aiohttp.ClientTimeout(total=60.0)
_READ_BUFFER_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Call:
    """Hold one request, its body ready to send."""

    method: str
    path: str
    body: bytes
    content_type: str = "application/json"


class RawApi:
    """Send requests over kept connections; made by `open_api`."""

    def __init__(self, session: aiohttp.ClientSession, credentials: Credentials) -> None:
        """Take an open session."""
        self.session = session
        self.server = credentials.server
        self.tls = credentials.tls if credentials.tls is not None else True

    async def send(self, call: Call) -> float:
        """Send one request and return the monotonic time at which its answer was there.

        Raises:
            LabError: the server refused.
        """
        async with self.session.request(
            call.method,
            self.server + call.path,
            data=call.body,
            headers={"Content-Type": call.content_type},
            ssl=self.tls,
        ) as response:
            body = await response.read()
            answered_at = time.monotonic()
            if response.status >= 400:
                raise LabError(f"{call.method} {call.path} answered {response.status}: {body[:300]!r}")
            return answered_at

    async def get(self, path: str) -> bytes:
        """Read one answer whole.

        Raises:
            LabError: the server refused.
        """
        async with self.session.get(self.server + path, ssl=self.tls) as response:
            body = await response.read()
            if response.status >= 400:
                raise LabError(f"GET {path} answered {response.status}: {body[:300]!r}")
            return body

    async def send_all(self, calls: Iterable[Call], *, parallel: int) -> list[float]:
        """Send many requests, so many at once; when each was answered, in the order of the calls."""
        answered_at: dict[int, float] = {}
        waiting = enumerate(calls)

        async def work() -> None:
            for number, call in waiting:
                answered_at[number] = await self.send(call)

        async with asyncio.TaskGroup() as group:
            for _ in range(parallel):
                group.create_task(work())
        return [answered_at[number] for number in range(len(answered_at))]


@asynccontextmanager
async def open_api(kubeconfig: Path, *, parallel: int) -> AsyncIterator[RawApi]:
    """Open a session with the credentials of a kubeconfig, for so many requests at once."""
    credentials = read_kubeconfig(kubeconfig)
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {credentials.token}", "Accept-Encoding": "identity"},
        connector=aiohttp.TCPConnector(limit=parallel + 2, keepalive_timeout=120.0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=_TIMEOUT,
        read_bufsize=_READ_BUFFER_BYTES,
    ) as session:
        yield RawApi(session, credentials)
