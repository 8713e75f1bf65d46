"""Recorded traffic through the transports and through the log.

    python tests/traffic.py PAIRS.jsonl[.gz] [--api NAME …] [--skip IDS.json] [--show N] [--no-log]

A pair is a request that a provider answered, its reply (a body, or the frames of a stream), and a
later request whose history goes on with the reply. For each of them, and nothing may raise:

- the later request's history is loaded and dumped again: as it came (`kept`), with nothing in the
  loss report, with no hard rule broken, the same through the codec and through a log that was
  closed and opened again (`through the log`);
- the first request's history and the reply are dumped: as the later request has them where the
  client sent the reply back whole (`exact`), covering them where it left things out (`subset`);
- the reply is the same message as frames, as bytes cut at random places, assembled to one body, as
  JSON text and as the SDK's own objects (`one reply in every form`);
- the history is dumped for the other API too, where no hard rule may be broken (`moved over`).

Prints a line of counts for each API and ends with status 1 if anything is missed.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import random
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# As a script this folder leads the path, and its `brute/` would stand for the package.
if __name__ == "__main__":
    sys.path[:1] = [str(Path(__file__).resolve().parent.parent)]

import anthropic.types
import openai.types.chat

import brute
from brute.events.codec import decode, encode
from brute.events.entries import Record
from brute.events.events import PromptAppended
from brute.events.messages import Message
from brute.transports import Anthropic, MessageTransport, OpenAI

JSONObject = dict[str, Any]

TRANSPORTS: dict[str, type[MessageTransport]] = {
    "openai.chat": OpenAI,
    "anthropic.messages": Anthropic,
}
OTHER = {"openai.chat": Anthropic, "anthropic.messages": OpenAI}
SYSTEM = frozenset({"instructions", "system", "systemInstruction", "system_instruction"})

# Recordings that nobody can be asked for: a client that dropped one of two reasoning details; ids
# that were scrubbed on one side only.
LOOSE = frozenset({"8ffc3ec7d5", "62af0c8574"})


# -- what "the same" means -------------------------------------------------------------------------

EMPTY_IS_ABSENT = {"openai.chat": {"refusal", "annotations", "audio", "function_call", "parsed"}}
OPAQUE = frozenset({"input", "args", "arguments", "response", "parameters", "input_schema", "json"})
"""Below these members lies the user's own data, where every null counts."""
HINTS = frozenset({"cache_control", "index", "prompt_cache_breakpoint"})


def canonical(api: str, value: Any, key: str = "", *, strict: bool) -> Any:
    """JSON without what does not matter.

    Strict: nulls, empty members that only replies have and a stream's `index` go; everything else
    stays, argument text, cache marks and the form of content included.
    """
    if isinstance(value, list):
        return [canonical(api, item, strict=strict) for item in value]
    if key in OPAQUE and isinstance(value, dict):
        return value
    if not isinstance(value, dict):
        return _parsed(value) if key == "arguments" and not strict else value
    out: JSONObject = {}
    for name, held in value.items():
        hint = name == "index" and "function" in value if strict else name in HINTS
        empty = name in EMPTY_IS_ABSENT.get(api, ()) and not held
        if held is not None and not hint and not empty:
            out[name] = canonical(api, held, name, strict=strict)
    return out if strict else _loosened(api, out)


def _parsed(text: Any) -> Any:
    try:
        return {"": json.loads(text)}
    except (TypeError, ValueError):
        return text


def _loosened(api: str, out: JSONObject) -> JSONObject:
    """One text is a list of one block; no content, or no error, is as good as an empty one."""
    if isinstance(out.get("content"), str) and ("role" in out or out.get("type") == "tool_result"):
        out["content"] = [{"type": "text", "text": out["content"]}] if out["content"] else []
    if out.get("content") == [] and out.get("tool_calls"):
        del out["content"]
    if api == "anthropic.messages" and out.get("is_error") is False:
        del out["is_error"]
    return out


def joined(api: str, turns: list[Any]) -> list[Any]:
    """Neighbours of one role as one turn, as Anthropic reads them."""
    if api != "anthropic.messages":
        return turns
    out: list[JSONObject] = []
    for turn in turns:
        content = turn["content"]
        if out and out[-1]["role"] == turn["role"] and isinstance(content, list):
            before = out[-1]["content"]
            if isinstance(before, list):
                out[-1] = {**out[-1], "content": before + content}
                continue
        out.append(turn)
    return out


def form(api: str, turns: Sequence[Any], *, strict: bool) -> list[Any]:
    """A history in the form in which it is compared."""
    return joined(api, canonical(api, list(turns), strict=strict))


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same: 2 is not 2.0, true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def covers(ours: Any, theirs: Any) -> bool:
    """Whether everything in `theirs` stands in `ours`, in order."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and all(
            key in ours and covers(ours[key], held) for key, held in theirs.items()
        )
    if isinstance(theirs, list):
        rest: Iterator[Any] = iter(ours if isinstance(ours, list) else ())
        return isinstance(ours, list) and all(
            any(covers(item, their) for item in rest) for their in theirs
        )
    return same(ours, theirs)


def first_difference(one: Any, other: Any, at: str = "") -> str | None:
    """Pointer and both sides of the first place where two JSON values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(k for k in other if k not in one)]:
            found = first_difference(one.get(key), other.get(key), f"{at}/{key}")
            if found:
                return found
        return None
    if isinstance(one, list) and isinstance(other, list):
        for index, (a, b) in enumerate(zip(one, other, strict=False)):
            if found := first_difference(a, b, f"{at}/{index}"):
                return found
        return None if len(one) == len(other) else f"{at}: {len(one)} items / {len(other)} items"
    return None if same(one, other) else f"{at}: {str(one)[:90]!r} / {str(other)[:90]!r}"


# -- a pair ----------------------------------------------------------------------------------------


class Pair:
    """One recorded pair, and what the transport makes of it."""

    def __init__(self, line: JSONObject) -> None:
        self.line = line
        self.api: str = line["api"]
        self.transport = TRANSPORTS[self.api]
        self.history: list[JSONObject] = line["next_request"].get("messages") or []
        self.accepted = line["next_status"] in (200, 201, None)
        self.why = ""

    def messages(self, which: str) -> list[Message]:
        """The history of one of the requests, without its system text."""
        bare = {k: v for k, v in self.line[which].items() if k not in SYSTEM}
        return self.transport.load_all(bare)

    def differs(self, what: str, ours: Sequence[Any], *, strict: bool) -> bool:
        """Whether a dumped history is not the recorded one; where, goes to `why`."""
        one, other = (form(self.api, turns, strict=strict) for turns in (ours, self.history))
        if same(one, other):
            return False
        self.why = self.why or f"{what}: {first_difference(one, other)}"
        return True

    def missed(self, what: str, found: object) -> bool:
        """Whether there is something that should not be; what, goes to `why`."""
        if found and not self.why:
            self.why = f"{what}: {found}"
        return bool(found)

    def is_paired(self) -> bool:
        """Whether every call is answered once, where it has to be: as the rule book says."""
        pairing = {"A9", "A10", "A11", "A14a", "C2", "C3", "C6"}
        return not any(v.rule in pairing for v in self.transport.check(self.history))

    # -- the checks --------------------------------------------------------------------------------

    def is_kept(self) -> bool:
        """The history goes back as it came."""
        full = self.messages("next_request")
        dumped = self.transport.dump_all(full)
        json.dumps(dumped, allow_nan=False, ensure_ascii=False).encode()
        return not (
            self.differs("dumped again", dumped, strict=True)
            or self.differs("stored", self.transport.dump_all(stored(full)), strict=True)
            or self.missed("loss", [str(loss) for loss in self.transport.losses(full)][:2])
            or self.missed("not normal", self.transport.normal(full) != full)
        )

    def is_continued(self) -> bool:
        """The first history and the reply say what the later history says."""
        base, full = self.messages("request"), self.messages("next_request")
        reply = [*self.transport.wrap_each(self.line["response"])]
        replied = 0
        while len(base) + replied < len(full) and full[len(base) + replied].role == "assistant":
            replied += 1
        rest = full[len(base) + (min(replied, len(reply)) or replied) :]
        dumped = self.transport.dump_all([*base, *reply, *rest])
        if self.line["match"] == "subset":
            ours, theirs = (form(self.api, t, strict=False) for t in (dumped, self.history))
            fits = covers(ours, theirs)
            return not self.missed("not covered", not fits and first_difference(ours, theirs))
        return not self.differs("continued", dumped, strict=False)

    def is_one_reply(self) -> bool:
        """The reply is one message, in whatever form it comes."""
        response = self.line["response"]
        want = self.transport.reply(response)
        others = list(replies(self.transport, response, self.line["id"]))
        return not self.missed(
            "another reply", [str(name) for name, reply in others if reply != want]
        )

    def is_moved_over(self) -> bool:
        """The history for the other API keeps its hard rules."""
        other = OTHER[self.api]
        request = other.request(self.messages("next_request"), model="m", max_tokens=1)
        return not self.missed(
            "moved over", [str(v) for v in other.check(request) if v.grade == "hard"][:2]
        )


def stored(messages: list[Message]) -> list[Message]:
    """The messages as the codec gives them back."""
    out: list[Message] = []
    for message in messages:
        record = Record(event=PromptAppended(message=message), at=0)
        event = decode("prompt.appended", encode(record))[0].event
        assert isinstance(event, PromptAppended)
        out.append(event.message)
    return out


def replies(transport: type[MessageTransport], response: Any, seed: str) -> Iterator[Any]:
    """The reply out of every form in which an application may have it."""
    if isinstance(response, list):
        frames = [f["data"] for f in response]
        wire = b"".join(
            b"data: " + (f if isinstance(f, str) else json.dumps(f)).encode() + b"\n\n"
            for f in frames
        )
        dice = random.Random(seed)
        edges = sorted(dice.randrange(len(wire)) for _ in range(40))
        spans = zip([0, *edges], [*edges, len(wire)], strict=True)
        yield "bytes", transport.reply([wire[a:b] for a, b in spans])
        reader = transport.stream()
        for frame in frames:
            if isinstance(frame, dict):
                reader.feed(sdk_event(transport, frame))
        yield "SDK events", reader.finish()
        response = reader.body()
    yield "body", transport.reply(response)
    yield "JSON", transport.reply(json.dumps(response))
    yield "bytes of JSON", transport.reply(json.dumps(response, ensure_ascii=False).encode())
    yield "SDK object", transport.reply(sdk_reply(transport, response))


def sdk_reply(transport: type[MessageTransport], body: JSONObject) -> object:
    """The body as the SDK's own object."""
    if transport is OpenAI:
        return openai.types.chat.ChatCompletion.construct(**body)
    return anthropic.types.Message.construct(**body)


def sdk_event(transport: type[MessageTransport], event: JSONObject) -> object:
    """The event as the SDK's own object."""
    if transport is OpenAI:
        return openai.types.chat.ChatCompletionChunk.construct(**event)
    kind = EVENTS.get(str(event.get("type")))
    return event if kind is None else kind.construct(**event)


EVENTS: dict[str, Any] = {
    "message_start": anthropic.types.RawMessageStartEvent,
    "content_block_start": anthropic.types.RawContentBlockStartEvent,
    "content_block_delta": anthropic.types.RawContentBlockDeltaEvent,
    "content_block_stop": anthropic.types.RawContentBlockStopEvent,
    "message_delta": anthropic.types.RawMessageDeltaEvent,
    "message_stop": anthropic.types.RawMessageStopEvent,
}


# -- the log ---------------------------------------------------------------------------------------


def through_the_log(pairs: list[Pair]) -> Iterator[tuple[Pair, bool]]:
    """Whether each history goes back as it came, out of a log that was closed in between."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "traffic.db")
        ids: list[str] = []
        with brute.open(path) as log:
            for pair in pairs:
                session = log.start()
                session.append(*pair.messages("next_request"))
                ids.append(session.id)
        with brute.open(path) as log:
            for pair, id in zip(pairs, ids, strict=True):
                dumped = pair.transport.dump_all(log.session(id).messages)
                yield pair, not pair.differs("through the log", dumped, strict=True)


# -- all of it -------------------------------------------------------------------------------------


def read(path: str) -> Iterator[JSONObject]:
    """The pairs of a file."""
    with gzip.open(path, "rt") if path.endswith(".gz") else Path(path).open() as lines:
        yield from (json.loads(line) for line in lines if line.strip())


Count = collections.Counter[str]


def check(pair: Pair, count: Count) -> None:
    """Everything about one pair; what is missed counts as `MISSED …`."""
    pair.transport.load_all(pair.line["request"])  # with its system text
    pair.transport.load_all(pair.line["next_request"])
    tell(count, "one reply in every form", pair.is_one_reply())
    tell(count, "moved over", pair.is_moved_over())
    match = pair.line["match"]
    if not pair.is_paired():
        pair.is_kept(), pair.is_continued()
        pair.why = ""
        count["unpaired, may be repaired"] += 1
    elif pair.line["id"] not in LOOSE:
        if pair.accepted:
            tell(count, "kept", pair.is_kept())
        if match in {"exact", "subset"}:
            tell(count, match, pair.is_continued())


def tell(count: Count, what: str, held: bool) -> None:
    """Count a check."""
    count[what if held else f"MISSED {what}"] += 1


def main(arguments: Sequence[str]) -> int:
    """The script; its exit status."""
    options = parsed(arguments)
    skip = set(json.loads(Path(options.skip).read_text())) if options.skip else set()
    counts: dict[str, Count] = collections.defaultdict(collections.Counter)
    shown: list[str] = []
    kept: list[Pair] = []
    for line in read(options.pairs):
        api = line["api"]
        wanted = api in (options.api or TRANSPORTS) and line["match"] != "prev_id"
        if not wanted or line["id"] in skip:
            continue
        if api not in TRANSPORTS:
            counts[api]["MISSED no transport yet"] += 1
            continue
        pair = Pair(line)
        counts[api]["pairs"] += 1
        guarded(pair, counts[api], shown)
        if pair.is_paired() and pair.accepted and line["id"] not in LOOSE:
            kept.append(pair)
    if not options.no_log:
        for pair, held in through_the_log(kept):
            tell(counts[pair.api], "through the log", held)
            shown += [f"{pair.line['id']} {pair.why}"] * (not held)
    return report(counts, shown[: options.show])


def guarded(pair: Pair, count: Count, shown: list[str]) -> None:
    """Check a pair; whatever is raised is a miss."""
    try:
        check(pair, count)
    except Exception as error:  # noqa: BLE001 - nothing may raise, so everything is caught
        count["MISSED raised"] += 1
        place = traceback.extract_tb(error.__traceback__)[-1]
        pair.why = f"raised {type(error).__name__}: {error} in {place.name}, line {place.lineno}"
    if pair.why:
        line = pair.line
        shown.append(f"{line['id']} {pair.api} {line['provider']} {pair.why}")


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("pairs", help="a file of pairs, JSON lines, gzipped or not")
    parser.add_argument("--api", nargs="*", help="only these APIs")
    parser.add_argument("--skip", help="a JSON list of ids to leave out")
    parser.add_argument("--show", type=int, default=10, help="how many misses to describe")
    parser.add_argument("--no-log", action="store_true", help="not through a log on disk")
    return parser.parse_args(arguments)


def report(counts: dict[str, Count], shown: list[str]) -> int:
    """Print what was found; the exit status."""
    say = sys.stdout.write
    for line in shown:
        say(f"  {line}\n")
    for api, count in sorted(counts.items()):
        say(f"{api}: " + ", ".join(f"{what} {n}" for what, n in sorted(count.items())) + "\n")
    misses = sum(n for c in counts.values() for what, n in c.items() if what.startswith("MISSED"))
    say(f"{sum(c['pairs'] for c in counts.values())} pairs, {misses} misses\n")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
