"""What the reading verbs show."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result
from hypothesis import given

import brute
from brute.cli.screen import visible_json
from brute.events.jsontext import dumps, loads
from brute.testing import st
from tests.brute.cli import process

Run = Callable[..., Result]
Lines = Callable[..., list[Any]]


# -- ls --------------------------------------------------------------------------------------------


def test_ls_lists_the_newest_session_first(db: Path, run: Run) -> None:
    result = run("ls")

    titles, first, second = result.stdout.splitlines()
    assert titles.split() == ["ID", "AGENT", "TURNS", "EVENTS", "TOKENS", "MODEL", "LAST"]
    assert first.split()[:2] == ["refund", "refund"]
    assert first.rstrip().endswith("cut @4")
    assert second.split()[:4] == ["trips", "trips", "2", "13"]
    assert "20 / 10" in second


def test_ls_json_has_full_ids_and_plain_numbers(db: Path, lines: Lines) -> None:
    refund, trips = lines("ls")

    assert (refund["session"], refund["trouble"]) == ("refund", "cut @4")
    assert (trips["turns"], trips["events"], trips["input_tokens"]) == (2, 13, 20)
    assert trips["models"] == ["gpt-5"]


def test_ls_can_be_narrowed(db: Path, lines: Lines) -> None:
    assert [line["session"] for line in lines("ls", "--failed")] == ["refund"]
    assert [line["session"] for line in lines("ls", "--model", "gpt-5")] == ["refund", "trips"]
    assert [line["session"] for line in lines("ls", "--model", "mini")] == ["refund"]
    assert [line["session"] for line in lines("ls", "-n", "1")] == ["refund"]
    assert len(lines("ls", "--since", "1h")) == 2
    assert lines("ls", "--since", "2999-01-01") == []


def test_ls_says_when_it_does_not_show_all(db: Path, run: Run) -> None:
    assert "the newest 1 are shown, -n 0 shows all" in run("ls", "-n", "1").stderr
    assert run("ls", "-n", "0").stderr == ""
    assert run("ls", "--model", "claude").stderr == "no session fits\n"


def test_ls_shows_the_end_of_a_made_up_id_which_is_enough(db: Path, run: Run) -> None:
    with brute.open(db) as log:
        made_up = log.start().id

    shown = run("ls").stdout.splitlines()[1].split()[0]

    assert shown == made_up[-8:]
    assert run("log", shown).exit_code == 0


def test_ls_tells_a_fork_from_its_parent(db: Path, run: Run, lines: Lines) -> None:
    run("fork", "trips@4", "--id", "what-if")

    fork = lines("ls")[0]

    assert (fork["parent"], fork["parent_position"], fork["events"]) == ("trips", 4, 1)
    assert "trips@4" in run("ls").stdout


# -- log -------------------------------------------------------------------------------------------


def test_log_shows_one_line_an_event(db: Path, run: Run) -> None:
    shown = run("log", "trips").stdout.splitlines()

    assert len(shown) == 13
    assert shown[1].split(None, 3) == ["1", "/", "system", "You plan trips."]
    kinds = [line.split()[2] for line in shown]
    asked, ran = ["turn", "request", "reply"], ["call", "result"]
    assert kinds == ["opened", "system", "user", *asked, *ran, *ran, *asked]


def test_log_can_be_narrowed(db: Path, lines: Lines) -> None:
    def positions(*words: str) -> list[int]:
        return [line["position"] for line in lines("log", *words)]

    assert positions("trips", "--at", "2") == positions("trips@2") == [0, 1, 2]
    assert positions("trips", "--kind", "call") == positions("trips", "--kind", "tool.called")
    assert positions("trips", "--kind", "tool") == [6, 7, 8, 9]
    assert positions("trips", "--kind", "call", "--kind", "reply") == [5, 6, 8, 12]
    assert positions("trips", "--lane", "/1") == [8, 9]
    assert positions("trips@turn:1")[-1] == 5
    assert positions("trips@-2")[-1] == 11


def test_log_json_is_what_the_log_stores(db: Path, run: Run) -> None:
    shown = run("log", "trips", "--json").stdout.splitlines()

    with brute.open(db) as log:
        for line, (session, position, topic, state) in zip(
            shown, log.events.states("trips"), strict=True
        ):
            head = f'{{"session":"{session}","position":{position},'
            assert line == head + state.decode()[1:]
            assert json.loads(line)["event"]["type"] == topic


def test_log_follows_what_is_appended(db: Path) -> None:
    with process.start("--db", str(db), "log", "trips", "-f") as follower:
        assert follower.stdout is not None
        seen = [follower.stdout.readline() for _ in range(13)]
        with brute.open(db) as log:
            log.session("trips").user("And Osaka?")
        line = follower.stdout.readline()
        follower.send_signal(signal.SIGINT)
        _, complaints = follower.communicate(timeout=10)

    assert "Kyoto has 5 hotels, Nara 4." in seen[-1]
    assert line.split() == ["13", "/", "user", "And", "Osaka?"]
    assert (follower.returncode, complaints) == (130, "")


# -- show ------------------------------------------------------------------------------------------


def test_show_gives_the_messages_with_their_positions(db: Path, run: Run) -> None:
    shown = run("show", "trips").stdout

    assert shown.splitlines()[0].split(None, 2) == ["1", "system", "You plan trips."]
    assert '-> search {"city": "Kyoto"}' in shown
    assert '{"hits":5}' in shown
    assert shown.rstrip().endswith("Kyoto has 5 hotels, Nara 4.")


def test_show_goes_back_to_any_position(db: Path, lines: Lines) -> None:
    assert [m["role"] for m in lines("show", "trips@2")] == ["system", "user"]
    assert [m["role"] for m in lines("show", "trips@turn:1")] == ["system", "user", "assistant"]
    assert [m["position"] for m in lines("show", "trips@-1")] == [1, 2, 5, 7, 9, 12]


def test_show_request_is_settings_and_messages(db: Path, run: Run, lines: Lines) -> None:
    (request,) = lines("show", "trips", "--as", "request")

    assert request["model"] == {"id": "gpt-5"}
    assert request["tools"][0]["name"] == "search"
    assert len(request["messages"]) == 6
    assert run("show", "trips", "--as", "request").stdout.startswith("model            gpt-5\n")


def test_show_event_is_the_stored_entry(db: Path, lines: Lines) -> None:
    (entry,) = lines("show", "trips@2", "--as", "event")

    assert entry["position"] == 2
    assert entry["event"]["message"]["parts"] == [{"type": "text", "text": "Kyoto or Nara?"}]


def test_show_says_when_nothing_has_been_said(db: Path, run: Run) -> None:
    result = run("show", "trips@0")

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "nothing has been said at position 0\n"


# -- stats -----------------------------------------------------------------------------------------


def test_stats_add_up_all_sessions_or_one(db: Path, lines: Lines) -> None:
    (everything,) = lines("stats")
    (trips,) = lines("stats", "trips")

    assert (everything["sessions"], everything["events"], everything["failed"]) == (2, 18, 1)
    assert (trips["sessions"], trips["turns"], trips["requests"]) == (1, 2, 2)
    assert trips["models"]["gpt-5"]["input_tokens"] == 20
    assert trips["dollars"] is None


def test_stats_show_what_it_cost_by_your_prices(db: Path, run: Run, lines: Lines) -> None:
    (trips,) = lines("stats", "trips", "--prices", "prices.json")

    assert trips["dollars"] == pytest.approx((20 * 1.25 + 10 * 10) / 1e6)
    shown = run("stats", "--prices", "prices.json").stdout
    assert "$0.0001" in shown
    assert "without a price: gpt-5-mini" in shown


def test_stats_count_what_a_fork_shares_once(db: Path, run: Run, lines: Lines) -> None:
    (before,) = lines("stats")
    run("fork", "trips")

    (after,) = lines("stats")

    assert after["forks"] == 1
    assert after["events"] == before["events"] + 1
    assert after["models"] == before["models"]


# -- the screen ------------------------------------------------------------------------------------


def test_colours_are_for_terminals_only(
    db: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run("log", "trips").stdout

    forced = run("log", "trips", "--color", color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    refused = run("log", "trips", color=True).stdout

    assert "\x1b[" in forced
    assert click.unstyle(forced) == plain == refused


def test_a_text_from_a_log_cannot_command_the_terminal(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "\x1b]0;pwned\x07\x9b2J\u202eevil\r\ud800"
    with brute.open("brute.db") as log:
        log.start(id="s", agent="\x1b[2Jx").user(evil, brute.ToolCall(id=evil, name=evil, raw=evil))

    for words in (["log", "s"], ["show", "s"], ["show", "s", "--as", "request"], ["ls"]):
        shown = run(*words)
        assert shown.exit_code == 0
        assert shown.stdout.replace("\n", "").isprintable(), words


def strings(line: str) -> Iterator[str]:
    """The texts in a JSON value, keys aside."""
    todo = [json.loads(line)]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, (dict, list)):
            todo += value.values() if isinstance(value, dict) else value


def test_json_from_a_log_cannot_command_the_terminal_either(folder: Path, run: Run) -> None:
    evil = "\x9b2J\u202eevil\x7f\\\u2028 Grüße 日本\u3000"
    with brute.open("brute.db") as log:
        log.start(id="s", agent=evil, metadata={evil: evil}).user(evil)

    for words in (
        ["ls", "--json"],
        ["log", "s", "--json"],
        *(["show", "s", "--json", "--as", form] for form in ("messages", "request", "event")),
        ["show", "s", "--as", "wire:openai"],
    ):
        shown = run(*words)
        assert shown.exit_code == 0
        assert shown.stdout.replace("\n", "").replace("\u3000", "").isprintable(), words
        assert "Grüße 日本" in shown.stdout, words
        assert evil in {text for line in shown.stdout.splitlines() for text in strings(line)}


def test_an_export_keeps_its_bytes_but_on_a_terminal(folder: Path, run: Run) -> None:
    with brute.open("brute.db") as log:
        log.start(id="s").user("\x9b2J\u202eevil")
    whole = run("export", "s").stdout

    mine, its = os.openpty()
    with process.start("export", "s", stdout=its) as export:
        assert export.wait() == 0
    os.close(its)
    seen = os.read(mine, 1 << 16).decode()
    os.close(mine)

    assert "\u202e" in whole
    assert seen.replace("\r\n", "").isprintable()
    assert [json.loads(line) for line in seen.splitlines()] == [
        json.loads(line) for line in whole.splitlines()
    ]


@given(st.json_values())
def test_visible_json_is_the_same_value(value: Any) -> None:
    text = dumps(value)

    assert loads(visible_json(text)) == loads(text)


def test_help_is_quick(folder: Path) -> None:
    def seconds(*words: str) -> float:
        """Of CPU: the clock on the wall counts the neighbours too."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *words], check=True, capture_output=True, env=process.environment()
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    bare = min(seconds("-c", "pass") for _ in range(5))
    helped = min(seconds("-m", "brute", "--help") for _ in range(5))

    assert helped - bare < 0.3
