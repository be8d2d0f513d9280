# SPDX-License-Identifier: Apache-2.0
"""Join settings, Hadoop's files and Hadoop's environment variables to one identity."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from yarn_copilot.cli.environment import with_hadoop_variables
from yarn_copilot.cli.identities import caller_of, identity_of, web_identity_of
from yarn_copilot.config.loading import parse_settings
from yarn_copilot.config.settings import HadoopSettings
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import errors, security
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.configuration import (
    ClusterConfiguration,
    ResourceManagerAddresses,
    SecurityConfiguration,
)
from yarn_copilot.hadoop.sasl.principals import Principal
from yarn_copilot.hadoop.sasl.protection import Protection


def cluster(host: str = "rm", **asked: Any) -> ClusterConfiguration:
    """Describe a cluster whose files ask for something."""
    addresses = ResourceManagerAddresses(rm_id="", client=Address(host, 8032), admin=Address(host, 8033))
    return ClusterConfiguration(id="c", resource_managers=(addresses,), security=SecurityConfiguration(**asked))


def test_hadoops_variables_stand_for_settings_and_the_programs_own_win() -> None:
    environ = {
        "HADOOP_USER_NAME": "hadoop",
        "HADOOP_PROXY_USER": "alice",
        "HADOOP_TOKEN_FILE_LOCATION": "/tokens",
        "YARN_COPILOT_HADOOP__PROXY_USER": "bob",
    }
    hadoop = parse_settings(b"hadoop: {user: yarn}", "file", with_hadoop_variables(environ)).hadoop
    assert (hadoop.user, hadoop.proxy_user, hadoop.token_file) == ("hadoop", "bob", Path("/tokens"))
    assert with_hadoop_variables({"HADOOP_USER_NAME": ""}) == {"HADOOP_USER_NAME": ""}


def test_what_the_files_say_of_a_server_without_authentication_is_taken_and_a_change_counts() -> None:
    asked = cluster(falls_back_to_simple=True)
    assert identity_of(asked, HadoopSettings()).security.fallback_to_simple
    assert asked != cluster()


def test_a_principal_of_no_server_is_refused_with_the_cluster_and_the_key() -> None:
    with pytest.raises(ConfigError, match=r"^cluster c: yarn\.resourcemanager\.principal = 'rm@R' has no host part"):
        identity_of(cluster(authentication="kerberos", principal="rm@R"), HadoopSettings())


def test_simple_cluster_gets_a_user_name_and_no_handshake() -> None:
    identity = identity_of(cluster(), HadoopSettings(user="yarn", proxy_user="alice"))
    assert not identity.needs_handshake
    assert identity.context_users("SIMPLE") == ("alice", "yarn")


def test_kerberos_cluster_gets_what_its_files_and_the_settings_say() -> None:
    hadoop = HadoopSettings(
        kerberos_principal="copilot/_HOST@EXAMPLE", kerberos_keytab=Path("/keytab"), kerberos_ticket_cache="FILE:/t"
    )
    asked = cluster(authentication="kerberos", rpc_protection=("privacy", "integrity"), principal="rm/_HOST@EXAMPLE")
    identity = identity_of(asked, hadoop)
    assert identity.needs_handshake
    assert identity.security.protections == (Protection.PRIVACY, Protection.INTEGRITY)
    assert identity.security.method is security.AuthenticationMethod.KERBEROS
    assert identity.login.principal == Principal("copilot", socket.getfqdn().lower().rstrip("."), "EXAMPLE")
    assert (identity.login.keytab, identity.login.ticket_cache) == (Path("/keytab"), "FILE:/t")
    assert identity.context_users("KERBEROS") == (None, None)


@pytest.mark.parametrize(
    ("asked", "hadoop", "text"),
    [
        pytest.param({}, {}, "yarn", id="simple"),
        pytest.param({}, {"proxy_user": "alice"}, "yarn in the name of alice", id="proxy user"),
        pytest.param(
            {"authentication": "kerberos"}, {"kerberos_principal": "copilot/h@X"}, "copilot/h@X (user copilot)",
            id="DEFAULT",
        ),
        pytest.param(
            {"authentication": "kerberos", "auth_to_local": "RULE:[1:$1]\nDEFAULT"},
            {"kerberos_principal": "copilot@X"}, "copilot@X", id="rules of the ResourceManager",
        ),
        pytest.param({"authentication": "kerberos"}, {}, "the owner of the Kerberos tickets", id="tickets"),
    ],
)  # fmt: skip
def test_who_calls_is_named_for_people(asked: dict[str, Any], hadoop: dict[str, Any], text: str) -> None:
    assert caller_of(cluster(**asked), HadoopSettings(**hadoop)) == text


@pytest.mark.parametrize(
    ("asked", "has_login", "do_as"),
    [
        pytest.param({}, False, None, id="simple"),
        pytest.param({"authentication": "kerberos"}, True, None, id="only RPC says kerberos"),
        pytest.param({"http_authentication": "kerberos"}, True, "alice", id="only the web says kerberos"),
    ],
)
def test_web_services_are_called_with_the_login_of_rpc(
    asked: dict[str, Any], has_login: bool, do_as: str | None, tmp_path: Path
) -> None:
    hadoop = HadoopSettings(proxy_user="alice")
    identity = web_identity_of(cluster(**asked), hadoop)
    assert (identity.negotiator is not None, identity.do_as, identity.user) == (has_login, do_as, "yarn")
    token = tmp_path / "token"
    token.write_text("secret")
    with_token = web_identity_of(cluster(**asked), hadoop.model_copy(update={"delegation_token_file": token}))
    assert with_token.negotiator is None
    assert "user.name" not in with_token.parameters()


def test_malformed_principal_names_its_key() -> None:
    with pytest.raises(ConfigError, match=r"hadoop\.kerberos_principal"):
        identity_of(cluster(), HadoopSettings(kerberos_principal="a/b/c"))


def text(value: str) -> bytes:
    """Write a short text as Hadoop does."""
    return bytes((len(value),)) + value.encode()


def token_file(path: Path, *services: str, kind: str = "RM_DELEGATION_TOKEN") -> Path:
    """Write a token file."""
    entries = [text("alias") + text(f"id of {one}") + text("secret") + text(kind) + text(one) for one in services]
    path.write_bytes(b"HDTS\x00" + bytes((len(entries),)) + b"".join(entries) + b"\x00")
    return path


@pytest.mark.parametrize("services", [("localhost:8032",), ("other:8032", "x:1,localhost:8032"), ("10.0.0.1:8032",)])
def test_token_of_the_cluster_is_chosen_for_each_connection(tmp_path: Path, services: tuple[str, ...]) -> None:
    path = token_file(tmp_path / "tokens", *services)
    identity = identity_of(cluster("localhost"), HadoopSettings(token_file=path))
    assert identity.needs_handshake
    assert [way.method for way in identity.authenticators("localhost")] == ["TOKEN"]
    path.unlink()
    with pytest.raises(errors.CredentialsError, match="tokens"):
        identity.authenticators("localhost")


@pytest.mark.parametrize("uses_ip", [True, False])
def test_among_tokens_of_clusters_the_form_of_service_is_the_clusters(tmp_path: Path, uses_ip: bool) -> None:
    path = token_file(tmp_path / "tokens", "10.0.0.9:8032", "127.0.0.1:8032")
    asked = cluster("localhost", token_service_uses_ip=uses_ip)
    identity = identity_of(asked, HadoopSettings(token_file=path))
    if uses_ip:
        assert [way.method for way in identity.authenticators("localhost")] == ["TOKEN"]
    else:
        with pytest.raises(errors.CredentialsError, match="0 of them for localhost:8032"):
            identity.authenticators("localhost")


@pytest.mark.parametrize(
    ("services", "kind"),
    [(("a:1", "b:1"), "RM_DELEGATION_TOKEN"), (("localhost:8032",), "HDFS_DELEGATION_TOKEN"), ((), "")],
)
def test_file_without_one_fitting_token_is_told(tmp_path: Path, services: tuple[str, ...], kind: str) -> None:
    path = token_file(tmp_path / "tokens", *services, kind=kind)
    identity = identity_of(cluster("localhost"), HadoopSettings(token_file=path))
    with pytest.raises(errors.CredentialsError, match="RM_DELEGATION_TOKEN"):
        identity.authenticators("localhost")
