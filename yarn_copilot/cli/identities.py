# SPDX-License-Identifier: Apache-2.0
"""Say who this program is to Hadoop: from the settings and the cluster's own files."""

from __future__ import annotations

import functools
import socket
from pathlib import Path

from yarn_copilot.config.settings import HadoopSettings
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import security
from yarn_copilot.hadoop.authentication import Identity
from yarn_copilot.hadoop.configuration import ClusterConfiguration
from yarn_copilot.hadoop.kerberos import KerberosLogin
from yarn_copilot.hadoop.rest.authentication import WebIdentity, token_file
from yarn_copilot.hadoop.rest.negotiating import KerberosNegotiator
from yarn_copilot.hadoop.sasl import token_services
from yarn_copilot.hadoop.sasl.principals import Principal, user_of_principal
from yarn_copilot.hadoop.sasl.tokens import RM_TOKEN_KIND, DelegationToken, read_token_file


def identity_of(cluster: ClusterConfiguration, hadoop: HadoopSettings) -> Identity:
    """Join what a cluster asks for with who we are.

    Raises:
        ConfigError: the two do not fit, or a principal is malformed.
    """
    token_file = hadoop.token_file
    return Identity(
        user=hadoop.user,
        proxy_user=hadoop.proxy_user,
        login=_login(hadoop),
        read_token=None if token_file is None else functools.partial(_token, token_file, cluster),
        security=_security(cluster),
    )


def _security(cluster: ClusterConfiguration) -> security.ClusterSecurity:
    asked = cluster.security
    try:
        return security.read_security(
            {
                security.AUTHENTICATION_KEY: asked.authentication,
                security.PROTECTION_KEY: ",".join(asked.rpc_protection),
                security.PRINCIPAL_KEY: asked.principal or "",
                security.PATTERN_KEY: asked.principal_pattern or "",
                security.FALLBACK_KEY: str(asked.falls_back_to_simple).lower(),
            }
        )
    except ConfigError as error:
        raise ConfigError(f"cluster {cluster.id}: {error}") from error


def web_identity_of(cluster: ClusterConfiguration, hadoop: HadoopSettings) -> WebIdentity:
    """Say who calls a cluster's web services: the same login as over RPC where either side has Kerberos.

    A user name is sent too: a service with simple authentication believes it, one with Kerberos ignores it.

    Raises:
        ConfigError: a principal is malformed.
    """
    asked = cluster.security
    has_kerberos = asked.is_kerberos or asked.is_web_kerberos
    token = hadoop.delegation_token_file
    return WebIdentity(
        user=hadoop.user,
        token=None if token is None else token_file(token),
        negotiator=KerberosNegotiator(_login(hadoop)) if has_kerberos and token is None else None,
        do_as=hadoop.proxy_user if asked.is_web_kerberos else None,
    )


def caller_of(cluster: ClusterConfiguration, hadoop: HadoopSettings) -> str:
    """Name who calls a cluster, for people: the principal with Kerberos, else the user; and in whose name.

    Where the cluster's hadoop.security.auth_to_local has only the rule DEFAULT, the user that it gives is named too.
    """
    who = hadoop.user
    if cluster.security.is_kerberos:
        who = _principal_and_user(cluster, hadoop.kerberos_principal or "")
    return f"{who} in the name of {hadoop.proxy_user}" if hadoop.proxy_user else who


def _principal_and_user(cluster: ClusterConfiguration, text: str) -> str:
    if not text:
        return "the owner of the Kerberos tickets"
    rules = (cluster.security.auth_to_local or "DEFAULT").split()
    try:
        principal = Principal.parse(text)
        user = user_of_principal(principal, default_realm=principal.realm)
    except ConfigError:
        return text
    return f"{text} (user {user})" if rules == ["DEFAULT"] else text


def _login(hadoop: HadoopSettings) -> KerberosLogin:
    principal = None
    if hadoop.kerberos_principal is not None:
        try:
            principal = Principal.parse(hadoop.kerberos_principal).with_host(socket.getfqdn())
        except ConfigError as error:
            raise ConfigError(f"hadoop.kerberos_principal: {error}") from error
    return KerberosLogin(principal, hadoop.kerberos_keytab, hadoop.kerberos_ticket_cache)


def _token(path: Path, cluster: ClusterConfiguration) -> DelegationToken:
    """Choose a cluster's token; it is read for every connection, so that it can be renewed.

    The only one there is serves whatever it names. Among several, names of hosts may have to be looked up.
    """
    tokens = [token for token in read_token_file(path) if token.kind == RM_TOKEN_KIND]
    if len(tokens) == 1:
        return tokens[0]
    look_up = token_services.look_up_for(uses_ip=cluster.security.token_service_uses_ip)
    fitting = token_services.fitting_tokens(tokens, cluster.client_addresses, look_up)
    if len(fitting) != 1:
        raise ConfigError(
            f"{path}: has {len(tokens)} tokens of kind {RM_TOKEN_KIND}, "
            f"{len(fitting)} of them for {', '.join(map(str, cluster.client_addresses))}"
        )
    return fitting[0]
