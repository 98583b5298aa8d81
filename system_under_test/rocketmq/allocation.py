"""How members of a group divide the queues of a topic among themselves: RocketMQ's strategies, as pure functions.

Each member asks for the members, sorts them and the queues, and takes its part, or a broker does so for it; as long as
all see the same members and queues, each queue is one member's. While they do not, two may take one queue, or nobody.

Each strategy is called with the own client id, all queues and all client ids, both sorted, and gives the own queues.
One that is not among the members has none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from hashlib import md5

from system_under_test.rocketmq.consumer_protocol import MessageQueue

Queues = tuple[MessageQueue, ...]
Allocation = Callable[[str, Sequence[MessageQueue], Sequence[str]], Queues]

VIRTUAL_NODES = 10


def averagely(own: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> Queues:
    """Neighbouring queues; the first members have one more where they do not divide evenly. RocketMQ's default."""
    if own not in members:
        return ()
    place = members.index(own)
    share, rest = divmod(len(queues), len(members))
    first = place * share + min(place, rest)
    return tuple(queues[first : first + share + (place < rest)])


def averagely_by_circle(own: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> Queues:
    """Dealt out one by one."""
    return tuple(queues[members.index(own) :: len(members)]) if own in members else ()


BY_NAME: Mapping[str, Allocation] = {"AVG": averagely, "AVG_BY_CIRCLE": averagely_by_circle}
"""Those that RocketMQ's brokers know, under the names by which clients ask for them."""


def by_config(assigned: Sequence[MessageQueue]) -> Allocation:
    """Always these, whatever other members there are."""
    return lambda own, queues, members: tuple(assigned)


def by_machine_room(rooms: Collection[str]) -> Allocation:
    """Only queues of brokers that are called `room@name`, with a room among these; evenly, what is left over to the
    first members."""

    def allocate(own: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> Queues:
        if own not in members:
            return ()
        wanted = [queue for queue in queues if _is_in(queue.broker_name, rooms)]
        place = members.index(own)
        share, rest = divmod(len(wanted), len(members))
        left_over = [wanted[place + share * len(members)]] if place < rest else []
        return (*wanted[share * place : share * (place + 1)], *left_over)

    return allocate


def _is_in(broker_name: str, rooms: Collection[str]) -> bool:
    parts = broker_name.split("@")
    return len(parts) == 2 and parts[0] in rooms


def nearby(
    within: Allocation, room_of_queue: Callable[[MessageQueue], str], room_of_member: Callable[[str], str]
) -> Allocation:
    """The queues of each machine room to the members there, divided as `within` does; those of rooms without any
    member to all."""

    def allocate(own: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> Queues:
        if own not in members:
            return ()
        queues_in: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            queues_in.setdefault(room_of_queue(queue), []).append(queue)
        members_in: dict[str, list[str]] = {}
        for member in members:
            members_in.setdefault(room_of_member(member), []).append(member)
        own_room = room_of_member(own)
        taken = within(own, queues_in.pop(own_room, []), members_in[own_room])
        for room in sorted(queues_in):
            if room not in members_in:
                taken += within(own, queues_in[room], members)
        return taken

    return allocate


def consistent_hash(virtual_nodes: int = VIRTUAL_NODES) -> Allocation:
    """Queues and members stand on a ring, each member at so many places: a queue is the next member's. Who comes or
    goes changes little for the others."""

    def allocate(own: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> Queues:
        if own not in members:
            return ()
        places, names = _ring(tuple(members), virtual_nodes)
        return tuple(queue for queue in queues if names[_next(places, _place_of(queue))] == own)

    return allocate


@lru_cache(maxsize=16)
def _ring(members: tuple[str, ...], virtual_nodes: int) -> tuple[Sequence[int], Sequence[str]]:
    """Ascending places, and who stands there; of two at one place the one that came later."""
    ring: Mapping[int, str] = {
        _hash(f"{member}-{number}"): member for member in members for number in range(virtual_nodes)
    }
    places = sorted(ring)
    return places, [ring[place] for place in places]


def _next(places: Sequence[int], place: int) -> int:
    """Position of the first of the places from this one on, round the ring."""
    return bisect_left(places, place) % len(places)


def _place_of(queue: MessageQueue) -> int:
    return _hash(f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]")


def _hash(text: str) -> int:
    """The first four bytes of MD5, which is no secret here."""
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:4], "big")
