# SPDX-License-Identifier: Apache-2.0
"""Load settings: defaults, then the file, then environment variables, checked as a whole.

Every mistake of a file is reported at once, one line for each: `FILE:LINE: KEY: what is wrong; what is allowed`.
The environment is passed in by the entry points; nothing here reads it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from yarn_copilot.config.document import Document, parse_scalar, read_document
from yarn_copilot.config.fields import SettingField, section_models, setting_fields
from yarn_copilot.config.messages import describe_errors, unknown_key
from yarn_copilot.config.rules import Problem, broken_rules
from yarn_copilot.config.settings import Section, Settings
from yarn_copilot.errors import ConfigError

ENVIRONMENT_PREFIX: Final = "YARN_COPILOT_"
_MAX_PROBLEMS: Final = 20

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class Schema(Generic[S]):
    """Name what one program's settings file is made of.

    Attributes:
        model: of the whole file.
        prefix: what the variables that override the file begin with.
        rules: lists what is wrong across fields.
    """

    model: type[S]
    prefix: str
    rules: Callable[[S], list[Problem]]

    def variable(self, path: str) -> str:
        """Name the variable that overrides the key at a dotted path."""
        return self.prefix + path.upper().replace(".", "__")


CONTROLLER: Final = Schema(Settings, ENVIRONMENT_PREFIX, broken_rules)


def load_settings(path: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """Load and check a settings file.

    Args:
        path: the YAML file.
        environ: variables named `YARN_COPILOT_<SECTION>__<KEY>` override the file; others are ignored.

    Raises:
        ConfigError: the file cannot be read or is wrong; the message has one line for each problem.
    """
    return parse_settings(read_file(path), str(path), environ)


def read_file(path: Path) -> bytes:
    """Read a settings file's bytes.

    Raises:
        ConfigError: it is missing, a directory, or may not be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: does not exist; name the file with --config") from error
    except IsADirectoryError as error:
        raise ConfigError(f"{path}: is a directory; name the YAML file in it") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error


def parse_settings(raw: bytes, source: str, environ: Mapping[str, str] | None = None) -> Settings:
    """Parse and check the bytes of a settings file; like `load_settings` without the reading."""
    return parse_as(CONTROLLER, raw, source, environ)


def parse_as(schema: Schema[S], raw: bytes, source: str, environ: Mapping[str, str] | None = None) -> S:
    """Parse and check the bytes of a program's settings file.

    Raises:
        ConfigError: it is wrong; the message has one line for each problem.
    """
    document = read_document(raw, source)
    content, variables = _with_environment(schema, document, environ or {})
    places = _Places(source, document.lines, variables)
    try:
        settings = schema.model.model_validate(content)
    except ValidationError as error:
        raise ConfigError(places.message(describe_errors(error.errors(), schema.model))) from error
    problems = schema.rules(settings)
    if problems:
        raise ConfigError(places.message(problems))
    return settings


def settings_hash(settings: BaseModel) -> str:
    """Give a short name for the content of settings: 16 hexadecimal digits, equal for equal settings."""
    text = json.dumps(settings.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def environment_name(path: str) -> str:
    """Name the variable that overrides the controller's key at a dotted path."""
    return CONTROLLER.variable(path)


class _Places:
    """Know where each key was written."""

    def __init__(self, source: str, lines: Mapping[str, int], variables: Mapping[str, str]) -> None:
        self._source = source
        self._lines = lines
        self._variables = variables

    def message(self, problems: Sequence[Problem]) -> str:
        ordered = sorted(problems, key=lambda problem: self._line(problem.path))
        shown = [f"{self._place(problem.path)}: {problem.path}: {problem.message}" for problem in ordered]
        if len(shown) > _MAX_PROBLEMS:
            shown = [*shown[:_MAX_PROBLEMS], f"{self._source}: and {len(shown) - _MAX_PROBLEMS} more problems"]
        return "\n".join(shown)

    def _place(self, path: str) -> str:
        if path in self._variables:
            return self._variables[path]
        line = self._line(path)
        return f"{self._source}:{line}" if line else self._source

    def _line(self, path: str) -> int:
        """Find the line of a key or of the nearest section around it; 0 where the file has none."""
        while path and path not in self._lines:
            path = path.rpartition(".")[0]
        return self._lines[path] if path else 0


def _with_environment(
    schema: Schema[S], document: Document, environ: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Lay variables over the file's content.

    Only names with a double underscore are ours: Kubernetes itself sets YARN_COPILOT_PORT and the like in the pods
    of a namespace with a Service named yarn-copilot.
    """
    content, variables = _without_empty_sections(document.content, "", section_models(schema.model)), {}
    for name in sorted(environ):
        if not name.startswith(schema.prefix) or "__" not in name:
            continue
        path = name.removeprefix(schema.prefix).lower().replace("__", ".")
        field = setting_fields(schema.model).get(path)
        if field is None:
            raise ConfigError(_unknown_variable(schema, name, path))
        _put(content, path, _value_of_variable(field, environ[name]))
        variables[path] = name
    return content, variables


def _value_of_variable(field: SettingField, text: str) -> object:
    if text == "" and field.optional:
        return None
    if field.kind == "list":
        return [parse_scalar(part.strip()) for part in text.split(",") if part.strip()]
    return text if field.kind in {"text", "choice"} else parse_scalar(text)


def _without_empty_sections(
    content: dict[str, Any], section: str, sections: Mapping[str, type[BaseModel]]
) -> dict[str, Any]:
    """Take away sections that hold nothing, as when every key of one is commented out."""
    result: dict[str, Any] = {}
    for key, value in content.items():
        path = f"{section}.{key}" if section else key
        if path not in sections:
            result[key] = value
        elif value is not None:
            result[key] = _without_empty_sections(value, path, sections) if isinstance(value, dict) else value
    return result


def _unknown_variable(schema: Schema[S], name: str, path: str) -> str:
    known = section_models(schema.model)
    section = path.rpartition(".")[0]
    if section in known and path not in known:
        return f"{name}: {path}: {unknown_key(path, schema.model).message}"
    sections = ", ".join(sorted(key.upper() for key in known if key and "." not in key))
    return f"{name}: names no key; variables are {schema.prefix}<SECTION>__<KEY> with the sections {sections}"


def _put(content: dict[str, Any], path: str, value: object) -> None:
    *sections, key = path.split(".")
    for section in sections:
        inner = content.setdefault(section, {})
        if not isinstance(inner, dict):
            return  # the file is wrong here; validation says so
        content = inner
    content[key] = value
