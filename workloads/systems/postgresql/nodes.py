"""Debian's postgresql 15: one server, which makes its own cluster of databases at its first start."""

from __future__ import annotations

from harness.program import Command, DebianPackages, Listening
from harness.system import NodeSpec
from workloads.systems.sql.user import as_user

SERVERS = ("p1", "p2", "p3")
"""The first one alone, or two or three of them in a cluster."""
PORT = 5432
BINARIES = "/usr/lib/postgresql/15/bin"
IMAGE = DebianPackages(("postgresql-15",))
AS_POSTGRES = as_user("postgres")
# A first start that is killed half way leaves a directory that the next one does not take for a whole one. No process
# of the last life is left when the program starts: a lock file of one names a process of somebody else.
START = f"""set -e
data=${{home}}/database
if [ ! -d $data ]; then
  rm -rf $data.new
  install -d -o postgres -g postgres -m 700 $data.new
  {AS_POSTGRES} {BINARIES}/initdb --pgdata=$data.new --username=postgres --auth=trust --no-locale --encoding=UTF8
  echo 'host all all all trust' >>$data.new/pg_hba.conf
  sync
  mv $data.new $data
fi
rm -f $data/postmaster.pid
exec {AS_POSTGRES} {BINARIES}/postgres -D $data -c config_file=/etc/start.conf -c hba_file=$data/pg_hba.conf
"""
CONFIG = """listen_addresses = '*'
port = {port}
unix_socket_directories = ''
max_connections = 200
shared_buffers = 32MB
dynamic_shared_memory_type = mmap
synchronous_commit = {synchronous_commit}
wal_writer_delay = 10s
"""


def server(*, synchronous_commit: bool) -> NodeSpec:
    config = CONFIG.format(port=PORT, synchronous_commit="on" if synchronous_commit else "off")
    command = Command(argv=("sh", "-c", START), image=IMAGE, files={"/etc/start.conf": config}, ready=Listening(PORT))
    return NodeSpec(name=SERVERS[0], groups=("servers",), program=command, ports=(PORT,))
