# SPDX-License-Identifier: Apache-2.0
"""Keep what the outside systems last said, reduced to what the ledger needs."""
