# SPDX-License-Identifier: Apache-2.0
"""Turn what pydantic found into sentences: where it is, what is wrong, what is allowed, what was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from yarn_copilot.config.fields import SettingField, allowed_keys, section_models, setting_fields
from yarn_copilot.config.rules import Problem
from yarn_copilot.config.settings import Settings

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

_WITH_UNIT: Final = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ]+)\s*$")
_UNIT_FACTORS: Final[Mapping[str, Mapping[str, float]]] = {
    "seconds": {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600},
    "bytes": {
        "B": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30,
        "KB": 2**10, "MB": 2**20, "GB": 2**30,
    },
    "MiB": {"Mi": 1, "Gi": 1024, "M": 1, "G": 1024, "MB": 1, "GB": 1024, "m": 1, "g": 1024},
    "milli-cores": {"m": 1},
}  # fmt: skip


def describe_errors(errors: Sequence[ErrorDetails], model: type[BaseModel] = Settings) -> list[Problem]:
    """Turn pydantic's errors into problems, one for each; `model` is that of the whole file."""
    return [_describe(error, model) for error in errors]


def unknown_key(path: str, model: type[BaseModel] = Settings) -> Problem:
    """Say that a key does not exist, which ones do, and which one was probably meant."""
    section, _, name = path.rpartition(".")
    keys = allowed_keys(section, model)
    text = f"unknown key; allowed {'in ' + section if section else 'at the top'}: {', '.join(keys)}"
    meant = _probably_meant(name, keys, model)
    return Problem(path, f"{text}. Did you mean {meant!r}?" if meant else text)


def _probably_meant(name: str, keys: Sequence[str], model: type[BaseModel]) -> str:
    fields = setting_fields(model)
    elsewhere = [path for path in (*fields, *section_models(model)) if path.rpartition(".")[2] == name]
    if elsewhere:
        return elsewhere[0]
    close = difflib.get_close_matches(name, keys, n=1, cutoff=0.6)
    if close:
        return close[0]
    close = difflib.get_close_matches(name, [path.rpartition(".")[2] for path in fields], n=1, cutoff=0.75)
    return next((path for path in fields if close and path.endswith("." + close[0])), "")


def _describe(error: ErrorDetails, model: type[BaseModel]) -> Problem:
    path = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return unknown_key(path, model)
    if error["type"] == "value_error":  # a rule of the model itself, which has its own words
        return Problem(path, str(error["ctx"]["error"]))
    if path in section_models(model):
        return Problem(
            path, f"must be a map of keys, not {_show(error['input'])}; keys: {', '.join(allowed_keys(path, model))}"
        )
    field = setting_fields(model).get(path)
    if field is None:
        # An entry of a map or a list. Its place is cut off as a whole: a selector in it may have dots of its own.
        whole = setting_fields(model)[".".join(str(part) for part in error["loc"][:-1])]
        return Problem(path, f"is {_show(error['input'])} but must be {whole.allowed_entry}")
    text = f"is {_show(error['input'])} but must be {field.allowed}"
    return Problem(path, text + _hint(field, error["input"]))


def _hint(field: SettingField, value: object) -> str:
    """Say how a text with a unit or with quotes is written."""
    if not isinstance(value, str) or field.kind not in {"number", "integer", "boolean"}:
        return ""
    match = _WITH_UNIT.match(value)
    factor = _UNIT_FACTORS.get(field.unit, {}).get(match[2]) if match else None
    if match and factor is not None:
        return f"; the unit is in the key's name, write {float(match[1]) * factor:.15g}"
    if value.strip().replace(".", "", 1).isdigit():
        return "; write it without quotes"
    if field.kind == "boolean" and value.lower() in {"yes", "on", "no", "off"}:
        return f"; write {'true' if value.lower() in {'yes', 'on'} else 'false'}"
    return ""


def _show(value: object) -> str:
    if value is None:
        return "empty (null)"
    text = repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 64 else text[:61] + "..."
