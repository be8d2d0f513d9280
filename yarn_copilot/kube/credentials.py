# SPDX-License-Identifier: Apache-2.0
"""Find the API server and prove who we are, with the official client's configuration loaders.

`kubernetes.aio.config` reads kubeconfig files (certificates, tokens, token files, basic auth, exec plugins, OIDC) and
in-cluster credentials; this module asks it again when they may have changed. Service account tokens are rotated in
place (about once an hour), so the file is read again every minute and after every 401.
Nothing here is ever logged, and `Credentials` hides its secrets from `repr`.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from kubernetes.aio import config as _kubernetes_config
from kubernetes.aio.client import Configuration
from kubernetes.aio.config.incluster_config import InClusterConfigLoader as _InClusterConfigLoader

from yarn_copilot.errors import ConfigError

# The official client has no annotations; what it gives is checked in `_from_configuration`.
kubernetes_config: Any = _kubernetes_config
InClusterConfigLoader: Any = _InClusterConfigLoader

REFRESH_SECONDS: Final = 60.0
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Hold one state of address and identity.

    Attributes:
        url: scheme, host, port and path prefix, without a slash at the end.
        authorization: value of the HTTP header, None with client certificates only.
        tls: context for https, None for http.
        server_hostname: name to expect in the certificate where it differs from the URL's.
        proxy: HTTP proxy, None without.
        refresh_seconds: read again after so long; None: only after a 401.
    """

    url: str
    authorization: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    server_hostname: str | None = None
    proxy: str | None = field(default=None, repr=False)
    refresh_seconds: float | None = None


class CredentialSource(Protocol):
    """Read credentials, afresh at each call."""

    async def load(self) -> Credentials:
        """Read them now.

        Raises:
            ConfigError: they are missing or make no sense; the text names file or variable, never a secret.
        """


class StaticCredentials:
    """Give always the same, for tests and tools."""

    def __init__(self, url: str, token: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._credentials = Credentials(
            url=url.rstrip("/"), authorization=f"Bearer {token}" if token else None, tls=tls
        )

    async def load(self) -> Credentials:
        """Give what the constructor got."""
        return self._credentials


class InClusterCredentials:
    """Use the pod's service account: token, CA and the two KUBERNETES_SERVICE_ variables."""

    def __init__(self, environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> None:
        self._environ = environ
        self._directory = directory
        self._tls = _TlsContexts()

    async def load(self) -> Credentials:
        """Read token and CA file."""
        configuration = Configuration()
        loader = InClusterConfigLoader(
            token_filename=str(self._directory / "token"),
            cert_filename=str(self._directory / "ca.crt"),
            try_refresh_token=False,
            environ=self._environ,
        )
        try:
            loader.load_and_set(configuration)
        except (kubernetes_config.ConfigException, OSError) as error:
            raise ConfigError(f"in-cluster credentials in {self._directory}: {error}") from error
        return _from_configuration(configuration, self._tls, str(self._directory), REFRESH_SECONDS)


class KubeconfigCredentials:
    """Use a kubeconfig: one file, or several joined by `:` as in $KUBECONFIG."""

    def __init__(self, path: str, context: str | None = None) -> None:
        self._path = path
        self._context = context
        self._tls = _TlsContexts()

    def _exists(self) -> bool:
        return any(Path(part).expanduser().is_file() for part in self._path.split(":") if part)

    async def load(self) -> Credentials:
        """Read the file and run its exec plugin, if it has one."""
        if not self._exists():
            raise ConfigError(f"kubeconfig {self._path}: no such file")
        configuration = Configuration()
        try:
            loader = await kubernetes_config.load_kube_config(
                config_file=self._path,
                context=self._context,
                client_configuration=configuration,
                persist_config=False,
            )
        except Exception as error:  # the loader lets errors of YAML, JSON, base64, HTTP and types through
            # Only the type: a YAML error quotes lines of the file, and those may hold a token.
            text = str(error) if isinstance(error, kubernetes_config.ConfigException) else type(error).__name__
            raise ConfigError(f"kubeconfig {self._path}: cannot be used: {text}") from None
        refresh_seconds: float | None = REFRESH_SECONDS
        if _uses_exec_plugin(loader):
            if not (configuration.api_key or configuration.cert_file):
                raise ConfigError(f"kubeconfig {self._path}: the exec plugin gave neither token nor certificate")
            refresh_seconds = REFRESH_SECONDS if hasattr(loader, "exec_plugin_expiry") else None
        return _from_configuration(configuration, self._tls, f"kubeconfig {self._path}", refresh_seconds)


def find_credentials(
    environ: Mapping[str, str], *, kubeconfig: Path | None = None, context: str | None = None
) -> CredentialSource:
    """Choose where credentials come from: the given file, in-cluster, $KUBECONFIG, ~/.kube/config.

    Args:
        environ: the process environment, handed in by the entry point.
        kubeconfig: path from the settings.
        context: context of the kubeconfig, None for its current one.
    """
    if kubeconfig is not None:
        return KubeconfigCredentials(str(kubeconfig), context)
    if environ.get("KUBERNETES_SERVICE_HOST") and (SERVICE_ACCOUNT / "token").exists():
        return InClusterCredentials(environ)
    home = Path(environ.get("HOME") or "/root")
    return KubeconfigCredentials(environ.get("KUBECONFIG") or str(home / ".kube" / "config"), context)


def _uses_exec_plugin(loader: Any) -> bool:
    user = getattr(loader, "_user", None)  # the loader has no public way to tell
    return user is not None and "exec" in user


def _from_configuration(
    configuration: Any, contexts: _TlsContexts, origin: str, refresh_seconds: float | None
) -> Credentials:
    url = str(configuration.host).rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{origin}: server {url!r} must start with https:// or http://")
    return Credentials(
        url=url,
        authorization=_authorization(configuration.api_key.get("BearerToken")),
        tls=contexts.get(configuration, origin) if url.startswith("https://") else None,
        server_hostname=configuration.tls_server_name or None,
        proxy=configuration.proxy or None,
        refresh_seconds=refresh_seconds,
    )


def _authorization(loaded: str | None) -> str | None:
    """Normalise "bearer TOKEN\\n", as the in-cluster loader gives it, to a header value."""
    if not loaded:
        return None
    scheme, _, secret = loaded.partition(" ")
    secret = secret.strip()
    if any(ord(character) < 33 for character in secret):
        raise ConfigError("the token contains blanks or control characters")
    return f"{scheme.capitalize()} {secret}"


class _TlsContexts:
    """Keep the last TLS context while its files hold the same bytes: a new one would close all pooled connections."""

    def __init__(self) -> None:
        self._fingerprint: tuple[object, ...] | None = None
        self._context: ssl.SSLContext | None = None

    def get(self, configuration: Any, origin: str) -> ssl.SSLContext:
        """Give the context for these certificates, the same object as last time if nothing changed."""
        paths = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
        try:
            contents = tuple(Path(path).read_bytes() if path else None for path in paths)
        except OSError as error:
            raise ConfigError(f"{origin}: {error}") from error
        fingerprint = (*contents, configuration.verify_ssl)
        if self._context is None or fingerprint != self._fingerprint:
            self._context = _tls_context(configuration, origin)
            self._fingerprint = fingerprint
        return self._context


def _tls_context(configuration: Any, origin: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"{origin}: certificate cannot be used: {error}") from error
    # Certificates of kubeadm and of kube-apiserver itself lack extensions that Python 3.13 asks for by default.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
