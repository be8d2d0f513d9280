# SPDX-License-Identifier: Apache-2.0
"""Bridge Koordinator's batch resources to YARN NodeManager capacity and back."""
