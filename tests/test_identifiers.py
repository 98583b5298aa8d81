"""How things are named, kept by reading the code: verbs for what works, nouns for what is given; the glossary's words.

A participle that says nothing of what it names (`known`, `given`) is no name of a module, class, function, field or
parameter. What the glossary says not to call a thing is no word of a name, nor of a text that the user may read, unless
it is exempt. Riddles that the glossary's last table lists are not written in comments and documentation either.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("stormproof", "harness", "nemesis", "workloads", "checkers", "system_under_test", "results")
FOLDERS = (*PACKAGES, "benchmarks", "examples", "tests")
FILES = {
    path.relative_to(ROOT).as_posix(): path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))
}

pytestmark = pytest.mark.xdist_group("identifiers")  # each worker would read all files

EMPTY_NAMES = ("told", "judged", "known", "given", "said", "shown", "made")
# File -> the names that a stored format forces on it.
STORED = {
    # `Chase.given` is a key of the JSON in which a search keeps how it ended.
    "stormproof/search/compare.py": ("given",),
}


def fields(node: ast.ClassDef) -> Iterator[tuple[int, str]]:
    """What a class body binds, and what methods assign to `self`."""
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            for target in ast.walk(statement):
                if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                    yield target.lineno, target.id
    for target in ast.walk(node):
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.ctx, ast.Store)
            and ast.unparse(target.value) == "self"
        ):
            yield target.lineno, target.attr


@dataclass(frozen=True)
class Reading:
    """What a file is asked for; it is parsed once, and its tree is not kept."""

    names: list[tuple[int, str, str]]
    """(line, kind, name) of each class, function, field and parameter."""
    texts: list[tuple[int, str]]
    documentation: frozenset[int]
    """Lines on which strings begin that are documentation."""
    fragments: list[int]


@cache
def reading(source: str) -> Reading:
    nodes = list(ast.walk(ast.parse(source)))
    documentation = frozenset(
        node.lineno for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )
    return Reading(list(_names(nodes)), list(_texts(nodes, documentation)), documentation, _fragments(nodes))


def _names(nodes: list[ast.AST]) -> Iterator[tuple[int, str, str]]:
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            yield node.lineno, "class", node.name
            yield from ((line, "field", name) for line, name in fields(node))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, "function", node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, "parameter", node.arg


def is_empty(name: str) -> bool:
    return name.strip("_").lower() in EMPTY_NAMES


def empty_names(file: str, source: str) -> list[str]:
    found = [f"{file}: module {Path(file).stem}"] if is_empty(Path(file).stem) else []
    found += [
        f"{file}:{line}: {kind} {name}"
        for line, kind, name in reading(source).names
        if is_empty(name) and name not in STORED.get(file, ())
    ]
    return sorted(set(found))


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_name_says_what_it_names(folder: str) -> None:
    files = {file: path for file, path in FILES.items() if file.startswith(f"{folder}/")}
    assert files
    assert [found for file, path in files.items() for found in empty_names(file, path.read_text("utf-8"))] == []


def test_a_stored_name_is_still_there() -> None:
    for file, stored in STORED.items():
        assert set(stored) <= {
            name for _, kind, name in reading(FILES[file].read_text("utf-8")).names if kind == "field"
        }


@pytest.mark.parametrize(
    ("file", "source", "found"),
    [
        ("harness/known.py", "", "harness/known.py: module known"),
        ("a.py", "class _Known: ...", "a.py:1: class _Known"),
        ("a.py", "class A:\n    GIVEN = 2", "a.py:2: field GIVEN"),
        ("a.py", "class A:\n    shown: int", "a.py:2: field shown"),
        ("a.py", "class A:\n    def __init__(self):\n        self.a, self._told = 1, 2", "a.py:3: field _told"),
        ("a.py", "async def _judged(): ...", "a.py:1: function _judged"),
        ("a.py", "def f(*, made=0): ...", "a.py:1: parameter made"),
        ("a.py", "f = lambda said: said", "a.py:1: parameter said"),
        ("a.py", "def f(**given): ...", "a.py:1: parameter given"),
    ],
)
def test_an_empty_name_would_be_found(file: str, source: str, found: str) -> None:
    assert empty_names(file, source) == [found]


def test_longer_names_and_locals_are_left_alone() -> None:
    source = "def is_known(known_names):\n    known = set(known_names)\n    return known"
    assert empty_names("checkers/known_names.py", source) == []


# The glossary ---------------------------------------------------------------------------------------------------------

# Reason -> words of the right column that names use all the same.
EXEMPT = {
    "too general: a plain word, of which only one sense is ruled out": (
        "access answer argument call choice class closed config context cursor delay done empty "
        "error event example exception job kind level link loop message metadata options order output "
        "part progress record repair result rule sample sentence shared standing state status step thread token value "
        "window"
    ),
    "a word of databases, of the literature on consistency or of its algorithms": ("chain guarantee parallel pipeline"),
    "the name of a planted bug": "race",
    "a word of RocketMQ, of its protocols or of a fault in them": (
        "batch consumer lease log metrics mode proxy recover response server subscription"
    ),
    "a kind of fault or the nodes that it strikes, in a sense of its own": "cluster failure kill world",
    "a word of the language, of Jepsen or of the command line": "attempt attempts resources runner suite test trial",
}
EXEMPT_WORDS = {word for words in EXEMPT.values() for word in words.split()}

# The same for names of functions, fields and parameters, and for texts.
EXEMPT_IN_DETAIL = {
    "a plain word for an act or a part": ("active alternative claim generation pattern scale script stop variant"),
    "a word of the literature on consistency or of its algorithms": "serial sweep violation",
    "a word of Jepsen's generators and of what queues do": "drained op",
    "a word of the program whose setting, command or page the text is": (
        "backend circle domain excluded monitor probe worker"
    ),
    "what a mutant is, where a text explains it": "bug",
}
EXEMPT_WORDS_IN_DETAIL = {word for words in EXEMPT_IN_DETAIL.values() for word in words.split()}

RIDDLES = "## Plain English"


def glossary(since: str = "") -> Iterator[tuple[str, str]]:
    """(left column, right column) of the tables from a heading on, without their heads."""
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    for line in page[page.index(since) :].splitlines():
        if line.startswith("| ") and not line.startswith("| word |"):
            word, _, instead = line.removeprefix("| ").removesuffix("|").split("|")
            yield word.strip(), instead.strip()


def terms() -> set[str]:
    """The words of the left column: `invocation, completion` are two, `model (of an object)` is `model`."""
    return {term.strip() for word, _ in glossary() for term in re.sub(r"\(.*?\)", "", word).split(",")}


@cache
def banned() -> set[str]:
    """The words of the right column that mean nothing else in the glossary."""
    return {word for _, instead in glossary() for word in re.split(r",\s*", instead) if word} - terms() - EXEMPT_WORDS


@cache
def words_of(name: str) -> str:
    """`FaultWindows`, `fault_windows` and `fault windows` are ` fault window `."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    return " ".join(("", *(part.lower().removesuffix("s") for part in parts), ""))


def uses(word: str, name: str) -> bool:
    return words_of(word.lower()) in words_of(name)


def _texts(nodes: list[ast.AST], documentation: frozenset[int]) -> Iterator[tuple[int, str]]:
    """(line, text) of what a user may read: strings of more than one word, and the documentation of commands, which is
    their help."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if " " in node.value.strip() and node.lineno not in documentation:
                yield node.lineno, node.value
        elif isinstance(node, ast.FunctionDef) and any(
            ast.unparse(each).split("(")[0].endswith((".command", ".group")) for each in node.decorator_list
        ):
            yield node.lineno, ast.get_docstring(node) or ""


def prose(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of comments and documentation."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_string = token.type == tokenize.STRING and token.start[0] in reading(source).documentation
        if is_string or token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def may_use(words: set[str], source: str) -> bool:
    """Whether some of them may be in a text; whether they are takes much longer to find."""
    small = source.lower()
    return any(all(part in small for part in words_of(word.lower()).split()) for word in words)


def places(packages: tuple[str, ...], of: str, words: set[str] | None = None) -> Iterator[tuple[str, str]]:
    """(where, name or text) in these packages. `of`: `rooms` (modules and classes), `details` (functions, fields,
    parameters), `texts` or `prose`. `words`: files that have none of them are passed over."""
    for file, path in FILES.items():
        if file.split("/")[0] in packages:
            source = path.read_text("utf-8")
            if words is not None and not may_use(words, source):
                continue
            if of == "rooms":
                yield file, path.stem
            if of in ("rooms", "details"):
                found = (
                    (line, name) for line, kind, name in reading(source).names if (kind == "class") == (of == "rooms")
                )
            else:
                found = iter(reading(source).texts) if of == "texts" else prose(source)
            yield from ((f"{file}:{line}", text) for line, text in found)


def uses_of(words: set[str], packages: tuple[str, ...], of: str) -> list[str]:
    spoken = {word: words_of(word.lower()) for word in words}
    return sorted(
        f"{where}: {text!r} says {word}, which docs/glossary.md rules out"
        for where, text in places(packages, of, words if of == "prose" else None)
        for all_words in (words_of(text),)
        for word in words
        if spoken[word] in all_words
    )


def test_no_module_or_class_has_a_name_that_the_glossary_rules_out() -> None:
    assert len(banned()) > 50
    assert uses_of(banned(), PACKAGES, "rooms") == []


@pytest.mark.parametrize("of", ["details", "texts"])
def test_no_smaller_name_and_no_text_says_what_the_glossary_rules_out(of: str) -> None:
    words = banned() - EXEMPT_WORDS_IN_DETAIL
    assert len(words) > 50
    assert uses_of(words, PACKAGES, of) == []


@pytest.mark.parametrize("folder", PACKAGES)
def test_comments_and_documentation_are_plain_english(folder: str) -> None:
    riddles = {word for _, instead in glossary(RIDDLES) for word in instead.split(", ")} - {"told"}
    assert len(riddles) >= 4
    assert uses_of(riddles, (folder,), "prose") == []


def test_every_word_that_is_exempt_in_detail_is_used_and_no_module_or_class_needs_it() -> None:
    everything = "\n".join(words_of(text) for of in ("details", "texts") for _, text in places(PACKAGES, of))
    for word in sorted(EXEMPT_WORDS_IN_DETAIL):
        assert word in banned(), word
        assert words_of(word) in everything, word


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("raise ValueError('no such validator')", [(1, "no such validator")]),
        ("reason = f'{node} is a victim of {fault}'", [(1, " is a victim of ")]),
        ("@cli.command()\ndef run():\n    'Starts a campaign.'", [(2, "Starts a campaign.")]),
        ("def f():\n    'One of its victims.'\n    return 'victim'", []),
    ],
)
def test_texts_are_what_a_user_may_read(source: str, found: list[tuple[int, str]]) -> None:
    assert reading(source).texts == found


FRAGMENT = re.compile(
    r"""
    ^(and|but|or)\ | [,;]$
    # What an array has by each index, `By operation: its kind`, is said as a whole.
    | ^(?!By\ [^.:]+: | At\ (most|least)\b)
      (And|As|At|Before|Behind|Below|Beside|Between|Beyond|But|By|For|From|In|Of|On|Or|That|To|Under|Whose)\b
    | ^None(:|\ (of|where)\b)
    """,
    re.VERBOSE,
)


def _fragments(nodes: list[ast.AST]) -> list[int]:
    """Lines with the comment of a constant or a field that is only a part of a sentence."""
    bodies = [node.body for node in nodes if isinstance(node, ast.Module | ast.ClassDef)]
    return [
        comment.lineno
        for body in bodies
        for bound, comment in pairwise(body)
        if isinstance(bound, ast.Assign | ast.AnnAssign)
        and isinstance(comment, ast.Expr)
        and isinstance(comment.value, ast.Constant)
        and FRAGMENT.search(str(comment.value.value))
    ]


@pytest.mark.parametrize("folder", PACKAGES)
def test_each_comment_of_a_constant_is_a_sentence_of_its_own(folder: str) -> None:
    files = {file: path for file, path in FILES.items() if file.startswith(f"{folder}/")}
    found = {file: reading(path.read_text("utf-8")).fragments for file, path in files.items()}
    assert {file: lines for file, lines in found.items() if lines} == {}


def test_a_sentence_over_two_constants_would_be_found() -> None:
    source = "A = 1\n'So many events,'\nclass C:\n    b: int = 2\n    'and so many literals.'\n    c = 3"
    assert reading(source).fragments == [2, 5]
    assert reading("A = 1\n'So many events.'").fragments == []


@pytest.mark.parametrize(
    ("comment", "is_fragment"),
    [
        ("Of a snapshot, in one message.", True),
        ("By their peers' address.", True),
        ("None where the request wants no answer.", True),
        ("None: now.", True),
        ("At once.", True),
        ("How much of a snapshot goes into one message.", False),
        ("By operation: its kind, which says what it does.", False),
        ("None is `all`.", False),
        ("At most so many messages a poll.", False),
    ],
)
def test_a_comment_that_begins_within_a_sentence_would_be_found(comment: str, is_fragment: bool) -> None:
    assert reading(f"A = 1\n{comment!r}").fragments == [2] * is_fragment


def test_a_file_that_uses_a_riddle_is_not_passed_over() -> None:
    assert may_use({"in the midst"}, "# In the\n# midst of it")
    assert may_use({"dears"}, "a Dear one") and not may_use({"in the midst"}, "in the middle")


def test_prose_is_comments_and_documentation() -> None:
    source = "def f():\n    'For whoever asks.'\n    return 'whoever asks'  # and dear"
    assert list(prose(source)) == [(2, "'For whoever asks.'"), (3, "# and dear")]


def test_every_exempt_word_is_ruled_out_by_the_glossary_and_used() -> None:
    ruled_out = {word for _, instead in glossary() for word in re.split(r",\s*", instead)}
    everything = [name for _, name in places(PACKAGES, "rooms")]
    for word in sorted(EXEMPT_WORDS):
        assert word in ruled_out - terms(), word
        assert any(uses(word, name) for name in everything), word


def test_a_word_that_the_glossary_rules_out_would_be_found() -> None:
    assert {"validator", "hosts file", "topology"} <= banned()
    assert uses("validator", "_InputValidators") and uses("hosts file", "hosts_file") and uses("POP log", "PopLog")
    assert not uses("op", "Operation") and not uses("gene", "generator")
    # What is a term of its own, or exempt, is not ruled out.
    assert not {"storm", "run", "message", "result"} & banned()
