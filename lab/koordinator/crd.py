# SPDX-License-Identifier: Apache-2.0
"""Make the API server serve NodeMetric objects."""

from __future__ import annotations

import asyncio
from pathlib import Path

import yaml

from lab.errors import LabError
from lab.koordinator.api import Api, ApiError
from lab.koordinator.node_metric import COLLECTION_PATH

MANIFEST = Path(__file__).parents[1] / "kubernetes" / "nodemetric-crd.yaml"
_DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NOT_FOUND, _CONFLICT = 404, 409
_TRIES = 150
_PAUSE_SECONDS = 0.1


async def install(api: Api) -> None:
    """Create the definition where the kind is not served yet, and wait until it is.

    Raises:
        LabError: The kind was not served 15 seconds later.
    """
    if await _is_served(api):
        return
    try:
        await api.call("POST", _DEFINITIONS_PATH, body=yaml.safe_load(MANIFEST.read_text(encoding="utf-8")))
    except ApiError as error:
        if error.status != _CONFLICT:
            raise
    for _ in range(_TRIES):
        if await _is_served(api):
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise LabError(f"{COLLECTION_PATH} is not served {_TRIES * _PAUSE_SECONDS:.0f} s after its definition was made")


async def _is_served(api: Api) -> bool:
    try:
        await api.call("GET", COLLECTION_PATH, query={"limit": "1"})
    except ApiError as error:
        if error.status != _NOT_FOUND:
            raise
        return False
    return True
