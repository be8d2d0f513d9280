# SPDX-License-Identifier: Apache-2.0
"""Read the properties of a Hadoop configuration file safely, as Hadoop's own parser understands them.

Shape: `<configuration><property><name>..</name><value>..</value><final>true</final></property>..</configuration>`, or
`<property name=".." value=".." final="true"/>`. `<xi:include href=".."/>` puts another local file in its place; nothing
is ever fetched. Entities cannot be declared and no external document type is read, so neither bombs nor foreign files
come in; sizes, depth and the number of files are bounded. Source: org.apache.hadoop.conf.Configuration of 3.5.0, with
which a test compares.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, NoReturn
from urllib.parse import unquote, urlsplit
from xml.parsers import expat

from yarn_copilot.errors import ConfigError

FILE_BYTES_MAX: Final = 4_194_304
TOTAL_BYTES_MAX: Final = 16_777_216
INCLUDED_FILES_MAX: Final = 64
INCLUDE_DEPTH_MAX: Final = 16

_TEXT_TAGS: Final = frozenset(("name", "value", "final", "source", "tag"))
_DECLARED_ENCODING: Final = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_MULTIBYTE: Final = re.compile(r"^(gb|big5|shift|sjis|euc)", re.IGNORECASE)
_JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))
"""Characters that Java's String.trim removes; Python's strip removes more."""


class Property(NamedTuple):
    """Hold one property as written.

    Attributes:
        name: the key.
        value: the text, blanks kept; None where there is none, which Hadoop takes for "not set".
        is_final: later files cannot change it.
        path: the file that it stands in.
    """

    name: str
    value: str | None
    is_final: bool
    path: Path


def java_trim(text: str) -> str:
    """Remove blanks as Java's String.trim does."""
    return text.strip(_JAVA_BLANKS)


def read_properties(path: Path) -> list[Property]:
    """Read a file with all that it includes, in the order in which Hadoop takes them.

    Relative paths of included files start from the folder of `path`, also inside an included file of another folder:
    Hadoop looks them up on its class path, where the configuration folder is.

    Raises:
        ConfigError: a file cannot be read, is too large, is not well formed, declares entities, has another root
            element, or includes too much; the text names file and line.
    """
    return _read(path, None, _Reading(path.parent), depth=0)


@dataclass(slots=True)
class _Reading:
    """Count what one file brings in."""

    folder: Path
    bytes_left: int = TOTAL_BYTES_MAX
    files_left: int = INCLUDED_FILES_MAX + 1
    properties: list[Property] = field(default_factory=list)


def _read(path: Path, source: Path | None, reading: _Reading, *, depth: int) -> list[Property]:
    reading.files_left -= 1
    if depth > INCLUDE_DEPTH_MAX:
        raise ConfigError(f"{path}: included more than {INCLUDE_DEPTH_MAX} files deep; does a file include itself?")
    if reading.files_left < 0:
        raise ConfigError(f"{path}: more than {INCLUDED_FILES_MAX} files are included")
    data = _read_bytes(path, "" if source is None else f" (included by {source})")
    reading.bytes_left -= len(data)
    if reading.bytes_left < 0:
        raise ConfigError(f"{path}: with all included files more than {TOTAL_BYTES_MAX} bytes")
    return _PropertyParser(path, lambda href: _include(href, path, reading, depth=depth), depth).parse(data)


def _read_bytes(path: Path, included_by: str) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{path}: not a regular file{included_by}")
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}{included_by}") from error
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{path}: larger than {FILE_BYTES_MAX} bytes{included_by}")
    return data


def _include(href: str, source: Path, reading: _Reading, *, depth: int) -> list[Property] | None:
    """Read an included file; None where there is none."""
    parts = urlsplit(href)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        target = Path(unquote(parts.path))
    elif parts.scheme or parts.netloc:
        raise ConfigError(f"{source}: includes {href[:256]!r}; only local files can be included")
    else:
        target = Path(href)
    target = reading.folder / target
    try:
        exists = target.exists()
    except (OSError, ValueError):  # a name that no file can have
        exists = False
    return _read(target, source, reading, depth=depth + 1) if exists else None


class _PropertyParser:
    """Collect properties while expat walks through the document."""

    def __init__(self, path: Path, include: Callable[[str], list[Property] | None], depth: int) -> None:
        self._path = path
        self._include = include
        self._is_included = depth > 0
        self._properties: list[Property] = []
        self._depth = 0
        self._text: list[str] = []
        self._name: str | None = None
        self._value: str | None = None
        self._is_final = False
        self._missing_include: str | None = None
        self._in_fallback = False
        self._parser = self._new_parser(None)

    def _new_parser(self, encoding: str | None) -> expat.XMLParserType:
        parser = expat.ParserCreate(encoding)
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._finish
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._check_doctype
        parser.EntityDeclHandler = self._refuse_entity
        return parser

    def parse(self, data: bytes) -> list[Property]:
        data = self._from_multibyte(data)
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            raise ConfigError(f"{self._path}: line {error.lineno}: {expat.ErrorString(error.code)}") from error
        except (UnicodeError, LookupError, ValueError) as error:
            raise ConfigError(f"{self._path}: {error}") from error
        return self._properties

    def _from_multibyte(self, data: bytes) -> bytes:
        """Turn encodings that expat cannot read, such as GBK, into UTF-8."""
        declared = _DECLARED_ENCODING.match(data[:400])
        if declared is None or not _MULTIBYTE.match(declared[1].decode()):
            return data
        try:
            text = data.decode(declared[1].decode())
        except (UnicodeError, LookupError) as error:
            raise ConfigError(f"{self._path}: {error}") from error
        self._parser = self._new_parser("utf-8")
        return text.encode()

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        local = tag.rpartition(":")[2]
        if self._depth == 0 and local != "configuration" and not (self._is_included and local == "property"):
            self._refuse(f"the root element is <{tag[:64]}>, must be <configuration>")
        self._depth += 1
        if local == "property":
            self._start_property(attributes)
        elif local in _TEXT_TAGS:
            self._text = []
        elif local == "include":
            self._take_include(attributes.get("href"))
        elif local == "fallback":
            self._in_fallback = True

    def _start_property(self, attributes: dict[str, str]) -> None:
        self._name = attributes.get("name")
        self._value = attributes.get("value")
        self._is_final = attributes.get("final") == "true"

    def _take_include(self, href: str | None) -> None:
        self._missing_include = None
        if href is None:
            return
        found = self._include(href)
        if found is None:
            self._missing_include = href
        else:
            self._properties += found

    def _characters(self, text: str) -> None:
        self._text.append(text)

    def _finish(self, tag: str) -> None:
        self._depth -= 1
        match tag.rpartition(":")[2]:
            case "name" if text := "".join(self._text):
                self._name = java_trim(text)
            case "value" if text := "".join(self._text):
                self._value = text
            case "final":
                self._is_final = "".join(self._text) == "true"
            case "property":
                self._finish_property()
            case "include":
                self._finish_include()

    def _finish_property(self) -> None:
        if self._name is None or (self._in_fallback and self._missing_include is None):
            return
        self._properties.append(Property(self._name, self._value, self._is_final, self._path))

    def _finish_include(self) -> None:
        if self._missing_include is not None and not self._in_fallback:
            self._refuse(f"includes {self._missing_include[:256]!r}, which does not exist, and gives no fallback")
        self._missing_include = None
        self._in_fallback = False

    def _check_doctype(self, _name: str, system_id: str | None, public_id: str | None, _has_subset: bool) -> None:
        if system_id is not None or public_id is not None:
            self._refuse("an external document type is not allowed (it could define entities)")

    def _refuse_entity(self, *_declaration: object) -> None:
        self._refuse("entities are not allowed; write the values themselves")

    def _refuse(self, why: str) -> NoReturn:
        raise ConfigError(f"{self._path}: line {self._parser.CurrentLineNumber}: {why}")
