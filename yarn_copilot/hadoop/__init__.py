# SPDX-License-Identifier: Apache-2.0
"""Speak to Hadoop YARN; knows nothing of Kubernetes."""
