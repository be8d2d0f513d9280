# SPDX-License-Identifier: Apache-2.0
"""docs/node.md and docs/node-reference.md tell what nm-proxy does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nm_proxy.cli.docs import PAGE, exit_code_rows, metric_rows, page
from nm_proxy.cli.main import app
from nm_proxy.exit_codes import ExitCode
from nm_proxy.rendering import keys
from nm_proxy.settings import NodeSettings
from nm_proxy.supervisor.health_server import PATHS
from yarn_copilot.config.fields import section_models, setting_fields

DOCS = Path(__file__).resolve().parents[3] / "docs"
TEXT = (DOCS / "node.md").read_text()


def test_the_reference_is_up_to_date() -> None:
    assert (DOCS / PAGE).read_text() == page(), "run `make docs`"


def test_the_reference_has_every_key_code_and_family() -> None:
    text = (DOCS / PAGE).read_text()
    for path, field in setting_fields(NodeSettings).items():
        assert f"### `{path}`\n\n{field.description}\n" in text
    assert len(list(exit_code_rows())) == len(ExitCode)
    assert len(list(metric_rows())) > 30


def test_every_key_that_the_page_names_exists() -> None:
    known = {*setting_fields(NodeSettings), *section_models(NodeSettings)}
    sections = "|".join(section for section in section_models(NodeSettings) if section)
    named = set(re.findall(rf"`((?:{sections})\.[a-z_]+)(?:: [^`]*)?`", TEXT)) - {"cgroup.subtree_control"}
    assert len(named) > 20
    assert named <= known


def test_exit_codes_that_the_page_names_exist() -> None:
    named = {int(number) for number in re.findall(r"exit code (\d+)", TEXT)}
    assert named
    assert named <= {int(code) for code in ExitCode}


def test_rendered_keys_of_the_page_are_those_of_the_code() -> None:
    for key in (keys.HOSTNAME, keys.DETECT_HARDWARE, keys.RECOVERY_ENABLED, keys.KILL_DELAY, keys.CPU_HANDLER):
        assert f"`{key}`" in TEXT


def test_paths_of_the_page_are_served() -> None:
    for path in PATHS:
        assert f"`{path}`" in TEXT


@pytest.mark.parametrize("command", ["run", "check", "render", "agent", "config"])
def test_every_command_teaches_and_is_on_the_page(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--help"])
    assert done.exit_code == 0
    assert len(done.output) > 200
    assert f"nm-proxy {command}" in TEXT
