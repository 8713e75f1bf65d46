"""What Brute gives to tests: strategies for laws, a scripted provider for real SDK clients.

Every name loads on first use: a test that needs the server alone does not need hypothesis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brute.testing import strategies as st
    from brute.testing.server import Script as Script
    from brute.testing.server import ScriptedServer as ScriptedServer
    from brute.testing.server import provider_refusal as provider_refusal
    from brute.testing.wire_faults import CutStream as CutStream
    from brute.testing.wire_faults import Drip as Drip
    from brute.testing.wire_faults import Hangup as Hangup
    from brute.testing.wire_faults import HttpError as HttpError
    from brute.testing.wire_faults import RawBody as RawBody
    from brute.testing.wire_faults import StreamError as StreamError
    from brute.testing.wire_http import Wire as Wire
    from brute.testing.wire_script import Answer as Answer
    from brute.testing.wire_script import Call as Call
    from brute.testing.wire_script import Exchange as Exchange
    from brute.testing.wire_script import Refused as Refused
    from brute.testing.wire_script import Reply as Reply
    from brute.testing.wire_script import Request as Request
    from brute.testing.wire_script import Tokens as Tokens

__all__ = [
    "Answer",
    "Call",
    "CutStream",
    "Drip",
    "Exchange",
    "Hangup",
    "HttpError",
    "RawBody",
    "Refused",
    "Reply",
    "Request",
    "Script",
    "ScriptedServer",
    "StreamError",
    "Tokens",
    "Wire",
    "provider_refusal",
    "st",
]

_HOME = {
    name: f"brute.testing.{module}"
    for module, names in {
        "server": "Script ScriptedServer provider_refusal",
        "wire_faults": "CutStream Drip Hangup HttpError RawBody StreamError",
        "wire_http": "Wire",
        "wire_script": "Answer Call Exchange Refused Reply Request Tokens",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    value: object
    if name == "st":
        value = import_module("brute.testing.strategies")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
