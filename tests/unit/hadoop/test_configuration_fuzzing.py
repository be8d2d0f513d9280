# SPDX-License-Identifier: Apache-2.0
"""Throw bytes at the reader of configuration files: an answer or a `ConfigError`, never anything else.

FUZZ_EXAMPLES sets the number of examples of each test; a few hundred by default.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.hadoop.configuration_corpus import CASES
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import configuration, xmlfile
from yarn_copilot.hadoop.configuration_values import HadoopConfiguration
from yarn_copilot.hadoop.xmlfile import Property

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "200"))
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SEEDS = [content for case in CASES for name, content in case.files.items() if name == "yarn-site.xml"]
PIECES = [
    b"<!ENTITY a 'b'>",
    b"<!DOCTYPE c [",
    b"&a;",
    b"<include href='yarn-site.xml'/>",
    b"\x00",
    b"]]>",
    b"<property>",
]


def refusal(read: Callable[[], object]) -> str:
    """Read and give the sentence of the refusal; empty where there was none."""
    try:
        read()
    except ConfigError as error:
        return str(error)
    return ""


@st.composite
def mutated_sites(draw: st.DrawFn) -> bytes:
    """Take a good file and cut, repeat, replace or insert something."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        new = draw(st.one_of(st.binary(max_size=8), st.sampled_from(PIECES), st.just(bytes(data[start:end]) * 2)))
        data[start:end] = new
    return bytes(data)


@fuzz
@given(content=st.one_of(st.binary(max_size=400), mutated_sites()))
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "yarn-site.xml"
    path.write_bytes(content)
    assert len(refusal(lambda: configuration.read_cluster(path))) < 3000


REFERENCES = st.lists(
    st.sampled_from(["${", "}", "$", "{", "a", "b", "env.", "A", ":-", "-", " ", "x", "${a}", "${env.A:-", "\n"]),
    max_size=14,
).map("".join)


@fuzz
@given(a=REFERENCES, b=REFERENCES, environ=REFERENCES)
def test_any_reference_is_replaced_or_refused(a: str, b: str, environ: str) -> None:
    path = Path("yarn-site.xml")
    values = HadoopConfiguration(
        core_site=(),
        yarn_site=[Property("a", a, False, path), Property("b", b, False, path)],
        main_file=path,
        environ={"A": environ},
        system_properties={},
    )
    assert refusal(lambda: values.get("a"))[:19] in ("", "yarn-site.xml: a = ")


@fuzz
@given(text=st.text(max_size=30))
def test_any_text_is_a_number_or_refused(text: str) -> None:
    path = Path("yarn-site.xml")
    values = HadoopConfiguration(
        core_site=(), yarn_site=[Property("k", text, False, path)], main_file=path, environ={}, system_properties={}
    )
    assert refusal(lambda: values.integer("k", low=-5, high=5)) or -5 <= values.integer("k", low=-5, high=5) <= 5
    assert refusal(lambda: values.duration_millis("k", low=-5, high=5)) or (
        -5 <= values.duration_millis("k", low=-5, high=5) <= 5
    )


HOSTILE = {
    "deep": b"<a>" * 500_000,
    "one long text": b"<property><name>a</name><value>" + b"x" * 3_000_000 + b"</value></property>",
    "one long comment": b"<!--" + b"x" * 3_000_000 + b"-->",
    "one long attribute": b'<property name="' + b"x" * 3_000_000 + b'" value="v"/>',
    "many attributes": b"<property " + b" ".join(b'a%d="v"' % number for number in range(100_000)) + b"/>",
    "many properties": b"<property><name>a</name><value>v</value></property>" * 60_000,
    "many pieces of text": b"<property><name>a</name><value>" + b"&lt;" * 700_000 + b"</value></property>",
    "many references": b"<property><name>a</name><value>" + b"${a}" * 700_000 + b"</value></property>",
    "many inclusions": b'<xi:include href="more.xml" xmlns:xi="http://www.w3.org/2001/XInclude"/>' * 40_000,
}
_MEMORY_MIB_MAX = 256
_HANG_SECONDS = 60
_READ = """
import resource, sys
from pathlib import Path
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import configuration
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in map(Path, sys.argv[1:]):
    try:
        configuration.read_cluster(path)
    except ConfigError as error:
        assert len(str(error)) < 3000
    print(path.parent.name, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_hostile_files_end_with_little_memory_and_soon(tmp_path: Path) -> None:
    paths = []
    for name, inner in HOSTILE.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "more.xml").write_bytes(b"<configuration>" + inner[:1_000_000] + b"</configuration>")
        paths.append(folder / "yarn-site.xml")
        paths[-1].write_bytes(b"<configuration>" + inner + b"</configuration>")
    found = subprocess.run(
        [sys.executable, "-c", _READ, *map(str, paths)],
        capture_output=True, text=True, check=True, timeout=_HANG_SECONDS,
    )  # fmt: skip
    grown = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in found.stdout.splitlines()}
    assert grown.keys() == HOSTILE.keys()
    assert max(grown.values()) < _MEMORY_MIB_MAX, grown


@pytest.mark.parametrize("depth", [1_000, 200_000])
def test_deep_nesting_neither_crashes_nor_hangs(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "yarn-site.xml"
    path.write_bytes(b"<configuration>" + b"<a>" * depth + b"</a>" * depth + b"</configuration>")
    assert xmlfile.read_properties(path) == []
