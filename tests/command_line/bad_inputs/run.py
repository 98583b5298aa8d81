"""`stormproof run`."""

from __future__ import annotations

from tests.command_line.bad_inputs.rows import Content, texts, typed, values

NAMES = """
=> Missing argument 'SYSTEM'
kafka => unknown system 'kafka'; known are: 
rocketmq extra => Got unexpected extra argument (extra)
<xxxx> => system takes at most 1000 characters, got 5000
rocketmq<NUL> => no value holds a NUL character, got 'rocketmq\\x00'
rocketmq<ESC> => system takes printable text, got 'rocketmq\\x1b'
<BYTE> => system takes printable text, got '\\udcff'
../rocketmq => unknown system '../rocketmq'; did you mean rocketmq?
'' => is empty (a variable that is not set?)
rocketmq --workload chat => unknown workload 'chat'; known are: bank, causal,
rocketmq --workload ../log => unknown workload '../log'; did you mean log?
rocketmq --workload '' => what follows --workload is empty
rocketmq --environment mars => unknown environment 'mars'; known are: docker, simulated, ssh
rocketmq --environment ssh => environment 'ssh' needs machines: say --inventory
rocketmq --environment ssh --inventory '' => what follows --inventory is empty
rocketmq --environment ssh --inventory nowhere => inventory nowhere cannot be read: No such file
rocketmq --environment ssh --inventory folder => inventory folder cannot be read: it is a directory
rocketmq --environment ssh --inventory /dev/zero => inventory /dev/zero cannot be read: it is a device
rocketmq --environment ssh --inventory text => text: not TOML
rocketmq --environment ssh --inventory good.toml => good.toml: defaults: unknown key 'system' of the defaults
rocketmq --environment docker --inventory text => leave --inventory out, or say --environment ssh
rocketmq --real-clock => environment 'simulated' has no machines whose own clocks could be set; leave --real-clock out
rocketmq --environment docker --real-clock => has no machines whose own clocks could be set
rocketmq --real-clock=yes => does not take a value
rocketmq --capture => environment 'simulated' has no packets that could be captured; leave --capture out, or say
rocketmq --capture=yes => does not take a value
rocketmq --inventory text => environment 'simulated' makes what its nodes run on; leave --inventory out
rocketmq --workload log+lug => unknown workload 'lug'; did you mean log?
rocketmq --workload log+ => empty name of a workload
rocketmq --workload log+log => workload log is named twice in log+log; name each once
rocketmq --workload log+causal-reverse => does not serve workload 'causal-reverse'
rocketmq --workload log+pop --concurrency 3 => needs 2 clients for each of its workloads; set --concurrency to
rocketmq --workload register+set+log => workloads register and set cannot run at once: they use the same keys
rocketmq --workload log+queue --set client=grpc => client=grpc means nothing here: of log, queue none can go
rocketmq --environment <ESC> => environment takes printable text
rocketmq --mutant nope => unknown mutant 'nope' of rocketmq
rocketmq --mutant <xxxx> => mutant takes at most 1000 characters
rocketmq --mutant '' => what follows --mutant is empty
rocketmq --engine flink => unknown engine 'flink'; known are:
rocketmq --nope => No such option '--nope'
rocketmq --json=1 => does not take a value
--debug rocketmq => No such option '--debug'
rocketmq --seed => requires an argument
"""

NUMBERS = """
rocketmq --concurrency: 0 -1 1001 1000000 => concurrency takes a whole number from 1 to 1000, got
rocketmq --concurrency: x 1.5 nan inf 1e3 <9999> => is not a valid integer
rocketmq --rate: -1 nan inf -inf 1e9 1e309 100001 => rate takes a number from 0 to 100000, got
rocketmq --rate: x 0x10 => is not a valid float
rocketmq --rate: 1e-9 1e-320 => rate takes 0 for no limit, or at least 1e-05 a second, got
rocketmq --time-limit: -1 nan inf 1e9 604801 <9999> => time_limit_s takes a number from 0 to 604800, got
rocketmq --time-limit: x 1h => is not a valid float
rocketmq --recovery: -1 nan inf 1e9 => recovery_s takes a number from 0 to 604800, got
rocketmq --recovery: x => is not a valid float
rocketmq --liveness: -1 nan inf => liveness_s takes a number from 0 to 604800, got
rocketmq --liveness: 61 604800 => liveness_s is a part of the storm, so at most time_limit_s (60), got
rocketmq --max-outage: -1 nan inf 1e9 => max_outage_s takes a number from 0 to 604800, got
rocketmq --max-outage: x => is not a valid float
rocketmq --seed: -1 9223372036854775808 => is not in the range
rocketmq --seed: x 1.5 => is not a valid integer
rocketmq --nodes: 0 -1 101 1000000000 => setting brokers takes a whole number from 1 to 100, got
rocketmq --nodes: x 1.5 nan => is not a valid integer
"""

SETTINGS = """
rocketmq --set brokers=: 0 -1 101 1.5 nan inf 1e309 <9999> many true => brokers takes a whole number from 1 to 100
rocketmq --set controllers=: 0 51 => setting controllers takes a whole number from 1 to 50, got
rocketmq --set in_sync_replicas=: 0 => setting in_sync_replicas takes a whole number from 1 to 100, got
rocketmq --set in_sync_replicas=: 4 => in_sync_replicas=4 can never be met by 3 brokers
rocketmq --set min_in_sync_replicas=: 0 => setting min_in_sync_replicas takes a whole number from 1 to 100, got
rocketmq --set min_in_sync_replicas=: 4 => min_in_sync_replicas=4 can never be met by 3 brokers
rocketmq --set learners=: -1 100 => setting learners takes a whole number from 0 to 99, got
rocketmq --set client=grpc --workload log => workload 'log' cannot be run with these settings: client=grpc goes through
rocketmq --set client=grpc --workload pop --set groups=2 --environment docker => takes one group of brokers, got 2
rocketmq --set requests=: none all,public => setting requests takes one of all, public, got
rocketmq --set requests=public --workload register => about the controllers' key-value store, which no public request
rocketmq --set begins_as_version=: 3 6 x => setting begins_as_version takes a whole number from 4 to 5, got
rocketmq --set begins_as_version=4 => with deployment=controller: that version knows no controllers; choose another
rocketmq --workload log+pop --set queues=: 0 17 x => setting queues
rocketmq --workload log+pop --set colours=3 => unknown setting 'colours'
rocketmq --set learners=: 3 => learners must be less than brokers (3), got 3
rocketmq --set topic_queues=: 1 3 => set queues to at most
rocketmq --set topic_queues=: 0 1001 x => setting topic_queues takes a whole number from 1 to 1000, got
rocketmq --set segment_bytes=: 1 0 -1 1023 1e9 1073741825 => segment_bytes takes a whole number from 1024 to 1073741824
rocketmq --set time_scale=: 0 -1 nan inf 101 x => setting time_scale takes a number from 0.01 to 100, got
rocketmq --set installed=rocketmq => installed takes the directory of a RocketMQ where nodes run, an absolute path
rocketmq --set installed=/opt --set ack_durable=true => ack_durable is no setting of a RocketMQ that is installed
rocketmq --set installed=/opt --mutant dispatch-to-max => nothing is planted in Apache RocketMQ itself
rocketmq --set installed=/opt --workload register => cannot be run with these settings
rocketmq --set installed=/opt => environment 'simulated' cannot run rocketmq: its node c1 is a command
rocketmq --environment docker --set installed=/opt => environment 'docker' runs nothing that is installed on machines
rocketmq --environment docker --set distribution=/nowhere => /nowhere: no such folder or archive of a distribution
rocketmq --set java_options=-Xmx1g => java_options is about a RocketMQ of Apache's
rocketmq --set release=newest => release takes the version of a release of RocketMQ, as 5.4.0, got 'newest'
rocketmq --set release=5.4.0 --set distribution=/opt => release and distribution each say which RocketMQ
rocketmq --set release=5.4.0 --set installed=/opt => release and installed each say which RocketMQ
rocketmq --set release=5.4.0 => environment 'simulated' cannot run rocketmq: its node c1 is a command
rocketmq --set deployment=single --set begins_as_version=4 --set retention_s=5 => begins_as_version=4 with retention_s=5
rocketmq --set release=5.4.0 --set retention_s=5 => retention_s is no setting of a RocketMQ that Apache publishes
bookkeeper --set ack_quorum=4 => an ack quorum of 4 is more than the write quorum of 3
bookkeeper --set write_quorum=4 => a write quorum of 4 is more than the ensemble of 3
bookkeeper --set bookies=: 2 => setting bookies of bookkeeper takes at least 3, as many as the ensemble has, got
bookkeeper --set release=: newest v4.17.2 => release takes the version of a release of BookKeeper, as 4.17.2, got
bookkeeper --set release=4.17.2 => environment 'simulated' cannot run bookkeeper: its node m1 is a command
bookkeeper --set release=4.17.2 --set check_entries_s=5 => check_entries_s is no setting of the public BookKeeper
bookkeeper --set release=4.17.2 --set placement=entry => placement is no setting of the public BookKeeper; leave it out
bookkeeper --set release=4.17.2 --set readers=bookies => readers is no setting of the public BookKeeper; leave it out
bookkeeper --set release=4.17.2 --mutant lac-is-lap => nothing is planted beside the public BookKeeper; leave mutant
bookkeeper --set release=4.17.2 --workload register => ZooKeeper keeps the metadata of a release, and system zookeeper
bookkeeper --set release=4.17.2 --nemesis 'kill auditor every 5 for 2' => 'auditor' is no target that can follow 'kill'
bookkeeper --set session_timeout_s=: 0.1 => session_timeout_s
bookkeeper --set tags=: 2 => setting tags of log takes 0 on bookkeeper, got
bookkeeper --set queues=: 2 => setting queues of log takes 1 on bookkeeper, got
bookkeeper --set move_share=: 0.1 => setting move_share of log takes 0 on bookkeeper, got
cmq --set groups=: 0 17 => setting groups takes a whole number from 1 to 16, got
cmq --set nodes=: 4 => setting nodes of cmq takes 3 or 5, got
cmq --set election_s=: 0.1 => setting election_s of cmq takes at least 0.2, two of heartbeat_s, got
cmq --set message_bytes=300 --set file_bytes=: 256 => setting file_bytes of cmq takes at least 316, a message of
cmq --set most_queues=: 2 => setting most_queues of cmq takes at least 3, for so many of 4 queues come together in group
cmq --set order=producer => setting order of queue takes none on cmq, whose messages come again later, got producer
cmq --workload pop --set changed_share=: 0.2 => setting changed_share of pop takes 0 on cmq, where no invisible time is
cmq --workload pop --set orderly=true => setting orderly of pop takes false on cmq, whose messages come again later
cmq --workload log => cmq does not serve workload 'log'; it serves queue, pop
dledger --set release=newest => release takes the version of a release of DLedger, as 0.3.1, got 'newest'
dledger --set release=0.3.1 => environment 'simulated' cannot run dledger: its node n1 is a command (java)
dledger --set release=0.3.1 --set originals=2 => can be run in: docker, ssh
dledger --set release=0.3.1 --set ack_durable=true => ack_durable is no setting of the public DLedger; leave it out
dledger --set release=0.3.1 --mutant late-truncate => nothing is planted beside the public DLedger
dledger --set originals=1 => originals is about a release of the public library: say which, by release=0.3.1
dledger --set release=0.3.1 --set originals=: 4 -1 => setting originals
rocketmq --set deployment=dledger --set brokers=: 1 2 4 7 => takes 3 or 5 brokers a group, got brokers=
rocketmq --set deployment=dledger --set preferred=: 4 5 => preferred takes 0 to 3 of 3 brokers, got
rocketmq --set preferred=: 1 => preferred=1 is about deployment=dledger; leave it out, or choose that
rocketmq --set deployment=dledger --set flush=async => setting flush is not for deployment=dledger; leave it out
rocketmq --set deployment=dledger --set retention_s=5 => setting retention_s is not for deployment=dledger; leave it out
rocketmq --set deployment=dledger --set static_queues=4 => setting static_queues is not for deployment=dledger
rocketmq --set deployment=dledger --set requests=public => setting requests is not for deployment=dledger; leave it out
rocketmq --mutant minority-commit => unknown mutant 'minority-commit' of rocketmq
rocketmq --set deployment=dledger --mutant minority-comit => did you mean minority-commit
rocketmq --set originals=1 => originals is about a RocketMQ of Apache's: say which, by release
rocketmq --set release=5.4.0 --set originals=1 => originals=1 is about deployment=dledger; leave it out
rocketmq --set deployment=dledger --set release=5.4.0 --set originals=: 4 5 => originals takes 0 to 3 of 3 brokers, got
rocketmq --set deployment=dledger --set release=5.3.1 => cannot run rocketmq: its node n1 is a command
rocketmq --set deployment=dledger --set all_ack=false => all_ack means nothing with deployment=dledger, which has no
rocketmq --set deployment=dledger --workload register => controllers' key-value store, and deployment=dledger has no
rocketmq --set flush=: maybe SYNC 1 => setting flush takes one of sync, async, got
rocketmq --set all_ack=: 1 yes => setting all_ack takes true or false, got
rocketmq --set queues=: 0 17 x nan => setting queues takes a whole number from 1 to 16, got
rocketmq --set send_share=: 0 1 => send_share must lie between 0 and 1, got
rocketmq --set send_share=: -0.1 1.1 nan inf => setting send_share takes a number from 0 to 1, got
rocketmq --workload register --set keys=: 0 -1 10001 x => setting keys takes a whole number from 1 to 10000, got
rocketmq --workload register --set read_share=: -1 2 nan => setting read_share takes a number from 0 to 1, got
rocketmq --workload register --set cas_share=: 0.5 1 => read_share and cas_share must leave a share for writes, got
rocketmq --workload counter --set initial=: 5 -1 => run of counter: expected 0, with which every counter begins, got
rocketmq --workload causal --set initial=: 7 => setting initial in a run of causal: expected 0, which no transaction
rocketmq --workload bank --set accounts=: 1 0 -5 1001 => setting accounts in a run of bank: expected from 2 to 1000, as
rocketmq --workload bank --set total=: 100 0 => expected 80, which 8 accounts of 10 hold together, got
rocketmq --workload consumption --set popping=true --set orderly=: true => expected popping alone, for what is popped is
rocketmq --set assignment=: proxy 1 => setting assignment takes one of client, broker, got
rocketmq --nemesis kill --set interval_s=: 0 -1 0.1 nan inf 1e9 => interval_s takes a number from 0.5 to 86400
rocketmq --nemesis kill --set shortest_fault_s=: 0 -1 nan => shortest_fault_s takes a number from 0.01 to 86400
rocketmq --nemesis kill --set longest_fault_s=: 0 inf => setting longest_fault_s takes a number from 0.01 to 86400, got
rocketmq --nemesis kill --set longest_fault_s=: 0.1 => shortest_fault_s must be at most longest_fault_s (0.1), got 0.3
"""

OF_DLEDGER = """
dledger --set members=: 2 6 x => setting members takes a whole number from 3 to 5, got
dledger --set members=4 => setting members of dledger takes 3 or 5, got 4
dledger --nodes 4 => setting members of dledger takes 3 or 5, got 4
dledger --set preferred=: 4 => setting preferred of dledger takes 0 to 3, got 4
dledger --set preferred=: -1 6 => setting preferred takes a whole number from 0 to 5, got
dledger --set store=: disk FILE => setting store takes one of file, memory, got
dledger --set store=memory --set ack_durable=true => nothing in it is ever durable; leave one of them out
dledger --set begins_as_version=: 0 3 => setting begins_as_version takes a whole number from 1 to 2, got
dledger --set time_scale=: 0 11 nan => setting time_scale takes a number from 0.02 to 10, got
dledger --set queues=2 => setting queues of log takes 1 on dledger, got 2
dledger --set batch_share=0.5 => setting batch_share of log takes 0 on dledger, got 0.5
dledger --set tags=2 => setting tags of log takes 0 on dledger, got 2
dledger --set move_share=0.1 => setting move_share of log takes 0 on dledger, got 0.1
dledger --workload pop => dledger does not serve workload 'pop'; it serves log
dledger --mutant nope => unknown mutant 'nope' of dledger; known are: ack-not-durable
dledger --nemesis upgrades => upgrades nodes, but dledger has no other version of any, as it is set
dledger --nemesis membership => lets nodes leave the cluster and come back, which dledger cannot do
dledger --nemesis 'isolate preferred every 5 for 2' => 'preferred' is no target that can follow 'isolate'
dledger --nemesis 'kill n4 every 5 for 2' => 'n4' is no target that can follow 'kill'
dledger --nemesis 'kill it when append-sent every 5 for 2' => append-sent
"""

KEYS = """
rocketmq --set x => a setting reads key=value, got 'x'
rocketmq --set =1 => a setting reads key=value, got '=1'
rocketmq --set brokers= => the value of 'brokers' is empty
rocketmq --set brokers=1 --set brokers=2 => the setting brokers is given twice: 1 and 2
rocketmq --nodes 3 --set brokers=3 => the setting brokers is given twice: 3 and 3
rocketmq --set colour=red => unknown setting 'colour'
rocketmq --set broker=3 => unknown setting 'broker'; did you mean brokers
rocketmq --set flush=<xxxx> => setting flush takes at most 1000 characters, got 5000
rocketmq --set flush=<ESC> => setting flush takes printable text
rocketmq --set <xxxx>=1 => the name of a setting takes at most 1000 characters
rocketmq --set interval_s=1 => unknown setting 'interval_s'
rocketmq --workload register --set queues=2 => unknown setting 'queues'
"""

FAULTS = """
rocketmq --nemesis meteor => unknown nemesis 'meteor'
rocketmq --nemesis upgrades => nemesis 'upgrades' upgrades nodes, but rocketmq has no other version of any, as it is set
rocketmq --set deployment=masters --nemesis membership => cluster and come back, which rocketmq cannot do, as it is set
redis --environment docker --nemesis membership => leave the cluster and come back, which redis cannot do
zookeeper --environment docker --nemesis membership => come back, which zookeeper cannot do, as it is set
rocketmq --set controllers=1 --nemesis 'shrink c1 every 20 for 9' => 'kill' and 'restarts' take nodes away for a while
rocketmq --nemesis 'shrink one of brokers every 20 for 9' => as in 'shrink one of controllers'
rocketmq --nemesis 'wipe primary every 20 for 9' => of rocketmq, as it is set, only nodes of controllers can leave
rocketmq --nemesis 'wipe controllers every 20 for 9' => did you mean 'wipe one of controllers every 20 for 9'?
rocketmq --nemesis 'wipe c1+c2 every 20 for 9' => 'c1+c2' is no target that can follow 'wipe'
rocketmq --nemesis 'shrink c1 and kill b1 every 20 for 9' => it stands alone, in a sentence of its own; did you mean
rocketmq --nemesis 'wipe c1 when became-leader every 20 for 9' => it cannot strike 'when became-leader'; did
rocketmq --nemesis '' => what follows --nemesis is empty
rocketmq --nemesis , => empty nemesis in ','
rocketmq --nemesis kill,,pause => empty nemesis in 'kill,,pause'
rocketmq --nemesis kill,kill => nemesis kill is named twice
rocketmq --nemesis none,kill => none means no faults and stands alone
rocketmq --nemesis <xxxx> => nemesis takes at most 1000 characters
rocketmq --nemesis 'isolate primary' => it lacks 'every SECONDS for SECONDS'
rocketmq --nemesis 'isolate primary every 10' => 'for' and the fault's length are missing
rocketmq --nemesis 'isolate primary every 5 for 10' => a fault of 10 s is not over when the next interval begins
rocketmq --nemesis 'isolate primary every 0 for 0' => is a number of seconds greater than 0, got '0'
rocketmq --nemesis 'isolate primary every nan for 1' => is a number of seconds greater than 0, got 'nan'
rocketmq --nemesis 'isolate primary every 1e400 for 1' => is a number of seconds greater than 0, got '1e400'
rocketmq --nemesis 'isolate primary every 1e-9 for 1e-10' => would strike 60,000,000,000 times
rocketmq --nemesis 'isolate primery every 10 for 5' => 'primery' is no target
rocketmq --nemesis 'isolat primary every 10 for 5' => the verb 'isolat' is unknown
rocketmq --nemesis 'kill it when alter-propsed every 10 for 5' => did you mean 'kill it when alter-proposed every
rocketmq --nemesis 'kill it when 3th alter-proposed every 10 for 5' => is written as 1st, 2nd, 3rd …, got '3th'
rocketmq --nemesis 'kill it every 10 for 5' => 'it' is the node that reaches a point, which one has to be said
rocketmq --environment docker --nemesis 'kill it after flushed every 10 for 5' => that needs the simulator
rocketmq --nemesis 'isolate b9 every 10 for 5' => 'b9' is no target that can follow 'isolate'
rocketmq --set brokers=2 --nemesis 'kill b3 every 10 for 5' => 'b3' is no target that can follow 'kill'
rocketmq --nemesis 'kill b1+b1 every 10 for 5' => 'b1+b1' names a node twice
rocketmq --nemesis 'cut link b1 every 10 for 5' => the word after 'cut link b1' is missing, e.g. to
rocketmq --nemesis 'isolate all every 10 for 5' => 'all' is no target that can follow 'isolate'
rocketmq --nemesis 'kill process of b1 every 10 for 5' => 'of' is no name of processes that can follow 'kill process'
rocketmq --nemesis 'kill process java of b1 every 10 for 5' => where a node is one process, say 'kill TARGET' instead
rocketmq --nemesis memory => where a node is one process, say 'kill TARGET' instead
rocketmq --nemesis 'exhaust memory of b1 left_mb=-1 every 10 for 5' => left_mb takes a number from 0 to 1000000, got
rocketmq --nemesis reset => environment 'simulated' cannot apply 'reset'
"""

SCHEDULES = """
rocketmq --schedule '' => what follows --schedule is empty
rocketmq --schedule nowhere => schedule file nowhere cannot be read: No such file or directory
rocketmq --schedule folder => schedule file folder cannot be read: it is a directory
rocketmq --schedule loop => schedule file loop cannot be read: Too many levels of symbolic links
rocketmq --schedule /dev/zero => schedule file /dev/zero cannot be read: it is a device
rocketmq --schedule binary => schedule file binary cannot be read:
rocketmq --schedule empty => schedule file empty is empty; for a run without faults say --nemesis none
rocketmq --schedule text => schedule, line 1: expected when the fault strikes, as seconds such as 12.5, got 'hello'
rocketmq --schedule text --nemesis kill => --schedule says itself which faults strike; leave it or --nemesis out
"""

SCHEDULE_TEXTS: tuple[tuple[Content, str], ...] = (
    ("# nothing\n\n", "the schedule has no line with a fault; for a run without faults say --nemesis none"),
    (
        "1 for 2 kill b1 [k 0]\n1 for 2 kill b1\n",
        "schedule, line 2: the fault's random stream, such as [kill 0], is missing",
    ),
    ("1 for 2 kill b9 [k 0]", "schedule, line 1: 'b9' is no target that can follow 'kill'; there can be: primary"),
    ("1 for 2 isolte primary [k 0]", "schedule, line 1: the verb 'isolte' is unknown"),
    (
        "1 for 2 kill b1 [k 0]\n# x\n3 for 2 kill b1 [k 0]",
        "schedule, line 3: the random stream [k 0] is that of line 1",
    ),
    ("1e3 for 2 kill b1 [k 0]", "expected when the fault strikes, as seconds such as 12.5, got '1e3'"),
    ("59 for 2 kill b1 [k 0]", "the fault is healed at 61 s, but the storm lasts 60 s"),
    ("1 for 2 kill b1 [quorum 0]", "the random stream [quorum 0] is kept for the nodes that --liveness takes down"),
    ("1 for 2 kill b1 [k 0] \x1b", "schedule, line 1: takes printable text, got"),
    ("x" * 2_000, "schedule, line 1: takes at most 1000 characters, got 2000"),
    ("\n" * 200_000, "schedule file schedule is empty"),
    ("#\n" * 100_001, "a schedule has at most 100000 lines, got 100001"),
    ("#" * ((1 << 24) + 1), "schedule file schedule cannot be read: it is longer than 16 MiB"),
    (b"\xff\n", "schedule file schedule cannot be read: 'utf-8' codec"),
)

PLACES = """
rocketmq --runs text => Directory 'text' is a file
rocketmq --runs text/runs => cannot write into text/runs: Not a directory
rocketmq --runs /proc/nowhere => cannot write into /proc/nowhere:
rocketmq --runs /dev/null => cannot write into /dev/null: Not a directory
rocketmq --runs loop => cannot write into loop:
rocketmq --runs dangling => cannot write into dangling:
rocketmq --runs <NUL> => no value holds a NUL character
rocketmq --runs <xxxx> => File name too long
rocketmq --runs '' => what follows --runs is empty
rocketmq --engine spark --master nonsense => --master takes local[2], local[*], spark://host:7077, yarn or k8s://…
rocketmq --engine spark --master local[0] => got 'local[0]'
rocketmq --engine spark --master local[x] => got 'local[x]'
rocketmq --engine spark --master spark://host => got 'spark://host'
rocketmq --engine spark --master mesos://host:1 => got 'mesos://host:1'
"""

ROWS = (
    *typed("run", NAMES),
    *values("run", NUMBERS),
    *values("run", SETTINGS),
    *values("run", OF_DLEDGER),
    *typed("run", KEYS),
    *typed("run", FAULTS),
    *typed("run", SCHEDULES),
    *texts("run rocketmq --schedule schedule", "schedule", SCHEDULE_TEXTS),
    *typed("run", PLACES),
)
