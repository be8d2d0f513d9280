# SPDX-License-Identifier: Apache-2.0
"""The rendered configuration has a fixed identity, a small registration and one owner of cgroups; inputs stay as is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nm_proxy.rendering import keys
from nm_proxy.rendering.directory import MARK, write
from nm_proxy.rendering.site_file import overlay_text
from tests.unit.nm_proxy.entry.site import HOST, rendered, write_site
from tests.unit.nm_proxy.world import Node
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import xmlfile

MEMORY, VCORES = "yarn.nodemanager.resource.memory-mb", "yarn.nodemanager.resource.cpu-vcores"


@pytest.mark.parametrize(
    ("properties", "sections", "host", "port"),
    [
        pytest.param({}, {}, HOST, 8041, id="nothing is set"),
        pytest.param({keys.ADDRESS: "0.0.0.0:9041"}, {}, HOST, 9041, id="all addresses with a port"),
        pytest.param({keys.ADDRESS: "0:9041"}, {}, HOST, 9041, id="all addresses, written short"),
        pytest.param({keys.ADDRESS: "${yarn.nodemanager.hostname}:0"}, {}, HOST, 8041, id="ephemeral port"),
        pytest.param({keys.HOSTNAME: "a.b", keys.ADDRESS: "${yarn.nodemanager.hostname}:7"}, {}, "a.b", 7, id="theirs"),
        pytest.param({keys.ADDRESS: "${env.POD_NAME}.x:8041"}, {}, "nm-3.x", 8041, id="environment"),
        pytest.param(
            {keys.ADDRESS: "a.b:7"}, {"identity": {"host_name": "c.d", "port": 9}}, "c.d", 9, id="settings win"
        ),
        pytest.param({keys.ADDRESS: "http://a.b:7"}, {}, "a.b", 7, id="a scheme has no meaning"),
        pytest.param({keys.ADDRESS: "hdfs://a.b"}, {}, "a.b", 8041, id="a scheme and no port"),
        pytest.param({keys.ADDRESS: "[fd00::3]:7"}, {}, "fd00::3", 7, id="brackets"),
        pytest.param({}, {"identity": {"host_name": "fd00::3"}}, "fd00::3", 8041, id="address of version 6"),
    ],
)
def test_the_identity_is_fixed(
    tmp_path: Path, properties: dict[str, str], sections: dict[str, Any], host: str, port: int
) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", properties)
    overlay = rendered(tmp_path, **sections).overlay
    assert (overlay.host, overlay.port) == (host, port)
    shown = f"[{host}]" if ":" in host else host
    assert overlay.properties[keys.ADDRESS] == f"{shown}:{port}"
    assert overlay.properties[keys.HOSTNAME] == host


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        pytest.param("a.b:port", "has no port between 0 and 65535", id="no number"),
        pytest.param("a.b:65536", "has no port between 0 and 65535", id="no port"),
        pytest.param(":8041", "has no host", id="no host"),
        pytest.param("fd00::3:8041", "has several colons", id="no brackets"),
        pytest.param("a.b:7/x", "has no port", id="a path without a scheme"),
    ],
)
def test_an_address_that_hadoop_refuses_is_refused_by_file_and_key(tmp_path: Path, address: str, reason: str) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {keys.ADDRESS: address})
    with pytest.raises(ConfigError, match=rf"yarn-site\.xml: yarn\.nodemanager\.address = '{address}': .*{reason}"):
        rendered(tmp_path)


@pytest.mark.parametrize(
    ("properties", "section", "expected"),
    [
        pytest.param({}, {}, ("1024", "1"), id="Hadoop's own minimum"),
        pytest.param({"yarn.scheduler.minimum-allocation-mb": "64"}, {}, ("64", "1"), id="the cluster's minimum"),
        pytest.param(
            {MEMORY: "99999", VCORES: "64"}, {}, ("1024", "1"), id="the operator's capacity is the controller's"
        ),
        pytest.param({"yarn.scheduler.minimum-allocation-vcores": "0"}, {}, ("1024", "1"), id="never nothing"),
        pytest.param({}, {"memory_mib": 4096, "vcores": 3}, ("4096", "3"), id="settings"),
    ],
)
def test_registers_with_the_minimum(
    tmp_path: Path, properties: dict[str, str], section: dict[str, int], expected: tuple[str, str]
) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", properties)
    overlay = rendered(tmp_path, capacity=section).overlay
    assert (overlay.properties[MEMORY], overlay.properties[VCORES]) == expected
    assert overlay.properties[keys.DETECT_HARDWARE] == "false"


def test_adopting_turns_the_executors_own_cgroups_off(tmp_path: Path) -> None:
    write_site(
        tmp_path / "conf/yarn-site.xml",
        {keys.LEGACY_HANDLER: "x.CgroupsLCEResourcesHandler", keys.CPU_HANDLER: "true", keys.EXECUTOR: "x.Own"},
    )
    properties = rendered(tmp_path, detection=Node(tmp_path).found).overlay.properties
    assert properties[keys.CPU_HANDLER] == properties[keys.MEMORY_HANDLER] == "false"
    assert properties[keys.LEGACY_HANDLER] == keys.NO_LEGACY_HANDLER
    assert keys.EXECUTOR not in properties
    assert keys.HIERARCHY not in properties


@pytest.mark.parametrize("kind", ["v1", "v2", "mixed"])
def test_the_executor_gets_the_path_that_was_found_out(tmp_path: Path, kind: str) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {})
    node = Node(tmp_path, kind=kind)
    sections: dict[str, Any] = {"parenting": {"mode": "executor"}, "cgroup": {"root": str(node.kernel.root)}}
    properties = rendered(tmp_path, detection=node.found, **sections).overlay.properties
    assert properties[keys.EXECUTOR] == keys.LINUX_EXECUTOR
    assert properties[keys.HIERARCHY] == "/kubepods/besteffort/hadoop-yarn"
    assert properties[keys.MOUNT_PATH] == str(node.kernel.root)
    assert properties[keys.CPU_HANDLER] == properties[keys.MEMORY_HANDLER] == "true"
    assert properties[keys.STRICT_USAGE] == "false"
    assert (keys.V2_ENABLED in properties) is (kind != "v1")
    if kind != "v1":
        version_2 = next(one for one in node.found.hierarchies.every if one.version == "v2")
        assert properties[keys.V2_MOUNT_PATH] == version_2.mount_point


@pytest.mark.parametrize(
    ("properties", "section", "expected"),
    [
        pytest.param({}, {}, ("true", "/var/lib/nm-proxy/recovery", "false"), id="default"),
        pytest.param({keys.RECOVERY_DIR: "/data/rec"}, {}, ("true", "/data/rec", "false"), id="the operator's"),
        pytest.param({}, {"directory": "/r", "keep_on_stop": True}, ("true", "/r", "true"), id="kept on stop"),
        pytest.param({keys.RECOVERY_ENABLED: "true"}, {"enabled": False}, ("false", None, "false"), id="off"),
    ],
)
def test_recovery(
    tmp_path: Path, properties: dict[str, str], section: dict[str, Any], expected: tuple[str, str | None, str]
) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", properties)
    found = rendered(tmp_path, recovery=section).overlay.properties
    assert (
        found[keys.RECOVERY_ENABLED],
        found.get(keys.RECOVERY_DIR),
        found[keys.RECOVERY_SUPERVISED],
    ) == expected


@pytest.mark.parametrize(
    ("properties", "url"),
    [
        pytest.param({}, f"http://{HOST}:8042", id="default"),
        pytest.param({keys.WEB_ADDRESS: "0.0.0.0:9042"}, "http://127.0.0.1:9042", id="all addresses"),
        pytest.param({keys.WEB_ADDRESS: "0:9042"}, "http://127.0.0.1:9042", id="all addresses, written short"),
        pytest.param({keys.WEB_ADDRESS: "${yarn.nodemanager.hostname}:9042"}, f"http://{HOST}:9042", id="reference"),
        pytest.param({keys.WEB_ADDRESS: "w.x:1"}, "http://w.x:1", id="theirs"),
        pytest.param({keys.WEB_ADDRESS: "https://w.x:1/ui"}, "http://w.x:1", id="a scheme has no meaning"),
        pytest.param({keys.WEB_ADDRESS: "w.x"}, "http://w.x:8042", id="no port"),
        pytest.param({"yarn.http.policy": "HTTPS_ONLY", keys.WEB_HTTPS_ADDRESS: "w.x:2"}, "https://w.x:2", id="TLS"),
        pytest.param(
            {"yarn.http.policy": "HTTPS_ONLY", keys.WEB_HTTPS_ADDRESS: "w.x"},
            "https://w.x:8044",
            id="TLS without a port",
        ),
        pytest.param({keys.BIND_HOST: "0.0.0.0"}, "http://127.0.0.1:8042", id="bound to all"),
        pytest.param({keys.BIND_HOST: "[::]"}, "http://127.0.0.1:8042", id="bound to all of version 6"),
        pytest.param({keys.BIND_HOST: "10.0.0.7", keys.WEB_ADDRESS: "w.x:1"}, "http://10.0.0.7:1", id="bound to one"),
        pytest.param({keys.BIND_HOST: " "}, f"http://{HOST}:8042", id="bound to nothing in particular"),
        pytest.param(
            {"yarn.http.policy": "HTTPS_ONLY", keys.BIND_HOST: "0.0.0.0"},
            f"https://{HOST}:8044",
            id="TLS bound to all: certificates carry names",
        ),
    ],
)
def test_the_agent_looks_where_the_pages_are(tmp_path: Path, properties: dict[str, str], url: str) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", properties)
    assert rendered(tmp_path).overlay.web_url == url


@pytest.mark.parametrize(
    ("properties", "host"),
    [
        pytest.param({}, HOST, id="unset"),
        pytest.param({keys.BIND_HOST: ""}, HOST, id="empty"),
        pytest.param({keys.BIND_HOST: "0.0.0.0"}, "0.0.0.0", id="all addresses"),
        pytest.param({keys.BIND_HOST: "${env.POD_NAME}.x", keys.ADDRESS: "a.b:7"}, "nm-3.x", id="a name of its own"),
    ],
)
def test_the_node_manager_listens_where_it_is_bound(tmp_path: Path, properties: dict[str, str], host: str) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", properties)
    overlay = rendered(tmp_path).overlay
    assert overlay.listens_at == host
    assert overlay.host == ("a.b" if keys.ADDRESS in properties else HOST)
    assert keys.BIND_HOST not in overlay.properties


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        pytest.param("0.0.0.0:8041", "names a port", id="a port"),
        pytest.param("::", "has several colons", id="no brackets"),
        pytest.param("a b", "has no host", id="no host"),
    ],
)
def test_a_bind_host_with_which_no_node_manager_starts_is_refused(tmp_path: Path, bound: str, reason: str) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {keys.BIND_HOST: bound})
    with pytest.raises(ConfigError, match=rf"yarn-site\.xml: yarn\.nodemanager\.bind-host = '{bound}': .*{reason}"):
        rendered(tmp_path)


AUTHENTICATION = "hadoop.http.authentication.type"


@pytest.mark.parametrize(
    ("core", "site", "user", "login"),
    [
        pytest.param({}, {}, None, "", id="default"),
        pytest.param({AUTHENTICATION: "kerberos"}, {}, None, "kerberos", id="Kerberos without the initializer"),
        pytest.param(
            {
                AUTHENTICATION: "kerberos",
                "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
            },
            {},
            "yarn",
            "kerberos",
            id="Kerberos with the initializer",
        ),
        pytest.param({AUTHENTICATION: "kerberos"}, {AUTHENTICATION: "SIMPLE"}, None, "", id="opened for this node"),
        pytest.param({AUTHENTICATION: "x.Handler"}, {}, None, "x.Handler", id="a class"),
        pytest.param({keys.HTTP_ANONYMOUS: "false"}, {}, None, "a name", id="not for the nameless"),
        pytest.param({keys.HTTP_ANONYMOUS: "false"}, {}, "yarn", "", id="with a name"),
    ],
)
def test_knows_what_the_pages_will_ask(
    tmp_path: Path, core: dict[str, str], site: dict[str, str], user: str | None, login: str
) -> None:
    write_site(tmp_path / "conf/core-site.xml", core)
    write_site(tmp_path / "conf/yarn-site.xml", site)
    assert rendered(tmp_path, node_manager={"user": user}).overlay.page_login == login


def test_knows_where_heartbeats_go(tmp_path: Path) -> None:
    tracker = keys.TRACKER_ADDRESS
    write_site(
        tmp_path / "conf/yarn-site.xml",
        {
            "yarn.resourcemanager.ha.enabled": "true",
            "yarn.resourcemanager.ha.rm-ids": "a,b,c",
            f"{tracker}.a": "rm-a:9031",
            f"{tracker}.c": "rpc://rm-c:9032",
        },
    )
    assert rendered(tmp_path).overlay.tracker_ports == {9031, 8031, 9032}


def test_local_directories_are_plain_paths(tmp_path: Path) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {keys.LOCAL_DIRS: "file:///a, /b"})
    assert rendered(tmp_path).overlay.local_directories == ("/a", "/b")
    write_site(tmp_path / "conf/yarn-site.xml", {})
    assert rendered(tmp_path).overlay.local_directories == ("/tmp/hadoop-yarn/nm-local-dir",)  # noqa: S108


def test_the_operators_files_stay_and_ours_win_over_their_final_values(tmp_path: Path) -> None:
    site = tmp_path / "conf/yarn-site.xml"
    write_site(site, {MEMORY: "9999", "own.key": "a < b & ${c}"}, final=(MEMORY,))
    (tmp_path / "conf/log4j.properties").write_text("x=y")
    (tmp_path / "conf/..data").mkdir()
    before = site.read_bytes()
    result = rendered(tmp_path)
    out = tmp_path / "rendered"
    write(result, out)
    write(result, out)
    found = {item.name: item.value for item in xmlfile.read_properties(out / "yarn-site.xml")}
    assert found["own.key"] == "a < b & ${c}"
    assert found[MEMORY] == "1024"
    assert (out / "log4j.properties").readlink() == tmp_path / "conf/log4j.properties"
    assert sorted(path.name for path in out.iterdir()) == [MARK, "log4j.properties", "yarn-site.xml"]
    assert site.read_bytes() == before
    (tmp_path / "conf/log4j.properties").unlink()
    write(rendered(tmp_path), out)
    assert not (out / "log4j.properties").is_symlink()


def test_a_cluster_of_its_own_gets_its_core_site(tmp_path: Path) -> None:
    write_site(tmp_path / "conf/east.yarn-site.xml", {})
    write_site(tmp_path / "conf/east.core-site.xml", {"hadoop.tmp.dir": "/east"})
    write_site(tmp_path / "conf/yarn-site.xml", {})
    result = rendered(tmp_path, hadoop={"cluster": "east"})
    assert result.links["core-site.xml"] == tmp_path / "conf/east.core-site.xml"
    assert result.overlay.local_directories == ("/east/nm-local-dir",)


def test_a_key_that_core_site_makes_final_is_refused(tmp_path: Path) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {})
    write_site(tmp_path / "conf/core-site.xml", {MEMORY: "5"}, final=(MEMORY,))
    with pytest.raises(ConfigError, match=rf"core-site\.xml: {MEMORY} is final there"):
        rendered(tmp_path)


def test_a_directory_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {})
    with pytest.raises(ConfigError, match="has files that nm-proxy did not write"):
        write(rendered(tmp_path), tmp_path / "conf")
    assert [path.name for path in (tmp_path / "conf").iterdir()] == ["yarn-site.xml"]


def test_a_missing_file_and_an_unwritable_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"conf/yarn-site\.xml: does not exist"):
        rendered(tmp_path)
    write_site(tmp_path / "conf/yarn-site.xml", {})
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="file"):
        write(rendered(tmp_path), tmp_path / "file" / "sub")


def test_the_overlay_alone_is_a_file_that_hadoop_reads(tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    path.write_text(overlay_text({"a": "<&>"}))
    assert {item.name: (item.value, item.is_final) for item in xmlfile.read_properties(path)} == {
        "a": ("<&>", True),
    }


@pytest.mark.parametrize("text", ["\x01", "\udcff", "\ufffe"], ids=["control", "half a pair", "no character"])
def test_a_value_that_xml_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="nm-proxy: 'a' has a character that XML cannot hold"):
        overlay_text({"a": text})


def test_blanks_of_every_kind_stay_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    path.write_bytes(overlay_text({"a": "1\r2\n3\t4"}).encode())
    (found,) = xmlfile.read_properties(path)
    assert found.value == "1\r2\n3\t4"


def test_a_recovery_directory_that_hadoop_would_read_differently_is_refused(tmp_path: Path) -> None:
    write_site(tmp_path / "conf/yarn-site.xml", {})
    with pytest.raises(
        ConfigError, match=r"recovery\.directory = '/data/\$\{user\.name\}' has .* write the path itself"
    ):
        rendered(tmp_path, recovery={"directory": "/data/${user.name}"})


def test_a_cluster_whose_file_no_directory_can_hold_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"aa\.yarn-site\.xml: does not exist"):
        rendered(tmp_path, hadoop={"cluster": "a" * 253})
