from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from system_under_test.cmq.bitmap import Bitmap
from system_under_test.cmq.entry import Ack, Command, Create, Produce, encode
from system_under_test.cmq.record import decode_record, encode_record, record_ends
from system_under_test.cmq.state_machine import (
    Acknowledged,
    Applied,
    Created,
    Produced,
    QueueGroupState,
    Refusal,
    Write,
    file_name,
)

FILE_BYTES = 100
"""Five messages of four bytes."""


def state_of(*commands: Command, max_queues: int = 3) -> QueueGroupState:
    state = QueueGroupState(FILE_BYTES, max_queues)
    for command in commands:
        state.apply(encode(command))
    return state


def apply(state: QueueGroupState, command: Command) -> Applied:
    return state.apply(encode(command))


def bodies(count: int, first: int = 0) -> tuple[bytes, ...]:
    return tuple(b"%04d" % number for number in range(first, first + count))


def test_a_queue_is_created_once() -> None:
    state = state_of()
    assert apply(state, Create("q")) == Applied(Created(is_new=True))
    assert apply(state, Create("q")) == Applied(Created(is_new=False))
    assert list(state.queues) == ["q"]


def test_a_group_has_no_more_queues_than_it_may_have() -> None:
    state = state_of(Create("a"), Create("b"), max_queues=2)
    assert apply(state, Create("c")).result is Refusal.TOO_MANY_QUEUES
    assert apply(state, Create("b")).result == Created(is_new=False)
    assert list(state.queues) == ["a", "b"]


def test_a_queue_that_there_is_not_is_refused() -> None:
    state = state_of(Create("a"))
    assert apply(state, Produce("q", (b"x",))) == Applied(Refusal.UNKNOWN_QUEUE)
    assert apply(state, Ack("q", (0,))) == Applied(Refusal.UNKNOWN_QUEUE)


def test_messages_are_numbered_from_0_in_the_order_of_the_log() -> None:
    state = state_of(Create("q"), Create("p"))
    assert apply(state, Produce("q", (b"a",))).result == Produced(0, 1)
    assert apply(state, Produce("p", (b"a",))).result == Produced(0, 1)
    assert apply(state, Produce("q", (b"b", b"c"))).result == Produced(1, 2)


def test_the_records_of_a_command_are_one_write_a_file() -> None:
    state = state_of(Create("q"))
    first = apply(state, Produce("q", bodies(3))).writes
    assert first == (Write("q", 0, b"".join(encode_record(n, b"%04d" % n) for n in range(3))),)
    second = apply(state, Produce("q", bodies(9, 3))).writes
    assert [
        (write.file, number, len(record_ends(write.data, number)))
        for write, number in zip(second, (3, 5, 10), strict=True)
    ] == [
        (0, 3, 2),
        (5, 5, 5),
        (10, 10, 2),
    ]
    assert [(file.first, file.size) for file in state.queues["q"].files] == [(0, 100), (5, 100), (10, 40)]


def test_a_record_that_just_fits_stands_in_the_file_and_one_byte_more_begins_another() -> None:
    fitting = state_of(Create("q"), Produce("q", (bytes(34), bytes(34))))
    assert [file.first for file in fitting.queues["q"].files] == [0]
    longer = state_of(Create("q"), Produce("q", (bytes(34), bytes(35))))
    assert [file.first for file in longer.queues["q"].files] == [0, 1]


def test_an_acknowledgement_says_of_each_number_whether_it_is_the_first() -> None:
    state = state_of(Create("q"), Produce("q", bodies(3)))
    assert apply(state, Ack("q", (1,))).result == Acknowledged((True,))
    assert apply(state, Ack("q", (0, 1, 2, 2))).result == Acknowledged((True, False, True, False))


def test_a_number_that_was_never_produced_is_refused_with_all_that_come_with_it() -> None:
    state = state_of(Create("q"), Produce("q", bodies(3)))
    assert apply(state, Ack("q", (0, 3))).result is Refusal.NEVER_PRODUCED
    assert not state.queues["q"].bitmap.is_set(0)


def test_the_oldest_file_goes_with_its_last_message_that_is_acknowledged() -> None:
    state = state_of(Create("q"), Produce("q", bodies(12)), Ack("q", (0, 1, 2, 3, 6)))
    queue = state.queues["q"]
    assert [file.first for file in queue.files] == [0, 5, 10]
    apply(state, Ack("q", (4,)))
    assert [file.first for file in queue.files] == [5, 10]
    assert queue.bitmap.base == 5
    assert queue.unacknowledged == 6
    assert [number for number in range(12) if not queue.bitmap.is_set(number)] == [5, 7, 8, 9, 10, 11]
    assert apply(state, Ack("q", (3,))).result == Acknowledged((False,))


def test_files_behind_it_that_are_acknowledged_already_go_with_the_oldest() -> None:
    state = state_of(Create("q"), Produce("q", bodies(12)), Ack("q", tuple(range(1, 11))))
    apply(state, Ack("q", (0,)))
    assert [file.first for file in state.queues["q"].files] == [10]


def test_the_newest_file_stays_until_another_one_follows() -> None:
    state = state_of(Create("q"), Produce("q", bodies(5)), Ack("q", tuple(range(5))))
    queue = state.queues["q"]
    assert [file.first for file in queue.files] == [0]
    apply(state, Produce("q", bodies(1)))
    assert [file.first for file in queue.files] == [5]
    assert queue.bitmap.base == queue.bitmap.first_unset == 5


def test_bytes_that_are_no_command_change_nothing() -> None:
    state = state_of(Create("q"), Produce("q", bodies(1)))
    before = state.digest()
    with pytest.raises(ValueError, match="no command"):
        state.apply(b"\7\0")
    assert state.digest() == before


@pytest.mark.parametrize(
    "command", [Create("p"), Produce("q", (b"x",)), Ack("q", (2,))], ids=lambda command: type(command).__name__
)
def test_whatever_changes_the_state_changes_its_digest(command: Command) -> None:
    state = state_of(Create("q"), Produce("q", bodies(3)))
    before = state.digest()
    apply(state, command)
    assert state.digest() != before


def test_a_body_that_is_another_one_changes_the_digest() -> None:
    assert (
        state_of(Create("q"), Produce("q", (b"a",))).digest() != state_of(Create("q"), Produce("q", (b"b",))).digest()
    )


def test_a_refusal_and_an_acknowledgement_that_comes_again_change_nothing() -> None:
    state = state_of(Create("q"), Produce("q", bodies(3)), Ack("q", (1,)))
    before = state.digest()
    for command in (Create("q"), Ack("q", (1,)), Ack("q", (2, 3)), Produce("p", (b"x",))):
        apply(state, command)
    assert state.digest() == before


def test_a_state_that_was_copied_goes_on_as_the_one_that_it_was_copied_from() -> None:
    commands: list[Command] = [Create("q"), Produce("q", bodies(12)), Ack("q", (0, 1, 2, 3, 7))]
    following: list[Command] = [Ack("q", (4,)), Create("p"), Produce("q", bodies(4)), Produce("p", bodies(1))]
    state = state_of(*commands)
    again = QueueGroupState(FILE_BYTES, 3, state.copy())
    assert again.digest() == state.digest()
    for command in following:
        assert apply(again, command) == apply(state, command)
        assert again.digest() == state.digest()


def test_what_comes_after_it_does_not_change_a_copy() -> None:
    state = state_of(Create("q"), Produce("q", bodies(12)), Ack("q", (0, 1)))
    copied, before = state.copy(), state.digest()
    for command in (Ack("q", (2, 3, 4, 11)), Produce("q", bodies(3)), Create("p")):
        apply(state, command)
    assert QueueGroupState(FILE_BYTES, 3, copied).digest() == before


def test_a_copy_that_shares_the_bitmap_is_newer_than_its_index() -> None:
    class Torn(QueueGroupState):
        def copy_bits(self, bitmap: Bitmap) -> bytes | bytearray:
            return bitmap.bits

    state = Torn(FILE_BYTES, 3)
    for command in (Create("q"), Produce("q", bodies(12)), Ack("q", (0, 1, 2, 3))):
        apply(state, command)
    copied = state.copy()
    apply(state, Ack("q", (4, 6)))
    torn = QueueGroupState(FILE_BYTES, 3, copied).queues["q"].bitmap
    assert [number for number in range(12) if torn.is_set(number)] == [1]


def lines_run(state: QueueGroupState) -> int:
    """While the state is copied."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        state.copy()
    finally:
        sys.settrace(before)
    return count


def test_copying_takes_as_many_steps_however_many_messages_there_are() -> None:
    def full(messages: int) -> QueueGroupState:
        state = QueueGroupState(1 << 26, 3)
        for command in (
            Create("q"),
            *(Produce("q", (b"",) * 16) for _ in range(messages // 16)),
            Ack("q", (messages - 1,)),
        ):
            apply(state, command)
        assert len(state.copy().queues[0].bits) == messages // 8
        return state

    assert 0 < lines_run(full(16)) == lines_run(full(160_000)) < 50


def test_names_of_files_sort_as_their_messages() -> None:
    assert file_name("q", 5) == "q.00000000000000000005"
    assert file_name("q", 9) < file_name("q", 10)


def test_a_record_is_that_of_one_number() -> None:
    record = encode_record(3, b"body")
    assert decode_record(record, 3) == b"body"
