"""What is typed wrong, and what is wrong with files: a line or two, an exit code, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import Result

import brute
from brute.cli.app import VERBS
from tests.brute.cli import process

Run = Callable[..., Result]

READING = [
    ["ls"],
    ["log", "last"],
    ["show", "last"],
    ["stats"],
    ["export", "last"],
    ["fork", "last"],
]


def said(result: Result, code: int) -> str:
    """What was said on stderr, by a command that ended with this code and printed nothing."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("brute: error: ")
    assert len(result.stderr.splitlines()) <= 2
    return result.stderr


# -- what is typed ---------------------------------------------------------------------------------


def test_a_verb_that_does_not_exist_is_guessed(run: Run) -> None:
    assert "there is no verb 'lss'; did you mean 'ls'?" in said(run("lss"), 2)
    assert "there are demo, ls, log" in said(run("frobnicate"), 2)


def test_an_option_that_does_not_exist_points_to_the_help(run: Run) -> None:
    assert "See `brute ls --help`." in said(run("ls", "--nope"), 2)
    assert "Missing argument" in said(run("log"), 2)


def test_a_session_that_does_not_exist(db: Path, run: Run) -> None:
    assert "no session 'nope' in this log" in said(run("log", "nope"), 2)


def test_an_id_that_fits_several_sessions_lists_them(db: Path, run: Run) -> None:
    with brute.open(db) as log:
        log.start(id="trips-2")

    message = said(run("show", "trip"), 2)

    assert "'trip' fits 2 sessions (trips, trips-2" in message


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("trips@13", "trips@13: there is no such position; the session's positions end at 12"),
        ("trips@-14", "trips@-14: there is no such position"),
        ("trips@turn:3", "trips@turn:3: there is no such turn; its turns are 1 to 2"),
        ("trips@turn:0", "there is no such turn"),
        ("trips@", "'trips@': '' is no place in a session"),
        ("trips@x", "give a position (12), one from the end (-1) or a turn (turn:4)"),
        ("@1", "'@1' names no session"),
        ("trips@99999999999999999999", "is no place in a session"),
    ],
)
def test_a_place_that_does_not_exist(db: Path, run: Run, address: str, says: str) -> None:
    for verb in ("show", "log", "fork", "export"):
        assert says in said(run(verb, address), 2)


def test_a_form_that_does_not_exist(db: Path, run: Run) -> None:
    message = said(run("show", "trips", "--as", "wire:gopher"), 2)

    assert "'wire:gopher' is no form" in message
    assert "messages, request, event, wire:openai, wire:anthropic" in message


def test_an_age_that_is_none(db: Path, run: Run) -> None:
    assert "give one like 30min, 12h, 2d or 2026-11-30" in said(run("ls", "--since", "soon"), 2)


def test_two_ends_or_an_end_of_what_goes_on(db: Path, run: Run) -> None:
    assert "names a place already" in said(run("log", "trips@2", "--at", "3"), 2)
    assert "do not go together" in said(run("log", "trips@2", "-f"), 2)
    assert "stats are of a whole session" in said(run("stats", "trips@2"), 2)


def test_an_id_that_no_session_can_have(db: Path, run: Run) -> None:
    for wrong in ("a@b", "last", "", "a b", "x" * 201):
        assert "is no session id" in said(run("fork", "trips", "--id", wrong), 2)
    assert "there is a session" in said(run("fork", "trips", "--id", "refund"), 2)


def test_a_table_of_prices_that_is_none(db: Path, run: Run, folder: Path) -> None:
    (folder / "p.json").write_text('{"gpt-5": 3}')

    assert "p.json: it is no table of prices (" in said(run("stats", "--prices", "p.json"), 1)
    assert "none.json: it cannot be read" in said(run("stats", "--prices", "none.json"), 1)


# -- logs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_log_that_is_not_there_is_not_made(folder: Path, run: Run, words: list[str]) -> None:
    message = said(run(*words), 1)

    assert message.startswith("brute: error: brute.db: there is no such file; say where")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("words", [*READING, ["import", "body.json"]], ids=" ".join)
@pytest.mark.parametrize("content", [b"hello " * 1_000, b"\0" * 4_096, b"SQLite format 3\0junk"])
def test_a_file_that_is_no_log_is_left_as_it_is(
    folder: Path, run: Run, words: list[str], content: bytes
) -> None:
    (folder / "brute.db").write_bytes(content)
    (folder / "body.json").write_text('{"messages": []}')

    assert "brute.db: " in said(run(*words), 5)

    assert (folder / "brute.db").read_bytes() == content


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_an_empty_file_is_no_log_to_read(folder: Path, run: Run, words: list[str]) -> None:
    (folder / "brute.db").write_bytes(b"")

    assert "brute.db: there is no log in this file" in said(run(*words), 5)

    assert (folder / "brute.db").read_bytes() == b""
    assert "this is a folder" in said(run("--db", str(folder), *words), 1)


def test_a_database_of_another_program_is_left_as_it_is(folder: Path, run: Run) -> None:
    connection = sqlite3.connect("brute.db")
    connection.execute("CREATE TABLE users (name)")
    connection.close()
    before = (folder / "brute.db").read_bytes()

    for words in (["ls"], ["fork", "last"], ["import", "-"]):
        message = said(run(*words, input=b'{"messages":[]}'), 5)
        assert "holds something else than a log (tables: users)" in message

    assert (folder / "brute.db").read_bytes() == before


def test_an_empty_log_has_no_last_session(folder: Path, run: Run) -> None:
    brute.open("brute.db").close()

    assert run("ls").stderr == "there are no sessions yet\n"
    assert "no session 'last'" in said(run("log", "last"), 2)


def test_the_log_is_named_before_the_verb_behind_it_or_by_the_environment(
    db: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.rename("other.db")

    assert run("--db", "other.db", "ls").exit_code == 0
    assert run("ls", "--db", "other.db").exit_code == 0
    assert run("--db", "wrong.db", "ls", "--db", "other.db").exit_code == 0
    monkeypatch.setenv("BRUTE_DB", "other.db")
    assert run("ls").exit_code == 0
    assert "wrong.db: there is no such file" in said(run("--db", "wrong.db", "ls"), 1)
    assert "postgresql" in said(run("ls", "--db", "postgresql://x/y"), 2)


@pytest.fixture
def as_somebody(db: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The log in a folder that any user can reach; as one to whom the rights of files apply."""
    folder = Path(tempfile.mkdtemp(prefix="brute-"))
    shutil.copy(db, folder / "brute.db")
    monkeypatch.chdir(folder)
    if os.geteuid() != 0:
        yield folder
    else:  # they do not apply to root
        for path in (folder, folder / "brute.db"):
            os.chown(path, 65534, 65534)
        os.seteuid(65534)
        yield folder
        os.seteuid(0)
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_log_that_cannot_be_written_is_read_all_the_same(as_somebody: Path, run: Run) -> None:
    (as_somebody / "brute.db").chmod(0o444)
    as_somebody.chmod(0o555)

    for words in (["ls"], ["log", "last"], ["show", "trips"], ["export", "trips"], ["stats"]):
        assert run(*words).exit_code == 0, words
    message = said(run("fork", "trips"), 1)
    body = said(run("import", "-", input=b'{"messages":[]}'), 1)

    assert "brute.db: " in message
    assert "reading only" in message
    assert "reading only" in body


# -- files in and out ------------------------------------------------------------------------------


def test_a_broken_import_makes_no_session(db: Path, run: Run, folder: Path) -> None:
    (folder / "broken.jsonl").write_text('{"role":"user","content":"a"}\n{"role":"user" "b"}\n')

    message = said(run("import", "broken.jsonl"), 1)

    assert "broken.jsonl, line 2, column 16: this is not JSON: Expecting ',' delimiter" in message
    assert "Nothing was imported" in message
    assert len(run("ls", "--json").stdout.splitlines()) == 2


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b'{"brute":"export","version":1,"session":"s","entries":0}\n']
)
def test_an_import_that_fails_makes_no_log(folder: Path, run: Run, content: bytes) -> None:
    said(run("import", "-", input=content), 1)
    assert list(folder.iterdir()) == []

    done = run("import", "-", "--id", "good", input=b'{"role":"user","content":"Hello"}')

    assert (done.exit_code, done.stdout) == (0, "good\n")
    assert [file.name for file in folder.iterdir()] == ["brute.db"]
    assert '"session":"good"' in run("ls", "--json").stdout


def test_a_broken_line_of_an_export_is_no_damage_of_the_log(db: Path, run: Run) -> None:
    lines = run("export", "trips").stdout.splitlines()
    lines[3] = '{"position":2,"type":"note.added","state":5}'

    message = said(run("import", "-", "--id", "again", input="\n".join(lines)), 1)

    assert "standard input, line 4: the stored bytes are not a record" in message
    assert "Nothing was imported" in message


def test_a_file_to_import_that_is_not_there(folder: Path, run: Run) -> None:
    assert "none.json: it cannot be read (No such file" in said(run("import", "none.json"), 1)
    assert list(folder.iterdir()) == [], "no log is made for nothing"


def test_an_export_does_not_overwrite_a_file_unasked(db: Path, run: Run) -> None:
    before = db.read_bytes()

    assert "brute.db: there is such a file" in said(run("export", "trips", "-o", "brute.db"), 1)

    assert db.read_bytes() == before


def test_a_failed_export_leaves_no_half_a_file(db: Path, run: Run, folder: Path) -> None:
    with brute.open(db) as log:
        damaged = log.session("trips").fork(id="damaged")
    connection = sqlite3.connect(db)
    connection.execute("DELETE FROM stored_events WHERE originator_version=9")
    connection.commit()
    connection.close()

    assert "it cannot be written" in said(run("export", "trips", "-o", "none/out.jsonl"), 1)
    assert "the entry at position 9 is missing" in said(
        run("export", damaged.id, "-o", "out.jsonl"), 5
    )

    assert not list(folder.glob("*out.jsonl*"))


def test_an_export_goes_into_another_log_and_back(db: Path, run: Run, folder: Path) -> None:
    out = run("export", "trips", "-o", "trips.jsonl")
    assert (out.exit_code, out.stdout) == (0, "")
    assert out.stderr.startswith("trips.jsonl: 13 entries, ")

    into = run("--db", "other.db", "import", "trips.jsonl", "--json")
    again = run("--db", "other.db", "import", "trips.jsonl")

    assert json.loads(into.stdout)["session"] == "trips"
    assert again.stdout == "trips\n"
    piped = run("--db", "other.db", "export", "trips").stdout_bytes
    assert piped == (folder / "trips.jsonl").read_bytes()
    other = run("--db", "third.db", "import", "-", "--id", "copy", input=piped)
    assert other.stdout == "copy\n"


# -- bugs, pipes and signals -----------------------------------------------------------------------


def test_a_bug_of_ours_asks_for_a_report(
    db: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise RuntimeError("wires crossed")

    monkeypatch.setattr("brute.cli.ls.summarize", broken)

    message = said(run("ls"), 1)
    traced = run("--traceback", "ls")

    assert message.startswith("brute: error: RuntimeError: wires crossed\n")
    assert "Please report it" in message
    assert 'raise RuntimeError("wires crossed")' in traced.stderr


def test_an_error_can_be_traced(db: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" in run("show", "nope", "--traceback").stderr
    monkeypatch.setenv("BRUTE_TRACEBACK", "1")
    assert "Traceback" in process.finished("--db", str(db), "show", "nope").stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "words", [["--help"], ["ls", "--json"], ["log", "last"], ["export", "trips"]], ids=" ".join
)
def test_output_that_finds_no_room_is_told_in_a_line(db: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        brute_ = process.start("--db", str(db), *words, stdout=full)
        _, complaints = brute_.communicate()

    assert brute_.returncode == 1
    assert complaints == (
        "brute: error: the output cannot be written (No space left on device); "
        "make room, or write elsewhere\n"
    )


def test_a_reader_that_has_seen_enough_is_no_error(db: Path, folder: Path) -> None:
    with brute.open(db) as log:
        session = log.session("trips")
        for _ in range(300):
            session.user("x" * 1_000)

    with process.start("--db", str(db), "export", "trips") as export:
        assert export.stdout is not None
        assert export.stderr is not None
        export.stdout.readline()
        export.stdout.close()
        complaints = export.stderr.read()

    assert complaints == ""


def test_every_verb_in_the_table_says_so_itself() -> None:
    for name, (module, line) in VERBS.items():
        command = import_module(f"brute.cli.{module}").command
        assert command.help, name
        assert line.endswith("."), name
        assert "Examples:" in (command.epilog or ""), name
