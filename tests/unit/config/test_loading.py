# SPDX-License-Identifier: Apache-2.0
"""A settings file is read strictly, and every mistake is named with file, line, key and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn_copilot.config.document import MAX_BYTES
from yarn_copilot.config.fields import setting_fields
from yarn_copilot.config.loading import environment_name, load_settings, parse_settings, settings_hash
from yarn_copilot.config.settings import CpuUnit, Settings
from yarn_copilot.errors import ConfigError


def error_of(text: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text.encode(), "conf.yaml", environ)
    return str(caught.value)


def test_an_empty_file_gives_the_defaults() -> None:
    assert parse_settings(b"", "conf.yaml") == Settings()
    assert parse_settings(b"# nothing\n---\n", "conf.yaml") == Settings()


def test_a_section_whose_keys_are_all_commented_out_is_empty() -> None:
    assert parse_settings(b"log:\n  # level: DEBUG\ncapacity:\n  reserve:\n", "conf.yaml") == Settings()


def test_values_have_their_types() -> None:
    text = """
    kubernetes: {kubeconfig: /etc/kubeconfig, request_timeout_seconds: 3}
    capacity: {cpu_unit: physical, growth_window_seconds: 0, reserve: {cpu_percent: 10}}
    node_managers: {cluster_weights: {blue: 2, green: 1}}
    log: {level: DEBUG}
    """
    settings = parse_settings(text.encode(), "conf.yaml")
    assert settings.kubernetes.kubeconfig == Path("/etc/kubeconfig")
    assert settings.kubernetes.request_timeout_seconds == 3.0
    assert settings.capacity.cpu_unit is CpuUnit.PHYSICAL
    assert settings.capacity.reserve.cpu_percent == 10
    assert settings.node_managers.cluster_weights == {"blue": 2, "green": 1}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param(
            "log:\n  levle: INFO\n",
            ["conf.yaml:2: log.levle: unknown key", "allowed in log: format, level", "Did you mean 'level'?"],
            id="unknown key",
        ),
        pytest.param(
            "hadop: {}\n",
            ["conf.yaml:1: hadop: unknown key", "allowed at the top: capacity, hadoop,", "Did you mean 'hadoop'?"],
            id="unknown section",
        ),
        pytest.param(
            "capacity:\n  poll_interval_seconds: 1\n",
            ["conf.yaml:2: capacity.poll_interval_seconds: unknown key", "Did you mean 'yarn.poll_interval_seconds'?"],
            id="key of another section",
        ),
        pytest.param(
            "hadoop:\n  call_timeout_seconds: 3s\n",
            [
                "conf.yaml:2: hadoop.call_timeout_seconds: is '3s'",
                "a number of seconds, greater than 0 and at most 60, for example 4",
                "the unit is in the key's name, write 3",
            ],
            id="seconds with a unit",
        ),
        pytest.param(
            "hadoop:\n  call_timeout_seconds: 500ms\n", ["write 0.5"], id="milliseconds are converted in the hint"
        ),
        pytest.param(
            "capacity:\n  reserve:\n    memory_bytes: 1Gi\n",
            ["conf.yaml:3: capacity.reserve.memory_bytes", "a whole number of bytes, at least 0", "write 1073741824"],
            id="bytes with a unit",
        ),
        pytest.param(
            "yarn:\n  floor_memory_mib: 2Gi\n", ["yarn.floor_memory_mib", "of MiB", "write 2048"], id="MiB with a unit"
        ),
        pytest.param('server:\n  port: "80"\n', ["server.port: is '80'", "write it without quotes"], id="quoted"),
        pytest.param("server:\n  port: 65536\n", ["server.port: is 65536", "at most 65535"], id="above the range"),
        pytest.param("server:\n  port: 1.5\n", ["server.port: is 1.5", "a whole number"], id="fraction"),
        pytest.param("server:\n  port: true\n", ["server.port: is true", "a whole number"], id="boolean for a number"),
        pytest.param("server:\n  port:\n", ["server.port: is empty (null)"], id="nothing where a value is needed"),
        pytest.param(
            "hadoop:\n  call_timeout_seconds: .nan\n", ["hadoop.call_timeout_seconds: is '.nan'"], id="not a number"
        ),
        pytest.param("log:\n  level: loud\n", ["one of DEBUG, INFO, WARNING, ERROR"], id="choice by pattern"),
        pytest.param("capacity:\n  cpu_unit: real\n", ["one of normalized, physical"], id="choice by enumeration"),
        pytest.param(
            "capacity:\n  require_node_metric: yes\n", ["must be true or false; write true"], id="yes is no boolean"
        ),
        pytest.param("node_managers: []\n", ["conf.yaml:1: node_managers: must be a map of keys"], id="list for map"),
        pytest.param(
            "node_managers:\n  cluster_weights: {blue: many}\n",
            ["conf.yaml:2: node_managers.cluster_weights.blue: is 'many' but must be a whole number"],
            id="member of a map",
        ),
        pytest.param(
            "capacity:\n  node_modes: {example.com/pool=a: loud}\n",
            ["conf.yaml:2: capacity.node_modes.example.com/pool=a: is 'loud' but must be one of shared, strict"],
            id="member of a map of choices, by a selector with dots",
        ),
        pytest.param(
            "log: {level: INFO}\nlog: {}\n", ["conf.yaml:2: log: appears a second time", "line 1"], id="twice"
        ),
        pytest.param("- log\n", ["conf.yaml:1: must be a map of sections", "a list"], id="list at the top"),
        pytest.param("just text\n", ["conf.yaml:1: must be a map of sections", "'just text'"], id="text at the top"),
        pytest.param("log: {level: INFO\n", ["conf.yaml:2: is not valid YAML"], id="syntax"),
        pytest.param("a: 1\n---\nb: 2\n", ["conf.yaml:2: is not valid YAML"], id="two documents"),
        pytest.param("log: &x {}\nserver: *x\n", ["conf.yaml:1: server: aliases are not allowed"], id="alias"),
        pytest.param("log: !!python/object:os.system {}\n", ["the tag", "is not allowed"], id="tag"),
        pytest.param("server: {port: " + "9" * 5000 + "}\n", ["server.port: is '999"], id="number of 5000 digits"),
        pytest.param("a: " + "[" * 5000, ["conf.yaml"], id="deep nesting"),
        pytest.param("? [a]\n: 1\n", ["conf.yaml:1", "a key must be a plain text"], id="list as a key"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_what_is_allowed(text: str, parts: list[str]) -> None:
    message = error_of(text)
    for part in parts:
        assert part in message


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    lines = error_of("server:\n  port: x\nlog:\n  level: y\n  more: z\n").splitlines()
    assert [line.split(": ")[0] for line in lines] == ["conf.yaml:2", "conf.yaml:4", "conf.yaml:5"]


def test_a_flood_of_mistakes_is_cut() -> None:
    lines = error_of("".join(f"key{number}: 1\n" for number in range(100))).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "conf.yaml: and 80 more problems"


def test_a_file_that_is_too_large_is_not_parsed() -> None:
    assert error_of("#" * (MAX_BYTES + 1)) == f"conf.yaml: is {MAX_BYTES + 1} bytes long; at most {MAX_BYTES} are read"


def test_bytes_that_are_not_utf_8_are_refused_with_their_line() -> None:
    with pytest.raises(ConfigError, match=r"conf\.yaml:2: is not UTF-8"):
        parse_settings(b"log: {}\n\xff\n", "conf.yaml")


def test_a_missing_file_and_a_directory_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: does not exist; name the file with --config"):
        load_settings(tmp_path / "absent.yaml")
    with pytest.raises(ConfigError, match="is a directory; name the YAML file in it"):
        load_settings(tmp_path)


def test_a_variable_overrides_the_file() -> None:
    environ = {
        "YARN_COPILOT_HADOOP__CALL_TIMEOUT_SECONDS": "3.5",
        "YARN_COPILOT_HADOOP__USER": "42",
        "YARN_COPILOT_CAPACITY__RESERVE__CPU_PERCENT": "7",
        "YARN_COPILOT_NODE_MANAGERS__HOST_NODE_SELECTOR": "",
    }
    settings = parse_settings(b"hadoop: {call_timeout_seconds: 2, user: yarn}\n", "conf.yaml", environ)
    assert settings.hadoop.call_timeout_seconds == 3.5
    assert settings.hadoop.user == "42"
    assert settings.capacity.reserve.cpu_percent == 7
    assert settings.node_managers.host_node_selector is None


def test_variables_that_kubernetes_sets_for_a_service_are_not_ours() -> None:
    environ = {"YARN_COPILOT_PORT": "tcp://10.0.0.1:8080", "YARN_COPILOT_SERVICE_HOST": "10.0.0.1"}
    assert parse_settings(b"", "conf.yaml", environ) == Settings()


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("YARN_COPILOT_LOG__LEVEL", "loud", "YARN_COPILOT_LOG__LEVEL: log.level: is 'loud'"),
        ("YARN_COPILOT_LOG__LEVLE", "INFO", "Did you mean 'level'?"),
        ("YARN_COPILOT_LOGS__LEVEL", "INFO", "variables are YARN_COPILOT_<SECTION>__<KEY> with the sections CAPACITY,"),
        ("YARN_COPILOT_CAPACITY__RESERVE", "1", "names no key"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, part: str) -> None:
    assert part in error_of("", {name: value})


def test_every_key_has_a_variable_that_sets_it() -> None:
    for path, field in setting_fields().items():
        if field.kind == "map":
            continue
        text = "x" if field.default is None else str(field.default)
        if field.optional:
            continue
        assert parse_settings(b"", "conf.yaml", {environment_name(path): text}) == Settings()


def test_equal_settings_have_equal_hashes_and_others_do_not() -> None:
    first = parse_settings(b"log: {level: DEBUG}\nserver: {port: 1}\n", "a")
    second = parse_settings(b"server: {port: 1}\n\nlog: {level: DEBUG}\n", "b")
    assert settings_hash(first) == settings_hash(second)
    assert settings_hash(first) != settings_hash(Settings())
