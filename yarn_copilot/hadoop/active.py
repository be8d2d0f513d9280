# SPDX-License-Identifier: Apache-2.0
"""Know which ResourceManager of a cluster is the active one, as far as one of its connections has found out.

Shared by the callers of one client (`failover`), one for each protocol. A frozen server is found out by waiting for it;
what one caller has waited for, the other need not wait for again. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio


class ActiveOne:
    """Be the number of the active ResourceManager, in the order of the configuration; the first one at the start."""

    def __init__(self) -> None:
        self._index = 0
        self._changed: asyncio.Future[None] | None = None

    @property
    def index(self) -> int:
        """Give the number of the one that was found active last."""
        return self._index

    def found(self, index: int) -> bool:
        """Tell which one has answered as the active one does; gives whether that is another than before."""
        if index == self._index:
            return False
        self._index = index
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set_result(None)
        return True

    def change(self) -> asyncio.Future[None]:
        """Give what ends with the next change; many wait for the same one, so none may cancel it."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        return self._changed
