"""What a target takes: the table that planning follows and `check` reads.

A `Rules` value is the whole of what planning knows about an API. A `Rule` is one line of the
provider's rule book with the function that finds where a request breaks it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct

from brute.events.jsontypes import JSONObject
from brute.events.messages import Media, Message, Origin, Part, Reasoning, ToolCall
from brute.transports.shapes import Grade, Violation
from brute.transports.wire import is_text

Kinds: TypeAlias = frozenset[type[Part]]


class Pattern:
    """A pattern that names or ids must fit, and the pure way to make any text fit."""

    def __init__(self, word: str, limit: int | None, empty: str) -> None:
        self.limit, self.empty = limit, empty
        length = f"{{1,{limit}}}" if limit else "+"
        self._fits = re.compile(rf"{word}{length}\Z", re.DOTALL).match
        self._word = re.compile(word, re.DOTALL).fullmatch
        self._any_word = word == "."
        self._limit = limit or 10**9

    def fits(self, text: str | None) -> bool:
        """Whether the target accepts the text.

        Nearly every id is letters, digits and underscores, which is known without the pattern.
        """
        if not text or len(text) > self._limit:
            return False
        if text.isascii():
            return self._any_word or text.isidentifier() or self._fits(text) is not None
        return is_text(text) and self._fits(text) is not None

    def rename(self, text: str | None, occurrence: int = 0) -> str:
        """A text that fits, a function of nothing but the text and its occurrence."""
        return _renamed(self, text or "", occurrence)

    def renamed(self, text: str, occurrence: int) -> str:
        """The work of `rename`."""
        mark = f"{occurrence}:{text}".encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(mark, digest_size=8).hexdigest()
        room = min(self.limit or 64, 64) - len(digest) - 2
        stem = "".join(c if self._word(c) and is_text(c) else "_" for c in text[:room])
        return f"{stem or self.empty}_b{digest}"


@lru_cache(maxsize=4096)
def _renamed(pattern: Pattern, text: str, occurrence: int) -> str:
    return pattern.renamed(text, occurrence)


SAFE_WORD = "[a-zA-Z0-9_-]"
NAME = Pattern(SAFE_WORD, 64, "unknown_tool")
"""Names of tools, everywhere."""


def fitting(name: str) -> str:
    """The name of a tool as every provider takes it."""
    return name if NAME.fits(name) else NAME.rename(name)


ANY_ID = Pattern(".", None, "call")


def _always(_: str | None) -> bool:
    return True


def _never(_: str | None) -> bool:
    return False


def _any_reasoning(_message: Message, part: Reasoning, _aim: Aim) -> Reasoning | None:
    return part


def _any_media(part: Media) -> Media | None:
    return part


def _same_media(part: Media) -> Media:
    return part


def _lasts(_part: Media, _aim: Aim) -> bool:
    return True


def _any_issuer(_origin: Origin, _aim: Aim) -> bool:
    return True


class Rules(Struct, frozen=True, kw_only=True):
    """What an API takes, as far as a list of messages goes. The defaults take everything."""

    api: str = ""
    ids: Pattern = ANY_ID
    """Ids of calls: what messages of this API may bear (hard)."""
    own_ids: Pattern = ANY_ID
    """Ids of calls in what is ours (conservative)."""
    ids_unique: Literal["message", "request"] = "message"
    names: Pattern | None = None
    """Names of tools and of speakers, in what is ours."""
    blank: bool = True
    """Whether a text may be empty or blank."""
    speaks: Mapping[str, Kinds] | None = None
    """Which parts a role may hold; the rest is said in text, or not. None: every part."""
    results: Kinds | None = None
    """Which parts a result may hold; media that it may not are moved behind the results."""
    hints: Mapping[type[Struct], frozenset[str]] | None = None
    """What of this API's own members a message or part of ours may bear. None: whatever it does."""
    flags_errors: bool = True
    """Whether a result says by a flag that it is an error; otherwise its text says it."""
    hosted: bool = False
    """Whether a provider's own tool calls go back to it as parts."""
    objects: Callable[[ToolCall], JSONObject] | None = None
    """The arguments of a call where they are a JSON object on the wire; None: they are text."""
    calls_last: bool = False
    """Whether nothing may follow a call in an assistant message but calls and reasoning."""
    system: Literal["inline", "apart"] = "inline"
    """Whether system text stands among the messages or in a place of its own."""
    user_first: bool = False
    names_messages: bool = True
    """Whether a message may bear a name."""
    passes_over: Kinds = frozenset()
    """Parts that writing passes over when they bear nothing of this API: they need no planning."""
    cites: bool = False
    """Whether citations go back to where they came from."""
    orders: tuple[type[Part], ...] = ()
    """The order in which an assistant message carries its parts, if it cannot carry any."""
    joins_results: bool = False
    """Whether the texts of a result of ours are joined to one, by line feeds."""
    prefill: Callable[[str | None], bool] = _always
    """Whether a model continues an assistant message at the end."""
    midway: Callable[[str | None], bool] = _never
    """For `system` apart: whether a model takes system text among the messages."""
    issued: Callable[[Origin, Aim], bool] = _any_issuer
    """Whether what this API issued came from where the request goes (asked if something is known
    of the target); what did not is treated as foreign."""
    reasoning: Callable[[Message, Reasoning, Aim], Reasoning | None] = _any_reasoning
    """Reasoning as this target may have it, or None."""
    media: Callable[[Media], Media | None] = _any_media
    """Media as this API takes them, or None."""
    lasts: Callable[[Media, Aim], bool] = _lasts
    """Whether media that this API issued can still be referred to."""
    carries: Callable[[Media], Media] = _same_media
    """Media as they are loaded again: what of their fields the API carries."""
    joins: Callable[[Message, Message], bool] | None = None
    """Whether neighbours that are both a user's are one message on the wire; None: they never
    are."""
    check: tuple[Rule, ...] = ()
    """The rule book, line by line."""


class Aim(Struct, frozen=True, kw_only=True):
    """Where a request goes: the rules, and what is known about this one target."""

    rules: Rules
    model: str | None = None
    provider: str | None = None
    platform: str | None = None
    now: float | None = None
    """Seconds since 1970, where something expires; a transport has no clock of its own."""
    strict: bool = False
    profile: JSONObject = {}
    """What else the caller said about the target (`reasoning_field`, `null_content` …)."""


Find: TypeAlias = tuple[str, str]
"""JSON pointer, and what was found there."""


class Rule(Struct, frozen=True, kw_only=True):
    """One line of a provider's rule book."""

    id: str
    grade: Grade
    now: str
    """What to do, which is what the provider demands."""
    finds: Callable[[JSONObject], Iterable[Find]]

    def check(self, request: JSONObject) -> Iterator[Violation]:
        """Where the request breaks the rule."""
        for pointer, found in self.finds(request):
            yield Violation(
                rule=self.id, pointer=pointer, found=found, now=self.now, grade=self.grade
            )
