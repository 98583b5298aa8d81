"""The file system of containers without a kernel: what names, copies and losses of power leave of files."""

from __future__ import annotations

import random
import stat
from dataclasses import dataclass, field

import pytest

from harness.environments.fuse.volume import Node, Volume
from harness.environments.impairment import MisdirectedWrites

FILE, DIRECTORY = stat.S_IFREG | 0o644, stat.S_IFDIR | 0o755
LOSSES = range(200)


def make(volume: Volume, directory: Node, name: str, mode: int = FILE) -> Node:
    return volume.make(directory, name.encode(), mode=mode, uid=0, gid=0)


def durable_file(volume: Volume, directory: Node, name: str) -> Node:
    node = make(volume, directory, name)
    volume.write(node, 0, f"content of {name}".encode(), is_durable=False)
    volume.fsync(node)
    return node


def contents(volume: Volume) -> dict[str, str]:
    return {path: bytes(node.data.content).decode() for path, node in volume.files() if node.data is not None}


def test_an_fsync_keeps_a_file_with_its_name_and_the_directories_above() -> None:
    for draw in LOSSES:
        volume = Volume(random.Random(0))
        inner = make(volume, make(volume, volume.root, "outer", DIRECTORY), "inner", DIRECTORY)
        durable_file(volume, inner, "f")
        volume.lose_power(random.Random(draw))
        assert contents(volume) == {"outer/inner/f": "content of f"}


def test_a_misdirected_write_that_is_durable_at_once_is_so_where_it_went() -> None:
    volume = Volume(random.Random(1))
    node = make(volume, volume.root, "log")
    volume.troubles.add(MisdirectedWrites(one_in=1, draw=1), 0)
    for place, text in enumerate(("one", "two")):
        volume.write(node, 3 * place, text.encode(), is_durable=True)
    volume.lose_power(random.Random(1))
    assert contents(volume) == {"log": "two\0\0\0"}
    assert volume.used_bytes == 6


def test_what_was_not_fsynced_is_lost_in_some_losses_and_kept_in_others() -> None:
    left: set[str] = set()
    for draw in LOSSES:
        volume = Volume(random.Random(0))
        node = durable_file(volume, volume.root, "f")
        volume.write(node, node.size, b"xy", is_durable=False)
        lost, _ = volume.lose_power(random.Random(draw))
        left.add(kept := contents(volume)["f"].removeprefix("content of f"))
        assert lost == 2 - len(kept.strip("\0"))
    assert {"", "xy"} < left, "it is never torn"


def test_a_file_that_moved_from_a_directory_which_went_is_where_it_was_or_where_it_is() -> None:
    for draw in LOSSES:
        volume = Volume(random.Random(0))
        data = make(volume, volume.root, "data", DIRECTORY)
        coming = make(volume, volume.root, "coming", DIRECTORY)
        durable_file(volume, coming, "f")
        volume.rename(coming, b"f", data, b"f")
        volume.remove(volume.root, b"coming", is_directory=True)
        volume.fsync_directory(volume.root)
        volume.lose_power(random.Random(draw))
        assert contents(volume) == {"data/f": "content of f"}, "the directory cannot go before the file"


def test_a_file_that_moved_to_a_new_directory_is_where_it_was_or_where_it_is() -> None:
    places: set[str] = set()
    for draw in LOSSES:
        volume = Volume(random.Random(0))
        durable_file(volume, volume.root, "f")
        volume.rename(volume.root, b"f", make(volume, volume.root, "new", DIRECTORY), b"f")
        volume.lose_power(random.Random(draw))
        assert len(contents(volume)) == 1, "the file cannot move to where no directory is"
        places |= contents(volume).keys()
    assert places == {"f", "new/f"}


def test_a_copy_that_is_put_back_has_all_names_of_a_file() -> None:
    volume = Volume(random.Random(0))
    node = durable_file(volume, volume.root, "a")
    volume.link(node, make(volume, volume.root, "folder", DIRECTORY), b"b")
    copy = volume.image()
    volume.remove(volume.root, b"a", is_directory=False)
    volume.put_back(copy)
    volume.lose_power(random.Random(1))
    one, other = volume.lookup(volume.root, b"a"), volume.lookup(volume.lookup(volume.root, b"folder"), b"b")
    assert one is other
    assert (one.links, volume.used_bytes) == (2, one.size)


@dataclass
class Moves:
    """Random changes of names, none of which takes a file's last one away."""

    volume: Volume
    draw: random.Random
    directories: list[tuple[Node, str]] = field(default_factory=list)
    files: dict[str, list[tuple[Node, str]]] = field(default_factory=dict)
    count: int = 0
    """How many names there were until now, in earlier rounds as well."""

    def fresh(self) -> str:
        self.count += 1
        return str(self.count)

    def anywhere(self) -> Node:
        return self.draw.choice([self.volume.root, *(self.volume.lookup(*_key(each)) for each in self.directories)])

    def step(self) -> None:
        name = self.fresh()
        kind = self.draw.choice(("mkdir", "file", "move", "link", "unlink", "move directory", "rmdir", "fsync"))
        directory = self.anywhere()
        if kind == "mkdir":
            make(self.volume, directory, name, DIRECTORY)
            self.directories.append((directory, name))
        elif kind == "file":
            durable_file(self.volume, directory, name)
            self.files[f"content of {name}"] = [(directory, name)]
        elif kind == "fsync":
            self.volume.fsync_directory(directory)
        elif kind in ("move", "link", "unlink") and self.files:
            self._change_file(kind, self.draw.choice([*self.files.values()]), directory, name)
        elif self.directories:
            self._change_directory(kind, self.draw.choice(self.directories), directory, name)

    def _change_file(self, kind: str, names: list[tuple[Node, str]], directory: Node, name: str) -> None:
        one = self.draw.choice(names)
        if kind == "link":
            self.volume.link(self.volume.lookup(*_key(one)), directory, name.encode())
            names.append((directory, name))
        elif kind == "move":
            self.volume.rename(*_key(one), directory, name.encode())
            names[names.index(one)] = (directory, name)
        elif len(names) > 1:
            self.volume.remove(*_key(one), is_directory=False)
            names.remove(one)

    def _change_directory(self, kind: str, one: tuple[Node, str], directory: Node, name: str) -> None:
        node = self.volume.lookup(*_key(one))
        if kind == "rmdir":
            if not node.entries:
                self.volume.remove(*_key(one), is_directory=True)
                self.directories.remove(one)
        elif not _is_below(directory, node):
            self.volume.rename(*_key(one), directory, name.encode())
            self.directories[self.directories.index(one)] = (directory, name)


def _key(place: tuple[Node, str]) -> tuple[Node, bytes]:
    return place[0], place[1].encode()


def _is_below(directory: Node, node: Node) -> bool:
    while directory is not node and directory.parent not in (directory, None):
        assert directory.parent is not None
        directory = directory.parent
    return directory is node


@pytest.mark.parametrize("seed", range(100))
def test_no_loss_of_power_takes_a_file_that_was_fsynced_and_never_lost_all_its_names(seed: int) -> None:
    draw = random.Random(seed)
    volume = Volume(random.Random(0))
    for round_number in range(3):
        moves = Moves(volume, draw, count=1000 * round_number)
        for _ in range(draw.randrange(5, 30)):
            moves.step()
        volume.lose_power(draw)
        assert moves.files.keys() <= set(contents(volume).values())
        for _, node in [*volume.files()]:
            assert volume.nodes[node.number] is node
