# SPDX-License-Identifier: Apache-2.0
"""Read what a YARN container's id says; pure.

Form: container_[eEPOCH_]CLUSTERTIMESTAMP_APPLICATION_ATTEMPT_NUMBER, as
org.apache.hadoop.yarn.api.records.ContainerId writes it. The epoch appears once a ResourceManager has restarted, so
counting fields from the left goes wrong on long-lived clusters.
"""

from __future__ import annotations

import re
from typing import Final

_PATTERN: Final = re.compile(
    r"container_(?:e(?P<epoch>[0-9]{1,6})_)?(?P<cluster>[0-9]{1,19})_(?P<application>[0-9]{4,10})"
    r"_(?P<attempt>[0-9]{2,10})_(?P<number>[0-9]{6,19})"
)


def is_container_id(text: str) -> bool:
    """Tell whether a text is a container's id, whole and nothing else."""
    return _PATTERN.fullmatch(text, 0, 128) is not None and len(text) <= 128


def application_of(container_id: str) -> str | None:
    """Give the application's id; None if the text is not a container's id."""
    match = _PATTERN.fullmatch(container_id)
    return f"application_{match['cluster']}_{match['application']}" if match else None


def turn_of(container_id: str) -> tuple[int, int, int]:
    """Give a container's place among those of its application, in the order in which they were allocated.

    Returns:
        Attempt, epoch and number, as org.apache.hadoop.yarn.api.records.ContainerId.compareTo has them; zeros if the
        text is not a container's id.
    """
    match = _PATTERN.fullmatch(container_id)
    return (int(match["attempt"]), int(match["epoch"] or 0), int(match["number"])) if match else (0, 0, 0)


def is_application_master(container_id: str) -> bool:
    """Tell whether a container is the first one of its attempt, which is where the ApplicationMaster runs.

    The NodeManager's pages do not say it. An application whose master runs elsewhere (unmanaged) loses nothing by one
    task that is spared longer than the others.
    """
    match = _PATTERN.fullmatch(container_id)
    return match is not None and int(match["number"]) == 1
