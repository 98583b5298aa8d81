"""Debian's mariadb-server 10.11: one server, or a Galera cluster of three in which all take writes."""

from __future__ import annotations

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


def server(
    name: str, *, in_cluster: bool, flush_log_at_trx_commit: int, snapshot_isolation: bool, sync_wait: bool
) -> NodeSpec:
    files: dict[str, str] = {}
    config = CONFIG.format(
        port=PORT,
        flush_log_at_trx_commit=flush_log_at_trx_commit,
        snapshot_isolation="ON" if snapshot_isolation else "OFF",
    )
    if in_cluster:
        config += f"{GALERA}wsrep_sync_wait = {int(sync_wait)}\n"
        files[PLACE_OF_MEMBER] = Path(member.__file__).read_text()
    command = Command(
        argv=("bash", "-c", START, IN_CLUSTER if in_cluster else ALONE),
        image=IMAGE,
        files={"/etc/start.cnf": config, **files},
        ready=Listening(PORT),
    )
    return NodeSpec(name=name, groups=("servers",), program=command, ports=(PORT,))
