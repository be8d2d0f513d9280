# SPDX-License-Identifier: Apache-2.0
"""Run a Kerberos server (MIT krb5, Debian's krb5-kdc) with a realm of its own on a loopback port.

Everything is in the lab's state folder: database, keytabs, krb5.conf. Programs find it by KRB5_CONFIG, Java by
`java_options`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

from lab.errors import LabError
from lab.processes import probes
from lab.processes.group import ProcessGroup
from lab.processes.process import Command, ServerProcess

REALM: Final = "LAB.INTERNAL"
_SBIN: Final = "/usr/sbin"
_TOOL_TIMEOUT_SECONDS: Final = 30.0


class KDC:
    """Control the Kerberos server of one lab."""

    realm = REALM

    def __init__(self, group: ProcessGroup) -> None:
        """Make the realm's database; `start` listens.

        Raises:
            LabError: a program of krb5-kdc or krb5-admin-server is missing or fails.
        """
        self.folder = group.state.folder("kdc")
        self.port = group.ports.take()
        self.krb5_conf = self.folder / "krb5.conf"
        self.krb5_conf.write_text(_krb5_conf(self.port))
        self._environment = {
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder / 'tickets'}",
        }
        (self.folder / "kdc.conf").write_text(_kdc_conf(self.folder, self.port))
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        self.process: ServerProcess = group.add(
            Command(
                name="krb5kdc",
                argv=[_tool("krb5kdc"), "-n", "-r", REALM],
                log_path=group.state.log_path("krb5kdc"),
                environment=self._environment,
            )
        )

    @property
    def java_options(self) -> tuple[str, ...]:
        """Give the options that lead Java programs here."""
        return (f"-Djava.security.krb5.conf={self.krb5_conf}",)

    @property
    def environment(self) -> dict[str, str]:
        """Give the variable that leads programs with MIT's library here."""
        return {"KRB5_CONFIG": str(self.krb5_conf)}

    def start(self) -> None:
        """Start and wait until it listens."""
        self.process.start()
        probes.wait_until(self._listens, what="the KDC listens", timeout_seconds=20.0, processes=[self.process])

    def add_principal(self, name: str, *, max_life: str = "1day") -> Path:
        """Make a principal with a random key and give its keytab.

        Args:
            name: without realm, for example rm/localhost.
            max_life: longest life of its tickets, as kadmin writes it (`10sec`).
        """
        keytab = self.folder / f"{name.replace('/', '_')}.keytab"
        self.administer(f'addprinc -randkey -maxlife "{max_life}" -maxrenewlife "7days" {name}')
        self.administer(f"ktadd -k {keytab} -norandkey {name}")
        return keytab

    def administer(self, query: str) -> str:
        """Run one kadmin query, for example `modprinc -maxlife 10sec alice`."""
        return self._run("kadmin.local", "-r", REALM, "-q", query)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _run(self, program: str, *arguments: str) -> str:
        began = time.monotonic()
        result = subprocess.run(
            [_tool(program), *arguments],
            env={**os.environ, **self._environment},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_TOOL_TIMEOUT_SECONDS,
        )
        if result.returncode != 0 or "kadmin.local: " in result.stderr or "while " in result.stderr:
            took = time.monotonic() - began
            raise LabError(f"{program} {' '.join(arguments)} failed after {took:.1f} s: {result.stderr[-500:]}")
        return result.stdout


def _tool(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path=_SBIN)
    if path is None:
        raise LabError(f"{name} is missing: install the Debian packages krb5-kdc and krb5-admin-server")
    return path


def _krb5_conf(port: int) -> str:
    return f"""\
[libdefaults]
  default_realm = {REALM}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  ticket_lifetime = 1d
[realms]
  {REALM} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  localhost = {REALM}
"""


def _kdc_conf(folder: Path, port: int) -> str:
    return f"""\
[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {REALM} = {{
    database_name = {folder / "principal"}
    key_stash_file = {folder / "stash"}
    acl_file = {folder / "kadm5.acl"}
    max_life = 1d
    max_renewable_life = 7d
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }}
[logging]
  kdc = STDERR
  default = STDERR
"""
