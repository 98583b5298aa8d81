"""All other commands, and what is none."""

from __future__ import annotations

from tests.command_line.bad_inputs.rows import texts, typed

REPLAY = """
=> Missing argument 'PATH'
nowhere => nowhere is not a run directory: it has no scenario.json
folder => folder is not a run directory
text => text is not a run directory
/dev/zero => /dev/zero is not a run directory
loop => Too many levels of symbolic links
<NUL> => no value holds a NUL character
<xxxx> => File name too long
folder extra => Got unexpected extra argument (extra)
folder --nope => No such option '--nope'
folder --runs text => Directory 'text' is a file
nowhere.toml => storm file nowhere.toml cannot be read: No such file or directory
folder --times 2 => are for storm files (….toml), got folder
nowhere.toml --times 0 => 0 is not in the range
nowhere.toml -o x => --output says where --as-test writes
folder --engine flink => unknown engine 'flink'
"""
BISECT = """
=> Missing argument 'FILE'
nowhere.toml => Missing argument 'GOOD..BAD'
nowhere.toml HEAD => the revisions are two with two dots between them, as in v1.2..HEAD, got 'HEAD'
nowhere.toml a..b => storm file nowhere.toml cannot be read: No such file or directory
/dev/zero a..b => storm file /dev/zero cannot be read: it is a device
folder a..b => storm file folder cannot be read
text a..b => text: not TOML
nowhere.toml a..b c => Got unexpected extra argument (c)
"""
LIST = """
nope => unknown kind of list 'nope'; known are: systems
run => unknown kind of list 'run'; did you mean runs
points rocketm => unknown system 'rocketm'; did you mean rocketmq?
nemeses rocketmq => list nemeses is not of one system, got 'rocketmq'; \
these are: invariants, mutants, points, settings, targets
runs extra => list runs is not of one system, got 'extra'; these are: invariants, mutants, points, settings, targets
points rocketmq extra => Got unexpected extra argument (extra)
--nope => No such option '--nope'
runs --runs text => Directory 'text' is a file
runs --runs <NUL> => no value holds a NUL character
runs --runs '' => what follows --runs is empty
"""
VERIFY = """
=> Missing argument 'CERTIFICATE'
nowhere => there is no certificate nowhere
nowhere good.edn => there is no certificate nowhere
folder good.edn => folder is no file
/dev/zero good.edn => /dev/zero is no file
loop good.edn => there is no certificate loop
text good.edn => text is no certificate, which is JSON
binary good.edn => binary is no certificate, which is JSON
empty good.edn => empty is no certificate, which is JSON
<NUL> good.edn => no value holds a NUL character
<BYTE> good.edn => there is no certificate \\udcff
<xxxx> good.edn => File name too long
certificate nowhere => there is no run directory and no history nowhere
certificate folder => there is no run directory and no history folder
certificate text => text: line 1, row 0: neither EDN, nor JSON
certificate empty.parquet => is no history in Parquet
certificate noise.parquet => is no history in Parquet
certificate empty.arrows => empty.arrows: the stream ends within its schema
certificate /dev/zero => /dev/zero cannot be read: it is a device
certificate good.edn extra => Got unexpected extra argument (extra)
certificate --nope => No such option '--nope'
certificate --order rows => unknown order 'rows'; known are: time
certificate --function add => --function takes NAME=FUNCTION
certificate good.edn --function read= => --function takes NAME=FUNCTION
"""
CERTIFICATES = (
    ("[1]", "mine is no certificate, which is JSON"),
    ("{}", "mine is no certificate: neither of a model nor of a workload"),
    ('{"model": "nope"}', "mine"),
    ('{"workload": "nope"}', "mine is a certificate of 'nope'"),
    ("[" * 100_000, "mine is no certificate, which is JSON"),
    ('{"a":' * 100_000, "mine is no certificate, which is JSON"),
)
NEW = """
=> Missing argument 'SYSTEM'
rocketmq => there is a system rocketmq already (stormproof list systems); choose another name
My-Store => 'My-Store' cannot be the name of a system: it takes small letters and digits, and - between them
my_store => 'my_store' cannot be the name of a system
-- -store => '-store' cannot be the name of a system
2store => '2store' cannot be the name of a system
../store => '../store' cannot be the name of a system
<NUL> => no value holds a NUL character
<BYTE> => '\\udcff' cannot be the name of a system
<xxxx> => cannot be the name of a system
class => the package class would hide a module of Python's or of another package; choose another name
json => the package json would hide a module
harness => the package harness would hide a module
system-under-test => the package system_under_test would hide a module
store extra => Got unexpected extra argument (extra)
store --nope => No such option '--nope'
store --directory folder => folder is there already, and nothing is overwritten; name another --directory
store --directory text => text is there already
store --directory loop => loop is there already
store --directory text/store => text/store cannot be made: Not a directory
store --directory nowhere/store => nowhere/store cannot be made: No such file or directory
store --directory '' => what follows --directory is empty
folder --directory '' => what follows --directory is empty
"""
REST = """
completion => Missing argument
completion nope => unknown shell 'nope'; known are: bash, zsh, fish
completion bash extra => Got unexpected extra argument (extra)
completion --nope => No such option '--nope'
nope => unknown command 'nope'
ruun => unknown command 'ruun'; did you mean run
--nope => No such option '--nope'
'' => is empty (a variable that is not set?)
doctor extra => Got unexpected extra argument (extra)
doctor --nope => No such option '--nope'
cleanup extra => Got unexpected extra argument (extra)
cleanup --inventory nowhere => inventory nowhere cannot be read: No such file
cleanup --inventory text => text: not TOML
cleanup --nope => No such option '--nope'
"""

ROWS = (
    *typed("replay", REPLAY),
    *typed("bisect", BISECT),
    *typed("list", LIST),
    *typed("new", NEW),
    *typed("verify", VERIFY),
    *texts("verify mine good.edn", "mine", CERTIFICATES),
    *typed("", REST),
)
