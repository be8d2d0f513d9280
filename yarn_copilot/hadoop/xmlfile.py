# SPDX-License-Identifier: Apache-2.0
"""Read the properties of a Hadoop configuration file safely.

Shape: `<configuration><property><name>..</name><value>..</value></property>..</configuration>`. No document type, no
entities, no inclusion, bounded size; comments are skipped and a later value replaces an earlier one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NoReturn
from xml.parsers import expat

from yarn_copilot.errors import ConfigError

FILE_BYTES_MAX: Final = 4_194_304
_PROPERTY_PATH: Final = ["configuration", "property"]
_TEXT_TAGS: Final = frozenset(("name", "value"))


def read_properties(path: Path) -> dict[str, str]:
    """Read a file.

    Raises:
        ConfigError: the file cannot be read, is larger than 4 MiB, is not well formed, has another root element, or
            uses a document type or inclusion; the text names file and line.
    """
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{path}: larger than {FILE_BYTES_MAX} bytes")
    return _PropertyParser(path).parse(data)


class _PropertyParser:
    """Collect names and values while expat walks through the document."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._properties: dict[str, str] = {}
        self._tags: list[str] = []
        self._texts: dict[str, list[str]] = {}
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._finish
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype

    def parse(self, data: bytes) -> dict[str, str]:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            raise ConfigError(f"{self._path}: line {error.lineno}: {expat.ErrorString(error.code)}") from error
        except (UnicodeError, LookupError, ValueError) as error:
            raise ConfigError(f"{self._path}: {error}") from error
        return self._properties

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._tags and tag != _PROPERTY_PATH[0]:
            self._refuse(f"the root element is <{tag[:64]}>, must be <configuration>")
        if tag.rpartition(":")[2] == "include":
            self._refuse("inclusion of other files is not supported; write the properties themselves")
        if self._tags == _PROPERTY_PATH[:1]:
            self._texts = {}
        if self._tags == _PROPERTY_PATH:
            self._texts[tag] = []
        self._tags.append(tag)

    def _text(self, text: str) -> None:
        if self._tags[:-1] == _PROPERTY_PATH and self._tags[-1] in _TEXT_TAGS:
            self._texts[self._tags[-1]].append(text)

    def _finish(self, tag: str) -> None:
        if self._tags == _PROPERTY_PATH and "name" in self._texts:
            name = "".join(self._texts["name"]).strip()
            if "value" in self._texts and name:
                self._properties[name] = "".join(self._texts["value"])
        self._tags.pop()

    def _refuse_doctype(self, *_declaration: object) -> None:
        self._refuse("a document type is not allowed (it could define entities)")

    def _refuse(self, why: str) -> NoReturn:
        raise ConfigError(f"{self._path}: line {self._parser.CurrentLineNumber}: {why}")
