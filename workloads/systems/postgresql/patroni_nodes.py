"""Debian's Patroni 3.0 over its PostgreSQL 15, and the etcd 3.4 in which Patroni keeps who leads.

Patroni's times are the shortest that its page on dynamic configuration allows
(https://patroni.readthedocs.io/en/latest/dynamic_configuration.html): a primary that does not reach etcd gives up after
three seconds, and another one may take its place after twenty.
"""

from __future__ import annotations

from harness.program import Command, DebianPackages, Listening
from harness.system import NodeSpec
from workloads.systems.postgresql.losses import Replication
from workloads.systems.postgresql.nodes import BINARIES, PORT, SERVERS
from workloads.systems.sql.user import as_user_by_the_true_clock

ETCD_MEMBERS = ("e1", "e2", "e3")
REST_PORT = 8008
ETCD_PORT, ETCD_PEER_PORT = 2379, 2380
IMAGE = DebianPackages(("postgresql-15", "patroni", "python3-etcd", "python3-psycopg2"))
ETCD_IMAGE = DebianPackages(("etcd-server",))
# No process of the last life is left when the program starts: a lock file of one names a process of somebody else.
START = f"""set -e
install -d -o postgres -g postgres -m 700 ${{home}}/patroni
rm -f ${{home}}/patroni/database/postmaster.pid
exec {as_user_by_the_true_clock("postgres")} patroni /etc/start.yml
"""
CONFIG = """scope: storm
name: ${{name}}
restapi:
  listen: 0.0.0.0:{rest_port}
  connect_address: ${{name}}:{rest_port}
etcd3:
  hosts: {etcd}
watchdog:
  mode: off
bootstrap:
  dcs:
    loop_wait: 1
    retry_timeout: 3
    ttl: 20
    maximum_lag_on_failover: 1048576
    synchronous_mode: {synchronous_mode}
    synchronous_mode_strict: {synchronous_mode_strict}
    postgresql:
      use_pg_rewind: true
      parameters:
        max_connections: 200
        synchronous_commit: {synchronous_commit}
  initdb:
    - encoding: UTF8
    - no-locale
    - auth: trust
postgresql:
  listen: 0.0.0.0:{port}
  connect_address: ${{name}}:{port}
  data_dir: ${{home}}/patroni/database
  bin_dir: {binaries}
  pgpass: ${{home}}/patroni/pgpass
  authentication:
    superuser:
      username: postgres
    replication:
      username: replicator
    rewind:
      username: postgres
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  basebackup:
    - checkpoint: fast
  pg_hba:
    - local all all trust
    - host all all all trust
    - host replication all all trust
  parameters:
    unix_socket_directories: ''
    shared_buffers: 32MB
    dynamic_shared_memory_type: mmap
"""


def member(name: str, *, etcd_members: int, replication: Replication, synchronous_commit: bool) -> NodeSpec:
    """A server of PostgreSQL and the Patroni that runs it."""
    config = CONFIG.format(
        rest_port=REST_PORT,
        port=PORT,
        binaries=BINARIES,
        etcd=",".join(f"{one}:{ETCD_PORT}" for one in ETCD_MEMBERS[:etcd_members]),
        synchronous_mode=str(replication is not Replication.ASYNCHRONOUS).lower(),
        synchronous_mode_strict=str(replication is Replication.STRICTLY_SYNCHRONOUS).lower(),
        synchronous_commit="'on'" if synchronous_commit else "'off'",
    )
    command = Command(
        argv=("sh", "-c", START), image=IMAGE, files={"/etc/start.yml": config}, ready=Listening(REST_PORT)
    )
    return NodeSpec(name=name, groups=("servers",), program=command, ports=(PORT, REST_PORT))


def etcd_member(name: str, *, etcd_members: int) -> NodeSpec:
    peers = ",".join(f"{one}=http://{one}:{ETCD_PEER_PORT}" for one in ETCD_MEMBERS[:etcd_members])
    argv = (
        *("etcd", "--name", name, "--data-dir", "${home}/etcd"),
        *("--listen-client-urls", f"http://0.0.0.0:{ETCD_PORT}"),
        *("--advertise-client-urls", f"http://{name}:{ETCD_PORT}"),
        *("--listen-peer-urls", f"http://0.0.0.0:{ETCD_PEER_PORT}"),
        *("--initial-advertise-peer-urls", f"http://{name}:{ETCD_PEER_PORT}"),
        *("--initial-cluster", peers, "--initial-cluster-state", "new"),
    )
    command = Command(argv=argv, image=ETCD_IMAGE, ready=Listening(ETCD_PORT))
    return NodeSpec(name=name, groups=("etcd",), program=command, ports=(ETCD_PORT,))


def cluster(
    *, members: int, etcd_members: int, replication: Replication, synchronous_commit: bool
) -> tuple[NodeSpec, ...]:
    servers = (
        member(name, etcd_members=etcd_members, replication=replication, synchronous_commit=synchronous_commit)
        for name in SERVERS[:members]
    )
    return (*servers, *(etcd_member(name, etcd_members=etcd_members) for name in ETCD_MEMBERS[:etcd_members]))
