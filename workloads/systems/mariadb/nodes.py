"""Debian's mariadb-server 10.11: one server, a primary with two replicas, or a Galera cluster that all write to."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from harness.program import Command, DebianPackages, Listening
from harness.system import NodeSpec
from workloads.systems.mariadb import member
from workloads.systems.sql.user import as_user

PORT = 3306
MEMBERS = ("m1", "m2", "m3")
USER, DATABASE = "storm", "storm"
IMAGE = DebianPackages(("mariadb-server", "galera-4", "rsync", "lsof"))
ACCOUNTS = f"""CREATE DATABASE {DATABASE};
FLUSH PRIVILEGES;
CREATE USER {USER}@'%';
GRANT ALL ON *.* TO {USER}@'%';
"""
START = f"""set -e
install -d -o mysql -g mysql ${{home}}/mysql
exec {as_user("mysql")} bash -c "$0"
"""
# A first start that is killed half way leaves a directory that the next one does not take for a whole one.
PREPARE = f"""set -e
cd ${{home}}/mysql
if [ ! -d data ]; then
  rm -rf data.new
  mariadb-install-db --no-defaults --datadir=$PWD/data.new --skip-test-db >/dev/null
  mariadbd --no-defaults --datadir=$PWD/data.new --bootstrap <<'END'
{ACCOUNTS}END
  sync
  mv data.new data
fi
"""
ALONE = PREPARE + "exec mariadbd --defaults-file=/etc/start.cnf\n"
PLACE_OF_MEMBER = "/etc/member.py"
IN_CLUSTER = PREPARE + f"exec python3 {PLACE_OF_MEMBER} ${{name}} {','.join(MEMBERS)} $PWD\n"
"""What keeps the server running is `member.py` beside this."""
CONFIG = """[mariadbd]
bind-address = 0.0.0.0
port = {port}
datadir = ${{home}}/mysql/data
socket = ${{home}}/mysql/storm.sock
pid-file = ${{home}}/mysql/storm.pid
skip-name-resolve
max_connections = 200
innodb_buffer_pool_size = 32M
innodb_log_file_size = 32M
innodb_flush_log_at_trx_commit = {flush_log_at_trx_commit}
innodb_snapshot_isolation = {snapshot_isolation}
innodb_lock_wait_timeout = 2
"""
GALERA = f"""wsrep_on = ON
wsrep_provider = /usr/lib/galera/libgalera_smm.so
wsrep_cluster_name = storm
wsrep_cluster_address = gcomm://{",".join(MEMBERS)}
wsrep_node_address = ${{address}}
wsrep_node_name = ${{name}}
wsrep_sst_method = rsync
binlog_format = ROW
innodb_autoinc_lock_mode = 2
"""


BINARY_LOG = """server_id = {number}
log_bin = storm-bin
sync_binlog = 1
binlog_format = ROW
"""
FOLLOW_FILE = "/etc/follow.sql"
REPLICA = f"""read_only = ON
relay_log = storm-relay
init_file = {FOLLOW_FILE}
slave_net_timeout = 4
"""
FOLLOW = f"""CHANGE MASTER TO MASTER_HOST='{MEMBERS[0]}', MASTER_PORT={PORT}, MASTER_USER='{USER}',
  MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos;
START SLAVE;
"""
"""The replica carries this out at each start. After the first it follows already, and refuses both, which harms
nothing."""


class Role(Enum):
    ALONE = "alone"
    PRIMARY = "primary"
    REPLICA = "replica"
    MEMBER = "member"
    """A member of a Galera cluster."""


def server(
    name: str, *, role: Role, flush_log_at_trx_commit: int, snapshot_isolation: bool, sync_wait: bool
) -> NodeSpec:
    files: dict[str, str] = {}
    config = CONFIG.format(
        port=PORT,
        flush_log_at_trx_commit=flush_log_at_trx_commit,
        snapshot_isolation="ON" if snapshot_isolation else "OFF",
    )
    if role in (Role.PRIMARY, Role.REPLICA):
        config += BINARY_LOG.format(number=MEMBERS.index(name) + 1)
    if role is Role.REPLICA:
        config += REPLICA
        files[FOLLOW_FILE] = FOLLOW
    if role is Role.MEMBER:
        config += f"{GALERA}wsrep_sync_wait = {int(sync_wait)}\n"
        files[PLACE_OF_MEMBER] = Path(member.__file__).read_text()
    command = Command(
        argv=("bash", "-c", START, IN_CLUSTER if role is Role.MEMBER else ALONE),
        image=IMAGE,
        files={"/etc/start.cnf": config, **files},
        ready=Listening(PORT),
    )
    return NodeSpec(name=name, groups=("servers",), program=command, ports=(PORT,))
