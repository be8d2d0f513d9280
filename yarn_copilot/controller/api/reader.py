# SPDX-License-Identifier: Apache-2.0
"""Name what the HTTP API reads from the controller, by shape.

All methods are synchronous, return copies and never raise; they run on the event loop between two cycles.
"""

from __future__ import annotations

from typing import Protocol

from yarn_copilot.controller.view import ClusterView, ControllerView, NodeView, QueueView


class ControllerReader(Protocol):
    """Answer what the controller knows now."""

    def controller(self) -> ControllerView:
        """Describe this replica."""

    def nodes(self) -> list[NodeView]:
        """Describe every node that has something to do with YARN, by name."""

    def node(self, name: str) -> NodeView | None:
        """Describe one node; None for a name that the controller does not know."""

    def clusters(self) -> list[ClusterView]:
        """Describe every configured YARN cluster, by id."""

    def queues(self) -> list[QueueView]:
        """Describe every queue of every cluster, parents before children."""

    def explain(self, name: str) -> list[str] | None:
        """Explain one node in sentences, in the order of the pipeline; None for an unknown name."""
