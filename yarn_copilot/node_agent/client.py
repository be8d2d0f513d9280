# SPDX-License-Identifier: Apache-2.0
"""Ask the program beside one NodeManager for its state, and to make room by killing tasks.

A kill goes over TLS only and carries a bearer token; both files are read for each call, because Secrets change. The
name in the certificate is the Service's or the one given, since a pod is dialled by its address.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from types import TracebackType
from typing import Final, TypeVar

import aiohttp
import msgspec
from yarl import URL

from batch_resources.resources import ZERO_BATCH, BatchResources
from yarn_copilot.node_agent.errors import (
    NodeAgentAskError,
    NodeAgentConnectionError,
    NodeAgentError,
    NodeAgentProtocolError,
    NodeAgentRefusedError,
)
from yarn_copilot.node_agent.model import KillResult, NodeAgentState, Problem

T = TypeVar("T")
MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
REMOTE_TEXT_LIMIT: Final = 256
CALL_MARGIN_SECONDS: Final = 2.0
"""The other side verifies until its deadline and then answers."""


class NodeAgentClient:
    """Be the controller's view of one node's agent; belongs to one event loop."""

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        server_name: str | None = None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: http://ADDRESS:PORT or https://ADDRESS:PORT.
            timeout_seconds: for reading the state.
            token_file: bearer token of kills.
            ca_file: PEM file of who signs the certificates; None trusts what the system trusts.
            server_name: the name that the certificate must have; None takes the one in `url`.
        """
        self._url = URL(url)
        self._timeout_seconds = timeout_seconds
        self._token_file = token_file
        self._ca_file = ca_file
        self._server_name = server_name
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[bytes, ssl.SSLContext] | None = None

    async def __aenter__(self) -> NodeAgentClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def state(self) -> NodeAgentState:
        """Read drain, number of containers and lingering work.

        Raises:
            NodeAgentError: see its subclasses.
        """
        return await self._call("GET", "/v1/state", NodeAgentState, timeout_seconds=self._timeout_seconds)

    async def kill(self, resources: BatchResources, *, deadline_seconds: float) -> BatchResources:
        """Kill tasks until so much is free, by the common policy, and wait until they are gone.

        Args:
            resources: what to free; nothing is sent where nothing is asked for.
            deadline_seconds: for choosing, killing and verifying.

        Returns:
            What was freed; can be more than asked (whole tasks die), or less.

        Raises:
            NodeAgentRefusedError: no TLS, no token, or the wrong one; nothing was killed.
            NodeAgentAskError: the ask was refused; nothing was killed.
            NodeAgentConnectionError: no answer; whether something was killed is unknown.
            NodeAgentProtocolError: an answer of another shape.
        """
        return (await self.kill_verbosely(resources, deadline_seconds=deadline_seconds)).freed.to_batch()

    async def kill_verbosely(self, resources: BatchResources, *, deadline_seconds: float) -> KillResult:
        """Do the same as `kill` and say who died."""
        if self._url.scheme != "https":
            raise NodeAgentRefusedError(f"POST {self._url}/v1/kill: a kill goes over https only")
        if self._token_file is None:
            raise NodeAgentRefusedError(f"POST {self._url}/v1/kill: there is no token file")
        asked = resources.at_least(ZERO_BATCH)
        body = {
            "resources": {"cpuMilli": asked.cpu_milli, "memoryBytes": asked.memory_bytes},
            "timeoutSeconds": deadline_seconds,
        }
        token = await asyncio.to_thread(_read_token, self._token_file)
        return await self._call(
            "POST",
            "/v1/kill",
            KillResult,
            body=msgspec.json.encode(body),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            timeout_seconds=deadline_seconds + CALL_MARGIN_SECONDS,
        )

    async def _call(
        self,
        method: str,
        path: str,
        shape: type[T],
        *,
        timeout_seconds: float,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> T:
        what = f"{method} {self._url}{path}"
        try:
            async with asyncio.timeout(timeout_seconds):
                status, content = await self._exchange(method, path, body, headers)
        except TimeoutError as error:
            raise NodeAgentConnectionError(f"{what}: no answer within {timeout_seconds:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NodeAgentConnectionError(f"{what}: {_cut(str(error) or type(error).__name__)}") from error
        if status != 200:
            raise _refusal(what, status, content)
        try:
            return msgspec.json.decode(content, type=shape)
        except msgspec.DecodeError as error:
            raise NodeAgentProtocolError(f"{what}: not the promised answer ({_cut(str(error))})") from error

    async def _exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str] | None
    ) -> tuple[int, bytes]:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), trust_env=False)
        tls = await asyncio.to_thread(self._context) if self._url.scheme == "https" else True
        async with self._session.request(
            method,
            self._url / path.lstrip("/"),
            data=body,
            headers=headers,
            ssl=tls,
            server_hostname=self._server_name,
            allow_redirects=False,
        ) as response:
            content = bytearray()
            async for chunk in response.content.iter_chunked(65_536):
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    raise NodeAgentProtocolError(f"{method} {self._url}{path}: more than {MAX_ANSWER_BYTES} bytes")
            return response.status, bytes(content)

    def _context(self) -> ssl.SSLContext:
        """Give the same context while the file of authorities stays the same, so that connections are used again."""
        content = self._ca_file.read_bytes() if self._ca_file else b""
        if self._tls is None or self._tls[0] != content:
            context = ssl.create_default_context(cadata=content.decode("ascii") if self._ca_file else None)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            self._tls = (content, context)
        return self._tls[1]


def _read_token(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise NodeAgentRefusedError(f"cannot read the token in {path}") from error


def _refusal(what: str, status: int, content: bytes) -> NodeAgentError:
    try:
        reason = msgspec.json.decode(content, type=Problem).error
    except msgspec.DecodeError:
        reason = content[:REMOTE_TEXT_LIMIT].decode("utf-8", "replace")
    message = f"{what}: {status} {_cut(reason)}"
    if status in (401, 403):
        return NodeAgentRefusedError(message)
    if status in (400, 408, 413):
        return NodeAgentAskError(message)
    return NodeAgentConnectionError(message) if status >= 500 else NodeAgentProtocolError(message)


def _cut(text: str) -> str:
    return text if len(text) <= REMOTE_TEXT_LIMIT else text[: REMOTE_TEXT_LIMIT - 1] + "…"
