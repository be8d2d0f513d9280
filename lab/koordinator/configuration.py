# SPDX-License-Identifier: Apache-2.0
"""Read the configuration file of the stand-in's process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from batch_resources.koordinator.strategy import CalculatePolicy, Strategy
from lab.errors import LabError

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Percent = Annotated[int, Field(ge=0)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StrategySettings(_Section):
    """Hold Koordinator's strategy for all nodes, times as in real life."""

    cpu_reclaim_percent: Percent = 60
    memory_reclaim_percent: Percent = 65
    cpu_policy: CalculatePolicy = CalculatePolicy.USAGE
    memory_policy: CalculatePolicy = CalculatePolicy.USAGE
    batch_cpu_threshold_percent: Percent | None = None
    batch_memory_threshold_percent: Percent | None = None
    degrade_seconds: Positive = 900.0
    update_threshold_seconds: Positive = 300.0
    diff_threshold: Annotated[float, Field(gt=0, le=1)] = 0.1

    def to_strategy(self) -> Strategy:
        """Give the domain's value."""
        return Strategy(**self.model_dump())


class LoadSettings(_Section):
    """Say which load is played: a CSV trace where given, else a seeded day."""

    trace: Path | None = None
    seed: int = 1
    day_seconds: Positive = 86_400.0
    step_seconds: Positive = 60.0


class StandInSettings(_Section):
    """Be the whole file."""

    time_scale: Positive = 1.0
    report_interval_seconds: Positive = 60.0
    report_at_once: bool = True
    strategy: StrategySettings = StrategySettings()
    load: LoadSettings = LoadSettings()


def read_settings(path: Path) -> StandInSettings:
    """Read a YAML file; an empty one gives the defaults.

    Raises:
        LabError: The file cannot be read or a key is unknown or out of range; the message names file and key.
    """
    try:
        return StandInSettings.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except (OSError, yaml.YAMLError) as error:
        raise LabError(f"{path}: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise LabError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
