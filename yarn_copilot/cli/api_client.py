# SPDX-License-Identifier: Apache-2.0
"""Read a running controller's HTTP API, with answers a person can act on when that fails."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlsplit

import requests

from yarn_copilot.cli.errors import CommandError

_CONNECT_TIMEOUT_SECONDS: Final = 3.0
_READ_TIMEOUT_SECONDS: Final = 30.0
_HOW: Final = (
    "Is the controller running? In a cluster: kubectl -n NAMESPACE port-forward deploy/yarn-copilot 8080, "
    "then try again; elsewhere give its address with --url or YARN_COPILOT_URL."
)


class APIClient:
    """Read JSON from one controller."""

    def __init__(self, url: str, *, read_timeout_seconds: float = _READ_TIMEOUT_SECONDS) -> None:
        """Check the address; nothing is sent yet.

        Raises:
            CommandError: it is not an http or https URL.
        """
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise CommandError(f"--url {url!r} is not a URL such as http://127.0.0.1:8080")
        self._url = url.rstrip("/")
        self._read_timeout_seconds = read_timeout_seconds

    def get(self, path: str) -> dict[str, Any]:
        """Read one endpoint below `/api/v1`.

        Raises:
            CommandError: unreachable, slow, refused, not found, or not a yarn-copilot.
        """
        url = f"{self._url}/api/v1/{path}"
        try:
            response = requests.get(url, timeout=(_CONNECT_TIMEOUT_SECONDS, self._read_timeout_seconds))
        except requests.exceptions.SSLError as error:
            raise CommandError(f"{self._url}: TLS failed: {_cut(error)}") from error
        except requests.exceptions.ConnectTimeout as error:
            raise CommandError(f"{self._url}: no connection within {_CONNECT_TIMEOUT_SECONDS:g} s. {_HOW}") from error
        except requests.exceptions.Timeout as error:
            raise CommandError(
                f"{self._url}: connected, but no answer within {self._read_timeout_seconds:g} s; "
                "see the controller's log"
            ) from error
        except requests.exceptions.ConnectionError as error:
            refused = "connection refused" if "refused" in str(error).lower() else _cut(error)
            raise CommandError(f"{self._url}: {refused}. {_HOW}") from error
        except requests.exceptions.RequestException as error:
            raise CommandError(f"{self._url}: {_cut(error)}") from error
        return self._content(response)

    def get_node(self, name: str, suffix: str = "") -> dict[str, Any]:
        """Read one node, or with suffix `/explain` its explanation."""
        return self.get(f"nodes/{quote(name, safe='')}{suffix}")

    def _content(self, response: requests.Response) -> dict[str, Any]:
        try:
            content = response.json()
        except requests.exceptions.JSONDecodeError:
            content = None
        if not isinstance(content, dict) or "leader" not in content:
            raise CommandError(
                f"{response.url}: answered {response.status_code} but is not a yarn-copilot; check --url"
            )
        if response.status_code >= 400:
            raise CommandError(str(content.get("error", f"answered {response.status_code}")))
        return content


def _cut(error: Exception) -> str:
    return str(error)[:256]
