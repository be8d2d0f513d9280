# SPDX-License-Identifier: Apache-2.0
"""Compare quantities with Kubernetes' own code, and feed them what no server should send."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_resources import quantities
from batch_resources.quantities import INT64_MAX, MAX_TEXT_LENGTH, QuantityError
from tests.unit.batch_resources import vectors

GOLDEN = vectors.read("golden/quantities.json")
SIGNED_ZERO = ("-", "+")


@pytest.mark.parametrize("vector", vectors.group("quantity", "canonical"))
def test_writes_the_canonical_text_of_the_vectors(vector: dict[str, Any]) -> None:
    write = quantities.format_decimal if vector["format"] == "DecimalSI" else quantities.format_binary
    assert write(vector["value"]) == vector["text"]


@pytest.mark.parametrize("vector", vectors.group("quantity", "parse_rounded_up"))
def test_reads_and_rounds_up_like_the_vectors(vector: dict[str, Any]) -> None:
    assert quantities.quantity_ceil(vector["text"]) == vector["value"]


@pytest.mark.parametrize("vector", vectors.group("quantity", "parse_error"))
def test_refuses_the_malformed_texts_of_the_vectors(vector: dict[str, Any]) -> None:
    with pytest.raises(QuantityError):
        quantities.parse_quantity(vector["text"])


@pytest.mark.parametrize("vector", vectors.group("quantity", "lenient_upstream"))
def test_refuses_a_suffix_without_digits(vector: dict[str, Any]) -> None:
    with pytest.raises(QuantityError, match="malformed"):
        quantities.parse_quantity(vector["text"])


@pytest.mark.parametrize("made", GOLDEN["format"], ids=lambda made: made["number"])
def test_writes_what_apimachinery_writes(made: dict[str, str]) -> None:
    number = int(made["number"])
    assert quantities.format_decimal(number) == made["decimal"]
    assert quantities.format_binary(number) == made["binary"]
    assert quantities.parse_quantity(made["decimal"]) == quantities.parse_quantity(made["binary"]) == number


def _comparable() -> list[Any]:
    """Leave out what differs on purpose: rounding of negatives, blanks (JSON decoding trims them), no digit."""
    return [
        pytest.param(made, id=repr(made["text"]))
        for made in GOLDEN["parse"]
        if not made["text"].startswith("-") and made["text"] == made["text"].strip() and made["text"] not in SIGNED_ZERO
    ]


@pytest.mark.parametrize("made", _comparable())
def test_reads_what_apimachinery_reads(made: dict[str, Any]) -> None:
    if made.get("error"):
        with pytest.raises(QuantityError):
            quantities.parse_quantity(made["text"])
    else:
        exact = quantities.parse_quantity(made["text"])
        # Kubernetes rounds values finer than a nano up and caps binary suffixes at 64 bits.
        capped = min(exact, Fraction(INT64_MAX)) if made["text"].endswith("i") else exact
        assert capped <= quantities.parse_quantity(made["canonical"]) < capped + Fraction(1, 10**9)
        if "ceil" in made:
            assert quantities.quantity_ceil(made["text"]) == int(made["ceil"])


@pytest.mark.parametrize(
    ("value", "floor", "ceil"),
    [
        (None, 0, 0),
        (0, 0, 0),
        (17, 17, 17),
        (-17, -17, -17),
        (2**200, 2**200, 2**200),
        ("1500m", 1, 2),
        ("-1500m", -2, -1),
        ("-0", 0, 0),
        (".5", 0, 1),
        ("5.", 5, 5),
        ("0.1n", 0, 1),
        ("007", 7, 7),
        ("1E", 10**18, 10**18),
        ("1e2", 100, 100),
        ("1E-2", 0, 1),
        ("15e-1", 1, 2),
        ("1e99", 10**99, 10**99),
        ("1e-99", 0, 1),
        ("1Ei", 2**60, 2**60),
        ("9223372036854775807", INT64_MAX, INT64_MAX),
        ("9223372036854775808", INT64_MAX + 1, INT64_MAX + 1),
        ("-9223372036854775808", -INT64_MAX - 1, -INT64_MAX - 1),
        ("99999999999999999999", 10**20 - 1, 10**20 - 1),
        ("999999999999999999", 10**18 - 1, 10**18 - 1),
        ("\t 12Mi\r\n", 12 << 20, 12 << 20),
        ("1" * MAX_TEXT_LENGTH, int("1" * MAX_TEXT_LENGTH), int("1" * MAX_TEXT_LENGTH)),
    ],
    ids=str,
)
def test_rounds_in_the_direction_asked_for(value: object, floor: int, ceil: int) -> None:
    assert quantities.quantity_floor(value) == floor
    assert quantities.quantity_ceil(value) == ceil
    assert floor <= quantities.parse_quantity(value) <= ceil


@pytest.mark.parametrize(
    "value",
    [
        "NaN",
        "Infinity",
        "-inf",
        "1e100",
        "1e-100",
        "1e999999999",
        "1e99999999999999999999",
        "1e",
        "1ee5",
        "1e5k",
        "0x10",
        "1_000",
        "1,000",
        "1 000",
        "1.2.3",
        ".",
        "-",
        "+",
        "-.",
        "\u0661\u0662",  # Arabic-Indic digits: int() would read them
        "\uff11",
        "\u00b2",
        "5\u212ai",  # the Kelvin sign, which lower-cases to k
        "1\x00",
        "\u00a05",
        "1\ud800",
        "{}",
        "null",
        1.0,
        float("nan"),
        True,
        False,
        b"1",
        Decimal(1),
        [],
        {},
        ["1"],
    ],
    ids=repr,
)
def test_refuses_what_is_no_quantity(value: object) -> None:
    with pytest.raises(QuantityError):
        quantities.parse_quantity(value)


def test_a_refusal_names_the_text_and_cuts_it() -> None:
    with pytest.raises(QuantityError, match="quantity '12 parsecs' is malformed"):
        quantities.parse_quantity("12 parsecs")
    with pytest.raises(QuantityError) as caught:
        quantities.parse_quantity("9" * 50_000_000)
    assert str(caught.value) == f"quantity '{'9' * 64}'... is longer than 128 characters"
    with pytest.raises(QuantityError, match="float"):
        quantities.parse_quantity(1.5)


@pytest.mark.parametrize("number", [INT64_MAX + 1, -INT64_MAX - 1, 10**5000], ids=["above", "below", "enormous"])
def test_writes_nothing_beyond_64_bits(number: int) -> None:
    for write in (quantities.format_decimal, quantities.format_binary):
        with pytest.raises(QuantityError, match="beyond 64 bits"):
            write(number)


@given(st.integers(min_value=-INT64_MAX, max_value=INT64_MAX))
def test_what_is_written_reads_back_as_the_same_number(number: int) -> None:
    assert quantities.exact_quantity(quantities.format_decimal(number)) == number
    assert quantities.exact_quantity(quantities.format_binary(number)) == number


@given(st.integers(min_value=-INT64_MAX, max_value=INT64_MAX))
def test_the_canonical_text_is_the_shortest_by_whole_powers(number: int) -> None:
    text = quantities.format_decimal(number)
    assert not text.removesuffix("m").endswith("000")
    assert len(text) <= len(str(number))


@given(st.text(max_size=200))
def test_any_text_is_a_number_or_an_error(text: str) -> None:
    try:
        exact = quantities.parse_quantity(text)
    except QuantityError as error:
        assert len(str(error)) < 700  # noqa: PT017 - an escaped character shows as up to ten
    else:
        assert quantities.quantity_floor(text) <= exact <= quantities.quantity_ceil(text)


@given(
    st.from_regex(r"[+-]?[0-9]{1,12}(\.[0-9]{0,8})?", fullmatch=True),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "e3", "E-4", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]),
)
def test_reading_agrees_with_decimal_arithmetic(number: str, suffix: str) -> None:
    scale = {"n": "1e-9", "u": "1e-6", "m": "1e-3", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12", "P": "1e15"}
    scale |= {"": "1", "E": "1e18", "e3": "1e3", "E-4": "1e-4"}
    factor = Fraction(scale[suffix]) if suffix in scale else Fraction(1024 ** (1 + "KMGTPE".index(suffix[0])))
    assert quantities.parse_quantity(number + suffix) == Fraction(Decimal(number)) * factor
