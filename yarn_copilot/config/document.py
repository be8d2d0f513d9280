# SPDX-License-Identifier: Apache-2.0
"""Read a YAML document strictly, remembering the line of every key.

Only what a settings file needs: maps, lists and scalars of the YAML 1.2 core schema. Duplicate keys, aliases, tags
and several documents are refused, because each of them hides what is in force; so are the YAML 1.1 readings that
turn `on` into true and `1:30` into ninety. Size is bounded before parsing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import yaml

from yarn_copilot.errors import ConfigError

MAX_BYTES: Final = 1_048_576
"""Bound the file: a ConfigMap cannot be larger."""


_TAGS: Final = frozenset({"map", "seq", "str", "bool", "null", "int", "float"})


@dataclass(frozen=True, slots=True)
class Document:
    """Hold the parsed content and the line (from 1) of each dotted key path."""

    content: dict[str, Any]
    lines: dict[str, int]


class _Loader(yaml.SafeLoader):
    """Resolve scalars as YAML 1.2's core schema does."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  (PyYAML's own shape)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)


def read_document(raw: bytes, source: str) -> Document:
    """Parse the bytes of a settings file.

    Args:
        raw: the file as it is, UTF-8.
        source: how messages name the file.

    Raises:
        ConfigError: too large, not UTF-8, not YAML, no map at the top, a duplicate key, an alias or a tag; the
            message names file and line.
    """
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{source}: is {len(raw)} bytes long; at most {MAX_BYTES} are read")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(f"{source}:{line}: is not UTF-8 text (byte {error.start})") from error
    try:
        node = _compose(text)
    except yaml.YAMLError as error:
        raise ConfigError(_syntax_message(error, source)) from error
    except RecursionError as error:
        raise ConfigError(f"{source}: is nested too deeply") from error
    if node is None or node.tag.endswith(":null"):
        return Document({}, {})
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(
            f"{source}:{_line(node)}: must be a map of sections at the top, such as 'log:', not {_shape(node)}"
        )
    lines: dict[str, int] = {}
    content = _Builder(source, lines).build(node, "")
    return Document(content, lines)


def parse_scalar(text: str) -> Any:
    """Read one scalar, for example of an environment variable, by the same rules; anything else stays text."""
    try:
        node = _compose(text)
    except (yaml.YAMLError, RecursionError):
        return text
    if node is None:
        return None
    return _scalar(node) if isinstance(node, yaml.ScalarNode) else text


def _compose(text: str) -> yaml.Node | None:
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _scalar(node: yaml.ScalarNode) -> Any:
    kind = node.tag.rpartition(":")[2]
    match kind:
        case "bool":
            return node.value.lower() == "true"
        case "null":
            return None
        case "int":
            # Python refuses to convert thousands of digits; such a number is out of every range anyway.
            return int(node.value) if len(node.value) <= 40 else node.value
        case "float":
            return float(node.value)
        case _:
            return node.value


class _Builder:
    """Turn nodes into values, noting lines; one instance for one document."""

    def __init__(self, source: str, lines: dict[str, int]) -> None:
        self._source = source
        self._lines = lines
        self._seen: set[int] = set()

    def build(self, node: yaml.Node, path: str) -> Any:
        if id(node) in self._seen:
            raise ConfigError(f"{self._source}:{_line(node)}: {path}: aliases are not allowed; write the value again")
        self._seen.add(id(node))
        if node.tag.removeprefix("tag:yaml.org,2002:") not in _TAGS:
            raise ConfigError(f"{self._source}:{_line(node)}: {path}: the tag {node.tag!r} is not allowed")
        if isinstance(node, yaml.MappingNode):
            return self._build_map(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, f"{path}.{index}") for index, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)  # noqa: S101  (the third and last kind of node)
        return _scalar(node)

    def _build_map(self, node: yaml.MappingNode, path: str) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError(f"{self._source}:{_line(key_node)}: {path}: a key must be a plain text")
            key = key_node.value
            full = f"{path}.{key}" if path else key
            if key in result:
                raise ConfigError(
                    f"{self._source}:{_line(key_node)}: {full}: appears a second time (first in line "
                    f"{self._lines[full]}); keep one of them"
                )
            self._lines[full] = _line(key_node)
            result[key] = self.build(value_node, full)
        return result


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _shape(node: yaml.Node) -> str:
    return "a list" if isinstance(node, yaml.SequenceNode) else f"the text {str(node.value)[:40]!r}"


def _syntax_message(error: yaml.YAMLError, source: str) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    place = f"{source}:{mark.line + 1}" if mark is not None else source
    return f"{place}: is not valid YAML: {problem[:200]}"
