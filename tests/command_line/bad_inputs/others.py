"""All other commands, and what is none."""

from __future__ import annotations

from tests.command_line.bad_inputs.rows import typed

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
folder --engine flink => unknown engine 'flink'
"""
LIST = """
nope => unknown kind of list 'nope'; known are: systems
run => unknown kind of list 'run'; did you mean runs
runs extra => Got unexpected extra argument (extra)
--nope => No such option '--nope'
runs --runs text => Directory 'text' is a file
runs --runs <NUL> => no value holds a NUL character
runs --runs '' => what follows --runs is empty
"""
REST = """
nope => unknown command 'nope'
ruun => unknown command 'ruun'; did you mean run
--nope => No such option '--nope'
'' => is empty (a variable that is not set?)
doctor extra => Got unexpected extra argument (extra)
doctor --nope => No such option '--nope'
cleanup extra => Got unexpected extra argument (extra)
cleanup --nope => No such option '--nope'
"""

ROWS = (*typed("replay", REPLAY), *typed("list", LIST), *typed("", REST))
