# SPDX-License-Identifier: Apache-2.0
"""Run a Kubernetes control plane without kubelets: etcd, kube-apiserver with RBAC, kube-scheduler.

There is no controller manager: nodes, pods and service accounts are made by who needs them. Service account tokens
are real ones, issued by the API server.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import requests

from lab.kubernetes.audit import AUDIT_POLICY, AuditLog
from lab.kubernetes.binaries import Binaries
from lab.kubernetes.credentials import User, kubeconfig_text, signing_key_pem, token_file_text
from lab.kubernetes.objects import KubernetesObjects
from lab.processes import probes
from lab.processes.group import ProcessGroup
from lab.processes.process import Command, ServerProcess

READY_TIMEOUT_SECONDS: Final = 90.0


class ControlPlane:
    """Start, stop, kill and freeze the three servers, and give access to them.

    Ports, keys and data stay over restarts of a server, so that clients find the same cluster again.
    """

    def __init__(self, group: ProcessGroup, binaries: Binaries, *, users: Sequence[User] = ()) -> None:
        self._group = group
        self._folder = group.state.folder("kubernetes")
        self.startup_seconds: dict[str, float] = {}
        self.admin = User(name="lab-admin", groups=["system:masters"])
        self._scheduler_user = User(name="system:kube-scheduler")
        self.users: dict[str, User] = {user.name: user for user in users}
        self._etcd_url = f"http://127.0.0.1:{group.ports.take()}"
        self.url = f"https://127.0.0.1:{group.ports.take()}"
        self.ca_file = self._folder / "certificates" / "apiserver.crt"
        self._write_files()
        self.kubeconfig = self.kubeconfig_for(self.admin.token, user=self.admin.name)
        self.audit = AuditLog(self._folder / "audit.log")
        self.etcd = group.add(self._etcd_command(binaries))
        self.api_server = group.add(self._api_server_command(binaries))
        self.scheduler = group.add(self._scheduler_command(binaries))
        self._survived_by_scheduler = 0

    @property
    def admin_token(self) -> str:
        """Return the bearer token of a user who may do everything."""
        return self.admin.token

    def start(self) -> None:
        """Start all three servers and wait until each is ready.

        Raises:
            LabError: a server ended or is not ready in time.
        """
        self.start_etcd()
        self.start_api_server()
        self.start_scheduler()

    def revive(self) -> None:
        """Start what does not run and let frozen servers go on.

        A scheduler that lived through an outage is started anew: it tries its watches again after up to half a minute
        only, and until then places pods on nodes that are gone.
        """
        if self._interruptions() != self._survived_by_scheduler:
            self.scheduler.kill()
        for process, start in (
            (self.etcd, self.start_etcd),
            (self.api_server, self.start_api_server),
            (self.scheduler, self.start_scheduler),
        ):
            process.resume()
            if not process.is_running:
                start()

    def start_etcd(self) -> None:
        """Start etcd and wait for its health."""
        self._start(self.etcd, f"{self._etcd_url}/health")

    def start_api_server(self) -> None:
        """Start the API server and wait for /readyz."""
        self._start(self.api_server, f"{self.url}/readyz", ca_file=self.ca_file, token=self.admin_token)

    def start_scheduler(self) -> None:
        """Start the scheduler and wait for its health."""
        self._survived_by_scheduler = self._interruptions()
        self._start(self.scheduler, self._scheduler_health, ca_file=self._scheduler_certificate)

    def _interruptions(self) -> int:
        return self.etcd.interruptions + self.api_server.interruptions

    def stop_api_server(self, *, kill: bool = False) -> None:
        """Stop the API server; `start_api_server` brings it back on the same port."""
        if kill:
            self.api_server.kill()
        else:
            self.api_server.stop()

    def stop_etcd(self, *, kill: bool = False) -> None:
        """Stop etcd; its data stay."""
        if kill:
            self.etcd.kill()
        else:
            self.etcd.stop()

    def kubeconfig_for(self, token: str, *, user: str) -> Path:
        """Write a kubeconfig for a token and return its path."""
        path = self._group.state.folder("kubernetes", "kubeconfigs") / f"{user.replace(':', '-')}.kubeconfig"
        path.write_text(kubeconfig_text(url=self.url, ca_file=self.ca_file, token=token, user=user))
        path.chmod(0o600)
        return path

    def service_account_token(self, namespace: str, name: str, *, lifetime_seconds: int = 86_400) -> str:
        """Make a service account if needed and let the API server issue a token for it.

        Raises:
            requests.HTTPError: the API server refused.
        """
        objects = self.objects()
        objects.create_namespace(namespace)
        return objects.service_account_token(namespace, name, lifetime_seconds=lifetime_seconds)

    def session(self, token: str | None = None) -> requests.Session:
        """Return a `requests` session that trusts the API server and carries a token (the admin's by default)."""
        session = requests.Session()
        session.trust_env = False  # else $REQUESTS_CA_BUNDLE takes the place of our certificate
        session.verify = str(self.ca_file)
        session.headers["Authorization"] = f"Bearer {token or self.admin_token}"
        return session

    def objects(self, token: str | None = None) -> KubernetesObjects:
        """Return the helper that makes nodes, pods and what else tests need."""
        return KubernetesObjects(self.url, self.session(token))

    def count_requests(self, verb: str | None = None, resource: str | None = None, *, user: str | None = None) -> int:
        """Count finished requests at the API server; see `AuditLog.count`."""
        return self.audit.count(verb=verb, resource=resource, user=user)

    def _start(
        self, process: ServerProcess, health_url: str, *, ca_file: Path | None = None, token: str | None = None
    ) -> None:
        began = time.monotonic()
        process.start()
        probes.wait_until(
            lambda: probes.http_ok(health_url, ca_file=ca_file, token=token),
            what=f"{process.name} is ready",
            timeout_seconds=READY_TIMEOUT_SECONDS,
            processes=[process],
        )
        self.startup_seconds[process.name] = round(time.monotonic() - began, 2)

    def _write_files(self) -> None:
        self._folder.joinpath("tokens.csv").write_text(
            token_file_text([self.admin, self._scheduler_user, *self.users.values()])
        )
        self._folder.joinpath("audit-policy.json").write_text(json.dumps(AUDIT_POLICY))
        self._folder.joinpath("service-accounts.pem").write_text(signing_key_pem())
        for name in ("tokens.csv", "service-accounts.pem"):
            self._folder.joinpath(name).chmod(0o600)

    def _etcd_command(self, binaries: Binaries) -> Command:
        peer_url = f"http://127.0.0.1:{self._group.ports.take()}"
        return self._command(
            "etcd",
            [
                str(binaries.etcd),
                f"--data-dir={self._folder / 'etcd'}",
                f"--listen-client-urls={self._etcd_url}",
                f"--advertise-client-urls={self._etcd_url}",
                f"--listen-peer-urls={peer_url}",
                f"--initial-advertise-peer-urls={peer_url}",
                f"--initial-cluster=default={peer_url}",
                "--unsafe-no-fsync",  # a lab's data need not survive a power cut
                "--quota-backend-bytes=8589934592",
                "--log-level=warn",
            ],
        )

    def _api_server_command(self, binaries: Binaries) -> Command:
        key = self._folder / "service-accounts.pem"
        return self._command(
            "kube-apiserver",
            [
                str(binaries.api_server),
                f"--etcd-servers={self._etcd_url}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                f"--secure-port={self.url.rpartition(':')[2]}",
                f"--cert-dir={self.ca_file.parent}",
                "--endpoint-reconciler-type=none",
                "--service-cluster-ip-range=10.0.0.0/24",
                # As every kubeadm cluster has it: deploy/node cannot be created without.
                "--allow-privileged=true",
                f"--token-auth-file={self._folder / 'tokens.csv'}",
                "--authorization-mode=RBAC",
                f"--service-account-issuer={self.url}",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                # Pods name no service account, and nodes become untainted by hand: there is no kubelet.
                "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
                f"--audit-policy-file={self._folder / 'audit-policy.json'}",
                f"--audit-log-path={self._folder / 'audit.log'}",
                "--max-requests-inflight=2000",
                "--max-mutating-requests-inflight=1000",
                "--profiling=false",
            ],
        )

    def _scheduler_command(self, binaries: Binaries) -> Command:
        port = self._group.ports.take()
        self._scheduler_health = f"https://127.0.0.1:{port}/healthz"
        self._scheduler_certificate = self._folder / "scheduler-certificates" / "kube-scheduler.crt"
        kubeconfig = self.kubeconfig_for(self._scheduler_user.token, user=self._scheduler_user.name)
        return self._command(
            "kube-scheduler",
            [
                str(binaries.scheduler),
                f"--kubeconfig={kubeconfig}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                "--authentication-skip-lookup=true",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--cert-dir={self._scheduler_certificate.parent}",
                "--leader-elect=false",
                "--kube-api-qps=2000",
                "--kube-api-burst=4000",
                "--profiling=false",
            ],
        )

    def _command(self, name: str, argv: list[str]) -> Command:
        return Command(name=name, argv=argv, log_path=self._group.state.log_path(name), working_directory=self._folder)
