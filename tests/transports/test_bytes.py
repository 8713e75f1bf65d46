"""Server-sent events and JSON, out of bytes in any pieces and texts that hold anything."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute.transports.sse import Frame, Frames
from brute.transports.wire import (
    from_base64,
    from_data_url,
    image_type,
    is_sound,
    json_text,
    mend_arguments,
    mend_json,
    mend_text,
    plain,
    same,
)

STREAM = (
    "\ufeffevent: a\r\ndata: é1\r\rdata: 2\n: a comment\nid: 7\ndata:  3\n\n"
    "retry: 5\n\ndata\n\ndata: 日本\r\n\r\ndata: last"
).encode()
FRAMES = [
    Frame("a", "é1"),
    Frame(None, "2\n 3"),
    Frame(None, ""),
    Frame(None, "日本"),
    Frame(None, "last"),
]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_frames_do_not_depend_on_where_the_bytes_are_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    frames = Frames()

    fed = [f for a, b in pairwise(edges) for f in frames.feed(STREAM[a:b])]

    assert fed + frames.close() == FRAMES


def test_one_byte_at_a_time_is_as_good_as_all_at_once() -> None:
    frames = Frames()

    fed = [frame for byte in STREAM for frame in frames.feed(bytes([byte]))]

    assert fed + frames.close() == FRAMES
    assert Frames().feed(b"\xef\xbb") == []


def test_a_lone_surrogate_in_argument_text_is_mended_and_nothing_else_is() -> None:
    assert mend_arguments(r'{"a": "\ud83c\udf78 \u00e9 \n"}') == r'{"a": "\ud83c\udf78 \u00e9 \n"}'
    assert mend_arguments(r'{"a": "\ud800 \\ud800 \udc00x"}') == r'{"a": "\ufffd \\ud800 \ufffdx"}'
    assert mend_arguments('{"a": "\ud800"}') == '{"a": "\ufffd"}'
    assert mend_text("a\ud83d\ude00\ud83d") == "a\U0001f600\ufffd"


@given(text=st.text() | st.text(st.characters(categories=["Cs", "Lu"])))
def test_mended_text_is_text_and_text_is_left_alone(text: str) -> None:
    mended = mend_text(text)

    assert mended.encode().decode() == mended
    assert mend_text(mended) == mended
    if is_sound(text):
        assert mended == text
    json.loads(mend_arguments(json.dumps({text: text}))).popitem()[0].encode()


def test_numbers_that_are_none_become_null_and_big_ones_stay() -> None:
    value = {"a": [math.nan, -math.inf, 10**30, 1.5], "b\ud800": "\udfff", "c": {1: object}}

    assert not is_sound(value)
    assert is_sound([10**30, None, {"a": "é"}])
    assert mend_json({"a": [math.nan, 10**30], "b\ud800": "\udfff"}) == {
        "a": [None, 10**30],
        "b\ufffd": "\ufffd",
    }
    assert json.loads(json_text(value))["a"] == [None, None, 10**30, 1.5]
    assert json.loads(json_text(value))["c"] == {"1": str(object)}


@pytest.mark.parametrize(
    ("one", "other"),
    [(2, 2.0), (1, True), (0, False), ("1", 1), ([1], [1, 2]), ({"a": 1}, {"a": 1, "b": None})],
)
def test_json_values_of_different_types_are_not_the_same(one: object, other: object) -> None:
    assert not same(one, other)
    assert not same([{"a": one}], [{"a": other}])
    assert same({"a": [one], "b": None}, {"b": None, "a": [one]})


def test_base64_that_would_not_come_back_the_same_is_left_as_text() -> None:
    assert from_base64("QUJD") == b"ABC"
    assert [from_base64(t) for t in ("QUI", "QUJD\n", "QR==", None, "é", 5)] == [None] * 6
    assert from_data_url("data:image/png;base64,QUJD") == ("image/png", b"ABC")
    assert [from_data_url(u) for u in ("data:,a", "https://a.b", None)] == [None] * 3


@pytest.mark.parametrize(
    ("data", "said", "found"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/jpeg", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpg", "image/jpeg"),
        (b"GIF89a", None, "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/png", "image/webp"),
        (b"?", "image/jpg", "image/jpeg"),
        (b"?", "image/tiff", "image/tiff"),
        (b"", None, None),
    ],
)
def test_an_image_is_what_its_first_bytes_say(
    data: bytes, said: str | None, found: str | None
) -> None:
    assert image_type(data, said) == found


def test_objects_of_a_library_are_asked_for_what_the_wire_said() -> None:
    class Old:
        def to_dict(self) -> dict[str, int]:
            return {"a": 1}

    class Model:
        def model_dump(self, **options: object) -> dict[str, object]:
            return options

    untouched = object()

    assert plain(Old()) == {"a": 1}
    assert plain(Model()) == {"mode": "json", "exclude_unset": True, "warnings": False}
    assert plain(untouched) is untouched
    assert plain(b"x") == b"x"
