# SPDX-License-Identifier: Apache-2.0
"""Send requests to whichever ResourceManager's web service is active and give decoded JSON back.

A standby is left for the next address, whether it says so by a redirect or by words in an answer 200. Redirects are
followed only to addresses of the configuration, so that no credentials reach anybody else. Every exception of aiohttp
leaves here as a `HadoopRPCError`. Source: RMWebAppFilter, RMWebServices and ipc.Server of Hadoop 3.5.0.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import aiohttp
import msgspec
from yarl import URL

from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.rest import answers, decoding
from yarn_copilot.hadoop.rest.authentication import WebIdentity

_CHUNK_BYTES: Final = 262_144
_ERROR_BODY_BYTES: Final = 65_536

_Content = TypeVar("_Content")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """Say how to call.

    Attributes:
        identity: who calls.
        call_timeout_seconds: deadline of one call over all addresses.
        connect_timeout_seconds: deadline of one TCP connect.
        max_response_bytes: largest body accepted.
        is_https: TLS, with `tls`.
        tls: context with the CA; None: the system's authorities.
        csrf_header: sent with every request; the filter wants it on writes and ignores it elsewhere.
    """

    identity: WebIdentity
    call_timeout_seconds: float = 4.0
    connect_timeout_seconds: float = 2.0
    max_response_bytes: int = 134_217_728
    is_https: bool = False
    tls: ssl.SSLContext | None = None
    csrf_header: str = "X-XSRF-Header"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Describe one call: method, absolute path without query, query, and a body that becomes JSON."""

    method: str
    path: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    body: object = None

    @property
    def is_read(self) -> bool:
        """Tell whether it may be sent again although a first one may have arrived."""
        return self.method == "GET"


class WebTransport:
    """Own one HTTP session for one cluster; belongs to one event loop."""

    def __init__(self, addresses: Sequence[Address], options: WebOptions) -> None:
        """Remember the addresses; nothing is opened yet.

        Args:
            addresses: at least one, in the order of the configuration.
            options: how to call.
        """
        self._addresses = tuple(addresses)
        self._options = options
        self._index = 0
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    @property
    def current_address(self) -> Address:
        """Name the address that the next call goes to."""
        return self._addresses[self._index]

    @property
    def call_timeout_seconds(self) -> float:
        """Give the deadline of one call."""
        return self._options.call_timeout_seconds

    async def call(self, request: Request) -> Any:
        """Send a request to the active ResourceManager.

        Returns:
            The decoded JSON document.

        Raises:
            HadoopRPCError: the last address's error.
            ConfigError: the delegation token cannot be read.
        """
        return await self.read(request, decoding.decode_json)

    async def read(self, request: Request, decode: Callable[[bytes], _Content]) -> _Content:
        """Send a request to the active ResourceManager and decode its good answer.

        Args:
            request: what to ask.
            decode: gives what the body means, or raises ProtocolViolationError; where it came from is added here.

        Raises:
            HadoopRPCError: the last address's error, or the answer does not decode.
            ConfigError: the delegation token cannot be read.
        """
        body = await self._fetch(request)
        try:
            return decode(body)
        except errors.ProtocolViolationError as error:
            what = f"{request.method} {self._where(self.current_address)}{request.path}"
            raise errors.ProtocolViolationError(f"{what}: {error}") from error

    async def _fetch(self, request: Request) -> bytes:
        try:
            async with asyncio.timeout(self._options.call_timeout_seconds):
                return await self._call_active(request)
        except TimeoutError as error:
            what = f"{request.method} {self._where(self.current_address)}{request.path}"
            self._leave(self._index)
            raise errors.CallTimeoutError(
                f"{what}: no answer within {self._options.call_timeout_seconds:g} s"
            ) from error

    async def _call_active(self, request: Request) -> bytes:
        tries_left = len(self._addresses)
        while True:
            tries_left -= 1
            used = self._index
            try:
                return await self._fetch_at(self._addresses[used], request)
            except (errors.ConnectError, errors.ConnectionLostError, errors.StandbyError) as error:
                self._leave(used, error.hint if isinstance(error, answers.WebStandbyError) else None)
                if tries_left <= 0 or (error.may_have_been_applied and not request.is_read):
                    raise

    async def _fetch_at(self, address: Address, request: Request) -> bytes:
        """Send a request to one address, whatever its role."""
        what = f"{request.method} {self._where(address)}{request.path}"
        status, headers, body = await self._exchange(address, request, {})
        negotiator, exchange = self._options.identity.negotiator, None
        if status == 401 and negotiator is not None and answers.asks_for_negotiate(headers):
            exchange = await negotiator.begin(address)
            status, headers, body = await self._exchange(address, request, {"Authorization": exchange.authorization})
        answers.check(status, headers, body, what=what, known=self._addresses)
        if exchange is not None:
            exchange.confirm(headers.get("WWW-Authenticate", ""))
        return body

    async def date_of(self, address: Address) -> str:
        """Give the Date header of an address's answer, whatever else it says; empty where there is none.

        Raises:
            HadoopRPCError: no answer.
        """
        _, headers, _ = await self._exchange(address, Request(method="GET", path="/ws/v1/cluster/info"), {})
        return headers.get("Date", "")

    async def aclose(self) -> None:
        """Close the session; later calls fail with `ClientClosedError`."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(
        self, address: Address, request: Request, extra: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        if self._is_closed:
            raise errors.ClientClosedError("the client is closed")
        identity = self._options.identity
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            self._options.csrf_header: "yarn-copilot",
            **identity.headers(),
            **extra,
        }
        data = None if request.body is None else msgspec.json.encode(request.body)
        if data is not None:
            headers["Content-Type"] = "application/json"
        url = URL(self._where(address) + request.path, encoded=True).with_query(
            {**request.parameters, **identity.parameters()}
        )
        what = f"{request.method} {self._where(address)}{request.path}"
        try:
            async with self._open_session().request(
                request.method, url, headers=headers, data=data, allow_redirects=False, ssl=self._options.tls or True
            ) as response:
                return response.status, response.headers, await self._body(response, what)
        except aiohttp.ClientError as error:
            raise answers.from_client_error(error, what=what) from error
        except OSError as error:
            raise errors.ConnectionLostError(f"{what}: {error}") from error
        except ValueError as error:  # a host that no URL can have, or a header that no line can carry
            raise errors.ProtocolViolationError(f"{what}: {type(error).__name__}") from error

    async def _body(self, response: aiohttp.ClientResponse, what: str) -> bytes:
        limit = self._options.max_response_bytes if response.status == 200 else _ERROR_BODY_BYTES
        chunks = []
        left = limit
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            left -= len(chunk)
            if left < 0:
                if response.status != 200:
                    break
                response.close()
                raise errors.FrameTooLargeError(f"{what}: the answer has more than {limit} bytes")
            chunks.append(chunk)
        return b"".join(chunks)

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._options.connect_timeout_seconds),
                # An answer to SPNEGO is a cookie, also where the address is a number.
                cookie_jar=aiohttp.CookieJar(unsafe=True),
                auto_decompress=False,
                trust_env=False,
                read_bufsize=_CHUNK_BYTES,
                headers={"User-Agent": "yarn-copilot"},
            )
        return self._session

    def _where(self, address: Address) -> str:
        return f"{'https' if self._options.is_https else 'http'}://{address}"

    def _leave(self, used: int, hint: Address | None = None) -> None:
        """Go on to the address that the answer named, else to the next; unless another call did so already."""
        if self._index != used:
            return
        if hint is not None and hint != self._addresses[used]:
            self._index = self._addresses.index(hint)
        else:
            self._index = (used + 1) % len(self._addresses)
