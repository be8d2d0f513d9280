# SPDX-License-Identifier: Apache-2.0
"""Join Hadoop's configuration files and read typed values out of them, by Hadoop's rules.

Files are loaded in the order core-default, core-site, yarn-default, yarn-site; later wins, a `<final>` value stays.
`${key}` and `${env.NAME}` (with `:-default` for unset or empty, `-default` for unset) are replaced when a value is
read, innermost first. Source: org.apache.hadoop.conf.Configuration of 3.5.0. Where Hadoop would go on with a guess (a
boolean that is none, a reference that leads nowhere) reading ends with an error: a wrong address is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.configuration_defaults import CORE_DEFAULTS, YARN_DEFAULTS
from yarn_copilot.hadoop.xmlfile import Property, java_trim

SUBSTITUTIONS_MAX: Final = 20
"""Replacements in one value; Hadoop gives up after as many, which is also how it notices a circle."""

_SHOWN_CHARACTERS: Final = 256
_VALUE_CHARACTERS_MAX: Final = 1_048_576
_REFERENCE: Final = re.compile(r"\$\{([^}$ ]+)\}")
_ENVIRONMENT_NAME: Final = re.compile(r"^(?P<name>.*?)(?:(?P<operator>:-|-)(?P<default>.*))?$", re.DOTALL)
_LIST_SEPARATOR: Final = re.compile(r"[ \t\n\x0b\f\r]*[,\n][ \t\n\x0b\f\r]*")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,19}")
_HEXADECIMAL: Final = re.compile(r"(-?)0[xX]([+-]?[0-9a-fA-F]{1,16})")
_NANOS: Final[Mapping[str, int]] = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
"""Suffixes of durations, in the order in which they are tried."""


class _Setting(NamedTuple):
    value: str
    path: Path | None


class HadoopConfiguration:
    """Hold the joined properties of one cluster; values never change.

    Args:
        core_site: properties of core-site.xml, empty where there is none.
        yarn_site: properties of yarn-site.xml.
        main_file: what an error names for a key that no file sets.
        environ: variables for `${env.NAME}`.
        system_properties: Java system properties such as user.name; they win over keys in references.
        more_defaults: values of yarn-default.xml beyond those that the controller needs.
    """

    def __init__(
        self,
        *,
        core_site: Iterable[Property],
        yarn_site: Iterable[Property],
        main_file: Path,
        environ: Mapping[str, str],
        system_properties: Mapping[str, str],
        more_defaults: Mapping[str, str] | None = None,
    ) -> None:
        self.main_file = main_file
        self._environ = environ
        self._system_properties = system_properties
        self._settings: dict[str, _Setting] = {}
        finals: set[str] = set()
        for name, value in CORE_DEFAULTS.items():
            self._settings[name] = _Setting(value, None)
        self._load(core_site, finals)
        for name, value in {**YARN_DEFAULTS, **(more_defaults or {})}.items():
            if name not in finals:
                self._settings[name] = _Setting(value, None)
        self._load(yarn_site, finals)

    def _load(self, properties: Iterable[Property], finals: set[str]) -> None:
        for item in properties:
            if item.value is not None and item.name not in finals:
                self._settings[item.name] = _Setting(item.value, item.path)
            if item.is_final:
                finals.add(item.name)

    def origin(self, key: str) -> Path | None:
        """Name the file that sets a key; None for a default and for what is not set."""
        setting = self._settings.get(key)
        return None if setting is None else setting.path

    def raw(self, key: str) -> str | None:
        """Give the value as written, without replacement."""
        setting = self._settings.get(key)
        return None if setting is None else setting.value

    def is_set(self, key: str) -> bool:
        """Tell whether a file sets a key."""
        return self.origin(key) is not None

    def names(self) -> list[str]:
        """List every key that is set or has a default."""
        return sorted(self._settings)

    def get(self, key: str) -> str | None:
        """Give the value as Hadoop does: references replaced, one that leads nowhere left as it is, blanks kept.

        Raises:
            ConfigError: a circle of references, or more than 20 replacements.
        """
        value = self.raw(key)
        return None if value is None else self._substitute(key, value)

    def text(self, key: str) -> str | None:
        """Give the trimmed value; None where it is absent or blank.

        Raises:
            ConfigError: a reference leads nowhere or in a circle.
        """
        value = self.get(key)
        if value is None or not (value := java_trim(value)):
            return None
        if found := _REFERENCE.search(value):
            raise ConfigError(f"{self._place(key)}: {key} = {_shown(value)} refers to {found[1]!r}, which is not set")
        return value

    def integer(self, key: str, *, low: int, high: int, default: int | None = None) -> int:
        """Read a whole number, decimal or hexadecimal.

        Raises:
            ConfigError: no number, out of range, or absent without a default.
        """
        value = self._required(key, default, f"whole numbers from {low} to {high}")
        if isinstance(value, int):
            return value
        number = _whole_number(value)
        if number is None or not low <= number <= high:
            self._refuse(key, value, f"whole numbers from {low} to {high}")
        return number

    def duration_millis(self, key: str, *, low: int, high: int, default: int | None = None) -> int:
        """Read a time such as `30s`, `500ms` or `2h`; without a unit it is in milliseconds.

        Raises:
            ConfigError: no duration, out of range, or absent without a default.
        """
        allowed = f"durations from {low} to {high} ms, for example 500ms, 30s or 2h"
        value = self._required(key, default, allowed)
        if isinstance(value, int):
            return value
        millis = _duration_millis(value)
        if millis is None or not low <= millis <= high:
            self._refuse(key, value, allowed)
        return millis

    def boolean(self, key: str, *, default: bool = False) -> bool:
        """Read true or false in any case.

        Raises:
            ConfigError: anything else; Hadoop would take its default and say so in a log.
        """
        value = self.text(key)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            self._refuse(key, value, "true and false")
        return value.lower() == "true"

    def choice(self, key: str, allowed: Iterable[str]) -> str:
        """Read one of several words; case does not count.

        Returns:
            The word as `allowed` spells it.

        Raises:
            ConfigError: anything else.
        """
        words = {word.lower(): word for word in allowed}
        value = self.text(key)
        if value is None or value.lower() not in words:
            self._refuse(key, value or "", ", ".join(words.values()))
        return words[value.lower()]

    def items(self, key: str) -> list[str]:
        """Read a list separated by commas or line ends, without blanks and without empty entries.

        Raises:
            ConfigError: a reference leads nowhere or in a circle.
        """
        value = self.text(key)
        return [] if value is None else [item for item in _LIST_SEPARATOR.split(value) if item]

    def fail(self, key: str, why: str) -> NoReturn:
        """Refuse a key's value for a reason of the caller.

        Raises:
            ConfigError: always.
        """
        value = self.get(key)
        shown = "" if value is None else f" = {_shown(value)}"
        raise ConfigError(f"{self._place(key)}: {key}{shown}: {why}")

    def _required(self, key: str, default: int | None, allowed: str) -> str | int:
        value = self.text(key)
        if value is not None:
            return value
        if self.raw(key) is not None:
            self._refuse(key, "", allowed)  # blank is no number for Hadoop either
        if default is None:
            raise ConfigError(f"{self.main_file}: {key} is not set")
        return default

    def _refuse(self, key: str, value: str, allowed: str) -> NoReturn:
        raise ConfigError(f"{self._place(key)}: {key} = {_shown(value)}, allowed are {allowed}")

    def _place(self, key: str) -> Path:
        return self.origin(key) or self.main_file

    def _substitute(self, key: str, expression: str) -> str:
        text = expression
        for _ in range(SUBSTITUTIONS_MAX):
            found = _REFERENCE.search(text)
            if found is None:
                return text
            value = self._lookup(found[1])
            if value is None:
                return text
            if found[0] in value:
                return expression  # it refers to itself: Hadoop leaves the whole value as written
            text = text[: found.start()] + value + text[found.end() :]
            if len(text) > _VALUE_CHARACTERS_MAX:
                break
        raise ConfigError(
            f"{self._place(key)}: {key} = {_shown(expression)} needs more than {SUBSTITUTIONS_MAX} replacements; "
            "does it refer to itself in a circle?"
        )

    def _lookup(self, reference: str) -> str | None:
        value = None
        if reference.startswith("env.") and len(reference) > len("env."):
            value = self._environment(reference.removeprefix("env."))
        else:
            value = self._system_properties.get(reference)
        return self.raw(reference) if value is None else value

    def _environment(self, reference: str) -> str | None:
        found = _ENVIRONMENT_NAME.match(reference)
        name, operator, default = found.group("name", "operator", "default") if found else (reference, None, None)
        value = self._environ.get(name)
        if operator == ":-":
            return value or default
        if operator == "-":
            return default if value is None else value
        return value


def _whole_number(text: str) -> int | None:
    if found := _HEXADECIMAL.fullmatch(text):
        digits = found[2]
        return None if found[1] and digits[0] in "+-" else int(found[1] + digits, 16)
    return int(text) if _DECIMAL.fullmatch(text) else None


def _duration_millis(text: str) -> int | None:
    lower = text.lower()
    suffix = next((suffix for suffix in _NANOS if lower.endswith(suffix)), "")
    digits = lower.removesuffix(suffix)
    if not _DECIMAL.fullmatch(digits):
        return None
    amount = int(digits)
    millis = abs(amount) * _NANOS[suffix or "ms"] // _NANOS["ms"]
    return -millis if amount < 0 else millis


def _shown(value: str) -> str:
    return repr(value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "...")
