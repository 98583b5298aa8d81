"""A file of the index of keys, byte for byte RocketMQ's, and what is found in many of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.storage.index_file import IndexFile, key_hash
from system_under_test.storage.key_index import KeyIndex
from system_under_test.storage.message import MessageHeader
from system_under_test.storage.tags_code import tags_code
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, sync_config

GOLDEN = bytes.fromhex(
    "0000018bcfe56800"  # the first message was stored at 1,700,000,000,000 ms
    "0000018bcfe56f6c"  # the last one 1,900 ms later
    "0000000000001000"  # the first one stands at 4096
    "0000000000001100"  # the last one at 4352
    "00000002"  # two slots are in use
    "00000004"  # three entries, plus one
    "00000003"  # slot 0: entry 3 is its newest
    "00000002"  # slot 1: entry 2
    "00000000 0000000000000000 00000000 00000000"  # entry 0 is none
    "00000004 0000000000001000 00000000 00000000"  # entry 1: hash 4, at 4096, after 0 s, first of slot 0
    "00000007 0000000000001000 00000000 00000000"  # entry 2: hash 7, of the same message, first of slot 1
    "00000006 0000000000001100 00000001 00000001"  # entry 3: hash 6, at 4352, after 1 s; before it in slot 0: entry 1
)


def test_a_file_is_laid_out_as_rocketmq_lays_it_out() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        disk = Machine(loop, 1, sync_config()).host().disk
        index = IndexFile(4096, 1_700_000_000_000, 2, 100)
        index.add(4, 4096, 1_700_000_000_000)
        index.add(7, 4096, 1_700_000_000_000)
        file = disk.open("index/1")
        index.write(file, 0)
        index.add(6, 4352, 1_700_000_001_900)
        index.write(file, 2)
        assert file.read_at(0, 1000) == GOLDEN
        again = IndexFile(4096, 0, 2, 100)
        assert again.read(file, 3)
        assert [list(again.find(code)) for code in (4, 6, 7, 9)] == [[4096], [4352], [4096], []]
        assert not IndexFile(4096, 0, 2, 100).read(file, 4), "there are three"
        assert not IndexFile(4095, 0, 2, 100).read(file, 3), "another file's"

    simulate(body)


def test_a_hash_is_javas_without_its_sign() -> None:
    assert key_hash("t", "k") == 112668  # 116 * 31² + 35 * 31 + 107
    assert key_hash("t", "zzzzzz") == abs(tags_code("t#zzzzzz"))
    # Java's least number has no positive counterpart, and counts as 0.
    assert tags_code("t#achssxlk") == -(2**31) and key_hash("t", "achssxlk") == 0


MESSAGES = st.lists(st.lists(st.sampled_from("abcd"), max_size=3, unique=True), max_size=30)


@settings(max_examples=60, deadline=None)
@given(messages=MESSAGES, cut=st.integers(0, 31), dropped=st.integers(0, 31), restarts=st.booleans())
def test_what_is_found_is_what_was_added_and_not_cut_or_dropped(
    messages: list[list[str]], cut: int, dropped: int, restarts: bool
) -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        disk = Machine(loop, 1, sync_config()).host().disk
        index = KeyIndex(disk, "index", 3, 6)
        for _ in range(2):
            # The second time they are there already, but for those that were cut.
            for number, keys in enumerate(messages):
                header = MessageHeader(number * 100, 100, "t", 0, number, 0, 0, number * 700, tuple(keys))
                index.add(header)
            if restarts:
                durable = await index.persist()
                index = KeyIndex(disk, "index", 3, 6)
                assert index.load(durable)
            kept = len(messages)
            for key in "abcd":
                found = [number for number in range(kept) if key in messages[number]]
                assert [offset // 100 for offset in index.find("t", key)] == found[::-1]
            index.truncate(cut * 100)
            for key in "abcd":
                found = [number for number in range(min(kept, cut)) if key in messages[number]]
                assert [offset // 100 for offset in index.find("t", key)] == found[::-1]
        index.delete_prefix(dropped * 100)
        for key in "abcd":
            found = [number for number in range(min(len(messages), cut)) if key in messages[number]]
            held = [offset // 100 for offset in index.find("t", key)]
            assert set(held) >= {number for number in found if number >= dropped}
            assert set(held) <= set(found)

    simulate(body)
