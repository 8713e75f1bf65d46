"""Hypothesis strategies for everything that Brute stores: `from brute.testing import st`.

They are made to be quick (hundreds of examples a second) and to shrink to something short: flat
draws, so that shrinking drops whole turns; counted ids; texts mostly out of a list of nasty ones;
nothing recursive and no regular expressions. Fields are drawn by the types of the structs, so
that a new part, event or field is tried everywhere at once.

`text` chooses the texts: a provider that takes UTF-8 only is tested with
`st.messages(text=st.nasty_text(utf8=True))`.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Raw, UnsetType

from brute.events import codec
from brute.events import events as e
from brute.events.entries import Entry, Record
from brute.events.errors import MissingExtra
from brute.events.jsontext import dumps
from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import (
    PARTS,
    AnyPart,
    Foreign,
    Message,
    Outcome,
    Role,
    ToolCall,
    ToolResult,
    Usage,
)
from brute.testing import scribe

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy
except ModuleNotFoundError as error:
    raise MissingExtra("brute.testing.st", "hypothesis", "testing") from error

__all__ = [
    "conversations",
    "entries",
    "events",
    "json_objects",
    "json_values",
    "logs",
    "messages",
    "nasty_text",
    "parts",
    "records",
    "tool_calls",
    "wild_logs",
]

S = TypeVar("S", bound=msgspec.Struct)
Texts: TypeAlias = "SearchStrategy[str]"

# -- texts and JSON ------------------------------------------------------------------------------

NASTY = (
    "a",
    "",
    " ",
    "\n",
    "\r\n\t",
    "\x00",
    "\x1a",
    "\x1a001a",
    "\x7f",
    "\ufeffa",
    "\u2028\u2029\x85",
    "\u202eabc",
    "e\u0301",
    "\u00e9",
    "日本語",
    "😀",
    "👩‍👩‍👧",
    "\ufffd\uffff",
    '"',
    "'",
    "\\",
    "\\ud800",
    "\\u001a",
    "\\n",
    "~",
    "~0~1/",
    "null",
    "NaN",
    "{}",
    '{"a": 1}',
    "[1, 2",
    "<script>alert(1)</script>",
    "</tool_call>",
    "<|im_end|>",
    "data: [DONE]\n\n",
    "a" * 300,
)
"""Texts that have broken something somewhere; the plainest first, for shrinking ends there."""

NOT_UTF8 = ("\ud800", "\udfff", "a\ud83d", "\ud83d\ude00", "\udc00\ud800\x1a")
"""Texts with lone surrogates: legal in JSON, and they do arrive; the fourth is two halves."""


def nasty_text(*, utf8: bool = False) -> Texts:
    """Texts that break things; `utf8`: only such as UTF-8 has bytes for (no lone surrogates)."""
    words = NASTY if utf8 else NASTY + NOT_UTF8
    alphabet = st.characters(codec="utf-8") if utf8 else st.characters()
    return st.sampled_from(words) | st.text(alphabet, max_size=6)


def _or_nasty(text: Texts | None) -> Texts:
    return nasty_text() if text is None else text


NUMBERS: tuple[float, ...] = (
    *(0, 1, -1, 7, 2**53, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**40),
    *(1.0, -0.0, 0.1, 1e16, 1e22, 1e308, 5e-324, 123456789.123456789),
)


def _nested(levels: int) -> JSON:
    value: JSON = 1
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


SHAPES: tuple[JSON, ...] = (
    {},
    [],
    [[]],
    [None, {"a": None}],
    {"a": {"b": [1, 1.0, True, "1"]}},
    {"": {"~": {"x": 1}, "type": "text"}},
    {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    _nested(60),
)
"""Nested values; depth and mixtures come from here, not from recursive draws."""


def _scalars(text: Texts | None) -> SearchStrategy[JSON]:
    return st.sampled_from((None, True, False, *NUMBERS)) | (_or_nasty(text))


def json_values(*, text: Texts | None = None) -> SearchStrategy[JSON]:
    """JSON values: numbers at every edge, nasty texts, some nesting."""
    scalars = _scalars(text)
    return st.one_of(
        scalars,
        st.sampled_from(SHAPES).map(_copied),
        st.lists(scalars, max_size=3),
        json_objects(text=text),
    )


def json_objects(*, text: Texts | None = None) -> SearchStrategy[JSONObject]:
    """JSON objects of up to three members."""
    members = st.tuples(_or_nasty(text), _scalars(text))
    return st.lists(members, max_size=3).map(dict)


def _copied(value: JSON) -> JSON:
    return msgspec.json.decode(msgspec.json.encode(value))  # nobody else shares what a test gets


# -- parts and messages --------------------------------------------------------------------------

APIS = ("anthropic.messages", "openai.chat", "openai.responses", "gemini", "a new one")

WELL_FORMED = (
    "{}",
    "",
    "null",
    " ",
    '{"path": "/src/a.py", "start": 12}',
    '{"a":1,"a":2}',
    '"{\\"a\\": 1}"',
    '{"a": 123456789012345678901234567890}',
    '{"a": "\\ud800"}',
)
"""Argument texts that give a dict (rule I4 of the provider rules)."""

MALFORMED = (
    '{"a": 1',
    "[1]",
    "5",
    '"x"',
    "{} {}",
    '{"a": NaN}',
    '{"a": 1e400}',
    "\ufeff{}",
    "{'a': 1}",
)
"""Argument texts of calls that must not be run."""


def tool_calls(*, malformed: bool = True, text: Texts | None = None) -> SearchStrategy[ToolCall]:
    """Calls of a tool, some of them with arguments that are none (unless not `malformed`)."""
    ids = st.sampled_from(("call_1", "call_2", "", None))
    return st.builds(_with_id, _unnumbered_calls(malformed=malformed, text=text), ids)


def _with_id(call: ToolCall, call_id: str | None) -> ToolCall:
    return msgspec.structs.replace(call, id=call_id)


def _unnumbered_calls(*, malformed: bool, text: Texts | None) -> SearchStrategy[ToolCall]:
    raws = st.sampled_from(WELL_FORMED + MALFORMED if malformed else WELL_FORMED)
    return st.builds(
        ToolCall,
        name=st.sampled_from(("search", "read_file", "a")),
        raw=st.one_of(raws, raws, json_objects(text=text).map(dumps)),
    )


def parts(*, text: Texts | None = None, foreign: bool = False) -> SearchStrategy[AnyPart]:
    """Parts of every kind, every field tried; `foreign`: of newer versions too."""
    drawn = _Fields(_or_nasty(text), foreign=foreign).of(AnyPart)
    return cast("SearchStrategy[AnyPart]", drawn)


def messages(
    *, role: Role | None = None, text: Texts | None = None, foreign: bool = False
) -> SearchStrategy[Message]:
    """Messages of any role (or of `role`) with any parts; `foreign`: of newer versions too.

    Nothing says that a provider would take them; see `conversations` for such as it might.
    """
    fields = _Fields(_or_nasty(text), foreign=foreign)
    if role is not None:
        fields.given[Message, "role"] = st.just(role)
    return fields.struct(Message)


_Result: TypeAlias = "tuple[str, Outcome] | None"

_RESULTS: tuple[_Result, ...] = (
    ("a", "ok"),
    ("", "ok"),
    ("no such file", "error"),
    ("no", "denied"),
    ("", "interrupted"),
    ("", "unknown"),
)


_ROUNDS = (
    *("s", "us", "c", "uc", "sc", "ts", "uts", "uus"),
    *("cc", "ucc", "tsc", "utsc", "utscc", "uccc", "uutsccc", "s", "us", "uc", "ucc", "c"),
)
"""What a round is made of: user texts, a thought, something said, calls. The plainest first."""


@st.composite
def _rounds(
    draw: DrawFn,
    text: Texts,
    calls: SearchStrategy[ToolCall],
    results: SearchStrategy[_Result],
    fates: SearchStrategy[_Fate],
) -> scribe.Round:
    # One draw says what is there and only that is drawn, so that a plain round is two choices:
    # the shrinker drops runs of up to five, and what is longer stays in the example for good.
    made = draw(st.sampled_from(_ROUNDS))
    asked = [draw(text) for _ in range(made.count("u"))]
    thought = draw(text) if "t" in made else None
    said = draw(text) if "s" in made else None
    answered = [(draw(calls), draw(results)) for _ in range(made.count("c"))]
    return scribe.Round(
        asked=tuple(asked),
        thought=thought,
        said=said,
        calls=tuple(call for call, _ in answered),
        results=tuple(result for _, result in answered),
        order=draw(st.integers(0, 5)) if len(answered) > 1 else 0,
        **draw(fates),
    )


def conversations(
    *, max_turns: int = 4, text: Texts | None = None
) -> SearchStrategy[list[Message]]:
    """Chat histories: prompts, replies with reasoning, parallel calls, each answered once.

    Results come in any order, prompts may be missing or several, arguments may be malformed.
    """
    texts, calls = _or_nasty(text), _unnumbered_calls(malformed=True, text=text)
    rounds = _rounds(texts, calls, st.sampled_from(_RESULTS), st.just(_Fate()))
    return st.lists(rounds, min_size=1, max_size=max_turns).map(scribe.conversation)


# -- events and logs -----------------------------------------------------------------------------


def events(*, text: Texts | None = None, foreign: bool = False) -> SearchStrategy[e.AnyEvent]:
    """Events of every type, every field tried; `foreign`: of newer versions too.

    Positions in them are any numbers. See `logs` for events that refer to each other.
    """
    drawn = _Fields(_or_nasty(text), foreign=foreign).of(e.AnyEvent)
    return cast("SearchStrategy[e.AnyEvent]", drawn)


def records(*, text: Texts | None = None, foreign: bool = False) -> SearchStrategy[Record]:
    """Events with any envelope; `foreign`: of newer versions too."""
    return _Fields(_or_nasty(text), foreign=foreign).struct(Record)


def entries(*, text: Texts | None = None, foreign: bool = True) -> SearchStrategy[Entry]:
    """Entries at any position, as reading a log gives them; also such of newer versions."""
    places = st.sampled_from((0, 1, 2, 10, 10**6))
    return st.builds(_read_back, records(text=text, foreign=foreign), places)


def _read_back(record: Record, position: int) -> Entry:
    return Entry("s1", position, *codec.decode(tag_in(record), codec.encode(record)))


def tag_in(record: Record) -> str:
    """The tag that the store would have beside the record."""
    return e.tag_of(record.event)


_ASIDES: tuple[scribe.Aside, ...] = (
    scribe.Aside(e.ValueRecorded(name="now", value=1750000000.5)),
    scribe.Aside(e.NoteAdded(text="a")),
    scribe.Aside(e.RequestRetried(why="429")),
    scribe.Aside(e.ExchangeRecorded(request={"url": "/v1"})),
    scribe.Aside(e.EffectCalled(name="rate", args={"c": "JPY"}), e.EffectReturned(value=1.0)),
    scribe.Aside(e.EffectCalled(name="rate", idempotent=True), e.EffectReturned(outcome="unknown")),
    scribe.Aside(e.EffectCalled(name="rate")),
    scribe.Aside(e.ApprovalAsked(about="rm"), e.ApprovalGiven(granted=False)),
    scribe.Aside(e.PromptEdited(op="append_to", message=Message.user("plan mode"))),
    scribe.Aside(e.PromptEdited(op="prepend", message=Message.system("a"), lifetime="task")),
    scribe.Aside(e.PromptEdited(op="insert_before", message=Message.user("a"), lifetime="session")),
    scribe.Aside(e.HistoryCompacted(start=0, end=0, summary=0)),
    scribe.Aside(e.HistoryRewound(to=3)),
    scribe.Aside(e.HistoryRewound(to=10**6)),
)

_SETTINGS: tuple[e.TurnStarted, ...] = (
    e.TurnStarted(),
    e.TurnStarted(model=e.ModelRef(id="gpt-5", provider="openai")),
    e.TurnStarted(parameters={"temperature": 1}, system="a"),
    e.TurnStarted(parameters=None, tools=(e.ToolSpec(name="search", schema={}),)),
    e.TurnStarted(model=None, tools=None),
)


class _Fate(TypedDict, total=False):
    """What came of a round beside its words; all of it left out: it went well."""

    ending: scribe.Ending
    settings: e.TurnStarted
    usage: Usage
    asides: tuple[scribe.Aside, ...]


_FATES: dict[str, SearchStrategy[Any]] = {
    "ending": st.sampled_from(("interrupted", "failed", "open")),
    "settings": st.sampled_from(_SETTINGS),
    "usage": st.just(Usage(input=10, output=3, cache_read=4)),
    "asides": st.tuples(st.sampled_from(_ASIDES)),
}


_THERE: tuple[tuple[str, ...], ...] = (
    *((), ("settings",), ("usage",), ("asides",), ("ending",), ("settings", "usage", "asides")),
    *(("asides", "ending"), ("settings", "usage", "asides", "ending")),
)


@st.composite
def _fates(draw: DrawFn) -> _Fate:
    there = draw(st.sampled_from(_THERE))
    return cast("_Fate", {name: draw(_FATES[name]) for name in there})


def logs(*, max_turns: int = 4, text: Texts | None = None) -> SearchStrategy[list[Entry]]:
    """Whole sessions that an agent could have left: every cause and position is plausible.

    Requests succeed, fail, are cut or stay open; calls and effects come back in any order or not
    at all; prompts are edited, history is compacted and rewound.
    """
    texts, calls = _or_nasty(text), _unnumbered_calls(malformed=True, text=text)
    results = st.sampled_from((*_RESULTS, None, None))
    rounds = st.lists(_rounds(texts, calls, results, _fates()), min_size=1, max_size=max_turns)
    return st.builds(scribe.log, rounds, closed=st.booleans())


def wild_logs(*, max_size: int = 6, text: Texts | None = None) -> SearchStrategy[list[Entry]]:
    """Any events in any order, with any causes, of newer versions too; positions count from 0.

    No writer leaves such a log; whatever reads logs has to survive it all the same.
    """
    some = st.lists(records(text=text, foreign=True), max_size=max_size)
    return some.map(lambda found: [_read_back(record, n) for n, record in enumerate(found)])


# -- fields by their types -----------------------------------------------------------------------

_FOREIGN = tuple(
    Foreign(raw)
    for raw in (
        b'{"type":"hologram"}',
        b'{"type":"hologram","text":"a","depth":{"~":[1,null]}}',
        b'{ "type" : "text", "texts": ["a", "\\u001ad83d"] }',
    )
)
_UNKNOWN_EVENTS = (
    e.UnknownEvent("galaxy.folded", b'{"type":"galaxy.folded","times":2}'),
    e.UnknownEvent("galaxy.folded", b'{ "type": "galaxy.folded", "why": "\\u001ad800" }'),
    e.UnknownEvent("prompt.appended", b'{"type":"prompt.appended","message":{"role":"critic"}}'),
)
_SLOTS: tuple[dict[str, Raw] | None, ...] = (
    None,
    {"a new field": Raw(b"1")},
    {"a": Raw(b"[ null ]"), "~": Raw(b'"\\u001ad800"')},
)
_WORDS = ("call_1", "call_2", "", "search", "a" * 64)
_GIVEN: dict[tuple[type[msgspec.Struct], str], SearchStrategy[Any]] = {
    (Record, "at"): st.sampled_from((1_750_000_000_000, 0, -1)),
    (Record, "lane"): st.sampled_from(("/", "/0", "/0/2")),
    (Record, "cause"): st.integers(0, 9),
    (ToolCall, "id"): st.sampled_from(_WORDS),
    (ToolCall, "raw"): st.sampled_from(WELL_FORMED + MALFORMED),
    (ToolResult, "call_id"): st.sampled_from(_WORDS),
}
"""Fields whose type alone says too little."""

_INTEGERS = st.sampled_from((0, 1, 2, 7, 10**6, -1, 2**63))
_BYTES = st.sampled_from((b"", b"\x89PNG\r\n\x1a\n\x00", bytes(range(256)), b"a" * 5000))


class _Fields:
    """Strategies for structs, out of the types of their fields."""

    def __init__(self, text: Texts, *, foreign: bool = False) -> None:
        self.foreign = foreign
        self.given = dict(_GIVEN)
        self._structs: dict[type[msgspec.Struct], SearchStrategy[Any]] = {}
        values, objects = json_values(text=text), json_objects(text=text)
        self._plain: dict[object, SearchStrategy[Any]] = {
            Any: values,
            str: text,
            bool: st.booleans(),
            int: _INTEGERS,
            bytes: _BYTES,
            NoneType: st.none(),
            dict[str, Any]: objects,
            dict[str, dict[str, Any]]: st.builds(_keyed, st.sampled_from(APIS), objects),
        }

    def struct(self, cls: type[S]) -> SearchStrategy[S]:
        """Instances of `cls`, every optional field there or not."""
        if cls not in self._structs:
            required: dict[str, SearchStrategy[Any]] = {}
            optional: dict[str, SearchStrategy[Any]] = {}
            for field in msgspec.structs.fields(cls):
                fields = required if field.required else optional
                if field.name == "rest":
                    if self.foreign:
                        optional["rest"] = st.sampled_from(_SLOTS)
                    continue
                given = self.given.get((cls, field.name))
                fields[field.name] = self.of(field.type) if given is None else given
            self._structs[cls] = _filled(cls, required, optional)
        return cast("SearchStrategy[S]", self._structs[cls])

    def of(self, hint: Any) -> SearchStrategy[Any]:
        """Values of a type."""
        if hint in self._plain:
            return self._plain[hint]
        if get_origin(hint) is Literal:
            return st.sampled_from(get_args(hint))
        if get_origin(hint) is tuple:
            return st.lists(self.of(get_args(hint)[0]), max_size=3).map(tuple)
        if get_origin(hint) in {Union, UnionType}:
            members = [m for m in get_args(hint) if m is not UnsetType]
            return st.one_of([self.of(m) for m in members] + self._newer(members))
        return self.struct(hint)

    def _newer(self, members: list[type]) -> list[SearchStrategy[Any]]:
        """What a newer version might have stored in a place of these types."""
        if not self.foreign or NoneType in members:
            return []
        if all(member in PARTS for member in members):
            return [st.sampled_from(_FOREIGN)]
        return [st.sampled_from(_UNKNOWN_EVENTS)]


@st.composite
def _filled(
    draw: DrawFn,
    cls: type[S],
    required: dict[str, SearchStrategy[Any]],
    optional: dict[str, SearchStrategy[Any]],
) -> S:
    values = {name: draw(strategy) for name, strategy in required.items()}
    there = draw(st.integers(0, 2 ** len(optional) - 1)) if optional else 0
    for index, (name, strategy) in enumerate(optional.items()):
        if there >> index & 1:
            values[name] = draw(strategy)
    return cls(**values)


def _keyed(api: str, value: JSONObject) -> dict[str, JSONObject]:
    return {api: value}


def _register() -> None:
    """Let `hypothesis.strategies.from_type` know the structs, whose JSON fields it cannot guess."""
    known: tuple[type[msgspec.Struct], ...] = (*PARTS, *e.EVENTS.values(), Message, Record)
    for cls in known:
        st.register_type_strategy(cls, _of_type)


def _of_type(cls: type[msgspec.Struct]) -> SearchStrategy[Any]:
    return _Fields(nasty_text()).struct(cls)


_register()
