# SPDX-License-Identifier: Apache-2.0
"""Show that capacity follows origin and the claim follows use, on real servers, and how fast."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from lab.cluster import Lab
from lab.processes import probes
from tests.lab.bridge import APPLIED_SECONDS, GIB, MIB, SETTLED_SECONDS, Bridge, BridgedNode, Claim, Unique, YarnSize
from tests.lab.figures import record_figures, spread

_ORIGIN_CHANGES = 30
_USE_CHANGES = 4
_FOLLOW_AT_ONCE = {"capacity": {"mode": "shared", "growth_window_seconds": 0}}


def _seconds_until_applied(bridge: Bridge, wanted: dict[str, YarnSize], began_at: dict[str, float]) -> list[float]:
    """Read the RM's list again and again; give for each node id the time until it showed what is wanted."""
    seconds: dict[str, float] = {}

    def are_applied() -> bool:
        found = {node["id"]: node["totalResource"] for node in bridge.lab.yarn.nodes()}
        now = time.monotonic()
        for node_id, size in wanted.items():
            if (found[node_id]["memory"], found[node_id]["vCores"]) == size:
                seconds.setdefault(node_id, now - began_at[node_id])
        return len(seconds) == len(wanted)

    bridge.wait(are_applied, f"{wanted} is applied", seconds=APPLIED_SECONDS, poll=0.005)
    return list(seconds.values())


def test_capacity_follows_every_rise_and_fall_of_origin_on_all_nodes(lab: Lab, unique: Unique, tmp_path: Path) -> None:
    bridge = Bridge(lab, unique, config=_FOLLOW_AT_ONCE)
    nodes = bridge.enroll_all()
    bridge.start()
    for node in nodes:
        bridge.wait_capacity(node, 8192, 8, seconds=SETTLED_SECONDS)
    rises: list[float] = []
    falls: list[float] = []
    for change in range(_ORIGIN_CHANGES):
        vcores = 4 + change // 2 if change % 2 else 40 + change // 2
        wanted, began_at = {}, {}
        for number, node in enumerate(nodes):
            size = (vcores * 1024 + number, vcores + number)
            began_at[node.node_id] = time.monotonic()
            bridge.set_origin(node, size[1] * 1000 + 999, size[0] * MIB + 5)
            wanted[node.node_id] = size
        (falls if change % 2 else rises).extend(_seconds_until_applied(bridge, wanted, began_at))
    record_figures(
        "shared-origin-to-applied",
        {"nodes": len(nodes), **spread("rise", rises), **spread("fall", falls), **spread("all", [*rises, *falls])},
        folder=tmp_path,
    )
    assert len(rises) == len(falls) == _ORIGIN_CHANGES // 2 * len(nodes)


def _seconds_until_claimed(bridge: Bridge, nodes: list[BridgedNode], used: dict[str, YarnSize]) -> list[float]:
    """Wait until the RM shows the use, then measure for each node how long the annotation takes to say it."""

    def is_used() -> bool:
        found = {node.node_id: bridge.used(node) for node in nodes}
        if found != used:
            raise probes.NotReadyError(f"used {found}, wanted {used}")
        return True

    bridge.wait(is_used, f"the RM shows {used}", seconds=SETTLED_SECONDS, poll=0.01)
    began_at = time.monotonic()
    seconds = []
    for node in nodes:
        bridge.wait_claim(node, bridge.claim_for(used[node.node_id]))
        seconds.append(time.monotonic() - began_at)
    return seconds


def test_claim_follows_what_the_resource_manager_says_is_used(lab: Lab, unique: Unique, tmp_path: Path) -> None:
    bridge = Bridge(lab, unique, config=_FOLLOW_AT_ONCE)
    nodes = bridge.enroll_all(cpu_milli=16_000, memory_bytes=16 * GIB)
    bridge.start()
    for node in nodes:
        bridge.wait_capacity(node, 16_384, 16, seconds=SETTLED_SECONDS)
    application = lab.submit()
    rises: list[float] = []
    falls: list[float] = []
    for change in range(_USE_CHANGES):
        for count, node in zip(itertools.count(1), nodes, strict=False):
            application.ask(count=count + 1, memory_mib=1024, vcores=1, node=node.node_id)
        used = {node.node_id: (1024 * (count + 2), count + 2) for count, node in enumerate(nodes)}
        rises += _seconds_until_claimed(bridge, nodes, used)
        assert [bridge.claim(node) for node in nodes] == [
            Claim(2000, 2 * GIB),
            Claim(3000, 3 * GIB),
            Claim(4000, 4 * GIB),
        ], change
        application.wait_running(9)
        application.release(9)
        falls += _seconds_until_claimed(bridge, nodes, {node.node_id: (0, 0) for node in nodes})
    record_figures(
        "shared-use-to-claim", {"nodes": len(nodes), **spread("rise", rises), **spread("fall", falls)}, folder=tmp_path
    )
    assert application.killed() == []


def test_full_node_comes_back_as_what_was_offered_and_never_as_more(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    origin = Claim(60_646, 245_976_973_438)
    node = bridge.enroll(0, cpu_milli=origin.cpu_milli, memory_bytes=origin.memory_bytes)
    bridge.start()
    bridge.wait_capacity(node, 234_581, 60, seconds=SETTLED_SECONDS)
    application = lab.submit()
    application.ask(count=2, memory_mib=78_193, vcores=20)
    application.ask(count=1, memory_mib=78_195, vcores=20)
    application.wait_running(3)
    assert bridge.used(node) == (234_581, 60)
    bridge.wait_claim(node, Claim(60_000, 245_976_006_656))
    claim = bridge.claim(node)
    assert claim is not None
    assert claim.cpu_milli <= origin.cpu_milli
    assert claim.memory_bytes <= origin.memory_bytes
    application.release(3)
    bridge.wait_claim(node, Claim(1000, GIB))
    assert bridge.capacity(node) == (234_581, 60)
