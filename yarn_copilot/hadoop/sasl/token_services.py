# SPDX-License-Identifier: Apache-2.0
"""Tell which of several tokens are for a cluster, by the service that each one names.

A service is `host:port`, or several with commas where a cluster has several ResourceManagers. Whoever fetched the token
wrote an IP address for the host (Hadoop's default), or the full host name in lower case, as
hadoop.security.token.service.use_ip says. The server does not look at it: it only helps to choose.
Source: SecurityUtil.buildTokenService, ClientRMProxy.getTokenService and RMDelegationTokenSelector of Hadoop 3.5.0.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable, Sequence

from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.sasl.tokens import DelegationToken

LookUp = Callable[[str], Iterable[str]]
"""Gives other names of a host; none where it cannot be resolved. May wait for a name server."""


def fitting_tokens(
    tokens: Iterable[DelegationToken], addresses: Sequence[Address], look_up: LookUp
) -> tuple[DelegationToken, ...]:
    """Choose the tokens for one of a cluster's client ports; without any, those that name it as its files write it.

    Args:
        tokens: of the right kind.
        addresses: the cluster's client ports.
        look_up: gives a host's names in the form that the cluster's tokens have.
    """
    known = tuple(tokens)
    named = {(_plain(name), address.port) for address in addresses for name in look_up(address.host)}
    written = {(_plain(address.host), address.port) for address in addresses}
    for wanted in (named, written):
        if found := tuple(token for token in known if wanted & _servers(token)):
            return found
    return ()


def look_up_for(*, uses_ip: bool) -> LookUp:
    """Give how to name hosts as the tokens do: by all their IP addresses, or by their full name."""
    return _ip_addresses if uses_ip else _full_name


def _servers(token: DelegationToken) -> set[tuple[str, int]]:
    found = set()
    for part in token.service.split(","):
        host, _, port = part.strip().rpartition(":")
        if host and port.isascii() and port.isdigit():
            found.add((_plain(host), int(port)))
    return found


def _plain(host: str) -> str:
    """Write a host in one way: Java writes all zeros of an IPv6 address, and no brackets."""
    bare = host.removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        return host.lower()


def _ip_addresses(host: str) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return []


def _full_name(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    except (OSError, UnicodeError):
        return []
    return [found[0][3]] if found[0][3] else []
