# SPDX-License-Identifier: Apache-2.0
"""Read the test data: Koordinator's vectors, and what Kubernetes' own code answered (tests/data/golden/main.go)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[2] / "data"


@cache
def read(name: str) -> Any:
    """Read a JSON file of tests/data once."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def group(name: str, *path: str) -> list[Any]:
    """Give the vectors of a group as pytest parameters with their ids."""
    vectors = read("koordinator-vectors.json")[name]
    for step in path:
        vectors = vectors[step]
    return [pytest.param(vector, id=vector.get("id") or repr(vector["text"])) for vector in vectors]
