# SPDX-License-Identifier: Apache-2.0
"""Test where credentials come from, and that what is wrong is named without a secret."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from yarn_copilot.errors import ConfigError
from yarn_copilot.kube.credentials import (
    InClusterCredentials,
    KubeconfigCredentials,
    StaticCredentials,
    find_credentials,
)

SECRET = "s3cr3t-t0ken"
IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def _kubeconfig(path: Path, user: dict[str, Any], **cluster: Any) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1", **cluster}}],
        "users": [{"name": "u", "user": user}, {"name": "other", "user": {"token": "other-token"}}],
        "contexts": [
            {"name": "x", "context": {"cluster": "c", "user": "u"}},
            {"name": "y", "context": {"cluster": "c", "user": "other"}},
        ],
        "current-context": "x",
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _plugin(path: Path, status: dict[str, Any]) -> dict[str, Any]:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    path.write_text(f"#!{sys.executable}\nprint({json.dumps(json.dumps(answer))})\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path)}}


async def test_a_token_of_a_kubeconfig_is_used(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "config", {"token": SECRET})
    found = await KubeconfigCredentials(str(path)).load()
    assert (found.url, found.authorization, found.tls) == ("http://127.0.0.1:1", f"Bearer {SECRET}", None)
    assert SECRET not in repr(found)


async def test_another_context_can_be_chosen(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "config", {"token": SECRET})
    assert (await KubeconfigCredentials(str(path), "y").load()).authorization == "Bearer other-token"
    with pytest.raises(ConfigError, match="nothing"):
        await KubeconfigCredentials(str(path), "nothing").load()


async def test_a_token_file_is_read_afresh_each_time(tmp_path: Path) -> None:
    token = tmp_path / "token"
    path = _kubeconfig(tmp_path / "config", {"tokenFile": str(token)})
    source = KubeconfigCredentials(str(path))
    for text in ("one", "two\n"):
        token.write_text(text, encoding="utf-8")
        found = await source.load()
        assert found.authorization == f"Bearer {text.strip()}"
        assert found.refresh_seconds == 60.0


async def test_basic_authentication_is_kept_as_it_is(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "config", {"username": "me", "password": "pw"})
    assert (await KubeconfigCredentials(str(path)).load()).authorization == "Basic bWU6cHc="


async def test_an_exec_plugin_gives_a_token(tmp_path: Path) -> None:
    user = _plugin(tmp_path / "plugin", {"token": SECRET})
    found = await KubeconfigCredentials(str(_kubeconfig(tmp_path / "config", user))).load()
    assert found.authorization == f"Bearer {SECRET}"
    assert found.refresh_seconds is None


async def test_a_token_with_an_end_is_asked_for_again(tmp_path: Path) -> None:
    user = _plugin(tmp_path / "plugin", {"token": SECRET, "expirationTimestamp": "2099-01-02T03:04:05Z"})
    found = await KubeconfigCredentials(str(_kubeconfig(tmp_path / "config", user))).load()
    assert found.refresh_seconds == 60.0


async def test_an_exec_plugin_that_gives_nothing_is_an_error(tmp_path: Path) -> None:
    user = _plugin(tmp_path / "plugin", {})
    with pytest.raises(ConfigError, match="neither token nor certificate"):
        await KubeconfigCredentials(str(_kubeconfig(tmp_path / "config", user))).load()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"users: [{{token: {SECRET}, ", id="not YAML"),
        pytest.param(f'"{SECRET}"', id="a string"),
        pytest.param(f"[{SECRET}]", id="a list"),
        pytest.param("", id="empty"),
        pytest.param(json.dumps({"current-context": "x", "contexts": [], "token": SECRET}), id="no context"),
    ],
)
async def test_a_broken_kubeconfig_is_named_without_its_content(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as wrong:
        await KubeconfigCredentials(str(path)).load()
    assert str(path) in str(wrong.value)
    assert SECRET not in str(wrong.value)
    assert wrong.value.__cause__ is None


async def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        await KubeconfigCredentials(str(tmp_path / "missing")).load()


async def test_a_server_without_scheme_is_an_error(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "config", {"token": SECRET}, server="127.0.0.1:6443")
    with pytest.raises(ConfigError, match="must start with https"):
        await KubeconfigCredentials(str(path)).load()


async def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    path = _kubeconfig(
        tmp_path / "config", {"token": SECRET}, server="https://x", **{"certificate-authority": str(authority)}
    )
    with pytest.raises(ConfigError, match=r"ca\.crt"):
        await KubeconfigCredentials(str(path)).load()
    authority.write_text("not a certificate", encoding="utf-8")
    with pytest.raises(ConfigError, match="certificate cannot be used"):
        await KubeconfigCredentials(str(path)).load()


async def test_a_token_with_a_line_break_inside_is_an_error(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "config", {"token": f"{SECRET}\r\nX-Header: 1"})
    with pytest.raises(ConfigError) as wrong:
        await KubeconfigCredentials(str(path)).load()
    assert SECRET not in str(wrong.value)


async def test_the_tls_context_stays_the_same_while_certificates_do(tmp_path: Path) -> None:
    path = _kubeconfig(
        tmp_path / "config", {"token": SECRET}, server="https://x:1", **{"insecure-skip-tls-verify": True}
    )
    source = KubeconfigCredentials(str(path))
    assert (await source.load()).tls is (await source.load()).tls


@pytest.mark.parametrize(
    ("missing", "named"), [("token", "token"), ("ca.crt", "certification"), ("environment", "host/port")]
)
async def test_what_is_missing_in_a_pod_is_named(tmp_path: Path, missing: str, named: str) -> None:
    for name in {"token", "ca.crt"} - {missing}:
        (tmp_path / name).write_text("x", encoding="utf-8")
    environ = {} if missing == "environment" else IN_CLUSTER
    with pytest.raises(ConfigError, match=named):
        await InClusterCredentials(environ, tmp_path).load()


def test_the_given_file_comes_before_everything(tmp_path: Path) -> None:
    source = find_credentials(IN_CLUSTER, kubeconfig=tmp_path / "config")
    assert isinstance(source, KubeconfigCredentials)


async def test_the_environment_names_the_kubeconfig(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "config", {"token": SECRET})
    assert (await find_credentials({"KUBECONFIG": str(path)}).load()).authorization == f"Bearer {SECRET}"
    (tmp_path / ".kube").mkdir()
    _kubeconfig(tmp_path / ".kube" / "config", {"token": "home"})
    assert (await find_credentials({"HOME": str(tmp_path)}).load()).authorization == "Bearer home"


async def test_static_credentials_are_what_was_given() -> None:
    found = await StaticCredentials("http://h:1/", "t").load()
    assert (found.url, found.authorization) == ("http://h:1", "Bearer t")
