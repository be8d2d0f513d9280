# SPDX-License-Identifier: Apache-2.0
"""Compare how we read Hadoop's configuration files with how Hadoop 3.5.0 reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.hadoop.resolving import Question, resolve
from lab.processes.progress import Progress
from nm_proxy.rendering import keys
from tests.unit.hadoop.configuration_corpus import CASES, ENVIRON, USER, recorded_answers
from yarn_copilot.hadoop import configuration_defaults

VERSION = "3.5.0"


@pytest.fixture(scope="module")
def hadoop_answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Ask Hadoop all questions of the corpus, and every default, in one JVM."""
    asked: list[tuple[str, str, Question]] = []
    for number, case in enumerate(CASES):
        folder = case.write(tmp_path_factory.mktemp(f"case-{number}"))
        for question in case.questions:
            kind, _, key = question.partition(" ")
            asked.append((case.name, question, Question(folder, kind, key)))
    empty = tmp_path_factory.mktemp("defaults")
    known = (configuration_defaults.CORE_DEFAULTS, configuration_defaults.YARN_DEFAULTS, keys.DEFAULTS)
    for key in (key for defaults in known for key in defaults):
        asked.append(("defaults", f"get {key}", Question(empty, "get", key)))
    answers = resolve(
        [question for _, _, question in asked], version=VERSION, environ=ENVIRON, user=USER, progress=Progress()
    )
    found: dict[str, dict[str, str]] = {}
    for (case_name, question, _), answer in zip(asked, answers, strict=True):
        found.setdefault(case_name, {})[question] = answer
    return found


def test_recorded_answers_are_those_of_hadoop(hadoop_answers: dict[str, dict[str, str]]) -> None:
    recorded = recorded_answers()
    assert {case.name: hadoop_answers[case.name] for case in CASES} == recorded


def test_defaults_are_those_of_hadoop(hadoop_answers: dict[str, dict[str, str]], tmp_path: Path) -> None:
    from yarn_copilot.hadoop.configuration_values import HadoopConfiguration

    ours = HadoopConfiguration(
        core_site=(),
        yarn_site=(),
        main_file=tmp_path,
        environ={},
        system_properties={"user.name": USER},
        more_defaults=keys.DEFAULTS,
    )
    assert {question: f"OK {ours.get(question.removeprefix('get '))}" for question in hadoop_answers["defaults"]} == (
        hadoop_answers["defaults"]
    )
