# SPDX-License-Identifier: Apache-2.0
"""Tell what an HTTP answer of a ResourceManager means, and turn bad ones into the errors of this adapter.

Error bodies have the shape `{"RemoteException":{"exception":..,"message":..,"javaClassName":..}}`. A standby answers
307 with `Location`, or 200 with a sentence when it knows no active one. Source: RMWebAppFilter and
GenericExceptionHandler of Hadoop 3.5.0; what a Hadoop IPC port says to HTTP: ipc.Server.
"""

from __future__ import annotations

import html
import os
import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

import aiohttp
import msgspec
from yarl import URL

from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.addresses import Address

_STANDBY_WORDS: Final = (b"This is standby RM", b"There is no active RM")
_IPC_WORDS: Final = (b"Hadoop IPC port", b"Hadoop RPC port")
_YARN_EXCEPTION: Final = "org.apache.hadoop.yarn.exceptions.YarnException"
_UNRECOGNIZED: Final = "unrecognized node:"
_PAGE_MESSAGE: Final = re.compile(r"<th>MESSAGE:</th><td>(.*?)</td>", re.IGNORECASE | re.DOTALL)
_PAGE_TITLE: Final = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_STATIC_USER: Final = "default static user"
_STATIC_USER_REASON: Final = "(the web service was told no user: it ignores user.name, or a token or login is missing)"
_WANTS_KERBEROS: Final = (
    "(the web service wants Kerberos: set hadoop.http.authentication.type = kerberos in the files here, and "
    "hadoop.kerberos_keytab; or give a hadoop.delegation_token_file)"
)
_AUTHENTICATION_REASONS: Final = (
    ("Clock skew", "(the clocks of this host and the web service differ by too much)"),
    ("Checksum failed", "(its keytab's key is not the one that the KDC has)"),
    ("Cannot find key", "(its keytab has no key for the ticket)"),
    ("InvalidToken", "(the delegation token is over, cancelled, or of another cluster)"),
    ("can't be found in cache", "(the delegation token is over, cancelled, or of another cluster)"),
    ("token is expired", "(the delegation token is over; whoever keeps it has to renew it)"),
    ("GSSException", "(see the web service's log and its HTTP principal)"),
)
"""Words of hadoop-auth and of Java's Kerberos in refusals, and what they mean; the first that fits is told."""
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))


class WebStandbyError(errors.StandbyError):
    """Say that this ResourceManager is not the active one.

    Attributes:
        hint: the active one's address as the answer names it, if the configuration has it too.
    """

    hint: Address | None = None


class NodeListError(errors.RemoteCallError):
    """Say that the ResourceManager cannot render its node list, because one node's report breaks all of it."""

    may_have_been_applied = False


def asks_for_negotiate(headers: Mapping[str, str]) -> bool:
    """Tell whether a 401 wants SPNEGO."""
    return headers.get("WWW-Authenticate", "").strip().lower().startswith("negotiate")


def check(status: int, headers: Mapping[str, str], body: bytes, *, what: str, known: Sequence[Address]) -> None:
    """Let a good answer pass.

    Args:
        status: HTTP status.
        headers: of the answer, looked up without regard to case.
        body: the body, perhaps cut for a bad status.
        what: the call, for the error's text.
        known: addresses of the configuration.

    Raises:
        HadoopRPCError: the answer is not a JSON document with status 200.
    """
    if status == 200:
        _check_document(headers, body, what)
        return
    if any(words in body[:4096] for words in _IPC_WORDS):
        raise errors.WrongPortError(f"{what}: this is a Hadoop RPC port, not the web service's")
    if status in _REDIRECTS:
        raise _redirect(headers, body, what, known)
    if status in (401, 403):
        raise _denied(status, headers, body, what)
    raise _failure(status, body, what)


def from_client_error(error: aiohttp.ClientError, *, what: str) -> errors.HadoopRPCError:
    """Turn an exception of aiohttp into one of ours."""
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            cause = error.__cause__ or error
            if isinstance(cause, ssl.SSLError) and cause.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
                return errors.WrongPortError(f"{what}: the port does not speak TLS; look at yarn.http.policy")
            return errors.ConnectError(f"{what}: TLS failed: {str(error)[:256]}")
        case aiohttp.ConnectionTimeoutError() | aiohttp.ClientConnectorError():
            return errors.ConnectError(f"{what}: cannot connect: {_reason(error)}")
        case aiohttp.ClientResponseError() | aiohttp.ClientPayloadError():
            return errors.ProtocolViolationError(f"{what}: no proper HTTP answer: {str(error)[:256]}")
        case _:
            return errors.ConnectionLostError(f"{what}: the connection ended: {str(error)[:256]}")


def _reason(error: aiohttp.ClientError) -> str:
    """Say why no connection came about, in the words of the operating system where it has some."""
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno
        if number is not None and number > 0:
            return os.strerror(number)
    return str(error)[:256]


def _check_document(headers: Mapping[str, str], body: bytes, what: str) -> None:
    if any(words in body[:4096] for words in _STANDBY_WORDS):
        raise WebStandbyError("", _first_line(body), method=what)
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", ""):
        raise errors.ProtocolViolationError(
            f"{what}: answered {kind[:64]!r} instead of JSON: {_first_line(body)!r}; is this the web port of a "
            "ResourceManager, or does a login page stand before it?"
        )
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        raise errors.ProtocolViolationError(f"{what}: the answer is compressed, which was not asked for")


def _redirect(headers: Mapping[str, str], body: bytes, what: str, known: Sequence[Address]) -> errors.HadoopRPCError:
    location = headers.get("Location", "")
    if any(words in body for words in _STANDBY_WORDS) or not location or "Refresh" in headers:
        return _standby(location, _first_line(body), what, known)
    host, port = _host_and_port(location)
    if Address(host, port) in known:
        return _standby(location, f"redirected to {host}:{port}", what, known)
    return errors.AccessDeniedError(
        "", f"redirected to {host[:128]}:{port}, which is not in the configuration; not followed", method=what
    )


def _standby(location: str, text: str, what: str, known: Sequence[Address]) -> WebStandbyError:
    error = WebStandbyError("", text or "not the active ResourceManager", method=what)
    target = Address(*_host_and_port(location))
    error.hint = target if target in known else None
    return error


def _host_and_port(location: str) -> tuple[str, int]:
    try:
        url = URL(location)
    except ValueError:
        return "", 0
    return url.host or "", url.port or 0


def _denied(status: int, headers: Mapping[str, str], body: bytes, what: str) -> errors.AccessDeniedError:
    """Tell a refusal of who we are from one of what we may; a reason of the Kerberos library gets words of its own."""
    class_name, message = _remote(body, f"HTTP {status}")
    if _STATIC_USER in message:
        return errors.AccessDeniedError(class_name, f"{message} {_STATIC_USER_REASON}", method=what)
    said = next((reason for words, reason in _AUTHENTICATION_REASONS if words.lower() in message.lower()), "")
    if status == 401 and not said and asks_for_negotiate(headers):
        said = _WANTS_KERBEROS
    if status == 401 or said:
        return errors.AuthenticationRefusedError(class_name, f"{message} {said}".strip(), method=what)
    return errors.AccessDeniedError(class_name, message, method=what)


def _failure(status: int, body: bytes, what: str) -> errors.HadoopRPCError:
    class_name, message = _remote(body, f"HTTP {status}")
    if _UNRECOGNIZED in message or _UNRECOGNIZED.encode() in body:
        return errors.UnrecognizedNodeError(class_name, message, method=what)
    if "NullPointerException" in class_name and what.endswith("/ws/v1/cluster/nodes"):
        return NodeListError(
            class_name,
            "the ResourceManager cannot write its node list, because the report of one node breaks all of it; "
            "use transport rpc, which is not affected",
            method=what,
        )
    if status == 503 and not class_name:
        return errors.ServerBusyError(class_name, message, method=what)
    return errors.from_remote_exception(class_name or _YARN_EXCEPTION, message, method=what)


def _remote(body: bytes, otherwise: str) -> tuple[str, str]:
    """Give Java class name and first line of the message of an error body.

    The web services write a RemoteException, filters before them a page of Jetty: JSON with a message, or HTML.
    """
    try:
        document: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return "", f"{otherwise}: {_first_line(body)}"
    page = document if isinstance(document, dict) else {}
    remote = page.get("RemoteException")
    if not isinstance(remote, dict):
        return "", f"{otherwise}: {_first_line(str(page.get('message') or '').encode() or body)}"
    class_name = str(remote.get("javaClassName") or remote.get("exception") or "")
    return class_name, str(remote.get("message") or "").partition("\n")[0] or otherwise


def _first_line(body: bytes) -> str:
    """Give what a body says first; of an HTML page that is its message, else its title."""
    text = body[:2048].decode(errors="replace").strip()
    if found := _PAGE_MESSAGE.search(text) or _PAGE_TITLE.search(text):
        text = html.unescape(found[1]).strip() or text
    return text.partition("\n")[0][: errors.REMOTE_TEXT_LIMIT]
