"""`rocketmq-admin`: what administrators ask of a running system, with the names and options of RocketMQ's `mqadmin`.

`report` says how answers are shown, `session` how they are got and what an exit code means; the other modules hold the
commands.
"""
