# SPDX-License-Identifier: Apache-2.0
"""Let Hadoop's environment variables stand for settings, as people who use Hadoop expect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HADOOP_VARIABLES: Final[Mapping[str, str]] = {
    "HADOOP_USER_NAME": "YARN_COPILOT_HADOOP__USER",
    "HADOOP_PROXY_USER": "YARN_COPILOT_HADOOP__PROXY_USER",
    "HADOOP_TOKEN_FILE_LOCATION": "YARN_COPILOT_HADOOP__TOKEN_FILE",
}


def with_hadoop_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the environment with Hadoop's variables under the names of the settings; the settings' own names win."""
    named = {own: environ[hadoop] for hadoop, own in HADOOP_VARIABLES.items() if environ.get(hadoop)}
    return {**named, **environ}
