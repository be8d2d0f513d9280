# SPDX-License-Identifier: Apache-2.0
"""Talk to a real ResourceManager with Kerberos and a real KDC; go wrong in every way an operator meets."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.fleet.proto import tracker_pb2
from lab.hadoop.secure import NODE_MANAGER, SERVER, SecureYarn
from tests.contract.hadoop.backend import until
from tests.lab.skewed import run_ahead
from yarn_copilot.cli import clusters
from yarn_copilot.config.settings import HadoopSettings
from yarn_copilot.hadoop import connection, errors, security
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.authentication import Identity
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.configuration import ClusterConfiguration, ResourceManagerAddresses, read_clusters
from yarn_copilot.hadoop.kerberos import KerberosLogin
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, Resource
from yarn_copilot.hadoop.protocols import application_client
from yarn_copilot.hadoop.sasl.principals import Principal
from yarn_copilot.hadoop.sasl.protection import Protection
from yarn_copilot.kube.clock import SystemClock

pytestmark = pytest.mark.lab

NODE = NodeId("10.98.0.1", 8041)
TRACKER = "org.apache.hadoop.yarn.server.api.ResourceTrackerPB"
SECONDS = 20.0
UNKNOWN_NODE = [NodeResourceUpdate(NodeId("nobody", 1), Resource(1024, 1))]


@pytest.fixture(scope="module")
def secure() -> Iterator[SecureYarn]:
    """Run KDC and ResourceManager; this process's Kerberos library is led to the KDC."""
    with SecureYarn() as yarn, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(yarn.kdc.krb5_conf))
        patch.setenv("KRB5CCNAME", f"FILE:{yarn.kdc.folder / 'nobody'}")
        yield yarn


def login_of(secure: SecureYarn, name: str) -> KerberosLogin:
    """Log in by keytab."""
    return KerberosLogin(Principal.parse(f"{name}@{secure.kdc.realm}"), secure.keytabs[name])


def identity_of(secure: SecureYarn, login: KerberosLogin, **options: Any) -> Identity:
    """Be whoever the login says; `properties` changes what the client's configuration says."""
    properties = {**secure.properties(), **options.pop("properties", {})}
    return Identity(user="ignored", login=login, security=security.read_security(properties), **options)


def cluster_of(secure: SecureYarn) -> ClusterConfiguration:
    """Describe the ResourceManager."""
    addresses = ResourceManagerAddresses(
        rm_id="", client=Address("localhost", secure.ports.client), admin=Address("localhost", secure.ports.admin)
    )
    return ClusterConfiguration(id="secure", resource_managers=(addresses,))


def client_of(secure: SecureYarn, identity: Identity | None) -> ResourceManagerClient:
    """Give the product's client."""
    return ResourceManagerClient(
        cluster_of(secure),
        user="ignored",
        call_timeout_seconds=SECONDS,
        connect_timeout_seconds=SECONDS,
        identity=identity,
    )


def client_as(secure: SecureYarn, name: str, **options: Any) -> ResourceManagerClient:
    """Give the product's client for a principal of the lab."""
    return client_of(secure, identity_of(secure, login_of(secure, name), **options))


async def register_node(secure: SecureYarn) -> None:
    """Register a NodeManager, as the NodeManagers' principal."""
    options = connection.ConnectionOptions(
        user="nm",
        connect_timeout_seconds=SECONDS,
        max_response_bytes=1_000_000,
        identity=identity_of(secure, login_of(secure, NODE_MANAGER)),
    )
    request = tracker_pb2.RegisterNodeManagerRequest(http_port=8042, nm_version="3.5.0")
    request.node_id.host, request.node_id.port = NODE.host, NODE.port
    request.resource.memory_mib, request.resource.virtual_cores = 8192, 8
    address = Address("localhost", secure.ports.tracker)
    link = await connection.open_connection(address, protocol=TRACKER, options=options)
    body = await link.call("registerNodeManager", request.SerializeToString(), timeout_seconds=SECONDS)
    await link.aclose()
    assert tracker_pb2.RegisterNodeManagerResponse.FromString(body).node_action == 0


@pytest.mark.parametrize("protection", list(Protection), ids=lambda one: one.hadoop_name)
async def test_capacity_is_changed_with_each_protection(secure: SecureYarn, protection: Protection) -> None:
    await register_node(secure)
    properties = {"hadoop.rpc.protection": protection.hadoop_name}
    async with client_as(secure, "yarn", properties=properties) as client:
        wanted = Resource(4096 + protection.layer_bit, 4)
        await client.update_node_resource([NodeResourceUpdate(NODE, wanted)])

        async def is_shown() -> bool:
            shown = {report.node_id: report.capability for report in await client.get_cluster_nodes()}
            return (shown[NODE].memory_mib, shown[NODE].vcores) == (wanted.memory_mib, wanted.vcores)

        await until(is_shown)
        with pytest.raises(errors.UnrecognizedNodeError):
            await client.update_node_resource(UNKNOWN_NODE)
        answers = await asyncio.gather(*(client.get_queue_info("root") for _ in range(50)))
        assert {answer.path for answer in answers} == {"root"}


async def test_long_messages_cross_the_wire_protected(secure: SecureYarn) -> None:
    updates = [NodeResourceUpdate(NodeId(f"nobody-{number}.example", 1), Resource(1024, 1)) for number in range(4000)]
    async with client_as(secure, "yarn", properties={"hadoop.rpc.protection": "privacy"}) as client:
        with pytest.raises(errors.UnrecognizedNodeError):
            await client.update_node_resource(updates)


async def test_principal_without_permission_is_denied_not_unauthenticated(secure: SecureYarn) -> None:
    async with client_as(secure, "alice") as client:
        assert await client.get_queue_info("root")
        with pytest.raises(errors.AccessDeniedError, match="alice") as caught:
            await client.update_node_resource(UNKNOWN_NODE)
        assert not isinstance(caught.value, errors.AuthenticationError)


async def test_proxy_user_is_who_the_server_sees(secure: SecureYarn) -> None:
    async with client_as(secure, "yarn", proxy_user="alice") as client:
        assert await client.get_queue_info("root")
        with pytest.raises(errors.AccessDeniedError, match="User alice doesn't have permission"):
            await client.update_node_resource(UNKNOWN_NODE)
    async with client_as(secure, "alice", proxy_user="yarn") as client:
        with pytest.raises(errors.AccessDeniedError, match="not allowed to impersonate yarn"):
            await client.get_queue_info("root")


async def test_hadoops_files_and_the_settings_are_enough(secure: SecureYarn) -> None:
    (cluster,) = read_clusters(secure.conf_dir).values()
    hadoop = HadoopSettings(
        call_timeout_seconds=SECONDS,
        connect_timeout_seconds=SECONDS,
        kerberos_principal=f"yarn@{secure.kdc.realm}",
        kerberos_keytab=secure.keytabs["yarn"],
    )
    async with clusters.rpc_client(cluster, hadoop, SystemClock()) as client:
        assert await client.get_queue_info("root")
        with pytest.raises(errors.UnrecognizedNodeError):
            await client.update_node_resource(UNKNOWN_NODE)


async def test_client_without_kerberos_is_told_so(secure: SecureYarn) -> None:
    async with client_of(secure, None) as client:
        with pytest.raises(errors.AuthenticationRefusedError, match="KERBEROS"):
            await client.get_queue_info("root")


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        pytest.param({"yarn.resourcemanager.principal": "hdfs/localhost@LAB.INTERNAL"}, "hdfs/localhost", id="name"),
        pytest.param({"yarn.resourcemanager.principal": "rm/other@LAB.INTERNAL"}, "rm/other", id="host"),
        pytest.param({"yarn.resourcemanager.principal": ""}, "not configured", id="missing"),
        pytest.param({"yarn.resourcemanager.principal.pattern": "hdfs/*"}, "does not match", id="pattern"),
        pytest.param({"yarn.resourcemanager.principal": "rm/localhost@OTHER"}, "OTHER", id="realm"),
    ],
)
async def test_wrong_server_principal_is_refused(secure: SecureYarn, properties: dict[str, str], text: str) -> None:
    async with client_as(secure, "yarn", properties=properties) as client:
        with pytest.raises(errors.AuthenticationError, match=text):
            await client.get_queue_info("root")


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param({"yarn.resourcemanager.principal": "rm/_HOST@LAB.INTERNAL"}, id="_HOST"),
        pytest.param({"yarn.resourcemanager.principal.pattern": "rm/*@LAB.INTERNAL"}, id="pattern"),
    ],
)
async def test_server_principal_may_be_a_rule(secure: SecureYarn, properties: dict[str, str]) -> None:
    async with client_as(secure, "yarn", properties=properties) as client:
        assert await client.get_queue_info("root")


async def test_server_principal_that_the_kdc_does_not_know_is_told(secure: SecureYarn) -> None:
    properties = {"yarn.resourcemanager.principal.pattern": "rm/*"}
    who = identity_of(secure, login_of(secure, "yarn"), properties=properties)
    secure.kdc.administer(f"renprinc -force {SERVER} rm/elsewhere")
    try:
        async with client_of(secure, who) as client:
            with pytest.raises(errors.AuthenticationError, match="does not know the server's principal"):
                await client.get_queue_info("root")
    finally:
        secure.kdc.administer(f"renprinc -force rm/elsewhere {SERVER}")


async def test_bad_keytabs_are_told_apart(secure: SecureYarn, tmp_path: Path) -> None:
    secure.kdc.add_principal("carol")
    keytab = secure.kdc.folder / "carol.keytab"
    realm = secure.kdc.realm
    secure.kdc.administer("cpw -randkey carol")
    for login, text in (
        (KerberosLogin(Principal("carol", "", realm), keytab), "keytab"),
        (KerberosLogin(Principal("nobody", "", realm), keytab), "keytab has no key"),
        (KerberosLogin(Principal("carol", "", realm), tmp_path / "missing"), "cannot be read"),
        (KerberosLogin(), "no tickets"),
    ):
        async with client_of(secure, identity_of(secure, login)) as client:
            with pytest.raises(errors.CredentialsError, match=text):
                await client.get_queue_info("root")


def tickets_of(secure: SecureYarn, name: str, path: Path) -> KerberosLogin:
    """Log in with kinit, as people do, into a file."""
    subprocess.run(
        ["kinit", "-k", "-t", str(secure.keytabs[name]), "-c", f"FILE:{path}", name],
        env={**os.environ, **secure.kdc.environment},
        check=True,
        timeout=SECONDS,
    )
    return KerberosLogin(ticket_cache=f"FILE:{path}")


async def test_tickets_of_somebody_else_are_used_and_told_when_over(secure: SecureYarn, tmp_path: Path) -> None:
    secure.keytabs["dave"] = secure.kdc.add_principal("dave", max_life="3sec")
    login = tickets_of(secure, "dave", tmp_path / "tickets")
    began = time.monotonic()
    async with client_of(secure, identity_of(secure, login)) as client:
        assert await client.get_queue_info("root")
    await asyncio.sleep(max(0.0, 4.5 - (time.monotonic() - began)))
    async with client_of(secure, identity_of(secure, login)) as client:
        with pytest.raises(errors.CredentialsError, match="over"):
            await client.get_queue_info("root")


async def test_keytab_login_is_renewed_before_it_ends_without_a_failed_call(secure: SecureYarn) -> None:
    secure.keytabs["erin"] = secure.kdc.add_principal("erin", max_life="6sec")
    methods = secure.kdc.process.log_path
    before = methods.read_text().count("AS_REQ")
    async with client_as(secure, "erin", properties={"hadoop.rpc.protection": "privacy"}) as client:
        ends = time.monotonic() + 14
        calls = 0
        while time.monotonic() < ends:
            assert await client.get_queue_info("root")
            calls += 1
            await asyncio.sleep(0.1)
    assert calls > 20
    assert methods.read_text().count("AS_REQ") - before >= 2


async def test_session_goes_on_and_a_new_one_is_told_when_the_kdc_is_gone(secure: SecureYarn) -> None:
    async with client_as(secure, "yarn") as client:
        assert await client.get_queue_info("root")
        await asyncio.to_thread(secure.kdc.process.stop)
        try:
            assert await client.get_queue_info("root")
            async with client_as(secure, "alice") as other:
                with pytest.raises(errors.KDCUnreachableError) as caught:
                    await other.get_queue_info("root")
            assert caught.value.retryable
        finally:
            await asyncio.to_thread(secure.kdc.start)


@asynccontextmanager
async def with_token(secure: SecureYarn, **options: Any) -> AsyncIterator[ResourceManagerClient]:
    """Get a delegation token by Kerberos and give a client that has it alone."""
    async with client_as(secure, "alice") as client:
        token = await client.get_delegation_token("yarn")
    assert token.kind == "RM_DELEGATION_TOKEN"
    properties = {**secure.properties(), "hadoop.security.authentication": "simple", **options}
    who = Identity(user="ignored", token=token, security=security.read_security(properties))
    async with client_of(secure, who) as client:
        yield client


@pytest.mark.parametrize("protection", list(Protection), ids=lambda one: one.hadoop_name)
async def test_token_is_enough_at_the_client_port(secure: SecureYarn, protection: Protection) -> None:
    async with with_token(secure, **{"hadoop.rpc.protection": protection.hadoop_name}) as client:
        assert (await client.get_queue_info("root")).path == "root"
        assert await client.get_cluster_metrics()


async def test_token_is_not_enough_at_the_administration_port(secure: SecureYarn) -> None:
    async with with_token(secure) as client:
        with pytest.raises(errors.AuthenticationError, match="KERBEROS/GSSAPI"):
            await client.update_node_resource(UNKNOWN_NODE)


_SKEWED = """
import asyncio, json, sys
from tests.lab import test_kerberos as here
asyncio.run(here.call_from_a_skewed_clock(*map(json.loads, sys.argv[1:])))
"""


async def call_from_a_skewed_clock(ports: list[int], properties: dict[str, str], login: list[str]) -> None:
    """Call once and print how it ended; runs in a process whose clock is wrong."""
    principal, keytab, ticket_cache = login
    who = Identity(
        user="ignored",
        login=KerberosLogin(
            Principal.parse(principal) if principal else None, Path(keytab) if keytab else None, ticket_cache or None
        ),
        security=security.read_security(properties),
    )
    options = connection.ConnectionOptions(
        user="u", connect_timeout_seconds=SECONDS, max_response_bytes=1_000_000, identity=who
    )
    try:
        link = await connection.open_connection(
            Address("localhost", ports[0]), protocol=application_client.PROTOCOL, options=options
        )
        await link.call(application_client.GET_CLUSTER_METRICS, b"", timeout_seconds=SECONDS)
        await link.aclose()
        print("ok")
    except errors.HadoopRPCError as error:
        print(type(error).__name__, error)


def skewed(secure: SecureYarn, login: list[str], krb5_conf: Path) -> str:
    """Run the call with a clock ten minutes ahead."""
    arguments = [json.dumps([secure.ports.client]), json.dumps(secure.properties()), json.dumps(login)]
    return run_ahead(_SKEWED, *arguments, krb5_conf=krb5_conf)


def test_clock_skew_works_or_is_told(secure: SecureYarn, tmp_path: Path) -> None:
    by_keytab = [f"yarn@{secure.kdc.realm}", str(secure.keytabs["yarn"]), ""]
    # The library learns the KDC's time when it logs in, so a wrong clock does no harm.
    assert skewed(secure, by_keytab, secure.kdc.krb5_conf).strip() == "ok"
    # Told not to correct itself, it refuses the KDC's answer.
    strict = tmp_path / "krb5.conf"
    strict.write_text(
        secure.kdc.krb5_conf.read_text().replace("[libdefaults]\n", "[libdefaults]\n  kdc_timesync = 0\n")
    )
    assert "clocks" in skewed(secure, by_keytab, strict)
    # Tickets from before the clock went wrong: the KDC refuses to give one for the server.
    tickets = tmp_path / "tickets"
    tickets_of(secure, "yarn", tickets)
    assert "clocks" in skewed(secure, ["", "", f"FILE:{tickets}"], strict)
    # With the server's ticket at hand too, the ResourceManager refuses.
    subprocess.run(["kvno", "-c", f"FILE:{tickets}", SERVER], env=os.environ, check=True, timeout=SECONDS)
    told = skewed(secure, ["", "", f"FILE:{tickets}"], strict)
    assert told.startswith("AuthenticationRefusedError"), told
    assert "clocks that differ" in told


def test_server_with_one_protection_serves_it_and_names_it_to_others() -> None:
    with SecureYarn(protection="privacy") as only_privacy, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(only_privacy.kdc.krb5_conf))

        async def check() -> None:
            async with client_as(only_privacy, "yarn") as client:
                assert await client.get_queue_info("root")
                assert await client.check_for_decommissioning_nodes() == frozenset()
            for wrong in ("authentication", "integrity"):
                async with client_as(only_privacy, "yarn", properties={"hadoop.rpc.protection": wrong}) as client:
                    with pytest.raises(errors.AuthenticationError, match=f"is privacy, here it is {wrong}"):
                        await client.get_queue_info("root")

        asyncio.run(check())
