# SPDX-License-Identifier: Apache-2.0
"""Run the embedded API server: a free port on loopback, start, stop and restart with the same state."""

from __future__ import annotations

import json
import secrets
import socket
import ssl
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import web

from lab.embedded.kubernetes.calls import CallLog
from lab.embedded.kubernetes.faults import Faults
from lab.embedded.kubernetes.handling import Access, Handler
from lab.embedded.kubernetes.objects import Objects
from lab.embedded.kubernetes.resource_types import NODE_METRICS, ResourceTypes
from lab.embedded.kubernetes.scheduler import FirstFitScheduler
from lab.embedded.kubernetes.store import Store
from lab.embedded.kubernetes.writing import Writer
from lab.processes.certificates import make_certificate


class EmbeddedKubernetes:
    """Be an API server; `async with` starts it on a free port of 127.0.0.1 and stops it.

    Args:
        node_metrics: whether the NodeMetric kind is served from the start.
        tls: serve https with a certificate made for this instance (needs the openssl program).
        bookmark_seconds: time between bookmarks of a watch.

    Attributes:
        url: base URL; the port stays over `stop_api_server` and `start_api_server`.
        token: bearer token of a user who may do everything.
        objects: the state, without HTTP.
        calls: what was asked.
        faults: what goes wrong.
    """

    def __init__(self, *, node_metrics: bool = True, tls: bool = False, bookmark_seconds: float = 60.0) -> None:
        self.token = secrets.token_hex(16)
        self.faults = Faults()
        self.calls = CallLog()
        self._types = ResourceTypes()
        self._store = Store()
        self._access = Access({self.token: "admin"})
        self._handler = Handler(self._store, self._types, self._access, self.faults, self.calls)
        self._handler.bookmark_seconds = bookmark_seconds
        self.objects = Objects(self._store, self._types)
        self._tls = tls
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._port = 0
        self._server: web.Server | None = None
        self._runner: web.ServerRunner | None = None
        if node_metrics:
            self.serve_node_metrics()
        for name in ("default", "kube-system", "koordinator-system"):
            self.objects.create("namespaces", {"metadata": {"name": name}})

    async def __aenter__(self) -> EmbeddedKubernetes:
        if self._tls:
            self._folder = tempfile.TemporaryDirectory(prefix="embedded-kubernetes-")
            make_certificate(Path(self._folder.name))
        await self.start_api_server()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop_api_server()
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def url(self) -> str:
        """Give scheme, address and port."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    @property
    def ca_file(self) -> Path | None:
        """Give the certificate to trust, None without TLS."""
        return Path(self._folder.name) / "tls.crt" if self._folder is not None else None

    @property
    def version(self) -> int:
        """Give the current resourceVersion."""
        return self._store.version

    async def start_api_server(self) -> None:
        """Listen; the second time on the same port."""
        self._server = web.Server(self._handler, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.05)
        await self._runner.setup()
        listening = _listen(self._port)
        self._port = listening.getsockname()[1]
        await web.SockSite(self._runner, listening, ssl_context=self._server_context()).start()

    async def stop_api_server(self, *, forget_history: bool = False) -> None:
        """Cut all connections and stop listening; the state stays.

        Args:
            forget_history: answer older watches with 410 afterwards, as a fresh watch cache does.
        """
        if self._runner is None or self._server is None:
            return
        self.cut_connections()
        await self._runner.cleanup()
        self._runner = self._server = None
        if forget_history:
            self.compact()

    def cut_connections(self) -> None:
        """Reset every open connection, watches included; the server goes on listening."""
        for connection in list(self._server.connections) if self._server is not None else ():
            if connection.transport is not None:
                connection.transport.abort()

    def end_watches(self) -> None:
        """End all open watches properly, as after their timeoutSeconds."""
        for watch in list(self._handler.watches):
            watch.end()

    def compact(self) -> None:
        """Forget all changes and continue tokens: what refers to an older version is answered 410."""
        self._store.compact()
        self._handler.lister.expire_tokens()

    def expire_continue_tokens(self) -> None:
        """Answer every continue token given so far with 410."""
        self._handler.lister.expire_tokens()

    def serve_node_metrics(self) -> None:
        """Serve the NodeMetric kind, as after its CRD was created."""
        self._types.add(NODE_METRICS)

    def stop_serving_node_metrics(self) -> None:
        """Answer 404 for the NodeMetric kind, as before its CRD was created."""
        self._types.remove(NODE_METRICS)

    def forbid(self, plural: str, verb: str | None = None) -> None:
        """Refuse a verb (None: all) on a kind with 403, for everybody."""
        self._access.forbidden.add((verb, plural))

    def allow(self, plural: str, verb: str | None = None) -> None:
        """Take a `forbid` back."""
        self._access.forbidden.discard((verb, plural))

    def add_user(self, name: str) -> str:
        """Make another user and give its token."""
        token = secrets.token_hex(16)
        self._access.users[token] = name
        return token

    def rotate_token(self) -> str:
        """Replace the token: the old one is refused with 401 from now on."""
        user = self._access.users.pop(self.token)
        self.token = secrets.token_hex(16)
        self._access.users[self.token] = user
        return self.token

    def kubeconfig(self, path: Path, *, token: str | None = None) -> Path:
        """Write a kubeconfig for this server and give its path."""
        cluster: dict[str, Any] = {"server": self.url}
        if self.ca_file is not None:
            cluster["certificate-authority"] = str(self.ca_file)
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "embedded", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": token or self.token}}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "user"}}],
            "current-context": "embedded",
        }
        path.write_text(json.dumps(document, indent=2), encoding="utf-8")
        path.chmod(0o600)
        return path

    def scheduler(self) -> FirstFitScheduler:
        """Give a scheduler for this server's pods; the caller runs it as a task."""
        return FirstFitScheduler(self._store, Writer(self._store, self._types))

    def _server_context(self) -> ssl.SSLContext | None:
        if self._folder is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(self._folder.name) / "tls.crt", Path(self._folder.name) / "tls.key")
        return context


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(1024)
    listening.setblocking(False)
    return listening
