# SPDX-License-Identifier: Apache-2.0
"""The HTTP API reads, says `leader` and `age_seconds` in every answer, and shows no insides when it fails."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.api.fake_reader import FakeReader, controller_view, queue_view
from yarn_copilot.controller.api.server import APIServer, ServerStartError
from yarn_copilot.controller.view import ClusterView
from yarn_copilot.observability.metrics import Metrics
from yarn_copilot.observability.table import MetricsTable, PipelineRow

JSON_PATHS = [
    "/healthz",
    "/readyz",
    "/api/v1/status",
    "/api/v1/nodes",
    "/api/v1/nodes/worker-1",
    "/api/v1/nodes/worker-1/explain",
    "/api/v1/clusters",
    "/api/v1/queues",
]


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def http(reader: FakeReader, metrics: Metrics) -> AsyncIterator[aiohttp.ClientSession]:
    server = APIServer(reader, metrics, bind_address="127.0.0.1", port=0)
    port = await server.start()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        yield session
    await server.aclose()


@pytest.mark.parametrize("path", JSON_PATHS)
async def test_every_answer_says_who_leads_and_how_old_it_is(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path) as response:
        content = await response.json()
    assert response.status == 200
    assert content["leader"] is True
    assert content["age_seconds"] in {0.9, 3.0}
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", JSON_PATHS)
async def test_a_standby_answers_too(http: aiohttp.ClientSession, reader: FakeReader, path: str) -> None:
    reader.view = controller_view(leader=False, leader_identity="pod-b")
    async with http.get(path) as response:
        assert response.status == 200
        assert (await response.json())["leader"] is False


async def test_the_age_is_unknown_until_every_side_has_answered(
    http: aiohttp.ClientSession, reader: FakeReader
) -> None:
    reader.cluster_views.append(ClusterView(id="green", reachable=False, error="refused"))
    async with http.get("/api/v1/nodes") as response:
        assert (await response.json())["age_seconds"] is None
    async with http.get("/api/v1/nodes/worker-1") as response:
        assert (await response.json())["age_seconds"] == 0.9


async def test_nodes_carry_the_whole_pipeline(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/v1/nodes") as response:
        node = (await response.json())["nodes"][0]
    assert node["origin"] == {
        "state": "known",
        "cpu_milli": 60646,
        "memory_bytes": 120 << 30,
        "age_seconds": 12.0,
        "detail": "",
    }
    assert node["capacity"]["cpu_milli"] == 58000
    assert node["target"] is None
    assert node["node_managers"][0]["node_id"] == "worker-1:8041"


async def test_an_explanation_is_a_list_of_sentences(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/v1/nodes/worker-1/explain") as response:
        content = await response.json()
    assert content["sentences"] == ["worker-1 is managed.", "Origin is 60646 milli-cores."]


@pytest.mark.parametrize("path", ["/api/v1/nodes/nobody", "/api/v1/nodes/nobody/explain"])
async def test_an_unknown_node_is_404_with_its_name(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path) as response:
        assert response.status == 404
        assert "node 'nobody' is not known" in (await response.json())["error"]


async def test_an_unknown_path_is_404_with_the_paths_there_are(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/v2") as response:
        assert response.status == 404
        assert "/api/v1/nodes/NAME/explain" in (await response.json())["error"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nothing_can_be_changed(http: aiohttp.ClientSession, method: str) -> None:
    async with http.request(method, "/api/v1/nodes", json={"x": 1}) as response:
        assert response.status == 405
        assert response.headers["Allow"] == "GET, HEAD"
        assert "only reads" in (await response.json())["error"]


async def test_readiness_fails_with_what_is_missing(http: aiohttp.ClientSession, reader: FakeReader) -> None:
    reader.view = controller_view(ready=False, ready_missing=["pods have not been listed yet"])
    async with http.get("/readyz") as response:
        assert response.status == 503
        assert (await response.json())["missing"] == ["pods have not been listed yet"]
    async with http.get("/healthz") as response:
        assert response.status == 200


async def test_health_fails_when_a_loop_is_stuck(http: aiohttp.ClientSession, reader: FakeReader) -> None:
    reader.view = controller_view(stuck=["loop node_capacity has not finished a cycle for 40 s"])
    async with http.get("/healthz") as response:
        assert response.status == 503
        assert (await response.json())["missing"] == ["loop node_capacity has not finished a cycle for 40 s"]


async def test_a_failure_inside_is_logged_and_not_shown(
    http: aiohttp.ClientSession, reader: FakeReader, caplog: pytest.LogCaptureFixture
) -> None:
    reader.broken = True
    with caplog.at_level(logging.ERROR):
        async with http.get("/api/v1/nodes") as response:
            text = await response.text()
    assert response.status == 500
    assert "secret detail" not in text
    assert "Traceback" not in text
    assert "secret detail" in caplog.text


async def test_a_path_that_is_too_long_is_refused(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/v1/nodes/" + "x" * 10_000) as response:
        assert response.status == 400


async def test_metrics_are_prometheus_text(http: aiohttp.ClientSession, metrics: Metrics) -> None:
    metrics.count_relist("Node")
    metrics.set_table_source(lambda: MetricsTable(pipeline=[PipelineRow("worker-1", origin=(60646, 1024))]))
    async with http.get("/metrics") as response:
        text = await response.text()
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["yarn_copilot_node_origin_cpu_cores"].samples[0].value == 60.646
    assert "yarn_copilot_watch_relists" in families


class PageScan(HTMLParser):
    """Collect what a page refers to and its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if name in {"src", "href"}]


async def test_the_page_needs_nothing_from_elsewhere_and_sets_no_html(http: aiohttp.ClientSession) -> None:
    async with http.get("/") as response:
        text = await response.text()
    scan = PageScan()
    scan.feed(text)
    assert response.content_type == "text/html"
    assert all("//" not in reference for reference in scan.references)
    assert {"table", "style", "script"} <= set(scan.tags)
    assert not re.search(r"innerHTML|document\.write|eval\(|insertAdjacentHTML", text)
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


async def test_queues_are_as_old_as_the_oldest(http: aiohttp.ClientSession, reader: FakeReader) -> None:
    reader.queue_views = [queue_view(), queue_view("root.adhoc")]
    async with http.get("/api/v1/queues") as response:
        content = await response.json()
    assert [queue["path"] for queue in content["queues"]] == ["root.batch", "root.adhoc"]
    assert content["age_seconds"] == 3.0


async def test_an_address_in_use_is_named(reader: FakeReader, metrics: Metrics) -> None:
    first = APIServer(reader, metrics, bind_address="127.0.0.1", port=0)
    port = await first.start()
    second = APIServer(reader, metrics, bind_address="127.0.0.1", port=port)
    with pytest.raises(ServerStartError, match=rf"cannot listen on 127\.0\.0\.1:{port} .*server\.port"):
        await second.start()
    await first.aclose()
