# SPDX-License-Identifier: Apache-2.0
"""Serve the controller over the pod's port `copilot`: GET /v1/state for everyone, POST /v1/kill with TLS and token.

Off unless configured. Certificate, key and token are read again when they change, as Secrets do.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import ssl
from pathlib import Path
from typing import Final

from aiohttp import web

from nm_proxy.agent_settings import CopilotSettings
from nm_proxy.copilot import answers
from nm_proxy.copilot.asks import MAX_BODY_BYTES, parse_kill
from nm_proxy.copilot.node import CopilotNode
from nm_proxy.copilot.serving import Listener, ServerStartError, guard, json_answer, read_body
from yarn_copilot.errors import YarnCopilotError

logger = logging.getLogger(__name__)

_ENDPOINTS: Final = "/v1/state, /v1/kill"
_ASKED_BY: Final = "controller"
MIN_TOKEN_BYTES: Final = 16
MAX_TOKEN_BYTES: Final = 4096
CERTIFICATE_INTERVAL_SECONDS: Final = 30.0


class TokenError(YarnCopilotError):
    """Say that the file with the token cannot be used; the token itself is never shown."""


class TokenFile:
    """Hold a bearer token that lives in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> bytes:
        """Read the token, without blanks around it.

        Raises:
            TokenError: the file cannot be read, or holds nothing that could be a token.
        """
        try:
            with self._path.open("rb") as file:
                token = file.read(MAX_TOKEN_BYTES + 1).strip()
        except OSError as error:
            raise TokenError(f"cannot read the token in {self._path} ({error.strerror})") from error
        if not MIN_TOKEN_BYTES <= len(token) <= MAX_TOKEN_BYTES:
            raise TokenError(f"{self._path} must hold a token of {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} bytes")
        return token

    def matches(self, header: str | None) -> bool:
        """Tell whether an Authorization header carries the token; takes the same time whatever differs."""
        scheme, _, token = (header or "").partition(" ")
        given = token.strip().encode("utf-8", "replace")
        return hmac.compare_digest(given, self.read()) and scheme.lower() == "bearer"


class PortAPI:
    """Hold the port; one per process."""

    def __init__(self, node: CopilotNode, settings: CopilotSettings) -> None:
        """Prepare; nothing listens before `start`."""
        self._settings = settings
        token = TokenFile(settings.kill_token) if settings.kill_token else None
        self._token = token
        self._listener = Listener(build_app(node, token))
        self._tls: ssl.SSLContext | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Start to listen.

        Returns:
            The port.

        Raises:
            ServerStartError: address, certificate or key cannot be used.
            TokenError: the token cannot be used.
        """
        if self._token is not None:
            self._token.read()
        self._tls = self._context()
        port = await self._listener.serve_tcp(self._settings.bind_address, self._settings.port or 0, self._tls)
        if self._tls is not None:
            self._watcher = asyncio.create_task(self._follow_certificate(self._tls))
        logger.info(
            "Serving the controller",
            extra={"port": port, "tls": self._tls is not None, "kills": self._token is not None},
        )
        return port

    async def aclose(self) -> None:
        """Stop listening."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        await self._listener.aclose()

    def _context(self) -> ssl.SSLContext | None:
        certificate, key = self._settings.tls_certificate, self._settings.tls_key
        if certificate is None or key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise ServerStartError(f"cannot use certificate {certificate} with key {key} ({error})") from error
        return context

    async def _follow_certificate(self, context: ssl.SSLContext) -> None:
        """Load certificate and key again when they change; a bad pair leaves the one before in force."""
        certificate, key = self._settings.tls_certificate, self._settings.tls_key
        assert certificate is not None  # noqa: S101 - a context exists only with both
        assert key is not None  # noqa: S101
        before = await asyncio.to_thread(_contents, certificate, key)
        while True:
            await asyncio.sleep(CERTIFICATE_INTERVAL_SECONDS)
            now = await asyncio.to_thread(_contents, certificate, key)
            if now in (before, None):
                continue
            before = now
            try:
                await asyncio.to_thread(_check_pair, certificate, key)
                # Not in a thread: between certificate and key the context has no pair, and a handshake would fail.
                context.load_cert_chain(certificate, key)
            except (OSError, ssl.SSLError) as error:
                logger.warning("The new certificate cannot be used", extra={"error": str(error)})
            else:
                logger.info("Loaded a new certificate", extra={"certificate": str(certificate)})


def build_app(node: CopilotNode, token: TokenFile | None) -> web.Application:
    """Build the application; see `PortAPI` for the one that listens."""
    endpoints = _Endpoints(node, token)
    app = web.Application(middlewares=[guard(_ENDPOINTS)], client_max_size=MAX_BODY_BYTES)
    app.router.add_get("/v1/state", endpoints.state)
    app.router.add_post("/v1/kill", endpoints.kill)
    return app


class _Endpoints:
    def __init__(self, node: CopilotNode, token: TokenFile | None) -> None:
        self._node = node
        self._token = token

    async def state(self, request: web.Request) -> web.Response:
        return json_answer(await self._node.state())

    async def kill(self, request: web.Request) -> web.Response:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        longest = self._node.kill_timeout_seconds()
        asked, timeout_seconds = parse_kill(await read_body(request), self._node.largest_ask(), longest)
        room = await self._node.killer.make_room(asked, timeout_seconds=timeout_seconds, asked_by=_ASKED_BY)
        return json_answer(answers.kill_answer(room))

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Refuse before the body is read."""
        if request.transport is None or request.transport.get_extra_info("ssl_object") is None:
            return json_answer(answers.Problem("a kill needs TLS; set copilot.tls_certificate and tls_key"), 403)
        if self._token is None:
            return json_answer(answers.Problem("kills over the port are off; set copilot.kill_token"), 403)
        if not self._token.matches(request.headers.get("Authorization")):
            logger.warning("Refused a kill without the right token", extra={"peer": str(request.remote)})
            response = json_answer(answers.Problem("the bearer token is missing or wrong"), 401)
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        return None


def _check_pair(certificate: Path, key: Path) -> None:
    """Try a pair elsewhere first: a context keeps the certificate even when the key does not fit it."""
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)


def _contents(*paths: Path) -> tuple[bytes, ...] | None:
    try:
        return tuple(path.read_bytes() for path in paths)
    except OSError:
        return None
