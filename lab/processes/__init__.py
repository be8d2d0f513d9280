# SPDX-License-Identifier: Apache-2.0
"""Start, watch and stop the lab's servers, and make sure that none outlives the lab."""
