# SPDX-License-Identifier: Apache-2.0
"""Ask the NodeManager's REST pages: /ws/v1/node/{info,containers,apps}.

Bounded in time and size; every failure is one of `errors`. Authentication: simple (user.name) or none; a NodeManager
behind SPNEGO answers 401, which is reported with what opens its pages.
"""

from __future__ import annotations

import asyncio
import errno
import json
from typing import Final

import aiohttp

from nm_proxy.nodemanager.errors import (
    NodeManagerAnswerError,
    NodeManagerError,
    NodeManagerLoginError,
    NodeManagerRefusedError,
    NodeManagerTimeoutError,
    NodeManagerUnreachableError,
    cut,
)
from nm_proxy.nodemanager.model import ContainerReport, NodeInfo
from nm_proxy.nodemanager.pages import parse_applications, parse_containers, parse_info

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
_CHUNK_BYTES: Final = 65_536


class NodeManagerClient:
    """Hold one HTTP session to one NodeManager; belongs to one event loop."""

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float,
        user: str | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: of the web application, for example http://127.0.0.1:8042.
            timeout_seconds: for each whole answer.
            user: name for simple authentication; None sends none.
            max_answer_bytes: larger answers are refused.
        """
        self.url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._user = user
        self._max_answer_bytes = max_answer_bytes
        self._session: aiohttp.ClientSession | None = None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def containers(self) -> tuple[dict[str, ContainerReport], int]:
        """Ask for all containers; see `parse_containers`.

        Raises:
            NodeManagerError: see its subclasses.
        """
        return parse_containers(await self._get("/ws/v1/node/containers"))

    async def info(self) -> NodeInfo:
        """Ask for the node itself.

        Raises:
            NodeManagerError: see its subclasses.
        """
        return parse_info(await self._get("/ws/v1/node/info"))

    async def applications(self) -> dict[str, str]:
        """Ask for the states of applications by id.

        Raises:
            NodeManagerError: see its subclasses.
        """
        return parse_applications(await self._get("/ws/v1/node/apps"))

    async def _get(self, path: str) -> object:
        what = f"GET {self.url}{path}"
        try:
            async with asyncio.timeout(self._timeout_seconds):
                body = await self._body(what, path)
        except TimeoutError as error:
            raise NodeManagerTimeoutError(f"{what}: no whole answer within {self._timeout_seconds:g} s") from error
        except NodeManagerError:
            raise
        except aiohttp.ClientConnectorError as error:
            raise _not_connected(f"{what}: {cut(str(error))}", error) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NodeManagerAnswerError(f"{what}: {cut(str(error) or type(error).__name__)}") from error
        return _decoded(what, body)

    async def _body(self, what: str, path: str) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), trust_env=False)
        params = {"user.name": self._user} if self._user else None
        async with self._session.get(
            self.url + path, params=params, headers={"Accept": "application/json"}, allow_redirects=False
        ) as response:
            if response.status == 401:
                asked = ", ".join(response.headers.getall("WWW-Authenticate", ()))
                raise NodeManagerLoginError(f"{what}: 401, {_wanted_login(asked)}")
            if response.status != 200:
                text = (await response.content.read(1024)).decode("utf-8", "replace")
                raise NodeManagerAnswerError(f"{what}: {response.status} {cut(' '.join(text.split()))}")
            body = bytearray()
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                body += chunk
                if len(body) > self._max_answer_bytes:
                    raise NodeManagerAnswerError(f"{what}: the answer is larger than {self._max_answer_bytes} bytes")
        return bytes(body)


def _not_connected(text: str, error: aiohttp.ClientConnectorError) -> NodeManagerError:
    """Tell a port on which nobody listens, which is news of the NodeManager, from all else."""
    if error.errno == errno.ECONNREFUSED:
        return NodeManagerRefusedError(text)
    return NodeManagerUnreachableError(text)


def _wanted_login(asked: str) -> str:
    """Say what a NodeManager wants by its WWW-Authenticate, and which setting helps (hadoop-auth 3.3.6 and 3.5.0)."""
    if "negotiate" in asked.lower():
        return (
            "the pages want Kerberos, which nm-proxy does not speak; set hadoop.http.authentication.type to simple in "
            "the yarn-site.xml of this NodeManager"
        )
    if "pseudoauth" in asked.lower():
        return "the pages want a name; set node_manager.user"
    return f"the pages want a login: {cut(asked)!r}"


def _decoded(what: str, body: bytes) -> object:
    try:
        document: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        shown = cut(body[:512].decode("utf-8", "replace"))
        raise NodeManagerAnswerError(f"{what}: not JSON: {shown!r}") from error
    return document
