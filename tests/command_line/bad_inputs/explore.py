"""`stormproof explore`."""

from __future__ import annotations

from tests.command_line.bad_inputs.rows import typed, values

TYPED = """
=> Missing argument 'SYSTEM'
kafka => unknown system 'kafka'; known are: 
rocketmq extra => Got unexpected extra argument (extra)
rocketmq --seeds 0..9 --for 10s => --seeds and --for both say how much is tried
rocketmq --compare random --random => --compare makes searches of its own
rocketmq --compare random --into folder => --compare makes searches of its own
rocketmq --compare guided => 'guided' is not 'random'
rocketmq --workload chat => unknown workload 'chat'
rocketmq --workload delay => rocketmq does not serve workload 'delay'
rocketmq --nemesis meteor => unknown nemesis 'meteor'
rocketmq --nemesis membership => no fault of membership can strike in a search of rocketmq
rocketmq --nemesis reset,upgrades => no fault of reset, upgrades can strike in a search of rocketmq
rocketmq --mutant nope => unknown mutant 'nope' of rocketmq
rocketmq --mutant '' => what follows --mutant is empty
rocketmq --set brokers=0 => setting brokers takes a whole number from 1 to 100
rocketmq --set nope=1 => unknown setting 'nope'
rocketmq --set brokers => a setting reads key=value
rocketmq --into text => Directory 'text' is a file
rocketmq --nope => No such option '--nope'
"""
VALUES = """
rocketmq --for: 0 -1 x 1d 10mm 1e3 => --for takes a time greater than 0 such as 90s, 10m or 2h, got
rocketmq --seeds: 5 9..3 a..b -1..5 1...5 0..99999999 => --seeds takes the first and the last of at most 10,000,000
rocketmq --seed: -1 9223372036854775808 => is not in the range
rocketmq --roots: 0 1001 => is not in the range
rocketmq --master: mars local[0] => --master takes local[2]
"""

ROWS = [*typed("explore", TYPED), *values("explore", VALUES)]
