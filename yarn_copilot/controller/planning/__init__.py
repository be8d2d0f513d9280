# SPDX-License-Identifier: Apache-2.0
"""Plan the nodes whose inputs changed and hand the decisions to the writers."""
