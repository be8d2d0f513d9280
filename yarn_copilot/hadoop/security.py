# SPDX-License-Identifier: Apache-2.0
"""Hold what a cluster's Hadoop configuration says about authentication.

Source of keys and defaults: core-default.xml and yarn-default.xml of Hadoop 3.5.0, SaslRpcClient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.sasl.principals import Principal, ServerPrincipals
from yarn_copilot.hadoop.sasl.protection import Protection, parse_protections

AUTHENTICATION_KEY: Final = "hadoop.security.authentication"
PROTECTION_KEY: Final = "hadoop.rpc.protection"
FALLBACK_KEY: Final = "ipc.client.fallback-to-simple-auth-allowed"
PRINCIPAL_KEY: Final = "yarn.resourcemanager.principal"
PATTERN_KEY: Final = "yarn.resourcemanager.principal.pattern"


class AuthenticationMethod(StrEnum):
    """Give the values of hadoop.security.authentication that are understood."""

    SIMPLE = "simple"
    KERBEROS = "kerberos"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSecurity:
    """Say how the servers of one cluster want to be talked to.

    Attributes:
        method: hadoop.security.authentication.
        servers: which Kerberos principals the ResourceManagers have.
        protections: hadoop.rpc.protection, the best liked first.
        fallback_to_simple: go on without authentication where a server asks for none.
    """

    method: AuthenticationMethod = AuthenticationMethod.SIMPLE
    servers: ServerPrincipals = field(default_factory=ServerPrincipals)
    protections: tuple[Protection, ...] = (Protection.AUTHENTICATION,)
    fallback_to_simple: bool = False


def read_security(properties: Mapping[str, str]) -> ClusterSecurity:
    """Take what matters out of the merged properties of core-site.xml and yarn-site.xml, substitution done.

    Raises:
        ConfigError: a value is not understood; the text names its key.
    """
    method = properties.get(AUTHENTICATION_KEY, "").strip().lower() or AuthenticationMethod.SIMPLE
    if method not in tuple(AuthenticationMethod):
        raise ConfigError(f"{AUTHENTICATION_KEY} = {method[:64]!r}, allowed are simple and kerberos")
    return ClusterSecurity(
        method=AuthenticationMethod(method),
        servers=_servers(properties),
        protections=parse_protections(properties.get(PROTECTION_KEY, "").strip() or "authentication"),
        fallback_to_simple=_flag(properties, FALLBACK_KEY),
    )


def _servers(properties: Mapping[str, str]) -> ServerPrincipals:
    text = properties.get(PRINCIPAL_KEY, "").strip()
    try:
        principal = Principal.parse(text) if text else None
    except ConfigError as error:
        raise ConfigError(f"{PRINCIPAL_KEY}: {error}") from error
    if principal is not None and not principal.instance:
        raise ConfigError(f"{PRINCIPAL_KEY} = {text!r} has no host part; a server's principal is name/host@REALM")
    return ServerPrincipals(principal=principal, pattern=properties.get(PATTERN_KEY, "").strip())


def _flag(properties: Mapping[str, str], key: str) -> bool:
    value = properties.get(key, "").strip().lower()
    if value not in ("", "true", "false"):
        raise ConfigError(f"{key} = {value[:64]!r}, allowed are true and false")
    return value == "true"
