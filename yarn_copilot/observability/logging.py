# SPDX-License-Identifier: Apache-2.0
"""Set up the log: one line for each event, as text or as JSON, in UTC, without secrets.

A record is a sentence and keys. Keys come with `extra={"node": ...}`; the text format writes them as `key=value`
after the sentence, JSON as members. Line feeds in remote text are escaped, so that one event stays one line and
nobody can forge another.
"""

from __future__ import annotations

import datetime
import json
import logging
import re
import sys
from typing import Any, Final, TextIO

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SCHEME: Final = re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',;&]{4,}")
_SECRET: Final = re.compile(
    r"(?i)(\b(?:access_|id_|refresh_)?(?:token|password|secret|authorization)\b[\"']?\s*[=:]\s*[\"']?)([^\s\"',;&]{4,})"
)
_JWT: Final = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*")
_CHATTY: Final = ("aiohttp.access", "asyncio", "kubernetes", "urllib3", "charset_normalizer")
_MAX_VALUE: Final = 1024


def configure_logging(*, level: str, format: str = "text", stream: TextIO | None = None) -> None:
    """Send every record of this process to a stream, stderr unless one is given.

    Args:
        level: one of `LEVELS`, for this program's own loggers; those of libraries are kept at WARNING.
        format: text or json.
        stream: where to; the handler that an earlier call installed is replaced.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        if isinstance(old.formatter, JsonFormatter | TextFormatter):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    set_level(level)


def set_level(level: str) -> None:
    """Change the smallest level logged while the program runs."""
    for name in ("yarn_copilot", "nm_proxy", "batch_resources"):
        logging.getLogger(name).setLevel(level)


def redact(text: str) -> str:
    """Replace what looks like a credential; a last line of defence, nothing logs one on purpose."""
    return _JWT.sub("***", _SECRET.sub(r"\1***", _SCHEME.sub("***", text)))


class TextFormatter(logging.Formatter):
    """Write `TIME LEVEL logger: Sentence. key=value key="two words"`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record as one line; a traceback follows indented."""
        keys = "".join(f" {key}={_quote(value)}" for key, value in _keys(record))
        name = record.name.removeprefix("yarn_copilot.")
        line = f"{_time(record)} {record.levelname:<7} {name}: {_one_line(record.getMessage())}{keys}"
        if record.exc_info:
            line += "\n  " + self.formatException(record.exc_info).replace("\n", "\n  ")
        return redact(line)


class JsonFormatter(logging.Formatter):
    """Write one JSON object on one line: time, level, logger, message, then the keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record as one object."""
        content: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        for key, value in _keys(record):
            plain = isinstance(value, bool | int | float) or value is None
            content.setdefault(key, value if plain else redact(str(value)))
        if record.exc_info:
            content["traceback"] = redact(self.formatException(record.exc_info))
        return json.dumps(content, ensure_ascii=False)


def _keys(record: logging.LogRecord) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in vars(record).items() if key not in _STANDARD and not key.startswith("_")]


def _time(record: logging.LogRecord) -> str:
    when = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


def _quote(value: object) -> str:
    text = redact(_one_line(str(value)))
    if len(text) > _MAX_VALUE:
        text = text[: _MAX_VALUE - 3] + "..."
    if text and not re.search(r'[\s"=]', text):
        return text
    return '"' + text.replace('"', '\\"') + '"'


def _one_line(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n")
