# SPDX-License-Identifier: Apache-2.0
"""Test which addresses a Hadoop configuration directory gives, and which files are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import configuration, xmlfile
from yarn_copilot.hadoop.addresses import Address

ADDRESS = "yarn.resourcemanager.address"
ADMIN = "yarn.resourcemanager.admin.address"
HOSTNAME = "yarn.resourcemanager.hostname"
HA = {"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "rm1, rm2"}


def write_site(directory: Path, properties: dict[str, str], name: str = "yarn-site.xml") -> Path:
    """Write a yarn-site.xml."""
    lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items()]
    path = directory / name
    path.write_text("<configuration>" + "\n".join(lines) + "</configuration>")
    return path


def test_plain_file_is_the_cluster_default(tmp_path: Path) -> None:
    write_site(tmp_path, {ADDRESS: " rm:9032 ", ADMIN: "rm:9033"})

    (cluster,) = configuration.read_clusters(tmp_path).values()

    assert cluster.id == "default"
    assert cluster.client_addresses == (Address("rm", 9032),)
    assert cluster.admin_addresses == (Address("rm", 9033),)
    assert cluster.heartbeat_seconds == 1.0


def test_prefix_of_the_file_names_the_cluster(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_site(tmp_path, {HOSTNAME: f"rm-{name}"}, f"{name}.yarn-site.xml")
    write_site(tmp_path, {HOSTNAME: "rm"}, "yarn-site.xml")
    write_site(tmp_path, {HOSTNAME: "hidden"}, ".swp.yarn-site.xml")
    write_site(tmp_path, {HOSTNAME: "other"}, "core-site.xml")

    clusters = configuration.read_clusters(tmp_path)

    assert {name: str(cluster.client_addresses[0]) for name, cluster in clusters.items()} == {
        "a": "rm-a:8032",
        "b": "rm-b:8032",
        "default": "rm:8032",
    }


def test_host_name_gives_both_default_ports(tmp_path: Path) -> None:
    cluster = configuration.read_cluster(write_site(tmp_path, {HOSTNAME: "rm.example.com"}))
    assert str(cluster.client_addresses[0]) == "rm.example.com:8032"
    assert str(cluster.admin_addresses[0]) == "rm.example.com:8033"


def test_high_availability_gives_addresses_in_the_order_of_ids(tmp_path: Path) -> None:
    site = {**HA, f"{HOSTNAME}.rm1": "one", f"{ADDRESS}.rm2": "two:1", f"{ADMIN}.rm2": "two:2"}

    cluster = configuration.read_cluster(write_site(tmp_path, site))

    assert [rm.rm_id for rm in cluster.resource_managers] == ["rm1", "rm2"]
    assert [str(address) for address in cluster.client_addresses] == ["one:8032", "two:1"]
    assert [str(address) for address in cluster.admin_addresses] == ["one:8033", "two:2"]


def test_heartbeat_interval_is_read(tmp_path: Path) -> None:
    path = write_site(tmp_path, {HOSTNAME: "rm", "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200"})
    assert configuration.read_cluster(path).heartbeat_seconds == 0.2


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        pytest.param({}, f"neither {ADDRESS} nor {HOSTNAME}", id="no address"),
        pytest.param({ADDRESS: "0.0.0.0:8032"}, "every address", id="wildcard"),
        pytest.param({HOSTNAME: "0.0.0.0"}, "every address", id="wildcard host name"),
        pytest.param({HOSTNAME: "${rm.host}"}, "needs substitution", id="substitution"),
        pytest.param({ADDRESS: "rm:0"}, "between 1 and 65535", id="port zero"),
        pytest.param({ADDRESS: "rm:port"}, "between 1 and 65535", id="port is a word"),
        pytest.param({ADDRESS: ":8032"}, "has no host", id="no host"),
        pytest.param({HOSTNAME: "rm", "yarn.resourcemanager.ha.enabled": "maybe"}, "true and false", id="boolean"),
        pytest.param({HOSTNAME: "rm", "yarn.resourcemanager.ha.enabled": "true"}, "rm-ids must name", id="no ids"),
        pytest.param(
            {**HA, "yarn.resourcemanager.ha.rm-ids": "rm1,rm1", f"{HOSTNAME}.rm1": "a"}, "twice", id="id twice"
        ),
        pytest.param({**HA, f"{HOSTNAME}.rm1": "a"}, f"{HOSTNAME}.rm2", id="one id has no address"),
        pytest.param(
            {HOSTNAME: "rm", "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "1s"}, "whole", id="interval"
        ),
    ],
)
def test_wrong_value_is_refused_with_file_and_key(tmp_path: Path, properties: dict[str, str], text: str) -> None:
    path = write_site(tmp_path, properties)
    with pytest.raises(ConfigError, match=text) as caught:
        configuration.read_clusters(tmp_path)
    assert str(path) in str(caught.value)


def test_two_files_for_one_cluster_are_refused(tmp_path: Path) -> None:
    write_site(tmp_path, {HOSTNAME: "a"})
    write_site(tmp_path, {HOSTNAME: "b"}, "default.yarn-site.xml")
    with pytest.raises(ConfigError, match="twice"):
        configuration.read_clusters(tmp_path)


def test_directory_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"neither yarn-site\.xml"):
        configuration.read_clusters(tmp_path)


def test_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        configuration.read_clusters(tmp_path / "missing")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("", "no element", id="empty"),
        pytest.param("<configuration><property>", "no element found", id="not closed"),
        pytest.param("<conf/>", "root element is <conf>", id="other root"),
        pytest.param(
            '<!DOCTYPE c [<!ENTITY a "b">]><configuration/>', "line 1: a document type is not allowed", id="entities"
        ),
        pytest.param(
            '<configuration xmlns:xi="http://www.w3.org/2001/XInclude">\n<xi:include href="/a.xml"/></configuration>',
            "line 2: inclusion",
            id="inclusion",
        ),
        pytest.param("<configuration>&nope;</configuration>", "undefined entity", id="unknown entity"),
        pytest.param('<?xml version="1.0" encoding="nope"?><configuration/>', "encoding", id="unknown encoding"),
    ],
)
def test_unsafe_or_broken_xml_is_refused(tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "yarn-site.xml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=text) as caught:
        xmlfile.read_properties(path)
    assert str(path) in str(caught.value)


def test_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "yarn-site.xml"
    path.write_bytes(b" " * (xmlfile.FILE_BYTES_MAX + 1))
    with pytest.raises(ConfigError, match="larger than"):
        xmlfile.read_properties(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        xmlfile.read_properties(tmp_path / "yarn-site.xml")


def test_comments_other_tags_and_repeats_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "yarn-site.xml"
    path.write_text(
        "<configuration><!-- <property><name>no</name><value>x</value></property> -->"
        "<property><name>a</name><value>1</value><description>name</description><final>true</final></property>"
        "<property><name> b </name><value>x&amp;<!-- c -->y</value></property>"
        "<property><name>a</name><value>2</value></property>"
        "<property><name>empty</name><value/></property>"
        "<property><name>no value</name></property><property><value>no name</value></property>"
        "</configuration>"
    )
    assert xmlfile.read_properties(path) == {"a": "2", "b": "x&y", "empty": ""}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        pytest.param("rm:1", Address("rm", 1), id="name"),
        pytest.param("[::1]:8032", Address("::1", 8032), id="ipv6"),
        pytest.param("10.0.0.1:65535", Address("10.0.0.1", 65535), id="ipv4"),
    ],
)
def test_address_text_and_back(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert str(address) == text


def test_address_without_port_takes_the_default_or_is_refused() -> None:
    assert Address.parse("rm", default_port=8032) == Address("rm", 8032)
    assert Address.parse("[::1]", default_port=8032) == Address("::1", 8032)
    with pytest.raises(ValueError, match="has no port"):
        Address.parse("rm")
