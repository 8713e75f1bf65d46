"""Whether a message goes out as it stands: what is asked of every message, and therefore cheap.

One question a kind of part, in a table. What `own` means everywhere: the message was issued
through the target's API, so that only hard rules touch it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from brute.events.messages import (
    AnyPart,
    Json,
    Media,
    Message,
    Native,
    Part,
    Reasoning,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from brute.transports.rules import Aim
from brute.transports.wire import is_sound, is_text, mend_arguments

Question: TypeAlias = Callable[[Any, bool], bool]


class Clean:
    """The questions for one target."""

    def __init__(self, aim: Aim) -> None:
        rules = aim.rules
        self.rules, self.api = rules, rules.api
        self.hinted = False
        """Whether any part had something of this API."""
        self.made: set[str] = set()
        """Ids that were made for this request: another id that is the same is renamed too."""
        self._names: set[str] = set()
        self._blank = rules.blank
        told = rules.speaks is not None
        self.of_user = self._table(Text, Media, Native) if told else _EVERYTHING
        self.of_assistant = self._table(Text, ToolCall) if told else self._calls_alone()
        self.of_result = self._table(Text, Json, Media, Native) if rules.results else _EVERYTHING

    def _table(self, *kinds: type[Part]) -> Mapping[type, Question]:
        questions: dict[type, Question] = {
            Text: self.text,
            ToolCall: self.call,
            Media: self.media,
            Native: self.native,
            Json: self.json,
        }
        return {kind: questions[kind] for kind in kinds}

    def _calls_alone(self) -> Mapping[type, Question]:
        return {**_EVERYTHING, ToolCall: self.call}

    # -- messages --------------------------------------------------------------------------------

    def user(self, message: Message, own: bool) -> bool:
        """Whether a user message goes out as it stands."""
        if not message.parts:
            return False
        bare = message.extras is None and message.name is None
        if not bare and not self.around(message, own):
            return False
        questions = self.of_user
        for part in message.parts:
            question = questions.get(type(part))
            if question is None or not question(part, own):
                return False
        return True

    def result(self, message: Message, result: ToolResult, own: bool) -> bool:
        """Whether a tool message with this one result goes out as it stands."""
        if result.outcome != "ok" and not own and not self._says_outcome(result):
            return False
        if not self.around(message, own) or not self.extras(result, own):
            return False
        if own and result.name is not None and not is_text(result.name):
            return False
        questions = self.of_result
        for part in result.content:
            question = questions.get(type(part))
            if question is None or not question(part, own):
                return False
            if type(part) is Media and not own and not self.holds_media:
                return False
        return True

    def _says_outcome(self, result: ToolResult) -> bool:
        return self.rules.flags_errors and result.outcome != "unknown" and bool(result.content)

    @property
    def holds_media(self) -> bool:
        """Whether a result of ours may hold media."""
        return self.rules.results is None or Media in self.rules.results

    def is_plain(self, content: tuple[ResultPart, ...]) -> bool:
        """Whether this is one text that goes out as it stands, whoever says it."""
        if len(content) != 1:
            return False
        part = content[0]
        if type(part) is not Text or part.extras is not None or part.citations:
            return False
        text = part.text
        if not text.isascii() and not is_text(text):
            return False
        return self._blank or not (not text or text.isspace())

    def around(self, message: Message, own: bool) -> bool:
        """Whether the name and the extras of a message go out as they stand."""
        if message.extras is not None and not self.extras(message, own):
            return False
        return message.name is None or self.speaker(message.name, own)

    def speaker(self, name: str, own: bool) -> bool:
        """Whether the name of a message goes out as it stands."""
        if own and is_text(name):
            return True
        names = self.rules.names
        return self.rules.names_messages and (names is None or names.fits(name))

    # -- parts -----------------------------------------------------------------------------------

    def extras(self, part: AnyPart | Message, own: bool) -> bool:
        """Whether what only this API says about a part goes out as it stands."""
        said = part.extra(self.api)
        if not said:
            return True
        self.hinted = True
        if own or self.rules.hints is None:
            return is_sound(said)
        allowed = self.rules.hints.get(type(part))
        return allowed is not None and said.keys() <= allowed and is_sound(said)

    def text(self, part: Text, own: bool) -> bool:
        """Whether a text goes out as it stands."""
        text = part.text
        if not text.isascii() and not is_text(text):
            return False
        if part.extras is not None and not self.extras(part, own):
            return False
        if own:
            return not part.citations or is_sound(part.citations)
        if part.citations:
            return False
        return self._blank or not (not text or text.isspace())

    def call(self, call: ToolCall, own: bool) -> bool:
        """Whether a call goes out as it stands (its id being unique apart)."""
        raw = call.raw
        if call.cut or (not raw.isascii() and not is_text(raw)):
            return False
        if "\\u" in raw and call.kind != "custom" and mend_arguments(raw) != raw:
            return False
        if call.extras is not None and not self.extras(call, own):
            return False
        if own:
            return self.rules.ids.fits(call.id) and is_text(call.name)
        if not self.rules.own_ids.fits(call.id) or call.id in self.made:
            return False
        return call.name in self._names or self.name(call.name)

    def name(self, name: str) -> bool:
        """Whether the name of a tool goes out as it stands."""
        if self.rules.names is not None and not self.rules.names.fits(name):
            return False
        self._names.add(name)
        return True

    def media(self, part: Media, own: bool) -> bool:
        """Whether media go out as they stand."""
        if not own and self.rules.media(part) is not part:
            return False
        return is_sound_media(part) and (part.extras is None or self.extras(part, own))

    def native(self, part: Native, own: bool) -> bool:
        """Whether a block of one API goes out as it stands."""
        return part.api == self.api and is_sound(part.block) and self.extras(part, own)

    def json(self, part: Json, own: bool) -> bool:
        """Whether a JSON value goes out: it is written as text, whatever it is."""
        return part.extras is None or self.extras(part, own)


def _yes(_part: AnyPart, _own: bool) -> bool:
    return True


_EVERYTHING: Mapping[type, Question] = dict.fromkeys(Part.__subclasses__(), _yes)


# -- what a strict reader takes ------------------------------------------------------------------


def is_sound_part(part: object) -> bool:
    """Whether every strict reader takes the texts and numbers of a part."""
    if type(part) is Media:
        return is_sound_media(part) and (part.extras is None or is_sound(part.extras))
    if type(part) is ToolResult:
        around = (part.call_id, part.name, part.extras)
        return is_sound(around) and all(map(is_sound_part, part.content))
    return not isinstance(part, Part) or is_sound(part)  # a part of a newer version says nothing


def is_sound_media(part: Media) -> bool:
    """Whether the words about media are such as every strict reader takes (bytes are)."""
    words = (part.media_type, part.name, part.detail, part.url, part.file_id)
    return all(word is None or is_text(word) for word in words)


def is_sound_reasoning(part: Reasoning) -> bool:
    """Whether every strict reader takes the texts of reasoning."""
    texts = (part.text, part.signature, part.data, part.id)
    return all(text is None or text.isascii() or is_text(text) for text in texts)
