"""A certificate is verified without a word about the model, against every kind of history that was checked."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from harness.operation import Operation
from harness.record.history import HistoryWriter
from tests.command_line.answers import Answer, Stormproof

IN_PROCESS = ("--engine", "inprocess")
HOLDS, REFUTED, WRONG_USAGE = 0, 3, 254
CAS = (
    "{:process 0 :type :invoke :f :cas :value [7 8]}\n"
    "{:process 0 :type :ok :f :cas :value [7 8]}\n"
    "{:process 1 :type :invoke :f :cas :value [7 9]}\n"
    "{:process 1 :type :fail :f :cas :value [7 9]}\n"
)
LISTS = (
    '{"process": 0, "type": "invoke", "f": "txn", "value": [["append", "x", 1]]}\n'
    '{"process": 0, "type": "ok", "f": "txn", "value": [["append", "x", 1]]}\n'
    '{"process": 0, "type": "invoke", "f": "txn", "value": [["r", "x", null]]}\n'
    '{"process": 0, "type": "ok", "f": "txn", "value": [["r", "x", [1]]]}\n'
)
CASES = {
    "cas.edn": (CAS, ("--model", "cas-register", "--initial", "7", "--failed-cas", "answer")),
    "lists.json": (LISTS, ("--workload", "list-append", "--consistency-model", "serializable")),
}


def checked(stormproof: Stormproof, history: str | Path, *how: str) -> Answer:
    answer = stormproof("check", history, *how, "--certify", "certificate", *IN_PROCESS)
    assert answer.code == HOLDS, answer
    return answer


def of_case(stormproof: Stormproof, name: str) -> None:
    text, how = CASES[name]
    Path(name).write_text(text)
    checked(stormproof, name, *how)


@pytest.mark.parametrize("name", CASES)
def test_a_certificate_holds_and_finds_its_history_beside_it(stormproof: Stormproof, name: str) -> None:
    of_case(stormproof, name)
    answer = stormproof("verify", "certificate")
    assert answer.code == HOLDS, answer
    assert f"history      {name}\n" in answer.out
    assert "\nverified     " in answer.out
    Path("elsewhere").mkdir()
    for file in ("certificate", name):
        Path(file).rename(f"elsewhere/{file}")
    assert f"history      elsewhere/{name}\n" in stormproof("verify", "elsewhere/certificate").out


@pytest.mark.parametrize("name", CASES)
def test_every_format_of_the_history_is_as_good(stormproof: Stormproof, name: str) -> None:
    of_case(stormproof, name)
    (parquet,) = Path("runs/checked").glob("*/history.parquet")
    Path("packed.gz").write_bytes(gzip.compress(Path(name).read_bytes()))
    formats: list[Path] = [Path(name), parquet, parquet.parent, Path("packed.gz")]
    for form in ("edn", "json"):
        formats.append(Path(f"exported.{form}"))
        assert stormproof("export", parquet, "--format", form, "--output", formats[-1]).code == HOLDS
    for history in formats:
        answer = stormproof("verify", "certificate", history, "--json")
        assert (answer.code, answer.json["verified"], answer.json["exit_code"]) == (HOLDS, True, 0), history
        assert answer.json["same_file"] is (history == Path(name))


NOTHING_HAPPENED = """{:process 1, :type :invoke, :f :read, :key "failed", :value nil}
{:process 1, :type :fail, :f :read, :key "failed", :value nil}
{:process 2, :type :invoke, :f :write, :key "refused", :value 1}
{:process 2, :type :fail, :f :write, :key "refused", :value 1}
{:process 3, :type :invoke, :f :read, :key "unanswered", :value nil}
{:process 3, :type :info, :f :read, :key "unanswered", :value nil}
{:process 4, :type :invoke, :f :write, :key "unread", :value 1}
{:process 4, :type :info, :f :write, :key "unread", :value 1}
"""
SOMETHING_HAPPENED = """{:process 5, :type :invoke, :f :read, :key "read", :value nil}
{:process 5, :type :ok, :f :read, :key "read", :value nil}
"""


@pytest.mark.parametrize("model", ["register", "cas-register"])
@pytest.mark.parametrize(("more", "orders"), [("", {}), (SOMETHING_HAPPENED, {"read": [8]})])
def test_what_nothing_could_have_contradicted_has_an_order_that_holds(
    stormproof: Stormproof, model: str, more: str, orders: dict[str, list[int]]
) -> None:
    Path("nothing.edn").write_text(NOTHING_HAPPENED + more)
    checked(stormproof, "nothing.edn", "--model", model, *([] if more else ["--accept-vacuous"]))
    _, *lines = map(json.loads, Path("certificate").read_text().splitlines())
    silent: dict[str, list[int]] = {key: [] for key in ("failed", "refused", "unanswered", "unread")}
    assert {line["key"]: line["order"] for line in lines} == silent | orders
    assert stormproof("verify", "certificate").code == HOLDS


def test_the_options_that_were_checked_with_are_shown(stormproof: Stormproof) -> None:
    of_case(stormproof, "cas.edn")
    answer = stormproof("verify", "certificate", "--json")
    assert answer.json["of"] == "orders of cas-register, initial 7, a failed cas is an answer"
    of_case(stormproof, "lists.json")
    assert stormproof("verify", "certificate", "--json").json["of"] == "valid at serializable, of list-append"


@pytest.mark.parametrize("name", CASES)
def test_another_history_is_refuted_and_the_right_one_named(stormproof: Stormproof, name: str) -> None:
    of_case(stormproof, name)
    lines = Path(name).read_text().splitlines()
    more = [line.replace("[7 8]", "[8 7]").replace("1", "2") for line in lines[:2]]
    Path("other").write_text("\n".join([*lines, *more]))
    answer = stormproof("verify", "certificate", "other")
    assert answer.code == REFUTED
    assert "\nrefuted      " in answer.out
    assert f"it was made of another file: {name}, SHA-256 " in answer.out
    data = stormproof("verify", "certificate", "other", "--json").json
    assert (data["verified"], data["same_file"], data["exit_code"]) == (False, False, REFUTED)


def test_of_two_histories_of_one_name_the_one_that_was_checked_is_taken(stormproof: Stormproof) -> None:
    of_case(stormproof, "cas.edn")
    Path("kept").mkdir()
    shutil.copy("certificate", "kept/certificate")
    Path("kept/cas.edn").write_text(CAS.replace("7", "5"))
    assert "history      cas.edn\n" in stormproof("verify", "kept/certificate").out


def test_a_stream_of_a_killed_run_is_read_and_nothing_is_written_beside_it(stormproof: Stormproof) -> None:
    events = [("invoke", "write", 1), ("ok", "write", 1), ("invoke", "read", None), ("ok", "read", 1)]
    writer = HistoryWriter(Path("live.arrows"), pa.struct([("value", pa.int64())]))
    for number, (kind, f, value) in enumerate(events):
        content = {"value": value} if value else None
        writer.append(Operation(index=number, process=0, type=kind, f=f, value=content, key=None, time=number))
    writer.flush()
    Path("killed").mkdir()
    shutil.copy("live.arrows", "killed/history.arrows")
    writer.close()
    checked(stormproof, "killed/history.arrows", "--model", "register")
    for arguments in (("certificate",), ("certificate", "killed")):
        answer = stormproof("verify", *arguments)
        assert answer.code == HOLDS, answer
    assert [path.name for path in Path("killed").iterdir()] == ["history.arrows"]


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        ("nowhere", "there is no certificate nowhere"),
        (".", ". is no file"),
        ("/dev/zero", "/dev/zero is no file"),
        ("cas.edn", "cas.edn is no certificate, which is JSON as check --certify writes it"),
        ("runs", "runs is no file"),
    ],
)
def test_what_is_no_certificate_is_wrong_usage(stormproof: Stormproof, certificate: str, words: str) -> None:
    of_case(stormproof, "cas.edn")
    answer = stormproof("verify", certificate)
    assert (answer.code, answer.err) == (WRONG_USAGE, f"stormproof: {words}\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", "is no certificate, which is JSON"),
        ("{}", "neither of a model nor of a workload"),
        ('{"model": "light"}', "is no certificate that can be verified"),
        ('{"model": 5}', "neither of a model nor of a workload"),
        ('{"model": "counter", "initial": "x"}', "--initial of model counter must be an integer"),
        ('{"workload": "bank", "model": "x"}', "is a certificate of 'bank'; known are: list-append, rw-register"),
        ('{"key": "", "order": [0]}', "does not say of which model it is, as older versions wrote it"),
        ('{"model": "register"}', "certificate names no history: name it, stormproof verify certificate HISTORY"),
        ('{"model": "register", "history": 7}', "names no history"),
        ('{"model": "register", "history": {"name": "gone.edn"}}', "is of gone.edn, which is not here nor beside it"),
        ('{"model": "register", "history": {"name": "runs"}}', "there is no run directory and no history runs"),
        pytest.param("{" * 5000, "is no certificate, which is JSON", id="brackets"),
        pytest.param('{"a": ' * 5000, "is no certificate, which is JSON", id="nested"),
    ],
)
def test_what_a_certificate_lacks_is_printed_in_one_line(stormproof: Stormproof, content: str, words: str) -> None:
    Path("certificate").write_text(content)
    Path("runs").mkdir()
    answer = stormproof("verify", "certificate")
    assert answer.code == WRONG_USAGE
    assert words in answer.err
    assert answer.err.count("\n") == 1


def test_a_history_of_something_else_is_wrong_usage(stormproof: Stormproof) -> None:
    of_case(stormproof, "cas.edn")
    Path("lists.json").write_text(LISTS)
    Path("noise").write_bytes(bytes(range(256)))
    Path("torn.parquet").write_bytes(b"PAR1")
    for history in ("lists.json", "noise", "torn.parquet", "certificate", "nowhere"):
        answer = stormproof("verify", "certificate", history)
        assert (answer.code, answer.err.count("\n")) == (WRONG_USAGE, 1), answer.err


NAMED = (
    "{:process 0 :type :invoke :f :put :value 1 :time 10}\n"
    "{:process 0 :type :ok :f :put :value 1 :time 30}\n"
    "{:process 1 :type :invoke :f :look :value nil :time 20}\n"
    "{:process 1 :type :ok :f :look :value nil :time 25}\n"
)
"""By its rows the read came behind the write, and by their times beside it."""
TRANSACTED = LISTS.replace('"f": "txn"', '"f": "transact"')
READ_OTHERWISE = {
    "named.edn": (
        NAMED,
        ("--model", "register"),
        ("--function", "put=write", "--function", "look=read", "--order", "time"),
    ),
    "lists.json": (TRANSACTED, ("--workload", "list-append"), ("--function", "transact=txn")),
}


@pytest.mark.parametrize("name", READ_OTHERWISE)
def test_a_certificate_says_how_its_history_is_read(stormproof: Stormproof, name: str) -> None:
    text, how, read = READ_OTHERWISE[name]
    Path(name).write_text(text)
    checked(stormproof, name, *how, *read)
    (parquet,) = Path("runs/checked").glob("*/history.parquet")
    for arguments in ((), (name,), (parquet,), (name, *read)):
        answer = stormproof("verify", "certificate", *arguments)
        assert answer.code == HOLDS, answer


@pytest.mark.parametrize("name", READ_OTHERWISE)
def test_of_one_that_does_not_say_it_the_options_do(stormproof: Stormproof, name: str) -> None:
    text, how, read = READ_OTHERWISE[name]
    Path(name).write_text(text)
    checked(stormproof, name, *how, *read)
    certificate = Path("certificate")
    head, *lines = certificate.read_text().splitlines(keepends=True)
    is_whole = head.rstrip().endswith("}")
    data = json.loads(head if is_whole else head + "".join(lines))
    del data["history"]["functions"]
    data["history"].pop("order", None)
    certificate.write_text(json.dumps(data) + "\n" + ("".join(lines) if is_whole else ""))
    assert stormproof("verify", "certificate").code == WRONG_USAGE
    assert stormproof("verify", "certificate", *read).code == HOLDS
    functions = [word.split("=") for word in read if "=" in word]
    Path(f"{name}.toml").write_text("\n".join(["[functions]", *(f'{one} = "{is_}"' for one, is_ in functions)]))
    order = read[-2:] if "--order" in read else ()
    assert stormproof("verify", "certificate", *order).code == HOLDS


def test_options_that_contradict_a_certificate_are_wrong_usage(stormproof: Stormproof) -> None:
    text, how, read = READ_OTHERWISE["lists.json"]
    Path("lists.json").write_text(text)
    checked(stormproof, "lists.json", *how, *read)
    answer = stormproof("verify", "certificate", "--function", "other=txn")
    assert answer.code == WRONG_USAGE
    assert "was checked with --function transact=txn: leave --function out" in answer.err
    certificate = Path("certificate")
    certificate.write_text(certificate.read_text().replace('{"transact": "txn"}', "[7]"))
    assert "its functions must be an object of texts" in stormproof("verify", "certificate").err
