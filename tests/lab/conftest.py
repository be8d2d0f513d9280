# SPDX-License-Identifier: Apache-2.0
"""Give the tests in this folder real servers.

`lab` is shared by all tests of a session and tidied after each of them; `fresh_lab` is for tests that need a lab of
their own. Node and pod names come from `unique`, so that nothing of another test is mistaken for one's own.
"""

from __future__ import annotations

import gc
import itertools
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.cluster import Lab
from lab.hadoop.options import YarnOptions

_FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, and keep them on one worker where xdist spreads tests."""
    for item in items:
        if _FOLDER in item.path.parents:
            item.add_marker(pytest.mark.lab)
            item.add_marker(pytest.mark.xdist_group("lab"))


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect after each test: a warning about what it has not closed is an error, and is charged to whoever did it."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def shared_lab() -> Iterator[Lab]:
    """Run one lab for the session: Kubernetes, a ResourceManager and three NodeManagers 3.5.0.

    Containers may have any size in MiB, and the third NodeManager is known by its address only.
    """
    with Lab(yarn_options=YarnOptions(minimum_memory_mib=1, nameless=(3,))) as lab:
        yield lab


@pytest.fixture
def lab(shared_lab: Lab) -> Iterator[Lab]:
    """Lend the shared lab and tidy it afterwards; servers may be stopped and frozen, they are brought back."""
    yield shared_lab
    shared_lab.tidy()


@pytest.fixture
def fresh_lab() -> Iterator[Lab]:
    """Run a lab for one test."""
    with Lab() as lab:
        yield lab


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Make names that no other test uses: `unique("node")` gives `node-4f1c-1`."""
    mark = secrets.token_hex(2)
    numbers = itertools.count(1)
    return lambda prefix: f"{prefix}-{mark}-{next(numbers)}"
