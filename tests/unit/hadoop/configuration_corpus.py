# SPDX-License-Identifier: Apache-2.0
"""Hold configuration folders with odd contents, and questions about them.

What Hadoop 3.5.0 itself answers is recorded in `tests/data/hadoop-configuration-answers.json`; a lab test asks it
again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import configuration
from yarn_copilot.hadoop.configuration import Surroundings
from yarn_copilot.hadoop.configuration_values import HadoopConfiguration

ANSWERS_FILE: Final = Path(__file__).resolve().parents[2] / "data" / "hadoop-configuration-answers.json"
ENVIRON: Final = {"CORPUS_HOST": "rm.example", "CORPUS_EMPTY": "", "CORPUS_REFERENCE": "${host}", "CORPUS_A-B": "dash"}
USER: Final = "corpus"
UNSET: Final = "UNSET"
ERROR: Final = "ERROR"
_INT_MAX: Final = 2**31 - 1
_XI: Final = ' xmlns:xi="http://www.w3.org/2001/XInclude"'


@dataclass(frozen=True, slots=True)
class Case:
    """Hold one folder and what is asked; a question is `kind key`."""

    name: str
    files: dict[str, bytes]
    questions: tuple[str, ...]
    stricter: frozenset[str] = frozenset()
    """Questions to which Hadoop guesses an answer where we give an error, on purpose."""

    def write(self, folder: Path) -> Path:
        """Write the files below a folder."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder


def site(*entries: tuple[str, str] | str, root: str = "configuration") -> bytes:
    """Write a file; a text stands as it is, a pair is a property."""
    lines = [entry if isinstance(entry, str) else _property(*entry) for entry in entries]
    return f"<{root}{_XI}>\n{chr(10).join(lines)}\n</{root}>\n".encode()


def _property(name: str, value: str) -> str:
    return f"<property><name>{name}</name><value>{value}</value></property>"


def _final(name: str, value: str, final: str = "true") -> str:
    return f"<property><name>{name}</name><value>{value}</value><final>{final}</final></property>"


def _get(*keys: str) -> tuple[str, ...]:
    return tuple(f"get {key}" for key in keys)


def _typed(kind: str, prefix: str, *values: str, stricter: frozenset[int] = frozenset()) -> Case:
    """Ask for one kind of value in all these spellings; keys are prefix1, prefix2 ..."""
    keys = [f"{prefix}{index}" for index in range(1, len(values) + 1)]
    return Case(
        kind,
        {"yarn-site.xml": site(*zip(keys, values, strict=True))},
        (*(f"{kind} {key}" for key in keys), f"{kind} {prefix}.absent"),
        frozenset(f"{kind} {prefix}{index}" for index in stricter),
    )


RM: Final = "yarn.resourcemanager"


def _addresses(name: str, client: str, admin: str = "admin:1", web: str = "web:1", *, stricter: bool = False) -> Case:
    """Ask for three addresses of one ResourceManager; where one is wrong, only the first is asked for."""
    values = ((f"{RM}.address", client), (f"{RM}.admin.address", admin), (f"{RM}.webapp.address", web))
    questions = (f"address {RM}.address - 8032", f"address {RM}.admin.address - 8033")
    asked = questions if admin != "admin:1" else questions[:1]
    return Case(name, {"yarn-site.xml": site(*values)}, asked, frozenset(asked) if stricter else frozenset())


HA: Final = ((f"{RM}.ha.enabled", "true"), (f"{RM}.ha.rm-ids", " rm1 ,\n rm2 "), (f"{RM}.cluster-id", "c"))


def _ha_questions(*keys: str) -> tuple[str, ...]:
    return tuple(f"address {RM}.{key} {rm} {port}" for key, port in _PORTS.items() if key in keys for rm in _IDS)


_IDS: Final = ("rm1", "rm2")
_PORTS: Final = {"address": 8032, "admin.address": 8033, "webapp.address": 8088}

CASES: Final = (
    Case(
        "load order",
        {
            "core-site.xml": site(
                (f"{RM}.hostname", "from-core"), _final(f"{RM}.webapp.address", "core:1"), ("a", "core"), ("b", "core"),
                _final("c", "core"), _final("d", "core", " true "), _final("e", "core", "TRUE"), ("x", "${y}"),
            ),
            "yarn-site.xml": site(
                ("a", "yarn"), ("a", "yarn-2"), ("c", "yarn"), (f"{RM}.webapp.address", "yarn:1"), ("d", "yarn"),
                ("e", "yarn"), _final("f", "first"), ("f", "second"), ("y", "from-yarn"),
                "<property><name>g</name><final>true</final></property>", ("g", "later"),
            ),
        },
        _get(f"{RM}.hostname", f"{RM}.address", f"{RM}.webapp.address", "a", "b", "c", "d", "e", "f", "g", "x"),
    ),
    Case(
        "only yarn-site",
        {"yarn-site.xml": site((f"{RM}.hostname", " rm "))},
        (*_get(f"{RM}.hostname", f"{RM}.admin.address"), f"address {RM}.address - 8032"),
    ),
    Case(
        "substitution",
        {
            "yarn-site.xml": site(
                ("host", "h"), ("port", "1"), ("s1", "${host}:${port}"), ("s2", "${unset} ${host}"),
                ("s3", "${host} ${unset}"), ("s4", "${${name}}"), ("name", "host"), ("s5", "${s6}"), ("s6", "${s5}"),
                ("s7", "x${s7}"), ("s8", "$${host}$x{y}${}${ a}${host"), ("s9", "${env.CORPUS_HOST}"),
                ("s10", "${env.CORPUS_NONE:-d}"), ("s11", "${env.CORPUS_NONE-d}"), ("s12", "${env.CORPUS_EMPTY:-d}"),
                ("s13", "[${env.CORPUS_EMPTY-d}]"), ("s14", "${env.CORPUS_NONE}"), ("s15", "${env.}"),
                ("s16", "${env.CORPUS_NONE:-a:-b}"), ("s17", "[${env.CORPUS_NONE:-}]"), ("s18", "${env.CORPUS_A-B}"),
                ("s19", "${env.CORPUS_REFERENCE}"), ("s20", "${env.CORPUS_NONE:-${host}}"), ("s21", "${user.name}"),
                ("s22", "${hadoop.tmp.dir}/x"), ("s23", "${env.CORPUS_NONE:x}"), ("s24", "${blank}|"), ("blank", " "),
                ("user.name", "property"), ("s25", "${ho}${st}"), ("s26", "${host}" * 19), ("s27", "${host}" * 20),
                ("s28", "${a b}"), ("s29", "${a\n}"), ("s30", "{${host}}"), ("s31", "${s32}"), ("s32", "${s31}x"),
                *((f"d{index}", f"${{d{index - 1}}}") for index in range(1, 24)), ("d0", "end"),
            )
        },
        _get(*(f"s{index}" for index in range(1, 33)), "d18", "d19", "d20", "d21", "d23"),
    ),
    Case(
        "shape",
        {
            "yarn-site.xml": site(
                '<property name="a" value="attribute" final="true"/>', ("a", "later"),
                "<property><name> n1 </name><value> v </value></property>", ("e1", ""), ("e2", "kept"), ("e2", ""),
                "<property><name>e3</name><value/></property>", "<property><name>e4</name></property>",
                "<property><value>nameless</value></property>", "<name>stray</name><value>stray</value>",
                "<other><property><name>nested</name><value>n</value></property></other>",
                "<property><name>two</name><name>names</name><value>1</value><value>2</value></property>",
                "<property><name>mixed</name><value>a<b>c</b>d</value></property>",
                "<property><name>cdata</name><value><![CDATA[<&]]>x&amp;&#65;<!-- c -->y<?p i?>z</value></property>",
                "<!-- <property><name>comment</name><value>x</value></property> -->",
                "<property><name>described</name><value>v</value><description>name value</description></property>",
                "<property><name>nbsp&#160;</name><value>&#160;v</value></property>",
                "<property><name>crlf</name><value>a\r\nb</value></property>",
                "<x:property xmlns:x='urn:x'><x:name>prefixed</x:name><x:value>p</x:value></x:property>",
                "<property><final>true</final><name>early</name><value>1</value></property>", ("early", "2"),
                "<PROPERTY><name>upper</name><value>u</value></PROPERTY>",
                '<property name="both" value="attribute"><value>element</value></property>',
                "<property><name></name><value>empty-name</value></property>",
            )
        },
        _get("a", "n1", "e1", "e2", "e3", "e4", "stray", "nested", "two", "names", "mixed", "cdata", "comment"),
    ),
    Case(
        "shape, continued",
        {
            "yarn-site.xml": site(
                "<property><name>described</name><value>v</value><description>name value</description></property>",
                "<property><name>nbsp&#160;</name><value>&#160;v</value></property>",
                "<property><name>crlf</name><value>a\r\nb</value></property>",
                "<x:property xmlns:x='urn:x'><x:name>prefixed</x:name><x:value>p</x:value></x:property>",
                "<property><final>true</final><name>early</name><value>1</value></property>", ("early", "2"),
                "<PROPERTY><name>upper</name><value>u</value></PROPERTY>",
                '<property name="both" value="attribute"><value>element</value></property>',
                "<property><name></name><value>empty-name</value></property>",
                "<property><name>nested</name><property><name>inner</name><value>i</value></property></property>",
            )
        },
        _get("described", "nbsp", "nbsp\u00a0", "crlf", "prefixed", "early", "upper", "both", "inner"),
    ),
    Case(
        "inclusion",
        {
            "yarn-site.xml": site(
                ("a", "before"), '<xi:include href="sub/one.xml"/>', ("b", "after"),
                '<xi:include href="missing.xml"><xi:fallback><property><name>f1</name><value>used</value></property>'
                "</xi:fallback></xi:include>",
                '<xi:include href="sub/one.xml"><xi:fallback><property><name>f2</name><value>no</value></property>'
                "</xi:fallback></xi:include>",
                "<xi:include/>",
            ),
            "sub/one.xml": site(
                ("a", "included"), ("b", "included"), _final("c", "final"), '<xi:include href="two.xml"/>'
            ),
            "two.xml": site(("two", "top"), ("c", "late")),
            "sub/two.xml": site(("two", "beside")),
        },
        _get("a", "b", "c", "f1", "f2", "two"),
    ),
    Case("inclusion of nothing", {"yarn-site.xml": site('<xi:include href="missing.xml"/>')}, _get("a")),
    Case(
        "inclusion beside",
        {"yarn-site.xml": site('<xi:include href="sub/a.xml"/>'), "sub/a.xml": site('<xi:include href="b.xml"/>'),
         "sub/b.xml": site(("a", "b"))},
        _get("a"),
    ),
    Case(
        "inclusion of a circle",
        {"yarn-site.xml": site('<xi:include href="b.xml"/>'), "b.xml": site('<xi:include href="yarn-site.xml"/>')},
        _get("a"),
    ),
    Case(
        "inclusion of a property",
        {"yarn-site.xml": site('<xi:include href="p.xml"/>'), "p.xml": _property("a", "1").encode()},
        _get("a"),
    ),
    Case("another root", {"yarn-site.xml": site(("a", "1"), root="conf")}, _get("a"), frozenset(_get("a"))),
    Case("not closed", {"yarn-site.xml": b"<configuration><property>"}, _get("a")),
    Case("empty file", {"yarn-site.xml": b""}, _get("a")),
    Case("broken core-site", {"core-site.xml": b"<x", "yarn-site.xml": site(("a", "1"))}, _get("a")),
    Case(
        "entities",
        {"yarn-site.xml": b'<!DOCTYPE c [<!ENTITY e "v">]>' + site(("a", "&e;"))},
        _get("a"),
        frozenset(_get("a")),
    ),
    Case("plain document type", {"yarn-site.xml": b"<!DOCTYPE configuration>" + site(("a", "1"))}, _get("a")),
    Case(
        "UTF-8 with a mark",
        {"yarn-site.xml": b"\xef\xbb\xbf" + b'<?xml version="1.0" encoding="UTF-8"?>' + site(("a", "ä漢"))},
        _get("a"),
    ),
    Case(
        "UTF-16",
        {"yarn-site.xml": ('<?xml version="1.0" encoding="UTF-16"?>' + site(("a", "ä漢")).decode()).encode("utf-16")},
        _get("a"),
    ),
    Case(
        "Latin 1",
        {"yarn-site.xml": b'<?xml version="1.0" encoding="ISO-8859-1"?>' + site(("a", "ä")).decode().encode("latin-1")},
        _get("a"),
    ),
    Case(
        "GBK",
        {"yarn-site.xml": b'<?xml version="1.0" encoding="GBK"?>' + site(("a", "汉")).decode().encode("gbk")},
        _get("a"),
    ),
    Case(
        "wrong bytes",
        {"yarn-site.xml": b'<?xml version="1.0" encoding="UTF-8"?>' + site(("a", "ä")).decode().encode("latin-1")},
        _get("a"),
    ),
    _typed(
        "integer", "i", "0x10", "-0x10", " 7 ", "4294967296", "1k", "+3", " ", "", "-0", "0x", "1.0", "1 000", "007",
        "0x+5", "-0x-5", "--5", "0X1f", "2147483647", "2147483648", "-2147483648", "0x80000000", "1_0", "\t5\n",
    ),
    _typed(
        "millis", "t", "30s", "30 s", "1500", "5M", "1500us", "-5", " 2h ", "1.5s", "3d", "0x10", "+5", "300ms", " ",
        "", "s", "1ns", "-1500us", "999999ns", "5min", "1H", "10S", "5m5s", "00030s", "-1s",
    ),
    _typed(
        "boolean", "b", " TRUE ", "False", "yes", "1", " ", "", "true false", "trUe", "on",
        stricter=frozenset((3, 4, 7, 9)),
    ),
    _typed("list", "l", " a , b,,c\n d, ", ",", " ", "", "a", "a b, c", ",a", "a\n\nb", "a,\tb\r\n"),
    Case(
        "high availability",
        {
            "yarn-site.xml": site(
                *HA, (f"{RM}.hostname.rm1", " one "), (f"{RM}.address.rm2", "two:1"), (f"{RM}.hostname.rm2", "two"),
                (f"{RM}.admin.address.rm2", "${env.CORPUS_HOST}:2"), (f"{RM}.webapp.address.rm1", "web:3"),
                (f"{RM}.address", "ignored:9"),
            )
        },
        _ha_questions("address", "admin.address", "webapp.address"),
    ),
    Case(
        "high availability without one address",
        {"yarn-site.xml": site(*HA, (f"{RM}.hostname.rm1", "one"))},
        _ha_questions("address"),
    ),
    Case(
        "one address",
        {"yarn-site.xml": site((f"{RM}.address", "a:1"), (f"{RM}.admin.address", " b "), (f"{RM}.hostname", "c"))},
        (f"address {RM}.address - 8032", f"address {RM}.admin.address - 8033", f"address {RM}.webapp.address - 8088"),
    ),
    _addresses("scheme and path", "http://rm:1/x", "yarn://RM.Example."),
    _addresses("zeros and numbers", " rm:08032 ", "10.0.0.1"),
    _addresses("path without scheme", "rm/x"),
    _addresses("path after the port", "rm:1/x"),
    _addresses("two addresses", "one:1,two:1"),
    _addresses("several colons", "rm:1:2"),
    _addresses("IPv6 without brackets", "::1"),
    _addresses("name in brackets", "[rm]:1"),
    _addresses("no name", "-:1"),
    _addresses("not ASCII", "\u00e4.example:1"),
    _addresses("user", "user@rm:1", stricter=True),
    _addresses("fragment", "rm:1#x", stricter=True),
)  # fmt: skip


def questions() -> Iterator[tuple[Case, str]]:
    """Give every question of every case."""
    for case in CASES:
        for question in case.questions:
            yield case, question


def recorded_answers() -> dict[str, dict[str, str]]:
    """Read what Hadoop answered: case, question, answer."""
    answers: dict[str, dict[str, str]] = json.loads(ANSWERS_FILE.read_text(encoding="utf-8"))
    return answers


def our_answer(folder: Path, question: str) -> str:
    """Answer a question about a folder ourselves."""
    kind, _, key = question.partition(" ")
    surroundings = Surroundings(environ=ENVIRON, system_properties={"user.name": USER})
    try:
        if kind == "address":
            return _address(configuration.read_cluster(folder / "yarn-site.xml", surroundings), key)
        return _value(configuration.read_values(folder / "yarn-site.xml", surroundings), kind, key)
    except ConfigError:
        return ERROR


def _value(values: HadoopConfiguration, kind: str, key: str) -> str:
    match kind:
        case "get":
            value = values.get(key)
            return UNSET if value is None else f"OK {value}"
        case "integer":
            return f"OK {values.integer(key, low=-_INT_MAX - 1, high=_INT_MAX, default=-1)}"
        case "millis":
            return f"OK {values.duration_millis(key, low=-(2**63), high=2**63 - 1, default=-1)}"
        case "boolean":
            return f"OK {str(values.boolean(key)).lower()}"
        case _:
            return f"OK [{', '.join(values.items(key))}]"


def _address(cluster: configuration.ClusterConfiguration, key: str) -> str:
    name, rm_id, _ = key.split(" ")
    manager = next(rm for rm in cluster.resource_managers if rm.rm_id == rm_id.strip("-"))
    found = {"address": manager.client, "admin.address": manager.admin, "webapp.address": manager.web}
    return f"OK {found[name.removeprefix(RM + '.')]}"
