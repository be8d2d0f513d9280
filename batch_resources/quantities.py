# SPDX-License-Identifier: Apache-2.0
"""Read and write Kubernetes quantities with exact integers and fractions.

Source: k8s.io/apimachinery pkg/api/resource (grammar in `Quantity`'s comment, canonical text in
`CanonicalizeBytes`). Three deliberate differences: a number without any digit (`Gi`, `-`) is an error here and zero
there, values finer than a nano are kept exactly instead of being rounded up to one, and nothing is silently capped
at 64 bits: callers refuse what is too large.

Performance: a controller reads one quantity or two for each of 50,000 pods at its start. Plain digits take a path
without a regular expression; other texts are remembered, because a cluster uses few different ones.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Final

MAX_TEXT_LENGTH: Final = 128
"""Longest text read, characters. The longest one the API server writes has 20."""

MAX_EXPONENT: Final = 99
"""Largest power of ten accepted after `e` or `E`, so that a short text cannot ask for a giant number."""

INT64_MAX: Final = 2**63 - 1

_SHOWN_LENGTH: Final = 64
_FAST_DIGITS: Final = 18
_CACHED_TEXTS: Final = 4096

_SUFFIXES: Final[dict[str, Fraction]] = {
    "": Fraction(1),
    **{suffix: Fraction(10) ** power for suffix, power in zip("num", (-9, -6, -3), strict=True)},
    **{suffix: Fraction(10) ** power for suffix, power in zip("kMGTPE", range(3, 19, 3), strict=True)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_DECIMAL_NAMES: Final = ("", "k", "M", "G", "T", "P", "E")
_BINARY_NAMES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]*))?|\.(?P<bare_part>[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,9})|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)"
)


class QuantityError(ValueError):
    """Say that a value is not a quantity; the message shows at most 64 characters of it."""


def parse_quantity(value: object) -> Fraction:
    """Read a quantity exactly.

    Args:
        value: text such as `50k`, `120Gi`, `1500m`, `5e4`, ` 7 ` (blanks around it are allowed), an int, or None,
            which is zero as in Kubernetes. A float or bool is refused.

    Returns:
        The value in base units (for batch-cpu milli-cores, for batch-memory bytes); any sign, any size.

    Raises:
        QuantityError: the value has another type, is longer than `MAX_TEXT_LENGTH`, or breaks the grammar.
    """
    return Fraction(exact_quantity(value))


def exact_quantity(value: object) -> int | Fraction:
    """Read a quantity exactly, as an int where it is whole.

    Args:
        value: as for `parse_quantity`.

    Returns:
        An int for whole values (adding those is 50 times cheaper), else a Fraction.

    Raises:
        QuantityError: as for `parse_quantity`.
    """
    if isinstance(value, str):
        if len(value) <= _FAST_DIGITS and value.isdigit() and value.isascii():
            return int(value)
        if len(value) > MAX_TEXT_LENGTH:
            raise QuantityError(f"quantity {shown(value)} is longer than {MAX_TEXT_LENGTH} characters")
        return _parse_text(value)
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise QuantityError(f"quantity {shown(value)} is a {type(value).__name__}, allowed are text, integer and null")


def quantity_floor(value: object) -> int:
    """Read a quantity and round it towards minus infinity: for capacity that is offered.

    Raises:
        QuantityError: as for `parse_quantity`.
    """
    return floor(exact_quantity(value))


def quantity_ceil(value: object) -> int:
    """Read a quantity and round it towards plus infinity: for use and requests, as kube-scheduler does.

    Raises:
        QuantityError: as for `parse_quantity`.
    """
    return ceil(exact_quantity(value))


def format_decimal(number: int) -> str:
    """Write an integer as the API server writes a quantity of format DecimalSI: `50k`, `60646`, `1M`.

    Raises:
        QuantityError: the number does not fit in 64 bits.
    """
    return _format(number, base=1000, names=_DECIMAL_NAMES)


def format_binary(number: int) -> str:
    """Write an integer as the API server writes a quantity of format BinarySI: `120Gi`, `33000000000`.

    Numbers between -1024 and 1024 are written as DecimalSI, so 1000 is `1k` here too.

    Raises:
        QuantityError: the number does not fit in 64 bits.
    """
    if -1024 < number < 1024:
        return format_decimal(number)
    return _format(number, base=1024, names=_BINARY_NAMES)


def shown(value: object) -> str:
    """Quote a value for a message, cut to 64 characters."""
    if isinstance(value, str):
        return repr(str(value[:_SHOWN_LENGTH])) + ("..." if len(value) > _SHOWN_LENGTH else "")
    if isinstance(value, int) and abs(value) > INT64_MAX:
        return "an integer beyond 64 bits"
    return repr(value)[:_SHOWN_LENGTH]


@lru_cache(maxsize=_CACHED_TEXTS)
def _parse_text(text: str) -> int | Fraction:
    match = _GRAMMAR.fullmatch(text.strip(" \t\n\v\f\r"))
    if match is None:
        raise QuantityError(f"quantity {shown(text)} is malformed")
    part = match["part"] or match["bare_part"] or ""
    number = Fraction(int((match["whole"] or "") + part), 10 ** len(part))
    if match["sign"] == "-":
        number = -number
    if match["exponent"] is None:
        number *= _SUFFIXES[match["suffix"] or ""]
    else:
        exponent = int(match["exponent"])
        if abs(exponent) > MAX_EXPONENT:
            raise QuantityError(f"quantity {shown(text)} has an exponent beyond {MAX_EXPONENT}")
        number *= Fraction(10) ** exponent
    return number.numerator if number.denominator == 1 else number


def _format(number: int, *, base: int, names: tuple[str, ...]) -> str:
    """Divide by `base` while that leaves no remainder, and add the name of the power."""
    if abs(number) > INT64_MAX:
        raise QuantityError(f"quantity {shown(number)} cannot be written, the limit is 64 bits")
    power = 0
    while number and number % base == 0:
        number //= base
        power += 1
    return f"{number}{names[power]}"
