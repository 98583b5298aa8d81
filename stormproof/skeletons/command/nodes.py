"""What runs: a command from Debian packages, in a container of its own. Put your own here.

Debian's redis-server stands in for it: one node that answers once a write is on its disk.
"""

from __future__ import annotations

from stormproof import Command, DebianPackages, Listening, NodeSpec

NODE, PORT = "n1", 6379
IMAGE = DebianPackages(("redis-server",))
"""Could also be `Dockerfile(folder)`, or `NamedImage("an-image:of-yours")`."""
CONFIGURATION = """protected-mode no
dir ${home}
save ""
"""
"""`${home}` is a directory of the node's own, `${n1.address}` would be the address of node n1."""
DURABLE, FORGETFUL = "appendonly yes\nappendfsync always\n", "appendonly no\n"


def node(*, forgets: bool) -> NodeSpec:
    command = Command(
        argv=("redis-server", "/etc/skeleton.conf"),
        image=IMAGE,
        files={"/etc/skeleton.conf": CONFIGURATION + (FORGETFUL if forgets else DURABLE)},
        ready=Listening(PORT),
    )
    return NodeSpec(name=NODE, groups=("stores",), program=command, ports=(PORT,))
