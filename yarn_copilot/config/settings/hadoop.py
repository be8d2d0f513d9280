# SPDX-License-Identifier: Apache-2.0
"""Model how the ResourceManagers are reached."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field

from yarn_copilot.config.settings.base import FilePath, Seconds, Section


class Transport(StrEnum):
    """Choose how a ResourceManager is reached."""

    RPC = "rpc"
    REST = "rest"


TransportChoice = Annotated[Transport, Field(strict=False)]
"""Hold a transport, written as text."""


class HadoopSettings(Section):
    """Say how to reach the ResourceManagers."""

    conf_dir: FilePath = Field(
        Path("/etc/hadoop/conf"),
        description="Hadoop configuration directory with yarn-site.xml, or <cluster>.yarn-site.xml for each of several clusters, and core-site.xml.",
    )
    user: str = Field(
        "yarn",
        min_length=1,
        max_length=64,
        description="User to call as with simple authentication; must be in yarn.admin.acl.",
    )
    proxy_user: str | None = Field(
        None,
        min_length=1,
        max_length=256,
        description="User in whose name calls are made, over RPC and to web services with Kerberos; hadoop.proxyuser rules of the ResourceManager must allow it. Unset: nobody else. $HADOOP_PROXY_USER stands for it.",
    )
    kerberos_principal: str | None = Field(
        None,
        min_length=1,
        max_length=256,
        description="Who to be where Hadoop's files say hadoop.security.authentication = kerberos: name[/host][@REALM], _HOST is this host's name. Unset: whoever the keytab or the tickets belong to.",
    )
    kerberos_keytab: FilePath | None = Field(
        None,
        description="Keytab of kerberos_principal. Tickets are got with it, kept in memory and renewed before they end. Unset: tickets that somebody else keeps (kerberos_ticket_cache).",
    )
    kerberos_ticket_cache: str | None = Field(
        None,
        min_length=1,
        max_length=512,
        description="Ticket cache to use without a keytab, for example FILE:/tmp/krb5cc_0; unset: $KRB5CCNAME, else the library's default.",
    )
    token_file: FilePath | None = Field(
        None,
        description="Hadoop token file (format java) with an RM_DELEGATION_TOKEN for RPC reads, read for each connection so that it can be renewed; updates need Kerberos. Unset: none. $HADOOP_TOKEN_FILE_LOCATION stands for it.",
    )
    call_timeout_seconds: Seconds = Field(
        4.0,
        gt=0,
        le=60,
        description="Deadline of one RPC, seconds. Must be below leader_election.renew_deadline_seconds, so that a deposed leader has no call in flight.",
    )
    connect_timeout_seconds: Seconds = Field(2.0, gt=0, le=60, description="Deadline of a TCP connect, seconds.")
    max_response_bytes: int = Field(
        134_217_728,
        ge=1_048_576,
        le=2_147_483_647,
        description="Largest response read, bytes; Hadoop's own ipc.maximum.response.length.",
    )
    transport: TransportChoice = Field(
        Transport.RPC,
        description="rpc: Hadoop RPC on the client and admin ports. rest: the web services, which are weaker (see hadoop.md): no admin ACL, one node a call, no custom resource types.",
    )
    cluster_transports: dict[str, TransportChoice] = Field(
        {}, description="Transport of single clusters, by cluster id, where it differs from hadoop.transport."
    )
    web_ca_file: FilePath | None = Field(
        None,
        description="PEM file with the authorities that sign the certificates of ResourceManagers' web services; unset: the system's own.",
    )
    delegation_token_file: FilePath | None = Field(
        None,
        description="File with a delegation token for the web services (one line), read for each call so that it can be renewed; unset: the Kerberos login where the web services ask for it, else hadoop.user as user.name.",
    )
    allow_unsafe_version: bool = Field(
        False,
        description="Send updates to ResourceManagers older than 3.3.1 too, although one can crash their scheduler (YARN-10651). True only where the vendor has mended that.",
    )
