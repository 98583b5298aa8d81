"""The text of every shape is read back as an equal value, and names are a system's own."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.environments.environment import Link
from harness.environments.impairment import (
    DiskErrors,
    FailingFsync,
    LossyLink,
    MisdirectedWrites,
    NarrowLink,
    PausedProcesses,
    SlowedProcesses,
    SlowLink,
    Strobe,
)
from harness.errors import UsageError
from harness.program import PythonProgram
from harness.system import Declaration, NodeSpec
from nemesis import shape as shapes
from nemesis.administration import Administer
from nemesis.cluster import Cluster
from nemesis.fault import ImpairedLinks, ImpairedNodes
from nemesis.grammar import FORMS, Mistake, next_words, parse_shape, parse_shapes
from nemesis.impair import (
    LINK_VERBS,
    NODE_VERBS,
    PROCESS_VERBS,
    Corrupt,
    Impairing,
    ImpairLinks,
    ImpairLinksOf,
    ImpairNodes,
    StrikeProcesses,
    amounts_of,
    with_drawn_amounts,
)
from nemesis.links import Between, OneDirection
from nemesis.membership import shrink, wipe
from nemesis.package import PACKAGES
from nemesis.parameters import Amount, Value
from nemesis.shape import (
    Apart,
    Bridge,
    ClockShape,
    CutLink,
    CutOneDirection,
    Isolate,
    IsolateWithCompany,
    MajoritiesRing,
    OneWay,
    RandomHalves,
    Shape,
    Together,
)
from nemesis.target import ALL, Group, MachineOf, Majority, Minority, Nodes, One, Role, Target
from nemesis.vocabulary import EVERYBODY, RESERVED, Vocabulary, vocabulary_of
from tests.unit.nemesis.systems import WORDS
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.settings import RocketmqSettings

PROCESSES = ("etcd", "redis-server", "*org.apache.zookeeper*", "postgres:*walwriter")
NAMES = st.text("abcdeklnoprst0123456789-_.@=é", min_size=1, max_size=9).filter(lambda name: name not in RESERVED)


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    names = draw(st.lists(NAMES, min_size=4, max_size=9, unique=True))
    role, group, *nodes = names
    groups = {group: tuple(nodes[:2]), EVERYBODY: tuple(sorted(nodes))}
    return Vocabulary(groups=groups, roles=(role,), acts=("more-queues", "remade-groups"))


def targets(words: Vocabulary) -> st.SearchStrategy[Target]:
    groups = st.sampled_from(list(words.groups))
    several = st.lists(st.sampled_from(words.nodes), min_size=1, unique=True)
    one = st.one_of(
        st.sampled_from(words.roles).map(Role),
        st.sampled_from(words.nodes).map(lambda node: Nodes((node,))),
        groups.map(One),
    )
    return st.one_of(
        st.sampled_from(words.roles).map(Role),
        *(groups.map(of) for of in (Group, One, Minority, Majority)),
        several.map(lambda names: Nodes(tuple(names))),
        one.map(MachineOf),
    )


def _sized(impairing: st.SearchStrategy[Impairing]) -> st.SearchStrategy[Shape]:
    """With amounts, without them, and with such as a search draws."""

    def with_amounts(shape: Impairing) -> st.SearchStrategy[Shape]:
        values = st.tuples(*map(_values, amounts_of(shape)))
        seeds = st.integers(0, 1000)
        return st.one_of(
            st.just(shape),
            values.map(lambda amounts: replace(shape, amounts=amounts or None)),
            seeds.map(lambda seed: with_drawn_amounts(shape, random.Random(seed))),
        )

    return impairing.flatmap(with_amounts)


def _values(amount: Amount) -> st.SearchStrategy[Value]:
    least, most = amount.bounds.least, amount.bounds.most
    numbers: st.SearchStrategy[Value] = (
        st.integers(int(least), int(most)) if amount.is_whole else st.floats(least, most).map(lambda x: round(x, 3) + 0)
    )
    return st.one_of(numbers, st.none()) if amount.may_be_all else numbers


def single_shapes(words: Vocabulary) -> st.SearchStrategy[Shape]:
    target, groups = targets(words), st.sampled_from(list(words.groups))
    part = target.filter(lambda target: target != ALL)
    verbs = (shapes.kill, shapes.restart, shapes.pause, shapes.power_off, ClockShape)
    links = st.one_of(*(st.builds(of, target, target) for of in (Between, OneDirection)))
    return st.one_of(
        *(st.builds(of, part) for of in (Isolate, OneWay)),
        st.builds(IsolateWithCompany, part, groups),
        *(st.builds(of, target, target) for of in (Apart, CutLink, CutOneDirection)),
        _sized(st.builds(ImpairNodes, st.sampled_from(list(NODE_VERBS)), target)),
        _sized(st.builds(ImpairLinksOf, st.sampled_from(list(LINK_VERBS)), target)),
        _sized(st.builds(ImpairLinks, st.sampled_from(list(LINK_VERBS)), links)),
        *(st.builds(of, groups) for of in (Bridge, MajoritiesRing)),
        st.just(RandomHalves()),
        st.builds(Corrupt, target, st.sampled_from(("**", "store/**/*.blk", "a?.wal")), st.integers(1, 999_999_999)),
        _sized(st.builds(StrikeProcesses, st.sampled_from(list(PROCESS_VERBS)), st.sampled_from(PROCESSES), target)),
        *(target.map(of) for of in verbs),
    )


def leaving(words: Vocabulary) -> st.SearchStrategy[Shape]:
    """Shapes that stand alone."""
    one_node = st.one_of(
        st.sampled_from(words.roles).map(Role),
        st.sampled_from(list(words.groups)).map(One),
        st.sampled_from(words.nodes).map(lambda name: Nodes((name,))),
    )
    return st.one_of(targets(words).map(shrink), one_node.map(wipe), st.sampled_from(words.acts).map(Administer))


@settings(suppress_health_check=[HealthCheck.too_slow])  # each vocabulary needs strategies of its own
@given(st.data())
def test_the_text_of_every_shape_is_read_as_an_equal_shape(data: st.DataObject) -> None:
    words = data.draw(vocabularies())
    together = st.lists(single_shapes(words), min_size=1, max_size=3)
    several = data.draw(st.one_of(together, leaving(words).map(lambda shape: [shape])))
    shape = several[0] if len(several) == 1 else Together(tuple(several))
    read = parse_shapes(tuple(str(shape).split()), words)
    assert read == shape
    assert str(read) == str(shape)
    assert read.kind == shape.kind


def test_every_form_is_drawn_by_the_test_above() -> None:
    made = {"PART": Role("primary"), "TARGET": ALL, "GROUP": "brokers", "NODE": One("brokers")}
    made |= {"ACT": WORDS.acts[0], "PATTERN": "'store/*'", "COUNT": "3", "UNIT": "kB", "PROCESS": "'etcd'"}
    for form in FORMS:
        shape = form.make(*(made[word] for word in form.text.split() if word in made))
        assert parse_shape(tuple(str(shape).split()), WORDS) == shape


@given(st.data())
def test_whatever_words_come_they_are_a_shape_or_one_mistake(data: st.DataObject) -> None:
    known = sorted(
        {word for form in FORMS for word in form.text.split()} | set(WORDS.names) | {"of", "one", "x", "b1+"}
    )
    words = tuple(data.draw(st.lists(st.sampled_from(known), max_size=7)))
    try:
        text = str(parse_shapes(words, WORDS))
    except Mistake as mistake:
        text = " ".join(words) if mistake.what else "nothing is said"
    assert text == " ".join(words)


@given(st.one_of(single_shapes(WORDS), leaving(WORDS)))
def test_each_word_of_a_shape_is_offered_after_those_before_it(shape: Shape) -> None:
    words = str(shape).split()
    for place, word in enumerate(words):
        if "+" not in word and "=" not in word and not word.startswith("'") and not word.isdigit():
            assert word in next_words(tuple(words[:place]), WORDS)
    assert "and" in next_words(tuple(words), WORDS)


def test_bits_are_flipped_in_files_that_a_pattern_names() -> None:
    assert shape_of("corrupt b2 'store/**/*.blk' one bit in 1 MB") == Corrupt(Nodes(("b2",)), "store/**/*.blk", 10**6)
    assert str(shape_of("corrupt one of brokers store/*.blk one bit in 2000 B")) == (
        "corrupt one of brokers 'store/*.blk' one bit in 2 kB"
    )
    for text, words in {
        "corrupt b1 'a' one bit in 1 TB": "'TB' is no unit that can follow .*; there can be: B, kB, MB, GB",
        "corrupt b1 'a' one bit in none MB": "no whole number that can follow",
        "corrupt b1 one bit in 1 MB": "no pattern of files that can follow",
    }.items():
        with pytest.raises(Mistake) as mistake:
            shape_of(text)
        assert re.search(words, mistake.value.what), mistake.value.what


def test_processes_are_struck_by_a_name_that_may_stand_in_quotes() -> None:
    expected = StrikeProcesses("kill", "etcd", Nodes(("b2",)))
    assert [shape_of(f"kill process {name} of b2") for name in ("etcd", "'etcd'")] == [expected] * 2
    assert str(expected) == "kill process 'etcd' of b2"
    cluster = Cluster(groups=WORDS.groups, unavailable=frozenset(("b1",)))
    struck = shape_of("pause process 'redis-server' of b1+b2").strike(cluster, random.Random(1))
    assert struck == ImpairedNodes(("b2",), PausedProcesses(name="redis-server"))
    slow = shape_of("slow down process etcd of b2 stretch=8").strike(cluster, random.Random(1))
    assert slow == ImpairedNodes(("b2",), SlowedProcesses(name="etcd", stretch=8.0))
    for text, words in {
        "kill process of b1": "'of' is no name of processes that can follow 'kill process'",
        "kill process etcd b1": "'b1' is no word that can follow 'kill process etcd'; there can be: of",
        "kill process 'a'": "the word after .* is missing, e.g. of",
        "kill process 'a of b1": "no name of processes",
        "kill process 'a[b]' of b1": "no name of processes",
    }.items():
        with pytest.raises(Mistake) as mistake:
            shape_of(text)
        assert re.search(words, mistake.value.what), mistake.value.what


def shape_of(text: str) -> Shape:
    return parse_shape(tuple(text.split()), WORDS)


def test_a_text_says_how_badly_an_impairment_strikes_and_what_its_environment_draws_from_stays_drawn() -> None:
    cluster = Cluster(groups=WORDS.groups)
    for text, impairment in {
        "slow link b1 to c1 one way delay_ms=120.5 jitter_ms=0": SlowLink(delay_ms=120.5, jitter_ms=0),
        "lossy links of b1 share=0.3": LossyLink(share=0.3),
        "narrow links of b1 bytes_per_s=5000": NarrowLink(bytes_per_s=5000),
        "fail fsyncs of b1+b2 most=all": FailingFsync(most=None),
        "fail fsyncs of one of brokers most=2": FailingFsync(most=2),
        "strobe clocks of b1 offset_ms=-300 period_ms=20": Strobe(offset_ms=-300, period_ms=20),
    }.items():
        struck = [shape_of(text).strike(cluster, random.Random(seed)) for seed in (1, 2)]
        assert [fault.impairment for fault in struck if fault] == [impairment] * 2  # type: ignore[attr-defined]
    rot = [shape_of("rot disks of b1 bits=3").strike(cluster, random.Random(seed)) for seed in (1, 2)]
    assert {fault.impairment.bits for fault in rot if fault} == {3}  # type: ignore[attr-defined]
    assert len({fault.impairment.draw for fault in rot if fault}) == 2  # type: ignore[attr-defined]
    misdirected = shape_of("misdirect writes of one of brokers one_in=20").strike(cluster, random.Random(1))
    assert isinstance(misdirected, ImpairedNodes) and isinstance(misdirected.impairment, MisdirectedWrites)
    assert (misdirected.impairment.one_in, misdirected.kind) == (20, "misdirected-writes")


def test_a_text_without_amounts_draws_what_it_always_drew() -> None:
    cluster, link = Cluster(groups=WORDS.groups), Link("b1", "c1")
    slow = shape_of("slow link b1 to c1 one way").strike(cluster, random.Random(1))
    assert slow == ImpairedLinks((link,), SlowLink(delay_ms=11.8, jitter_ms=10.0))
    errors = shape_of("fail disks of b1").strike(cluster, random.Random(1))
    assert errors == ImpairedNodes(("b1",), DiskErrors(reads=0.051, writes=0.0))


@pytest.mark.parametrize(
    ("text", "says", "corrected"),
    [
        (
            "lossy links of b1 share=1.5",
            "share takes a number from 0 to 0.99, got 'share=1.5'",
            "lossy links of b1 share=0.3",
        ),
        (
            "rot disks of b1 bits=1.5",
            "bits takes a whole number from 1 to 10000, got 'bits=1.5'",
            "rot disks of b1 bits=1",
        ),
        ("fail fsyncs of b1 most=none", "or 'all', got 'most=none'", "fail fsyncs of b1 most=1"),
        (
            "slow links of b1 delay_ms=5",
            "the amount after 'slow links of b1 delay_ms=5' is missing, e.g. jitter_ms=20",
            "slow links of b1 delay_ms=5 jitter_ms=20",
        ),
        ("slow links of b1 delay=5 jitter_ms=2", "'delay=5' is no amount that can follow", None),
        ("kill b1 delay_ms=5", "only 'and' can follow 'kill b1', got 'delay_ms=5'", None),
    ],
)
def test_an_amount_that_cannot_be_is_named_with_what_can_be(text: str, says: str, corrected: str | None) -> None:
    with pytest.raises(Mistake) as refused:
        shape_of(text)
    assert says in refused.value.what
    assert corrected is None or refused.value.corrected == tuple(corrected.split())


@pytest.mark.parametrize(
    ("text", "says", "corrected"),
    [
        ("wipe controllers", "'controllers' is no target that can follow 'wipe'", "wipe one of controllers"),
        ("wipe c1+c2", "'c1+c2' is no target that can follow 'wipe'", None),
        ("wipe minority of controllers", "'minority' is no target that can follow 'wipe'", None),
        ("wipe active-controler", "'active-controler' is no target", "wipe active-controller"),
        ("kill b1 and shrink c1", "shape 2 of 2: 'shrink c1' asks the system, which takes its time", "shrink c1"),
    ],
)
def test_one_disk_is_lost_at_a_time_and_nothing_is_joined_to_a_node_that_leaves(
    text: str, says: str, corrected: str | None
) -> None:
    with pytest.raises(Mistake) as refused:
        parse_shapes(tuple(text.split()), WORDS)
    assert says in refused.value.what
    assert refused.value.corrected == (tuple(corrected.split()) if corrected else None)


def test_all_nodes_together_cannot_be_isolated() -> None:
    with pytest.raises(Mistake, match="'all' is no target that can follow 'isolate'"):
        parse_shape(("isolate", "all"), WORDS)


def struck(text: str, **roles: tuple[str, ...]) -> set[tuple[str, str]]:
    cluster = Cluster(groups=WORDS.groups, roles={"primary": ("b2",), "active-controller": ("c1",), **roles})
    fault = parse_shape(tuple(text.split()), WORDS).strike(cluster, random.Random(0))
    return {(link.source, link.target) for link in fault.links} if fault else set()  # type: ignore[attr-defined]


def test_a_link_is_cut_in_both_directions_between_the_nodes_that_have_the_roles_when_it_strikes() -> None:
    assert struck("cut link primary to active-controller") == {("b2", "c1"), ("c1", "b2")}
    assert struck("cut link b1 to c1+c2") == {("b1", "c1"), ("c1", "b1"), ("b1", "c2"), ("c2", "b1")}
    assert struck("cut link primary to brokers") == {("b2", "b1"), ("b1", "b2"), ("b2", "b3"), ("b3", "b2")}
    assert len(struck("cut link brokers to brokers")) == 6
    assert struck("cut link primary to b2") == set()


def test_a_link_may_be_struck_in_one_direction_and_around_a_node() -> None:
    assert struck("cut link primary to active-controller one way") == {("b2", "c1")}
    assert struck("slow link b1 to c1+c2 one way") == {("b1", "c1"), ("b1", "c2")}
    assert struck("slow link b1 to c1") == {("b1", "c1"), ("c1", "b1")}
    assert struck("lossy links of primary") == {
        pair for n in ("b1", "b3", "c1", "c2", "c3") for pair in ((n, "b2"), ("b2", n))
    }
    assert struck("hold link b1 to b1 one way") == set()


def test_a_random_end_of_a_link_is_never_the_other_end() -> None:
    cluster = Cluster(groups=WORDS.groups, roles={"primary": ("b2",)})
    for text in (
        "slow link primary to one of brokers",
        "cut link primary to one of brokers",
        "cut link one of all to primary one way",
    ):
        shape = parse_shape(tuple(text.split()), WORDS)
        struck = [shape.strike(cluster, random.Random(seed)) for seed in range(50)]
        assert all(fault is not None and len(fault.nodes) == 2 for fault in struck)


def node(name: str, *groups: str) -> NodeSpec:
    return NodeSpec(name=name, groups=groups, program=PythonProgram(main="memo:node"))


def test_a_vocabulary_is_what_the_system_declares_over_its_nodes() -> None:
    system = Declaration(groups=("bookies", "gates"), roles={"leader": "gates"})
    words = vocabulary_of(system, [node("k2", "bookies"), node("k1", "bookies"), node("g1", "gates")])
    assert words.names == ("leader", "spare", "bookies", "gates", "clients", "all", "g1", "k1", "k2")
    assert words.groups == {"bookies": ("k1", "k2"), "gates": ("g1",), "clients": (), "all": ("g1", "k1", "k2")}
    for text in ("kill one of bookies", "isolate k1", "cut link leader to bookies"):
        assert str(parse_shape(tuple(text.split()), words)) == text


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("n1", "others")], "node n1 belongs to the group 'others', which the system does not declare"),
        ([node("stores")], "'stores' is the name of two things"),
        ([node("n1"), node("n1")], "'n1' is the name of two things"),
        ([node("clients")], "'clients' cannot be the name of a node, a group or a role"),
        ([node("all")], "'all' cannot be the name of a node, a group or a role"),
        ([node("a+b")], r"'a\+b' cannot be the name"),
        ([node("a,b")], "'a,b' cannot be the name"),
    ],
)
def test_names_that_would_make_targets_ambiguous_are_refused(nodes: list[NodeSpec], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        vocabulary_of(Declaration(groups=("stores",)), nodes)


def test_a_machine_is_all_nodes_that_run_on_it() -> None:
    settings = RocketmqSettings(machines=2)
    words = vocabulary_of(SYSTEM.cluster(settings), SYSTEM.nodes(settings, None))
    cluster = Cluster(groups=words.groups, roles={"primary": ("b2",)}, machines=words.machines)
    for text, nodes in {
        "power off machine of b1": {("b1", "b3", "c1", "c3")},
        "power off machine of primary": {("b2", "c2")},
        "power off machine of one of brokers": {("b1", "b3", "c1", "c3"), ("b2", "c2")},
    }.items():
        shape = parse_shape(tuple(text.split()), words)
        struck = {fault.nodes for seed in range(20) if (fault := shape.strike(cluster, random.Random(seed)))}
        assert struck == nodes, text
    alone = parse_shape(("kill", "machine", "of", "b1"), WORDS).strike(Cluster(groups=WORDS.groups), random.Random(0))
    assert alone is not None and alone.nodes == ("b1",)
    of_brokers = words.of_groups(("brokers",), ())
    assert of_brokers.machines == {"b1": ("b1", "b3"), "b2": ("b2",), "b3": ("b1", "b3")}


def test_packages_strike_machines_only_where_nodes_share_them() -> None:
    def striking_machines(system: Declaration) -> set[str]:
        return {name for name, of in PACKAGES.items() if any("machine of" in str(one) for _, one in of(system).shapes)}

    assert striking_machines(SYSTEM.cluster(RocketmqSettings(machines=3))) >= {"power", "partition", "pause", "disk"}
    assert not striking_machines(SYSTEM.cluster(RocketmqSettings()))
