# SPDX-License-Identifier: Apache-2.0
"""Model how the programs beside NodeManagers (`nm-proxy`) are asked."""

from __future__ import annotations

from pydantic import Field

from yarn_copilot.config.settings.base import RELOADABLE, FilePath, Seconds, Section


class NodeAgentSettings(Section):
    """Say how the agents beside NodeManagers are asked; found by the port named `copilot` of the NodeManager's pod."""

    enabled: bool = Field(True, description="Ask them at all. Pods without a port named copilot are never asked.")
    tls: bool = Field(False, description="Speak HTTPS to them. Needed for capacity.giving_way.forced.")
    ca_file: FilePath | None = Field(
        None, description="PEM file of who signs their certificates; unset: what the system trusts."
    )
    server_name: str | None = Field(
        None,
        description="Name that their certificates carry, since a pod is dialled by its address; unset: the address itself.",
    )
    token_file: FilePath | None = Field(
        None, description="File with the bearer token of kills, from a Secret; read for each call."
    )
    interval_seconds: Seconds = Field(
        10.0, ge=0.2, le=600, description="Seconds between two reads of a node's state.", json_schema_extra=RELOADABLE
    )
    timeout_seconds: Seconds = Field(2.0, gt=0, le=30, description="Deadline of one read, seconds.")
    parallel: int = Field(32, ge=1, le=512, description="Reads at once.", json_schema_extra=RELOADABLE)
