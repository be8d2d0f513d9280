# SPDX-License-Identifier: Apache-2.0
"""Speak to the Kubernetes API server; knows nothing of YARN."""
