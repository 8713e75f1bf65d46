"""What Azure's chat streams do that OpenAI's do not."""

from __future__ import annotations

from brute.transports import OpenAI
from tests.brute.replies import chunks

FILTER = {
    "choices": [],
    "created": 0,
    "id": "",
    "model": "",
    "object": "",
    "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
}


def test_a_first_chunk_without_a_choice_begins_the_reply_it_belongs_to() -> None:
    (message,) = OpenAI.wrap_each(iter([FILTER, *chunks("Hel", "lo")]))

    assert message.content == "Hello"
