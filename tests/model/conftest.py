# SPDX-License-Identifier: Apache-2.0
"""Start the long searches first, so that no worker is left with one of them at the end."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move tests of this folder with a longer timeout forward; the rest keeps the random order it has."""
    items.sort(key=_longest_first)


def _longest_first(item: pytest.Item) -> int:
    mark = item.get_closest_marker("timeout")
    is_ours = item.nodeid.startswith("tests/model/")
    return -int(mark.args[0]) if mark is not None and is_ours else 0
