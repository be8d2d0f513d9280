# SPDX-License-Identifier: Apache-2.0
"""A log record is one line, in UTC, with keys and without secrets."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from yarn_copilot.observability.logging import JsonFormatter, TextFormatter, configure_logging, redact, set_level


def record(message: str, *args: object, **keys: object) -> logging.LogRecord:
    made = logging.LogRecord("yarn_copilot.controller.x", logging.WARNING, __file__, 1, message, args, None)
    made.created = 1700000000.25
    vars(made).update(keys)
    return made


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    names = (None, "yarn_copilot", "batch_resources")
    levels = [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    handlers = list(root.handlers)
    yield
    root.handlers[:] = handlers
    logging.captureWarnings(False)
    for logger, level in levels:
        logger.setLevel(level)


def test_text_is_a_sentence_with_keys() -> None:
    line = TextFormatter().format(record("Held %s", "capacity", node="n1", why='a "b" c', empty=""))
    assert line == ('2023-11-14T22:13:20.250Z WARNING controller.x: Held capacity node=n1 why="a \\"b\\" c" empty=""')


def test_json_is_one_object_with_the_keys_as_members() -> None:
    content = json.loads(JsonFormatter().format(record("Held", node="n1", vcores=3, late=True, other=[1])))
    assert content == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "WARNING",
        "logger": "yarn_copilot.controller.x",
        "message": "Held",
        "node": "n1",
        "vcores": 3,
        "late": True,
        "other": "[1]",
    }


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
def test_remote_text_cannot_forge_a_second_line(formatter: logging.Formatter) -> None:
    line = formatter.format(record("RM said %s", "x\n2023 ERROR forged\r", node="a\nb"))
    assert "\n" not in line
    assert "\r" not in line


def test_a_traceback_is_kept_and_indented() -> None:
    made = record("Failed")
    try:
        int("boom")
    except ValueError as error:
        made.exc_info = (ValueError, error, error.__traceback__)
    lines = TextFormatter().format(made).splitlines()
    assert lines[0].endswith("Failed")
    assert all(line.startswith("  ") for line in lines[1:])
    assert "ValueError: invalid literal" in json.loads(JsonFormatter().format(made))["traceback"]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdef123456", "abcdef123456"),
        ("token=s3cr3t-value", "s3cr3t-value"),
        ('{"password": "hunter22"}', "hunter22"),
        ("got eyJhbGciOiJSUzI1.eyJzdWIiOiJ4.c2lnbmF0dXJl", "c2lnbmF0dXJl"),
    ],
)
def test_credentials_are_replaced(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert secret not in TextFormatter().format(record("Call failed", answer=text))
    assert secret not in JsonFormatter().format(record("%s", text))


def test_ordinary_words_stay() -> None:
    assert redact("node n1: claimed 3 vcores, secret plan") == "node n1: claimed 3 vcores, secret plan"


@pytest.mark.usefixtures("restored_logging")
def test_the_level_can_change_while_running_and_libraries_stay_quiet() -> None:
    stream = io.StringIO()
    configure_logging(level="INFO", stream=stream)
    logging.getLogger("yarn_copilot.x").debug("hidden")
    logging.getLogger("kubernetes.client").info("hidden too")
    set_level("DEBUG")
    logging.getLogger("yarn_copilot.x").debug("shown")
    configure_logging(level="INFO", format="json", stream=stream)
    logging.getLogger("yarn_copilot.x").info("once")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].endswith("x: shown")
    assert json.loads(lines[1])["message"] == "once"
