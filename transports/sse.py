"""Server-sent events out of bytes that may be cut anywhere, inside a character too.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

from typing import NamedTuple


class Frame(NamedTuple):
    """One server-sent event."""

    event: str | None
    data: str


class Frames:
    r"""Eats bytes, gives the frames that are whole, keeps the rest.

    >>> frames = Frames()
    >>> frames.feed(b'data: {"a"')
    []
    >>> frames.feed(b': 1}\n\n')
    [Frame(event=None, data='{"a": 1}')]
    """

    def __init__(self) -> None:
        self._rest = b""
        self._event: str | None = None
        self._data: list[str] = []
        self._begun = False

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete."""
        if not self._begun:
            data = self._rest + data
            self._rest = b""
            if len(data) < 3 and b"\xef\xbb\xbf".startswith(data):
                self._rest = data
                return []
            self._begun = True
            data = data.removeprefix(b"\xef\xbb\xbf")
        *lines, self._rest = self._lines(self._rest + data)
        return [frame for line in lines if (frame := self._line(line)) is not None]

    @staticmethod
    def _lines(data: bytes) -> list[bytes]:
        # A line ends in LF, CR LF or CR; a CR at the very end may be the first half of CR LF.
        held = data.endswith(b"\r")
        text = data[:-1] if held else data
        lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if held:
            lines[-1] += b"\r"
        return lines

    def close(self) -> list[Frame]:
        """The frame that stood unfinished at the end, if it has data (many servers stop there)."""
        rest, self._rest = self._rest, b""
        frames = [self._line(line) for line in (rest.rstrip(b"\r"), b"")]
        return [frame for frame in frames if frame is not None]

    def _line(self, line: bytes) -> Frame | None:
        if not line:
            return self._dispatch()
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        return None

    def _dispatch(self) -> Frame | None:
        event, data = self._event, self._data
        self._event, self._data = None, []
        return Frame(event, "\n".join(data)) if data else None
