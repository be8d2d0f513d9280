# SPDX-License-Identifier: Apache-2.0
"""Send single HTTP requests to the API server and give bytes back; knows credentials, not objects.

aiohttp gives the connection pool, TLS and HTTP/1.1. Every exception of it leaves here as a `KubeAPIError`.
One reload of the credentials serves all requests that were refused with the old ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

import aiohttp
from yarl import URL

from yarn_copilot.errors import ConfigError
from yarn_copilot.kube.clock import Clock
from yarn_copilot.kube.credentials import Credentials, CredentialSource
from yarn_copilot.kube.errors import (
    KubeAPIError,
    KubeConnectionError,
    KubeProtocolError,
    KubeTimeoutError,
    UnauthorizedError,
    cut,
    error_from_answer,
)

logger = logging.getLogger(__name__)

READ_BUFFER_BYTES: Final = 1024 * 1024
"""aiohttp's own 64 KiB would wake the reader of a full-rate watch more than a thousand times a second."""
CONNECT_TIMEOUT_SECONDS: Final = 5.0
LOAD_TIMEOUT_SECONDS: Final = 30.0
ERROR_BODY_LIMIT_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Describe one call.

    Attributes:
        method: HTTP method.
        path: absolute path, already escaped.
        params: query, not escaped yet; empty values are left out.
        body: bytes to send, None without.
        content_type: of the body.
        timeout_seconds: deadline for the whole answer; of a stream: for silence.
    """

    method: str
    path: str
    params: Mapping[str, str] | None = None
    body: bytes | None = None
    content_type: str = "application/json"
    timeout_seconds: float

    @property
    def what(self) -> str:
        """Name the call in errors: method and path, without the query."""
        return f"{self.method} {self.path}"


class Transport:
    """Own the HTTP session and the current credentials.

    One instance belongs to one event loop. Many calls may be in flight; `pool_size` bounds their connections.
    """

    def __init__(self, source: CredentialSource, *, clock: Clock, pool_size: int, user_agent: str) -> None:
        self._source = source
        self._clock = clock
        self._pool_size = pool_size
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._credentials: Credentials | None = None
        self._loaded_at = 0.0
        self._loading = asyncio.Lock()
        self._closed = False

    async def __aenter__(self) -> Transport:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections; calls in flight fail with `KubeConnectionError`."""
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, request: Request) -> bytes:
        """Send and read the whole answer.

        Raises:
            KubeAPIError: see `yarn_copilot.kube.errors`.
            ConfigError: there are no usable credentials.
        """
        try:
            async with asyncio.timeout(request.timeout_seconds), self._answer(request, _ONE_ANSWER) as response:
                return await response.read()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _translated(request, error) from error

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ByteStream]:
        """Send and give the body as it arrives; the deadline is for silence, headers included.

        Raises:
            KubeAPIError: on entry (here) or while reading (`ByteStream.read`); KubeTimeoutError means silence.
        """
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=request.timeout_seconds
        )
        async with AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(self._answer(request, timeout))
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise _translated(request, error) from error
            yield ByteStream(request, response)

    @asynccontextmanager
    async def _answer(self, request: Request, timeout: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        credentials = await self._current()
        response = await self._send(request, timeout, credentials)
        try:
            if response.status == 401:
                # Refused before anything was done: safe to send again, also a write.
                await _drain(response)
                response.release()
                credentials = await self._reload_refused(request, credentials)
                response = await self._send(request, timeout, credentials)
            if response.status >= 300:
                raise error_from_answer(
                    request.what,
                    response.status,
                    await _drain(response),
                    retry_after=response.headers.get("Retry-After"),
                )
            yield response
        finally:
            # Gives the connection back to the pool where the body was read, else closes it.
            response.release()

    async def _send(
        self, request: Request, timeout: aiohttp.ClientTimeout, credentials: Credentials
    ) -> aiohttp.ClientResponse:
        headers: dict[str, str] = {}
        if credentials.authorization:
            headers["Authorization"] = credentials.authorization
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        options: dict[str, Any] = {}
        if credentials.tls is not None:
            options = {"ssl": credentials.tls, "server_hostname": credentials.server_hostname}
        url = URL(credentials.url + request.path, encoded=True)
        if request.params:
            url = url.with_query({key: value for key, value in request.params.items() if value})
        return await self._open_session().request(
            request.method,
            url,
            data=request.body,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            proxy=credentials.proxy,
            **options,
        )

    def _open_session(self) -> aiohttp.ClientSession:
        if self._closed:
            raise KubeConnectionError("the Kubernetes client is closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._pool_size, keepalive_timeout=60.0),
                cookie_jar=aiohttp.DummyCookieJar(),
                # The server would gzip lists above 128 KiB: CPU on both sides, for bytes that stay in the cluster.
                headers={
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",
                    "User-Agent": self._user_agent,
                },
                read_bufsize=READ_BUFFER_BYTES,
                auto_decompress=False,
            )
        return self._session

    async def _current(self) -> Credentials:
        credentials = self._credentials
        if credentials is None:
            return await self._reload(None)
        age = self._clock.monotonic() - self._loaded_at
        if credentials.refresh_seconds is not None and age >= credentials.refresh_seconds:
            try:
                return await self._reload(credentials)
            except ConfigError as error:
                # A file half written, a plugin that fails once: the old credentials are most likely still good.
                self._loaded_at = self._clock.monotonic()
                logger.warning("Kubernetes credentials could not be read again, the old ones stay: %s", error)
        return credentials

    async def _reload_refused(self, request: Request, refused: Credentials) -> Credentials:
        try:
            return await self._reload(refused)
        except ConfigError as error:
            raise UnauthorizedError(f"{request.what}: refused, and {error}", status=401) from error

    async def _reload(self, refused: Credentials | None) -> Credentials:
        async with self._loading:
            if self._credentials is None or self._credentials is refused:
                try:
                    async with asyncio.timeout(LOAD_TIMEOUT_SECONDS):
                        self._credentials = await self._source.load()
                except TimeoutError as error:  # an exec plugin that hangs
                    raise ConfigError(f"no Kubernetes credentials within {LOAD_TIMEOUT_SECONDS:g} s") from error
                self._loaded_at = self._clock.monotonic()
            return self._credentials


class ByteStream:
    """Give the body of one answer piece by piece."""

    def __init__(self, request: Request, response: aiohttp.ClientResponse) -> None:
        self._request = request
        self._content = response.content

    async def read(self) -> bytes:
        """Wait for bytes and take all that have arrived; b"" at the end of the body.

        Raises:
            KubeConnectionError: the connection was cut.
            KubeTimeoutError: silence for longer than the request's deadline.
        """
        try:
            return await self._content.readany()
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            # RuntimeError is how aiohttp says that the session was closed under a reader.
            raise _translated(self._request, error) from error


_ONE_ANSWER: Final = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS)


async def _drain(response: aiohttp.ClientResponse) -> bytes:
    """Read the body of a refusal; one above the bound is cut, and its connection closed by the release."""
    pieces: list[bytes] = []
    left = ERROR_BODY_LIMIT_BYTES
    while left > 0 and (piece := await response.content.read(left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _translated(request: Request, error: Exception) -> KubeAPIError:
    if isinstance(error, TimeoutError):  # also aiohttp's own; all of them are OSError
        return KubeTimeoutError(f"{request.what}: no answer, or silence, for {request.timeout_seconds:g} s")
    if isinstance(error, ValueError) and not isinstance(error, OSError):  # an OSError: a certificate not trusted
        return KubeProtocolError(f"{request.what}: {type(error).__name__}")
    return KubeConnectionError(f"{request.what}: {type(error).__name__}: {cut(str(error))}")
