# SPDX-License-Identifier: Apache-2.0
"""Make each NodeManager's capacity follow its target."""
