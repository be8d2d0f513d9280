# SPDX-License-Identifier: Apache-2.0
"""Model how the API server is reached."""

from __future__ import annotations

from pydantic import Field

from yarn_copilot.config.settings.base import FilePath, Seconds, Section


class KubernetesSettings(Section):
    """Say how to reach the API server and how to keep its watches alive."""

    kubeconfig: FilePath | None = Field(
        None,
        description="Path of a kubeconfig; unset: in-cluster credentials, then $KUBECONFIG, then ~/.kube/config.",
    )
    context: str | None = Field(None, description="Context of the kubeconfig; unset: its current one.")
    request_timeout_seconds: Seconds = Field(
        5.0,
        gt=0,
        le=30,
        description="Deadline of one call that is not a watch, seconds. Must end before the lease's renew deadline does.",
    )
    list_page_size: int = Field(
        500, ge=50, le=5000, description="Objects per page of a list; a page bounds memory while decoding."
    )
    watch_silence_timeout_seconds: Seconds = Field(
        70.0,
        gt=0,
        le=600,
        description="A watch that says nothing (not even a bookmark, sent about every 60 s) for so many seconds is closed and opened again.",
    )
    backoff_max_seconds: Seconds = Field(
        10.0,
        gt=0,
        le=300,
        description="Longest wait between two tries to reach the API server, seconds; jitter is added.",
    )
    parallel_patches: int = Field(
        32, ge=1, le=256, description="Node patches in flight at once; as many fresh reads of nodes may be beside them."
    )
