# SPDX-License-Identifier: Apache-2.0
"""Make a node of 20 cores in mode strict busy: an ApplicationMaster, four old containers and seven young ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from lab.cluster import Lab
from lab.controller import ControllerProcess
from lab.hadoop.application import Application, Container
from tests.lab.bridge import BridgedNode, Unique, merged
from tests.lab.strict import STRICT, StrictLab, strict_lab

CORES: Final = 20
IN_USE: Final = 12
_OLD: Final = 4
_MOVED_SECONDS: Final = 60.0
_DEMAND: Final[Mapping[str, Any]] = {"yarn": {"queue_interval_seconds": 1}}


@dataclass(frozen=True, slots=True)
class BusyNode:
    """Hold the node, its controller and the application; `young` is ordered from old to young."""

    found: StrictLab
    node: BridgedNode
    controller: ControllerProcess
    application: Application
    young: list[Container]

    def publish(self, cores: int) -> None:
        """Let Koordinator publish so many cores, and twice as many GiB."""
        self.found.set_origin(self.node, cores)
        self.found.bridge.wait(
            lambda: self.found.bridge.origin(self.node).cpu_milli == cores * 1000, f"an origin of {cores} is published"
        )

    def wait_vcores(self, vcores: int) -> None:
        """Wait until the ResourceManager works with so many."""
        self.found.bridge.wait(
            lambda: self.found.bridge.capacity(self.node)[1] == vcores, f"{vcores} are offered", seconds=_MOVED_SECONDS
        )

    def wait_seen(self, cores: int) -> None:
        """Wait until the controller knows of an origin of so many cores; one that is in doubt counts as none."""

        def seen() -> int:
            node = self.controller.get(f"/api/v1/nodes/{self.node.name}").json()["node"]
            return int(node["origin"].get("cpu_milli") or 0)

        self.found.bridge.wait(lambda: seen() == cores * 1000, f"the controller knows of {cores} cores")

    def used_vcores(self) -> int:
        """Read what the ResourceManager counts as used."""
        return self.found.bridge.used(self.node)[1]

    def view(self) -> dict[str, Any]:
        """Read the NodeManager from the controller's API."""
        answer = self.controller.get(f"/api/v1/nodes/{self.node.name}").json()
        return dict(answer["node"]["node_managers"][0])

    def stage(self) -> str:
        """Read the stage of giving way from the API."""
        return str(self.view()["giving_way"]["stage"])


def _wait_launched(found: StrictLab, launched: Callable[[], int], count: int) -> None:
    found.bridge.wait(lambda: launched() == count, f"{count} processes have started", seconds=_MOVED_SECONDS)


@contextmanager
def busy_node(
    lab: Lab,
    unique: Unique,
    config: Mapping[str, Any],
    *,
    pod: Mapping[str, Any] | None = None,
    launched: Callable[[], int] | None = None,
) -> Iterator[BusyNode]:
    """Make the first node busy; the others are too small for anything of the application.

    Args:
        lab: where.
        unique: makes names.
        config: of the controller, on top of that for mode strict.
        pod: fields of the NodeManager's pod that differ.
        launched: counts the containers whose processes run, where their age by the clock of the node matters too.
    """
    with strict_lab(lab, unique, units=1, config=merged(STRICT, _DEMAND, config), pods={0: pod or {}}) as found:
        node = found.nodes[0]
        found.set_origin(node, CORES)
        controller = found.bridge.start()
        found.bridge.wait(
            lambda: found.bridge.capacity(node)[0] >= 4096, "there is room for the master", seconds=_MOVED_SECONDS
        )
        application = lab.submit(managed=True, am_memory_mib=2048, am_vcores=1)
        application.ask(count=_OLD, memory_mib=1024, node=node.node_id)
        application.wait_running(_OLD)
        young: list[Container] = []
        for number in range(_OLD + 1, IN_USE):
            # One after another: the ResourceManager tells age by milliseconds.
            before = {each.id for each in application.running()}
            application.ask(count=1, memory_mib=1024, node=node.node_id)
            young += [each for each in application.wait_running(number) if each.id not in before]
            if launched is not None:
                _wait_launched(found, launched, number + 1)  # with the ApplicationMaster
        busy = BusyNode(found, node, controller, application, young)
        found.bridge.wait(lambda: busy.used_vcores() == IN_USE, f"{IN_USE} vcores are in use")
        yield busy
        assert controller.terminate() == 0
