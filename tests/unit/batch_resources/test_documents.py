# SPDX-License-Identifier: Apache-2.0
"""Read JSON that somebody else wrote into an annotation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_resources.annotations import documents
from batch_resources.annotations.documents import MAX_DEPTH, DocumentError, JsonNumber

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
objects = st.dictionaries(st.text(max_size=8), values, max_size=5)


@given(objects)
def test_a_document_survives_reading_and_writing(document: dict[str, Any]) -> None:
    text = documents.encode(documents.parse_object(json.dumps(document)))
    assert json.loads(text) == document
    assert text.isascii()


@given(objects)
def test_the_canonical_text_does_not_change_when_written_again(document: dict[str, Any]) -> None:
    text = documents.encode(documents.parse_object(json.dumps(document)))
    assert documents.encode(documents.parse_object(text)) == text


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_is_a_document_or_an_error(text: str) -> None:
    try:
        assert isinstance(documents.parse_object(text), dict)
    except DocumentError as error:
        assert len(str(error)) < 300  # noqa: PT017


@pytest.mark.parametrize(
    "number",
    ["1.50", "1e400", "-0.0", "1E-9", "3.0000000000000000000000000000001", "9" * 41, "-" + "7" * 5000, "1" * 100_000],
    ids=lambda number: number[:24],
)
def test_numbers_keep_every_digit(number: str) -> None:
    read = documents.parse_object(f'{{"n":{number}}}')
    assert isinstance(read["n"], JsonNumber)
    assert documents.encode(read) == f'{{"n":{number}}}'


def test_no_number_becomes_a_float() -> None:
    read = documents.parse_object('{"a":[1,1.0,1e3,-2.5,{"b":0.1}]}')
    assert [type(item) for item in (*read["a"][:4], read["a"][4]["b"])] == [int] + 4 * [JsonNumber]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("bad-format", "not JSON"),
        ("{", "not JSON"),
        ("{}{}", "not JSON: Extra data"),
        ("{'a':1}", "not JSON"),
        ('{"a":1,}', "not JSON"),
        ('{"a":"\n"}', "not JSON"),
        ('{"a":01}', "not JSON"),
        ('{"a":+1}', "not JSON"),
        ("\ufeff{}", "not JSON"),
        ('{"a":NaN}', "NaN is not a number"),
        ('{"a":[Infinity]}', "Infinity is not a number"),
        ('{"a":-Infinity}', "-Infinity is not a number"),
        ("[]", "kind array, not object"),
        ('"text"', "kind string, not object"),
        ("1", "kind number, not object"),
        ("1.5", "kind number, not object"),
        ("true", "kind boolean, not object"),
        ('{"a":1,"a":1}', "key 'a' occurs twice"),
        ('{"x":[{"b":1,"\\u0062":2}]}', "key 'b' occurs twice"),
        ("[" * 100_000 + "]" * 100_000, "nested deeper than 64 levels"),
        ("[" * 200_000, "nested deeper than 64 levels"),
        ('{"a":' * 40_000 + "1" + "}" * 40_000, "nested deeper than 64 levels"),
        ('{"a":' * 65 + "1" + "}" * 65, "nested deeper than 64 levels"),
        ('{"a":' + "[" * 64 + "]" * 64 + "}", "nested deeper than 64 levels"),
        (" " * 300_000 + "{}", "300002 characters, the limit is 262144"),
        ("{" * 50_000_000, "50000000 characters"),
    ],
    ids=lambda value: repr(value[:16]),
)
def test_says_why_a_text_is_no_document(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        documents.parse_object(text)


def test_the_deepest_document_allowed_is_kept() -> None:
    text = '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH
    assert documents.encode(documents.parse_object(text)) == text


def test_the_deepest_document_allowed_is_kept_beside_a_sibling() -> None:
    text = '{"a":' * MAX_DEPTH + "1" + "}" * (MAX_DEPTH - 1) + ',"z":[]}'
    assert documents.encode(documents.parse_object(text)) == text


def test_a_wide_document_is_not_a_deep_one() -> None:
    text = '{"a":[' + ",".join(["[]", "{}"] * 500) + "]}"
    assert documents.encode(documents.parse_object(text)) == text


def test_null_is_an_empty_document() -> None:
    assert documents.parse_object(" null ") == {}


def test_characters_beyond_ascii_and_lone_surrogates_are_kept() -> None:
    text = '{"\\u00fc":"\\ud800 \\ud83d\\ude00"}'
    assert documents.encode(documents.parse_object(text)) == text
    assert documents.encode(documents.parse_object('{"\u00fc":"\ud800 \U0001f600"}')) == text


@pytest.mark.parametrize("key", ["Resources", "RESOURCES", "re\u017fources"])
def test_a_key_that_go_would_take_for_a_field_is_refused(key: str) -> None:
    with pytest.raises(DocumentError, match="differs from 'resources' only in case"):
        documents.refuse_case_variants({key: 1}, frozenset({"resources"}), "annotation")


def test_other_keys_are_not_refused() -> None:
    documents.refuse_case_variants({"resources": 1, "resource": 2, "x": 3}, frozenset({"resources"}), "annotation")


def test_a_field_of_another_kind_is_named() -> None:
    with pytest.raises(DocumentError, match=r"annotation\.resources is of kind array, not object"):
        documents.optional_object({"resources": []}, "resources", "annotation")
