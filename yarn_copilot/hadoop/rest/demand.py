# SPDX-License-Identifier: Apache-2.0
"""Read what YARN's queues wait for, by partition: the demand that RPC does not tell for labelled partitions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.hadoop.model import Resource
from yarn_copilot.hadoop.rest.queues import PartitionUse

logger = logging.getLogger(__name__)


class PartitionSource(Protocol):
    """Be a client that knows partitions, over REST."""

    async def get_partition_use(self) -> Mapping[str, PartitionUse]:
        """Read use and pending resources by partition."""


class PartitionDemandReader:
    """Read pending resources; belongs to one event loop."""

    def __init__(self, source: PartitionSource | None) -> None:
        """Take the source; None where no web address is known, so that demand is never known."""
        self._source = source
        self._has_warned = False

    async def read(self) -> Mapping[str, Resource] | None:
        """Give pending resources by partition; the default partition is the empty text.

        Returns:
            A partition that is missing waits for nothing. None: the demand is unknown, which is not zero.
        """
        if self._source is None:
            return None
        try:
            found = await self._source.get_partition_use()
        except YarnCopilotError as error:
            if not self._has_warned:
                logger.warning("The demand of labelled partitions is not known: %s", error)
                self._has_warned = True
            return None
        self._has_warned = False
        return {partition: use.pending for partition, use in found.items()}
