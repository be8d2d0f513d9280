# SPDX-License-Identifier: Apache-2.0
"""Share a served API and a runner that knows nothing of the caller's environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner, Result

from tests.unit.api.fake_reader import FakeReader
from tests.unit.cli.serving import served
from yarn_copilot.cli.main import app

Invoke = Callable[..., Result]


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def url(reader: FakeReader) -> Iterator[str]:
    with served(reader) as url:
        yield url


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    for name in ("YARN_COPILOT_URL", "YARN_COPILOT_CONFIG"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments))

    return call
