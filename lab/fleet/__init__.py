# SPDX-License-Identifier: Apache-2.0
"""Play thousands of NodeManagers for a real ResourceManager; `python -m lab.fleet --help`."""

from lab.fleet.fleet import Fleet, FleetNode, FleetOptions, FleetStatistics

__all__ = ["Fleet", "FleetNode", "FleetOptions", "FleetStatistics"]
