# SPDX-License-Identifier: Apache-2.0
"""Run containers from images built here: a Docker daemon of our own, a base image from Debian packages."""
