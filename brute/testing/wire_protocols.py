"""The provider APIs the server speaks. A further one is a file of its own and a line here."""

from __future__ import annotations

import re
from collections.abc import Mapping

from brute.testing.wire_chat import CHAT
from brute.testing.wire_messages import MESSAGES
from brute.testing.wire_script import WireProtocol

PROTOCOLS: tuple[WireProtocol, ...] = (CHAT, MESSAGES)

BY_API: dict[str, WireProtocol] = {protocol.api: protocol for protocol in PROTOCOLS}

BASES: dict[str, str] = {protocol.sdk: protocol.base for protocol in PROTOCOLS}
"""What each SDK wants behind the host in its `base_url`."""


def protocol_of(path: str) -> WireProtocol | None:
    """The API that has this path."""
    return next((one for one in PROTOCOLS if re.fullmatch(one.path, path)), None)


def stranger(headers: Mapping[str, str]) -> WireProtocol:
    """The API in whose shape a request to an unknown path is refused: its client's, as it seems."""
    marked = (one for one in PROTOCOLS if one.marker is not None and one.marker in headers)
    return next(marked, CHAT)
