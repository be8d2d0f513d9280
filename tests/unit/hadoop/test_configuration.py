# SPDX-License-Identifier: Apache-2.0
"""Test which addresses a Hadoop configuration directory gives, and which files are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.hadoop.configuration_corpus import CASES, ERROR, Case, our_answer, recorded_answers
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
        pytest.param({HOSTNAME: "0.0.0.0"}, f"{HOSTNAME} = .*every address", id="wildcard host name"),
        *(
            pytest.param({ADDRESS: f"{host}:8032"}, "every address", id=f"wildcard {host}")
            for host in ("0", "000.0.0.0", "[::0]", "[::ffff:0.0.0.0]")
        ),
        pytest.param({HOSTNAME: "rm:99"}, f"{HOSTNAME} = 'rm:99': .* several colons", id="host name with a port"),
        pytest.param({ADDRESS: "::1"}, "IPv6 address stands in brackets", id="IPv6 without brackets"),
        pytest.param({ADDRESS: "[rm]:1"}, "brackets hold an IPv6 address", id="name in brackets"),
        pytest.param({ADDRESS: "[::1]x"}, "brackets hold an IPv6 address", id="no colon after brackets"),
        pytest.param({ADDRESS: "rm/x"}, "has no host of letters", id="path"),
        pytest.param({ADDRESS: "one,two"}, "has no host of letters", id="two hosts"),
        pytest.param(
            {HOSTNAME: "rm", "ipc.client.fallback-to-simple-auth-allowed": "maybe"}, "true and false", id="fallback"
        ),
        pytest.param({HOSTNAME: "${rm.host}"}, "refers to 'rm.host', which is not set", id="reference to nothing"),
        pytest.param({HOSTNAME: "${a}", "a": "${b}", "b": "${a}"}, "in a circle", id="circle"),
        pytest.param({ADDRESS: "rm:0"}, "between 1 and 65535", id="port zero"),
        pytest.param({ADDRESS: "rm:port"}, "between 1 and 65535", id="port is a word"),
        pytest.param({ADDRESS: ":8032"}, "has no host", id="no host"),
        pytest.param({ADDRESS: "r m:8032"}, "has no host", id="blank in the host"),
        pytest.param({HOSTNAME: "rm", "yarn.http.policy": "TLS"}, "allowed are HTTP_ONLY, HTTPS_ONLY", id="policy"),
        pytest.param({HOSTNAME: "rm", "hadoop.rpc.protection": "none"}, "privacy", id="protection"),
        pytest.param({HOSTNAME: "rm", "hadoop.security.authentication": "ldap"}, "kerberos", id="authentication"),
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
            '<!DOCTYPE c [<!ENTITY a "b">]><configuration/>', "line 1: entities are not allowed", id="entities"
        ),
        pytest.param(
            '<!DOCTYPE c SYSTEM "http://example.com/c.dtd"><configuration/>',
            "line 1: an external document type",
            id="external document type",
        ),
        pytest.param(
            '<!DOCTYPE c [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><configuration/>',
            "line 1: entities are not allowed",
            id="external entity",
        ),
        pytest.param(
            '<configuration xmlns:xi="http://www.w3.org/2001/XInclude">\n<xi:include href="/a.xml"/></configuration>',
            "line 2: includes '/a.xml', which does not exist",
            id="inclusion of nothing",
        ),
        pytest.param(
            '<configuration><include href="http://example.com/a.xml"/></configuration>',
            "only local files",
            id="inclusion from the network",
        ),
        pytest.param('<configuration><include href="/dev/zero"/></configuration>', "not a regular file", id="device"),
        pytest.param('<configuration><include href="a&#0;"/></configuration>', "line 1", id="no character"),
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


def test_a_bomb_of_included_files_is_refused(tmp_path: Path) -> None:
    for depth in range(8):
        (tmp_path / f"{depth}.xml").write_text(
            "<configuration>" + f'<include href="{depth + 1}.xml"/>' * 10 + "</configuration>"
        )
    (tmp_path / "8.xml").write_text("<configuration/>")
    with pytest.raises(ConfigError, match="more than 64 files are included"):
        xmlfile.read_properties(tmp_path / "0.xml")


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    path = write_site(tmp_path, {})
    path.write_text('<configuration><include href="yarn-site.xml"/></configuration>')
    with pytest.raises(ConfigError, match="16 files deep"):
        xmlfile.read_properties(path)


def test_included_files_are_bounded_together(tmp_path: Path) -> None:
    (tmp_path / "big.xml").write_bytes(b"<configuration/>" + b" " * (xmlfile.FILE_BYTES_MAX - 100))
    path = tmp_path / "yarn-site.xml"
    path.write_text("<configuration>" + '<include href="big.xml"/>' * 5 + "</configuration>")
    with pytest.raises(ConfigError, match="with all included files more than 16777216 bytes"):
        xmlfile.read_properties(path)


def test_a_value_that_grows_by_references_is_refused(tmp_path: Path) -> None:
    doubling = {f"k{index}": f"${{k{index - 1}}}" * 2 for index in range(1, 40)}
    path = write_site(tmp_path, {HOSTNAME: "${k39}", "k0": "x" * 100, **doubling})
    with pytest.raises(ConfigError, match="more than 20 replacements"):
        configuration.read_cluster(path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_values_are_read_as_hadoop_reads_them(tmp_path: Path, case: Case) -> None:
    case.write(tmp_path)
    recorded = recorded_answers()[case.name]

    ours = {question: our_answer(tmp_path, question) for question in case.questions}

    expected = {question: ERROR if question in case.stricter else recorded[question] for question in case.questions}
    assert ours == expected


def test_an_answer_is_recorded_for_every_question() -> None:
    assert {name: set(answers) for name, answers in recorded_answers().items()} == {
        case.name: set(case.questions) for case in CASES
    }


def test_we_are_stricter_only_where_hadoop_guesses() -> None:
    for case in CASES:
        assert all(recorded_answers()[case.name][question] != ERROR for question in case.stricter)


def test_an_error_names_the_file_that_sets_the_key(tmp_path: Path) -> None:
    (tmp_path / "included.xml").write_text(
        f"<configuration><property><name>{ADDRESS}</name><value>rm:x</value></property></configuration>"
    )
    path = tmp_path / "yarn-site.xml"
    path.write_text('<configuration><include href="included.xml"/></configuration>')
    with pytest.raises(ConfigError, match=rf"included\.xml: {ADDRESS} = 'rm:x'"):
        configuration.read_cluster(path)


def test_core_site_of_the_cluster_wins_over_the_shared_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_site(tmp_path, {HOSTNAME: "${domain}"}, f"{name}.yarn-site.xml")
    write_site(tmp_path, {"domain": "shared", "hadoop.security.authentication": "kerberos"}, "core-site.xml")
    write_site(tmp_path, {"domain": "own"}, "a.core-site.xml")

    clusters = configuration.read_clusters(tmp_path)

    assert str(clusters["a"].client_addresses[0]) == "own:8032"
    assert str(clusters["b"].client_addresses[0]) == "shared:8032"
    assert (clusters["a"].security.is_kerberos, clusters["b"].security.is_kerberos) == (False, True)


def test_a_broken_cluster_does_not_hide_the_others(tmp_path: Path) -> None:
    write_site(tmp_path, {HOSTNAME: "a"}, "a.yarn-site.xml")
    write_site(tmp_path, {HOSTNAME: "0.0.0.0"}, "b.yarn-site.xml")
    (tmp_path / "c.yarn-site.xml").write_text("<configuration>")

    found = configuration.read_cluster_files(tmp_path)

    assert list(found.clusters) == ["a"]
    assert list(found.errors) == ["b", "c"]
    assert "b.yarn-site.xml" in found.errors["b"]


def test_security_and_web_are_read(tmp_path: Path) -> None:
    site = {
        HOSTNAME: "rm",
        "yarn.http.policy": "https_only",
        "hadoop.security.authentication": "KERBEROS",
        "hadoop.rpc.protection": "privacy, integrity",
        "yarn.resourcemanager.principal": "rm/_HOST@EXAMPLE.COM",
        "yarn.resourcemanager.cluster-id": "one",
    }

    cluster = configuration.read_cluster(write_site(tmp_path, site))

    assert [str(address) for address in cluster.web_addresses] == ["rm:8090"]
    assert cluster.web.is_https
    assert cluster.yarn_cluster_id == "one"
    assert cluster.security.is_kerberos
    assert cluster.security.rpc_protection == ("privacy", "integrity")
    assert cluster.security.principal == "rm/_HOST@EXAMPLE.COM"


def test_equal_files_give_equal_clusters_and_what_is_not_used_does_not_count(tmp_path: Path) -> None:
    first = configuration.read_cluster(write_site(tmp_path, {HOSTNAME: "rm", "other": "1"}))
    second = configuration.read_cluster(write_site(tmp_path, {HOSTNAME: "rm", "other": "2"}))
    third = configuration.read_cluster(write_site(tmp_path, {HOSTNAME: "rm", "hadoop.rpc.protection": "privacy"}))
    assert first == second
    assert first != third


@pytest.mark.parametrize(
    ("text", "address"),
    [
        pytest.param("rm:1", Address("rm", 1), id="name"),
        pytest.param("[::1]:8032", Address("::1", 8032), id="ipv6"),
        pytest.param("10.0.0.1:65535", Address("10.0.0.1", 65535), id="ipv4"),
        pytest.param("rm_1.example:1", Address("rm_1.example", 1), id="underscore"),
    ],
)
def test_address_text_and_back(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert str(address) == text


def test_scheme_and_path_of_an_address_have_no_meaning() -> None:
    assert Address.parse("http://rm:1/x") == Address("rm", 1)
    assert Address.parse("hdfs://[::1]", default_port=2) == Address("::1", 2)


def test_address_without_port_takes_the_default_or_is_refused() -> None:
    assert Address.parse("rm", default_port=8032) == Address("rm", 8032)
    assert Address.parse("[::1]", default_port=8032) == Address("::1", 8032)
    with pytest.raises(ValueError, match="has no port"):
        Address.parse("rm")
