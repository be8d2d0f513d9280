# SPDX-License-Identifier: Apache-2.0
"""The pages in docs/ tell what the code does: generated ones are up to date, written ones name what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from yarn_copilot.cli.docs import known_labels, own_metric_labels, pages
from yarn_copilot.config.fields import section_models, setting_fields
from yarn_copilot.observability.exposition import COUNT_FAMILIES, NODE_MANAGER_FAMILIES, stage_families
from yarn_copilot.observability.metrics import Metrics
from yarn_copilot.observability.reasons import Reason

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
WRITTEN = ("operations.md", "security.md", "sharing.md")
HADOOP_KEYS = (
    "hadoop.rpc.",
    "hadoop.security.",
    "hadoop.proxyuser",
    "yarn.admin.",
    "yarn.resourcemanager.",
    "yarn.nodemanager.",
    "yarn.scheduler.",
)


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text() == pages()[name], "run `make docs`"


def test_every_key_is_in_the_configuration_page() -> None:
    text = pages()["configuration.md"]
    for path, field in setting_fields().items():
        assert f"### `{path}`\n\n{field.description}\n" in text


def test_every_exposed_family_is_in_the_metrics_page_and_the_other_way_round() -> None:
    exposed = set(re.findall(r"^# TYPE (yarn_copilot_\w+)", Metrics().render().decode(), re.MULTILINE))
    named = set(re.findall(r"^\| `(yarn_copilot_\w+)`", pages()["metrics.md"], re.MULTILINE))
    assert named == exposed


def test_every_label_is_explained() -> None:
    used = {label for labels in own_metric_labels().values() for label in labels}
    assert used | {"node", "node_id", "cluster", "reason"} == known_labels()


def test_every_reason_has_an_entry_and_no_entry_is_left_over() -> None:
    text = (DOCS / "operations.md").read_text()
    section = text.partition("## What each reason means")[2].partition("\n## ")[0]
    assert re.findall(r"^### (\w+)$", section, re.MULTILINE) == [reason.value for reason in Reason]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_key_that_a_page_names_exists(name: str) -> None:
    sections = "|".join(section for section in section_models() if section and "." not in section)
    for path in re.findall(rf"`((?:{sections})\.[a-z_.*]+?)(?:: [^`]*)?`", (DOCS / name).read_text()):
        if path.startswith(HADOOP_KEYS):
            continue
        prefix = path.rstrip("*")
        assert any(known == path or (path != prefix and known.startswith(prefix)) for known in _paths()), path


def _paths() -> list[str]:
    return [*setting_fields(), *section_models()]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_metric_that_a_page_names_exists(name: str) -> None:
    families = {name for name, _, _ in stage_families()} | {name for name, _ in NODE_MANAGER_FAMILIES + COUNT_FAMILIES}
    known = families | set(own_metric_labels())
    assert set(re.findall(r"yarn_copilot_[a-z_]+", (DOCS / name).read_text())) <= known


@pytest.mark.parametrize("name", [*WRITTEN, *sorted(pages())])
def test_every_link_to_a_file_leads_somewhere(name: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", (DOCS / name).read_text()):
        assert (DOCS / target).exists(), target


def test_every_command_of_the_operations_page_exists() -> None:
    from yarn_copilot.cli.main import app, config_app

    known = {(command.name or command.callback.__name__) for command in app.registered_commands if command.callback}
    known |= {
        "config " + (command.name or command.callback.__name__)
        for command in config_app.registered_commands
        if command.callback
    }
    for name in WRITTEN:
        for words in re.findall(r"(?<![/\w])yarn-copilot ((?:config )?[a-z][a-z-]*)", (DOCS / name).read_text()):
            assert words in known, words
