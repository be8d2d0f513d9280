# SPDX-License-Identifier: Apache-2.0
"""Describe every field of the settings in words: for messages, the reference page and `config show-defaults`.

Source of truth are the pydantic models of `settings`; nothing about a field is written twice.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from yarn_copilot.config.settings import Settings

_UNITS: Final[Mapping[str, str]] = {
    "_seconds": "seconds",
    "_bytes": "bytes",
    "_mib": "MiB",
    "_percent": "percent",
    "_vcores": "vcores",
    "cpu_milli": "milli-cores",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingField:
    """Describe one leaf of the settings.

    `path` is dotted (`capacity.reserve.cpu_percent`), `kind` one of number, integer, text, boolean, choice, map, list;
    `entry_kind` is that of what a map or a list holds, empty for others; `limits` is empty where every value of the
    kind is allowed.
    """

    path: str
    kind: str
    entry_kind: str
    unit: str
    optional: bool
    choices: tuple[str, ...]
    limits: str
    default: object
    reloadable: bool
    description: str

    @property
    def allowed(self) -> str:
        """Say which values are allowed, as the end of a sentence."""
        if self.kind == "map" and self.choices:
            text = "a map from names to one of " + ", ".join(self.choices)
        elif self.kind == "map":
            text = f"a map from names to {_KIND_WORDS_OF_MANY[self.entry_kind]}"
        elif self.choices:
            text = "one of " + ", ".join(self.choices)
        else:
            text = _KIND_WORDS[self.kind] + (f" of {self.unit}" if self.unit else "")
            text += f", {self.limits}" if self.limits else ""
        if self.kind in {"number", "integer"} and self.default:
            text += f", for example {render_value(self.default)}"
        return text + (", or null" if self.optional else "")

    @property
    def allowed_entry(self) -> str:
        """Say which values an entry of a map or a list may have, as the end of a sentence."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        return _KIND_WORDS[self.entry_kind]


_KIND_WORDS: Final[Mapping[str, str]] = {
    "number": "a number",
    "integer": "a whole number",
    "text": "a text",
    "boolean": "true or false",
    "map": "a map",
    "list": "a list",
}
_KIND_WORDS_OF_MANY: Final[Mapping[str, str]] = {"number": "numbers", "integer": "whole numbers", "text": "texts"}


@lru_cache(maxsize=4)
def setting_fields(model: type[BaseModel] = Settings) -> Mapping[str, SettingField]:
    """List every leaf by its dotted path, in the order of the models; the controller's unless another file is named."""
    return {field.path: field for field in _walk(model, "")}


@lru_cache(maxsize=4)
def section_models(model: type[BaseModel] = Settings) -> Mapping[str, type[BaseModel]]:
    """List every section's model by its dotted path; the empty path is the whole file."""
    return dict(_walk_sections(model, ""))


def allowed_keys(section: str, model: type[BaseModel] = Settings) -> tuple[str, ...]:
    """Name the keys of a section, sorted; `section` is a dotted path, empty for the top of the file."""
    return tuple(sorted(section_models(model)[section].model_fields))


def value_at(settings: BaseModel, path: str) -> object:
    """Read the value at a dotted path."""
    value: Any = settings
    for part in path.split("."):
        value = getattr(value, part)
    return value


def render_value(value: object) -> str:
    """Write a value as the YAML file would have it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}" if abs(value) < 1_000_000 else repr(value)
        case Mapping():
            return "{" + ", ".join(f"{key}: {render_value(item)}" for key, item in value.items()) + "}"
        case tuple():
            return "[" + ", ".join(render_value(item) for item in value) + "]"
        case _:
            return str(value)


def defaults_text(model: type[BaseModel] = Settings) -> str:
    """Write a complete settings file with every key at its default, described."""
    lines = ["# Every key at its default. Keys may be left out; unknown ones are refused."]
    section: list[str] = []
    for field in setting_fields(model).values():
        *parents, key = field.path.split(".")
        for depth, parent in enumerate(parents):
            if section[depth : depth + 1] != [parent]:
                section = [*section[:depth], parent]
                lines += ["", f"{parent}:"] if depth == 0 else [f"{'  ' * depth}{parent}:"]
        section = parents
        indent = "  " * len(parents)
        when = "takes effect at once" if field.reloadable else "needs a restart"
        lines += [
            f"{indent}# {field.description}",
            f"{indent}# Allowed: {field.allowed}; a change {when}.",
            f"{indent}{key}: {render_value(field.default)}",
        ]
    return "\n".join(lines)


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _walk(model: type[BaseModel], prefix: str) -> Iterator[SettingField]:
    for name, info in model.model_fields.items():
        path = _join(prefix, name)
        section = _section_of(info)
        if section is not None:
            yield from _walk(section, path)
        else:
            yield _describe(path, info)


def _walk_sections(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, type[BaseModel]]]:
    yield prefix, model
    for name, info in model.model_fields.items():
        section = _section_of(info)
        if section is not None:
            yield from _walk_sections(section, _join(prefix, name))


def _section_of(info: FieldInfo) -> type[BaseModel] | None:
    annotation = info.annotation
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _describe(path: str, info: FieldInfo) -> SettingField:
    base, optional = _base_type(info.annotation)
    extra = info.json_schema_extra
    kind, choices = _kind(base)
    limits, pattern_choices = _limits(info, kind)
    return SettingField(
        path=path,
        kind=kind,
        entry_kind=_kind(_entry_type(base))[0] if kind in {"map", "list"} else "",
        unit=next((unit for ending, unit in _UNITS.items() if path.endswith(ending)), ""),
        optional=optional,
        choices=choices or pattern_choices,
        limits=limits,
        default=info.default,
        reloadable=isinstance(extra, dict) and bool(extra.get("reloadable")),
        description=info.description or "",
    )


def _base_type(annotation: object) -> tuple[object, bool]:
    """Take `Annotated` and `| None` off a type."""
    optional = False
    while True:
        origin = get_origin(annotation)
        if origin in {Union, types.UnionType}:
            members = get_args(annotation)
            optional = optional or type(None) in members
            annotation = next(member for member in members if member is not type(None))
        elif hasattr(annotation, "__metadata__"):
            annotation = get_args(annotation)[0]
        else:
            return annotation, optional


def _kind(base: object) -> tuple[str, tuple[str, ...]]:
    if isinstance(base, type) and issubclass(base, StrEnum):
        return "choice", tuple(member.value for member in base)
    if get_origin(base) is dict:
        return "map", _kind(_entry_type(base))[1]
    if get_origin(base) is tuple:
        return "list", ()
    known: dict[object, str] = {float: "number", int: "integer", bool: "boolean", str: "text", Path: "text"}
    return known[base], ()


def _entry_type(base: object) -> object:
    """Give the type of what a map or a list holds."""
    return _base_type(get_args(base)[1 if get_origin(base) is dict else 0])[0]


def _limits(info: FieldInfo, kind: str) -> tuple[str, tuple[str, ...]]:
    """Turn constraints into words; a pattern of the form ^(A|B)$ is a choice."""
    words: list[str] = []
    choices: tuple[str, ...] = ()
    for item in info.metadata:
        match item:
            case annotated_types.Gt(gt=limit):
                words.append(f"greater than {limit}")
            case annotated_types.Ge(ge=limit):
                words.append(f"at least {limit}")
            case annotated_types.Le(le=limit):
                words.append(f"at most {limit}")
            case annotated_types.MinLen(min_length=limit):
                words.append("not empty" if limit == 1 else f"at least {limit} characters")
            case annotated_types.MaxLen(max_length=limit):
                words.append(f"at most {limit} characters")
        pattern = getattr(item, "pattern", None)
        if isinstance(pattern, str) and pattern.startswith("^(") and pattern.endswith(")$"):
            choices = tuple(pattern[2:-2].split("|"))
    return " and ".join(words), choices
