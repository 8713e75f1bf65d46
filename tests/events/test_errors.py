"""Errors say where, what was found and what to do now, and survive being sent elsewhere."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from brute.events import errors

SAMPLES: dict[str, tuple[object, ...]] = {
    "WrongType": ("an id", ["a"], "a text"),
    "EncodingError": ("/event/value/a", "the number nan"),
    "MissingExtra": ("brute.testing.st", "hypothesis", "testing"),
    "UnknownSession": ("0193", ("0193a", "0193b")),
    "UnknownPosition": ("s1", 9, 4),
    "Conflict": ("s1", 3, 5),
    "Fenced": ("s1", 3, 5),
    "AlreadyAnswered": ("s1", 3, 5),
    "StoreError": ("agent.db", "it is locked", "close the other writer"),
    "LogClosed": ("agent.db", "the log was closed"),
    "CriticalUnknown": ("agent.db: s1@3", "content.erased"),
}

ERRORS = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, errors.BruteError)
]


def sample(cls: type[errors.BruteError]) -> errors.BruteError:
    for base in cls.__mro__:
        if base.__name__ in SAMPLES:
            return cls(*SAMPLES[base.__name__])
    return cls("what was found; what to do")


@pytest.mark.parametrize("cls", ERRORS)
def test_an_error_survives_pickling_and_copying(cls: type[errors.BruteError]) -> None:
    error = sample(cls)

    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is cls
        assert str(other) == str(error)
        assert other.args == error.args
        assert {k: v for k, v in vars(other).items() if v is not None} == {
            k: v for k, v in vars(error).items() if v is not None
        }


@pytest.mark.parametrize("cls", ERRORS)
def test_an_error_names_the_place_and_is_one_of_ours(cls: type[errors.BruteError]) -> None:
    error = sample(cls)

    assert isinstance(error, errors.BruteError)
    assert str(error.args[0]) in str(error)
    assert cls.__doc__
    assert "\n" not in str(error)


def test_an_encoding_error_says_what_to_give_instead() -> None:
    assert str(errors.EncodingError("/event/value/a", "the number nan")) == (
        "/event/value/a: the number nan cannot be stored so that it comes back the same; give a "
        "value that JSON has (a text, a number, true, null, a list, a dict with texts as keys), of "
        "the type the field names"
    )
