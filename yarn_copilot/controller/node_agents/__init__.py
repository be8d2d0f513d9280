# SPDX-License-Identifier: Apache-2.0
"""Ask the programs beside NodeManagers what lingers, and to make room where the ResourceManager did not act."""
