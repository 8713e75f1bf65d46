"""Ids, and the bytes that stand beside the log; what a store keeps is in the contract."""

from __future__ import annotations

import doctest
import threading
import time
import uuid
from importlib import import_module
from itertools import islice
from pathlib import Path

import msgspec
from hypothesis import given

from brute.events import blobs, codec, store
from brute.events.blobs import LIMIT, hash_of, put_back, references, take_out
from brute.events.entries import Record
from brute.events.events import PromptAppended, ToolReturned
from brute.events.ids import append_ids, new_id
from brute.events.log import EventLog
from brute.events.messages import Media, Message, ToolResult
from brute.events.store.base import Opener, Options
from brute.events.store.memory import open_memory
from brute.events.store.sqlite import open_sqlite
from brute.testing import strategies as st

# -- ids -----------------------------------------------------------------------------------------


def test_a_session_id_is_a_uuid_of_version_7_that_tells_its_time() -> None:
    before = time.time_ns() // 1_000_000
    ids = [new_id() for _ in range(3)]
    after = time.time_ns() // 1_000_000

    for found in ids:
        parsed = uuid.UUID(hex=found)
        assert (parsed.version, parsed.variant, parsed.hex) == (7, uuid.RFC_4122, found)
        assert before <= parsed.int >> 80 <= after + 1


def test_ids_of_one_process_rise_whichever_thread_asks() -> None:
    given: list[str] = []
    lock = threading.Lock()

    def ask() -> None:
        for _ in range(3000):
            with lock:
                given.append(new_id())

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert given == sorted(set(given))


def test_two_writers_never_name_a_commit_alike() -> None:
    one, two = list(islice(append_ids(), 1000)), list(islice(append_ids(), 1000))

    assert len({*one, *two}) == 2000


def test_a_log_gives_ids() -> None:
    assert EventLog.new_id() < EventLog.new_id()


# -- the bytes of media ----------------------------------------------------------------------------


@given(st.records())
def test_what_is_taken_out_is_put_back(record: Record) -> None:
    record = msgspec.structs.replace(record, large=False)

    smaller, taken = take_out(record)
    stored, _ = codec.decode(st.tag_in(record), codec.encode(smaller))

    assert put_back(stored, taken.__getitem__) == record if stored.large else stored == record
    assert stored.large == bool(taken)
    assert set(references(stored)) == set(taken)
    assert all(hash_of(data) == name and len(data) > LIMIT for name, data in taken.items())


def test_a_record_without_large_media_is_left_as_it_is() -> None:
    record = Record(at=1, event=PromptAppended(message=Message.user("a" * 2 * LIMIT)))

    assert take_out(record) == (record, {})
    assert take_out(record)[0] is record


def test_media_are_found_wherever_they_stand() -> None:
    image = Media(kind="image", data=b"a" * 2 * LIMIT)
    deep = Message(role="tool", parts=(ToolResult(content=(image,)), image))
    for event in (ToolReturned(content=(image,)), ToolReturned(message=deep)):
        smaller, taken = take_out(Record(at=1, event=event))

        assert list(taken.values()) == [image.data]
        assert len(codec.encode(smaller)) < 1000
        assert blobs.MEDIA in codec.encode(smaller)


# -- addresses of stores ---------------------------------------------------------------------------


def test_every_store_in_the_table_can_be_opened(tmp_path: Path) -> None:
    openers: dict[str, Opener] = {"sqlite": open_sqlite, "memory": open_memory}

    for kind, (module, name) in store.STORES.items():
        opener = openers[kind]
        assert getattr(import_module(module), name) is opener
        opener(str(tmp_path / kind), Options()).close()


def test_the_examples_of_addresses_hold() -> None:
    assert doctest.testmod(store).failed == 0
    assert doctest.testmod(store).attempted == 1
