# SPDX-License-Identifier: Apache-2.0
"""A replica knows its namespace, its pod and a name that no other process has."""

from __future__ import annotations

from pathlib import Path

from yarn_copilot.cli.place import find_place
from yarn_copilot.config.settings import LeaderElectionSettings


def test_settings_win(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("from-pod\n")
    settings = LeaderElectionSettings(identity="me", namespace="mine")
    place = find_place(settings, {"POD_NAME": "p"}, namespace_file=tmp_path / "namespace")
    assert (place.identity, place.namespace) == ("me", "mine")


def test_a_pod_uses_its_own_namespace_and_tells_about_itself(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("from-pod\n")
    place = find_place(
        LeaderElectionSettings(), {"POD_NAME": "p-1", "POD_UID": "u"}, namespace_file=tmp_path / "namespace"
    )
    assert place.namespace == "from-pod"
    assert place.identity.startswith("p-1_")
    assert place.about.as_json() == {
        "kind": "Pod",
        "name": "p-1",
        "namespace": "from-pod",
        "apiVersion": "v1",
        "uid": "u",
    }


def test_outside_of_a_pod_events_are_about_the_lease(tmp_path: Path) -> None:
    place = find_place(LeaderElectionSettings(), {}, namespace_file=tmp_path / "absent")
    assert place.namespace == "koordinator-system"
    assert place.about.kind == "Lease"
    assert place.about.name == "yarn-copilot"


def test_two_processes_of_one_pod_have_different_identities(tmp_path: Path) -> None:
    first, second = (find_place(LeaderElectionSettings(), {"POD_NAME": "p"}, namespace_file=tmp_path) for _ in range(2))
    assert first.identity != second.identity
