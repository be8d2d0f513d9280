# SPDX-License-Identifier: Apache-2.0
"""Define what every section of the configuration file is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field

RELOADABLE: Final[dict[str, Any]] = {"reloadable": True}

Seconds = Annotated[float, Field(allow_inf_nan=False)]
"""Hold a number of seconds; strict, but a whole number is accepted. The unit is in the name of every such field."""

FilePath = Annotated[Path, Field(strict=False)]
"""Hold a path, written as text."""


class Section(BaseModel):
    """Be the base of every section: frozen, strict, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def fixed_changes(self, other: Self) -> frozenset[str]:
        """Name fields marked reloadable that need a restart for this change all the same, by dotted path."""
        return frozenset()
