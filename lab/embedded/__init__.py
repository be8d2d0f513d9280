# SPDX-License-Identifier: Apache-2.0
"""Hold in-process servers that speak the wire protocols of Kubernetes and YARN."""
