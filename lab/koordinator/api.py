# SPDX-License-Identifier: Apache-2.0
"""Talk to an API server with plain JSON: an own small client, independent of the product's.

Reads a kubeconfig with a token or a client certificate; nothing more is needed on the loopback.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from lab.errors import LabError

JsonObject = dict[str, Any]
_CALL_TIMEOUT_SECONDS = 10.0
_WATCH_SECONDS = 240
_TLS_GOODBYE_SECONDS = 0.1
_WATCH_SILENCE_SECONDS = 300.0
_MAX_LINE_BYTES = 16 * 2**20


class ApiError(LabError):
    """Report a refused call; `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        """Keep the status beside the message."""
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Hold where the API server is and how to be let in."""

    server: str
    token: str | None = None
    tls: ssl.SSLContext | None = None


def read_kubeconfig(path: Path) -> Credentials:
    """Read the current context of a kubeconfig.

    Raises:
        LabError: The file has no such context, cluster or user.
    """
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    try:
        context = _named(document["contexts"], document["current-context"])["context"]
        cluster = _named(document["clusters"], context["cluster"])["cluster"]
        user = _named(document["users"], context["user"])["user"]
        server = str(cluster["server"]).rstrip("/")
    except (KeyError, TypeError) as error:
        raise LabError(f"{path}: no usable current context: {error}") from error
    tls = _tls(cluster, user) if server.startswith("https:") else None
    return Credentials(server=server, token=user.get("token"), tls=tls)


def _named(entries: list[JsonObject], name: str) -> JsonObject:
    for entry in entries:
        if entry["name"] == name:
            return entry
    raise KeyError(name)


def _tls(cluster: JsonObject, user: JsonObject) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if cluster.get("certificate-authority-data"):
        context.load_verify_locations(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode("ascii"))
    elif cluster.get("certificate-authority"):
        context.load_verify_locations(cafile=cluster["certificate-authority"])
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if user.get("client-certificate"):
        context.load_cert_chain(user["client-certificate"], user.get("client-key"))
    return context


class Api:
    """Call one API server; open it with `async with`."""

    def __init__(self, credentials: Credentials) -> None:
        """Keep the credentials; nothing is opened yet."""
        self._credentials = credentials
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Api:
        headers = {"Accept": "application/json", "User-Agent": "koordinator-stand-in"}
        if self._credentials.token:
            headers["Authorization"] = f"Bearer {self._credentials.token}"
        self._session = aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
        if self._credentials.tls is not None:
            # A TLS connection that was cut in a call says goodbye on its own, after `close` has returned.
            await asyncio.sleep(_TLS_GOODBYE_SECONDS)

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: object | None = None,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> JsonObject:
        """Make one call and decode its answer.

        Raises:
            ApiError: The server answered with a status of 400 or more.
            aiohttp.ClientError, TimeoutError: The server could not be reached in time.
        """
        async with self._open().request(
            method,
            self._credentials.server + path,
            params=query,
            data=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type},
            ssl=self._ssl(),
            timeout=aiohttp.ClientTimeout(total=_CALL_TIMEOUT_SECONDS),
        ) as response:
            text = await response.text()
            if response.status >= 400:
                raise ApiError(response.status, f"{method} {path}: HTTP {response.status}: {text[:256]}")
            answer: JsonObject = json.loads(text)
            return answer

    async def watch(self, path: str, resource_version: str) -> AsyncIterator[JsonObject]:
        """Give watch events from a version on, until the server ends the watch.

        Raises:
            ApiError: The version is too old (410), as a status or as an event.
        """
        query = {
            "watch": "true",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        async with self._open().get(
            self._credentials.server + path,
            params=query,
            ssl=self._ssl(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=_WATCH_SILENCE_SECONDS),
        ) as response:
            if response.status >= 400:
                raise ApiError(response.status, f"watch {path}: HTTP {response.status}")
            async for event in _lines(response.content):
                if event["type"] == "ERROR":
                    raise ApiError(int(event["object"].get("code", 500)), f"watch {path}: {event['object']}"[:256])
                yield event

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("open the client with `async with` first")
        return self._session

    def _ssl(self) -> ssl.SSLContext | bool:
        return self._credentials.tls if self._credentials.tls is not None else True


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[JsonObject]:
    pending = bytearray()
    async for chunk in stream.iter_any():
        pending += chunk
        if len(pending) > _MAX_LINE_BYTES:
            raise ApiError(0, "a watch event is longer than 16 MiB")
        *complete, rest = pending.split(b"\n")
        pending = bytearray(rest)
        for line in complete:
            if line:
                yield json.loads(line)
