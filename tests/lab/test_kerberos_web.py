# SPDX-License-Identifier: Apache-2.0
"""Use a real ResourceManager's web services with SPNEGO, TLS and delegation tokens; go wrong as operators do."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.hadoop.secure import WEB, SecureYarn
from tests.contract.hadoop.backend import until
from tests.lab.skewed import run_ahead
from tests.lab.test_kerberos import NODE, SECONDS, UNKNOWN_NODE, register_node, tickets_of
from yarn_copilot.cli import clusters
from yarn_copilot.cli.doctor.command import examine
from yarn_copilot.cli.doctor.findings import Check, Finding, Severity
from yarn_copilot.cli.identities import web_identity_of
from yarn_copilot.config.settings import HadoopSettings, Settings, Transport
from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.configuration import read_clusters
from yarn_copilot.hadoop.model import NodeResourceUpdate, Resource
from yarn_copilot.hadoop.rest.authentication import Exchange, Negotiator
from yarn_copilot.hadoop.rest.client import RestResourceManagerClient
from yarn_copilot.hadoop.rest.transport import Request, WebOptions, WebTransport
from yarn_copilot.kube.clock import SystemClock

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def secure() -> Iterator[SecureYarn]:
    """Run KDC and ResourceManager; this process's Kerberos library is led to the KDC."""
    with SecureYarn(guarded_web=True) as yarn, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(yarn.kdc.krb5_conf))
        patch.setenv("KRB5CCNAME", f"FILE:{yarn.kdc.folder / 'nobody'}")
        yield yarn


def settings_of(secure: SecureYarn, name: str | None = "yarn", **changes: Any) -> HadoopSettings:
    """Give what an operator writes for a principal of the lab."""
    assert secure.key_store is not None
    login = (
        {"kerberos_principal": f"{name}@{secure.kdc.realm}", "kerberos_keytab": secure.keytabs[name]} if name else {}
    )
    return HadoopSettings.model_validate(
        {
            "conf_dir": secure.conf_dir,
            "transport": "rest",
            "web_ca_file": secure.key_store.certificate,
            "call_timeout_seconds": SECONDS,
            "connect_timeout_seconds": SECONDS,
            **login,
            **changes,
        }
    )


def client_of(secure: SecureYarn, hadoop: HadoopSettings) -> RestResourceManagerClient:
    """Give the product's client, made as `run` makes it."""
    (cluster,) = read_clusters(secure.conf_dir).values()
    return RestResourceManagerClient(clusters.web_transport(cluster, hadoop))


class CountingNegotiator:
    """Count the exchanges of a login."""

    def __init__(self, inner: Negotiator) -> None:
        self._inner = inner
        self.exchanges = 0

    async def begin(self, address: Address) -> Exchange:
        self.exchanges += 1
        return await self._inner.begin(address)


async def test_capacity_is_changed_with_a_keytab_and_one_exchange_serves_all_calls(secure: SecureYarn) -> None:
    await register_node(secure)
    (cluster,) = read_clusters(secure.conf_dir).values()
    hadoop = settings_of(secure)
    identity = web_identity_of(cluster, hadoop)
    assert identity.negotiator is not None
    counting = CountingNegotiator(identity.negotiator)
    assert secure.key_store is not None
    options = WebOptions(
        identity=dataclasses.replace(identity, negotiator=counting),
        call_timeout_seconds=SECONDS,
        is_https=True,
        tls=ssl.create_default_context(cafile=str(secure.key_store.certificate)),
    )
    async with RestResourceManagerClient(WebTransport(cluster.web_addresses, options)) as client:
        await client.update_node_resource([NodeResourceUpdate(NODE, Resource(4096, 4))])

        async def is_shown() -> bool:
            shown = {report.node_id: report.capability for report in await client.get_cluster_nodes()}
            return (shown[NODE].memory_mib, shown[NODE].vcores) == (4096, 4)

        await until(is_shown)
        with pytest.raises(errors.UnrecognizedNodeError):
            await client.update_node_resource(UNKNOWN_NODE)
    assert counting.exchanges == 1


async def test_run_and_doctor_are_the_same_one_to_the_cluster(secure: SecureYarn) -> None:
    for transport in ("rest", "rpc"):
        findings = await diagnose(secure, settings_of(secure, transport=transport))
        assert not [one for one in findings if one.severity is Severity.ERROR]
        told = {one.check: one for one in findings if one.severity is Severity.OK}
        assert "3.5.0" in told[Check.VERSION].found
        assert "agrees" in told[Check.CLOCK].found
    assert f"yarn@{secure.kdc.realm} (user yarn) may change" in told[Check.ADMIN_ACL].found

    (cluster,) = read_clusters(secure.conf_dir).values()
    guarded = clusters.resource_manager(cluster, settings_of(secure), SystemClock())
    try:
        assert await guarded.get_cluster_nodes() is not None
    finally:
        await guarded.aclose()


async def diagnose(secure: SecureYarn, hadoop: HadoopSettings) -> list[Finding]:
    """Run all checks without Kubernetes."""

    async def resolve(host: str) -> bool:
        return True

    settings = Settings.model_validate({"hadoop": hadoop.model_dump()})
    return await examine(settings, {}, with_kubernetes=False, progress=lambda text: None, resolve=resolve)


async def test_whoever_has_no_login_is_told_what_is_missing(secure: SecureYarn, tmp_path: Path) -> None:
    async with client_of(secure, settings_of(secure, None)) as client:
        with pytest.raises(errors.CredentialsError, match="no tickets"):
            await client.get_version()
    open_files = tmp_path / "conf"
    open_files.mkdir()
    (open_files / "yarn-site.xml").write_bytes((secure.conf_dir / "yarn-site.xml").read_bytes())
    hadoop = settings_of(secure, None)
    (cluster,) = read_clusters(open_files).values()
    async with RestResourceManagerClient(clusters.web_transport(cluster, hadoop)) as client:
        with pytest.raises(errors.AuthenticationRefusedError, match=r"Authentication required.*wants Kerberos: set"):
            await client.get_version()
    for transport in (Transport.REST, Transport.RPC):
        findings = await diagnose(secure, hadoop.model_copy(update={"conf_dir": open_files, "transport": transport}))
        bad = {one.check: one for one in findings if one.severity is Severity.ERROR}
        assert "hadoop.kerberos_keytab" in bad[Check.AUTHENTICATION].fix


async def test_tickets_that_are_over_are_told(secure: SecureYarn, tmp_path: Path) -> None:
    secure.keytabs["dave"] = secure.kdc.add_principal("dave", max_life="3sec")
    tickets_of(secure, "dave", tmp_path / "tickets")
    await asyncio.sleep(4.5)
    hadoop = settings_of(secure, None, kerberos_ticket_cache=f"FILE:{tmp_path / 'tickets'}")
    async with client_of(secure, hadoop) as client:
        with pytest.raises(errors.CredentialsError, match="over"):
            await client.get_version()


async def test_a_service_that_the_kdc_does_not_know_and_one_with_another_key_are_told(secure: SecureYarn) -> None:
    secure.kdc.administer(f"renprinc -force {WEB} HTTP/elsewhere")
    try:
        async with client_of(secure, settings_of(secure)) as client:
            with pytest.raises(errors.ServerIdentityError, match="does not know the server's principal"):
                await client.get_version()
    finally:
        secure.kdc.administer(f"renprinc -force HTTP/elsewhere {WEB}")
    secure.kdc.administer(f"cpw -randkey {WEB}")
    try:
        async with client_of(secure, settings_of(secure)) as client:
            with pytest.raises(errors.AuthenticationRefusedError, match=r"GSSException.*keytab's key is not the one"):
                await client.get_version()
    finally:
        secure.kdc.administer(f"ktrem -k {secure.keytabs[WEB]} {WEB} all")
        secure.kdc.administer(f"ktadd -k {secure.keytabs[WEB]} -norandkey {WEB}")


async def test_certificates_of_strangers_and_missing_authorities_are_told(secure: SecureYarn) -> None:
    async with client_of(secure, settings_of(secure, web_ca_file=None)) as client:
        with pytest.raises(errors.ConnectError, match=r"TLS failed.*certificate verify failed"):
            await client.get_version()


async def test_a_delegation_token_stands_for_a_login_until_it_is_cancelled(secure: SecureYarn, tmp_path: Path) -> None:
    (cluster,) = read_clusters(secure.conf_dir).values()
    owner = clusters.web_transport(cluster, settings_of(secure))
    try:
        path = "/ws/v1/cluster/delegation-token"
        given = await owner.call(Request(method="POST", path=path, body={"renewer": "yarn"}))
        file = tmp_path / "token"
        file.write_text(given["token"] + "\n")
        holder = settings_of(secure, None, delegation_token_file=file)
        async with client_of(secure, holder) as client:
            assert await client.get_version() == "3.5.0"
            with pytest.raises(errors.UnrecognizedNodeError):
                await client.update_node_resource(UNKNOWN_NODE)
        file.write_text(given["token"][:-8] + "AAAAAAAA")
        async with client_of(secure, holder) as client:
            with pytest.raises(errors.AccessDeniedError) as caught:
                await client.get_version()
        assert given["token"][:20] not in str(caught.value)
    finally:
        await owner.aclose()


async def test_a_proxy_user_is_who_the_web_service_sees(secure: SecureYarn) -> None:
    async with client_of(secure, settings_of(secure, proxy_user="alice")) as client:
        assert await client.get_version() == "3.5.0"
    async with client_of(secure, settings_of(secure, "alice", proxy_user="yarn")) as client:
        with pytest.raises(errors.AccessDeniedError, match=r"alice.* is not allowed to impersonate yarn"):
            await client.get_version()


_SKEWED = """
import asyncio, json, sys
from tests.lab import test_kerberos_web as here
asyncio.run(here.call_from_a_skewed_clock(*sys.argv[1:]))
"""


async def call_from_a_skewed_clock(settings: str) -> None:
    """Call once and print how it ended; runs in a process whose clock is wrong."""
    hadoop = HadoopSettings.model_validate(json.loads(settings))
    (cluster,) = read_clusters(hadoop.conf_dir).values()
    async with RestResourceManagerClient(clusters.web_transport(cluster, hadoop)) as client:
        try:
            print(await client.get_version())
        except errors.HadoopRPCError as error:
            print(type(error).__name__, error)


def skewed(hadoop: HadoopSettings, krb5_conf: Path) -> str:
    """Run a call with a clock ten minutes ahead."""
    return run_ahead(_SKEWED, hadoop.model_dump_json(), krb5_conf=krb5_conf)


def test_clock_skew_works_or_is_told(secure: SecureYarn, tmp_path: Path) -> None:
    # The library learns the KDC's time when it logs in, so a wrong clock does no harm.
    assert skewed(settings_of(secure), secure.kdc.krb5_conf).strip() == "3.5.0"
    strict = tmp_path / "krb5.conf"
    strict.write_text(
        secure.kdc.krb5_conf.read_text().replace("[libdefaults]\n", "[libdefaults]\n  kdc_timesync = 0\n")
    )
    assert "clocks" in skewed(settings_of(secure), strict)
    # With the service's ticket at hand from before the clock went wrong, the ResourceManager refuses.
    tickets = tmp_path / "tickets"
    tickets_of(secure, "yarn", tickets)
    subprocess.run(["kvno", "-c", f"FILE:{tickets}", WEB], env=os.environ, check=True, timeout=SECONDS)
    told = skewed(settings_of(secure, None, kerberos_ticket_cache=f"FILE:{tickets}"), strict)
    assert told.startswith("AuthenticationRefusedError"), told
    assert "clocks of this host and the web service differ" in told
