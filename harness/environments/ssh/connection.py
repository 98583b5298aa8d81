"""Connections to the hosts of an inventory: their keys verified, through others where the inventory says so."""

from __future__ import annotations

import base64
import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paramiko

from harness.environments.ssh.inventory import SSH_PORT, Host, Inventory
from harness.errors import HarnessError

CONNECT_TIMEOUT_S = 20.0
ANSWER_TIMEOUT_S = 120.0
KEEPALIVE_S = 10


class UnknownHostKey(Exception):
    """A host showed a key that nobody vouches for; the words say which."""


class _Refusing(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    """Nobody is asked, and nothing is remembered: what was never verified is refused."""

    def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
        raise UnknownHostKey(described(key))


class Connections:
    """One connection a host, made when it is first needed, and anew where it broke."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self._clients: dict[str, Any] = {}
        self._locks = {name: threading.Lock() for name in inventory.hosts}
        self._closed = False

    def session(self, host: Host) -> Any:
        """A fresh channel for one command. Raises HarnessError."""
        with _speaking(host, self.inventory.where):
            with self._locks[host.name]:
                client = self._connected(host)
                try:
                    channel = client.get_transport().open_session(timeout=CONNECT_TIMEOUT_S)
                except (paramiko.SSHException, OSError, EOFError):
                    # Nothing was asked yet, so to begin anew repeats nothing.
                    self._clients.pop(host.name).close()
                    channel = self._connected(host).get_transport().open_session(timeout=CONNECT_TIMEOUT_S)
            channel.settimeout(ANSWER_TIMEOUT_S)
            return channel

    def close(self) -> None:
        self._closed = True
        for client in list(self._clients.values()):
            client.close()
        self._clients.clear()

    def _connected(self, host: Host) -> Any:
        """Under the host's lock."""
        if host.name not in self._clients:
            if self._closed:
                raise HarnessError(f"the connection to {host} was closed already")
            way = self._way_through(self.inventory.hosts[host.jump], host) if host.jump else None
            self._clients[host.name] = _connect(host, way)
        return self._clients[host.name]

    def _way_through(self, jump: Host, host: Host) -> Any:
        with self._locks[jump.name]:
            with _speaking(jump, self.inventory.where):
                transport = self._connected(jump).get_transport()
            try:
                return transport.open_channel(
                    "direct-tcpip", (host.address, host.port), ("127.0.0.1", 0), timeout=CONNECT_TIMEOUT_S
                )
            except (paramiko.SSHException, OSError, EOFError) as error:
                raise HarnessError(f"{jump} does not lead to {host}: {error}") from error


def _connect(host: Host, way: Any) -> Any:
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(_Refusing())
    try:
        if host.host_key is None:
            known = Path("~/.ssh/known_hosts").expanduser()
            if known.is_file():
                client.load_system_host_keys(str(known))
        else:
            name = host.address if host.port == SSH_PORT else f"[{host.address}]:{host.port}"
            kind, data = host.host_key
            client.get_host_keys().add(name, kind, paramiko.PKey.from_type_string(kind, data))
        client.connect(
            host.address,
            port=host.port,
            username=host.user,
            key_filename=None if host.key is None else str(host.key),
            allow_agent=host.key is None,
            look_for_keys=False,
            sock=way,
            timeout=CONNECT_TIMEOUT_S,
            banner_timeout=CONNECT_TIMEOUT_S,
            auth_timeout=CONNECT_TIMEOUT_S,
        )
    except BaseException:
        client.close()
        raise
    client.get_transport().set_keepalive(KEEPALIVE_S)
    return client


@contextmanager
def _speaking(host: Host, where: str) -> Iterator[None]:
    """Raise HarnessError, in one line, for whatever goes wrong on the way to a host."""
    try:
        yield
    except UnknownHostKey as error:
        raise HarnessError(
            f"{host} shows a host key that is not known, {error}; verify it, then pin it as hosts.{host.name}.host_key "
            f"in {where} or add it to ~/.ssh/known_hosts"
        ) from None
    except paramiko.BadHostKeyException as error:
        raise HarnessError(
            f"{host} shows another host key than the one that is known: expected {described(error.expected_key)}, got "
            f"{described(error.key)}; it is not the machine that was meant, or it was set up anew"
        ) from None
    except paramiko.PasswordRequiredException:
        raise HarnessError(f"the key {host.key} for {host} is encrypted; let the SSH agent hold it") from None
    except paramiko.AuthenticationException as error:
        tried = "the keys of the SSH agent" if host.key is None else f"the key {host.key}"
        raise HarnessError(f"{host} does not let {host.user} in with {tried}: {_words(error)}") from error
    except (paramiko.SSHException, OSError, EOFError, socket.gaierror) as error:
        raise HarnessError(f"{host} cannot be reached: {_words(error)}") from error


def described(key: Any) -> str:
    """A host key with its fingerprint as OpenSSH prints it, and in the form in which it is pinned."""
    fingerprint = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return f"SHA256:{fingerprint} ({key.get_name()} {key.get_base64()})"


def _words(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
