# SPDX-License-Identifier: Apache-2.0
"""Prove to a server who we are, and it to us: Hadoop's SASL exchange, without I/O."""
