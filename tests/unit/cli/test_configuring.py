# SPDX-License-Identifier: Apache-2.0
"""`config check` tells what is in force or what is wrong; `config show-defaults` is itself a valid file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Invoke
from yarn_copilot.config.fields import setting_fields
from yarn_copilot.config.loading import parse_settings
from yarn_copilot.config.settings import Settings


def test_a_good_file_is_shown_with_where_each_value_comes_from(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("log: {level: DEBUG}\n")
    monkeypatch.setenv("YARN_COPILOT_SERVER__PORT", "9")
    result = invoke("config", "check", str(file))
    assert result.exit_code == 0
    first, *rows = result.stdout.splitlines()
    assert first.startswith(f"{file}: OK, hash ")
    table = {row.split()[0]: row.split()[1:] for row in rows}
    assert table["log.level"] == ["DEBUG", "file"]
    assert table["server.port"] == ["9", "YARN_COPILOT_SERVER__PORT"]
    assert table["log.format"] == ["text", "default"]
    assert set(setting_fields()) < set(table)


def test_a_good_file_as_json(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("")
    content = json.loads(invoke("config", "check", str(file), "-o", "json").stdout)
    assert content["ok"] is True
    assert content["settings"]["server"]["port"] == 8080


def test_a_bad_file_ends_with_2_and_one_line_for_each_mistake(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("log: {level: loud}\nserver: {prot: 1}\n")
    result = invoke("config", "check", str(file))
    assert result.exit_code == 2
    assert result.stdout == ""
    first, second = result.stderr.splitlines()
    assert first.startswith(f"{file}:1: log.level: is 'loud' but must be one of")
    assert second.startswith(f"{file}:2: server.prot: unknown key; allowed in server: bind_address, port.")


def test_the_defaults_as_shown_are_a_file_that_gives_the_defaults(invoke: Invoke) -> None:
    result = invoke("config", "show-defaults")
    assert parse_settings(result.stdout.encode(), "defaults") == Settings()


def test_run_refuses_a_bad_file_before_anything_else(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("hadoop: {conf_directory: /x}\n")
    result = invoke("run", "--config", str(file))
    assert result.exit_code == 2
    assert "Did you mean 'conf_dir'?" in result.stderr


def test_help_teaches_with_examples(invoke: Invoke) -> None:
    for command in ([], ["run"], ["nodes"], ["queues"], ["explain"], ["config", "check"], ["config", "show-defaults"]):
        assert "Example" in invoke(*command, "--help").stdout


def test_version_is_one_line(invoke: Invoke) -> None:
    assert invoke("version").stdout.startswith("yarn-copilot ")
