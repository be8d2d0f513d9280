# SPDX-License-Identifier: Apache-2.0
"""Check a server's principal against the configuration, and make user names of principals.

Source: SaslRpcClient.getServerPrincipal, SecurityUtil.getServerPrincipal and KerberosName of Hadoop 3.5.0.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.errors import REMOTE_TEXT_LIMIT, ServerIdentityError
from yarn_copilot.hadoop.sasl import globs
from yarn_copilot.hadoop.sasl.messages import Auth

HOST_PLACEHOLDER: Final = "_HOST"
_PRINCIPAL: Final = re.compile(r"(?P<name>[^/@]+)(?:/(?P<instance>[^/@]+))?(?:@(?P<realm>[^/@]+))?")


class Principal(Struct, frozen=True):
    """Hold `name/instance@REALM`; instance and realm may be empty."""

    name: str
    instance: str = ""
    realm: str = ""

    def __str__(self) -> str:
        instance = f"/{self.instance}" if self.instance else ""
        return f"{self.name}{instance}" + (f"@{self.realm}" if self.realm else "")

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Read a principal.

        Raises:
            ConfigError: it has another form.
        """
        match = _PRINCIPAL.fullmatch(text.strip())
        if match is None:
            raise ConfigError(f"{text[:256]!r} is no Kerberos principal (name/host@REALM)")
        return cls(match["name"], match["instance"] or "", match["realm"] or "")

    def with_host(self, host: str) -> Principal:
        """Put a host name where the configuration says _HOST."""
        instance = host.lower().rstrip(".") if self.instance == HOST_PLACEHOLDER else self.instance
        return Principal(self.name, instance, self.realm)


class ServerPrincipals(Struct, frozen=True):
    """Say which servers are the right ones.

    Attributes:
        principal: yarn.resourcemanager.principal, perhaps with _HOST; None where the key is absent.
        pattern: yarn.resourcemanager.principal.pattern, a glob; where it is set it alone decides.
        realm: the realm of servers where the configured principal names none; empty: the library's default realm.
    """

    principal: Principal | None = None
    pattern: str = ""
    realm: str = ""

    def accept(self, auth: Auth, host: str) -> Principal:
        """Give the server's principal if it is one of ours.

        Args:
            auth: the server's offer.
            host: canonical name of the host that was dialled.

        Raises:
            ServerIdentityError: it is another one, or nothing is configured.
        """
        realm = self._realm()
        offered = Principal(auth.protocol, auth.server_id, realm)
        shown = str(offered)[:REMOTE_TEXT_LIMIT]
        if self.pattern:
            if not self._fits(str(offered)):
                raise ServerIdentityError(
                    f"the server is {shown}, which yarn.resourcemanager.principal.pattern = {self.pattern!r} "
                    "does not match"
                )
            return offered
        if self.principal is None:
            raise ServerIdentityError(f"the server is {shown}, but yarn.resourcemanager.principal is not configured")
        expected = self.principal.with_host(host)
        if (offered.name, offered.instance.lower()) != (expected.name, expected.instance.lower()):
            raise ServerIdentityError(
                f"the server is {shown}, but yarn.resourcemanager.principal = {self.principal} means {expected} for "
                f"host {host}"
            )
        return offered

    def _realm(self) -> str:
        """Give the realm that the configuration names, in the principal or, without blanks to fill, in the pattern."""
        if self.principal is not None and self.principal.realm:
            return self.principal.realm
        named = self.pattern.rpartition("@")[2] if "@" in self.pattern else ""
        return named if named and not set(named) & set("*?[]{}\\") else self.realm

    def _fits(self, name: str) -> bool:
        try:
            return globs.matches(self.pattern, name)
        except ValueError as error:
            raise ServerIdentityError(f"yarn.resourcemanager.principal.pattern = {self.pattern!r}: {error}") from error


def user_of_principal(principal: Principal, *, default_realm: str) -> str:
    """Make a user name as the rule DEFAULT of hadoop.security.auth_to_local does: the first part, in one's own realm.

    Args:
        principal: name with or without instance and realm.
        default_realm: realm whose names are taken over.

    Raises:
        ConfigError: the principal is of another realm; only a RULE of the ResourceManager could map it.
    """
    if principal.realm and principal.realm != default_realm:
        raise ConfigError(
            f"{principal} is not of the realm {default_realm}: the rule DEFAULT of hadoop.security.auth_to_local gives "
            "it no user name"
        )
    return principal.name
