"""What a type checker sees of a transport that overrides `wrap` and `dump` alone. Never run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_type

from brute.events.messages import Message
from brute.transports import Anthropic, MessageTransport, OpenAI
from brute.transports.base import Delta, Loss, Reply, Request, Violation


class AsClassMethod(MessageTransport):
    @classmethod
    def dump(cls, message: Message) -> dict[str, Any]:
        return {"text": message.content}

    def wrap(self, message: dict[str, Any]) -> Message:
        return Message.user(str(message["text"]))


class AsStaticMethod(MessageTransport):
    @staticmethod
    def dump(message: Message) -> dict[str, Any]:
        return {"text": message.content}

    def wrap(self, message: object) -> Message:
        return Message.user(str(message))


class WithOptions(OpenAI):
    @classmethod
    def dump(cls, message: Message) -> dict[str, Any]:
        dumped = super().dump(message)
        return dumped if isinstance(dumped, dict) else dumped[0]


def uses(transport: type[MessageTransport], talk: list[Message], result: object) -> None:
    assert_type(transport.wrap_each(result), Iterator[Message])
    assert_type(transport(result).wrap_each(), Iterator[Message])
    assert_type(transport.dump_all(talk, model="m"), list[dict[str, Any]])
    assert_type(transport.load_all(talk), list[Message])
    assert_type(transport.request(talk, max_tokens=1), Request)
    assert_type(transport.losses(talk), list[Loss])
    assert_type(transport.check({}), list[Violation])
    assert_type(transport.reply(result), Reply)
    assert_type(transport.stream().feed(b""), list[Delta])


assert_type(Anthropic.system_text([]), str | None)
uses(AsClassMethod, [], None)
uses(AsStaticMethod, [], None)
uses(WithOptions, [], None)
