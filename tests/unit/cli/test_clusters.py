# SPDX-License-Identifier: Apache-2.0
"""Clients are made as the settings say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from yarn_copilot.cli import clusters
from yarn_copilot.config.settings import HadoopSettings, Transport
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.configuration import ClusterConfiguration, ResourceManagerAddresses, WebConfiguration
from yarn_copilot.kube.clock import SystemClock


def cluster(id_: str = "a", *, web: Address | None = None, is_https: bool = False) -> ClusterConfiguration:
    rm = ResourceManagerAddresses(rm_id="", client=Address("rm", 8032), admin=Address("rm", 8033), web=web)
    return ClusterConfiguration(id=id_, resource_managers=(rm,), web=WebConfiguration(is_https=is_https))


def hadoop(**fields: Any) -> HadoopSettings:
    return HadoopSettings.model_validate(fields)


def test_the_transport_of_a_cluster_wins_over_the_general_one() -> None:
    settings = hadoop(transport="rest", cluster_transports={"a": "rpc"})
    assert clusters.transport_of(settings, "a") is Transport.RPC
    assert clusters.transport_of(settings, "b") is Transport.REST
    found = cluster(web=Address("rm", 8088))
    assert clusters.addresses_of(found, Transport.RPC) == ("rm:8032",)
    assert clusters.addresses_of(found, Transport.REST) == ("rm:8088",)


@pytest.mark.parametrize(("is_https", "key"), [(False, "webapp.address"), (True, "webapp.https.address")])
def test_rest_without_a_web_address_is_refused_with_the_key(is_https: bool, key: str) -> None:
    with pytest.raises(ConfigError, match=rf"cluster a: transport rest needs yarn\.resourcemanager\.{key}"):
        clusters.resource_manager(cluster(is_https=is_https), hadoop(transport="rest"), SystemClock())


def test_authorities_that_cannot_be_read_are_refused_with_the_setting(tmp_path: Path) -> None:
    bad = tmp_path / "ca.pem"
    bad.write_text("no certificate")
    found = cluster(web=Address("rm", 8090), is_https=True)
    for path in (bad, tmp_path / "missing.pem"):
        with pytest.raises(ConfigError, match=r"hadoop\.web_ca_file: .*no authorities can be read"):
            clusters.web_transport(found, hadoop(web_ca_file=str(path)))
