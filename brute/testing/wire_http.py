"""Just enough HTTP/1.1 to serve a provider's SDK client, and to break off wherever a test wants.

`http.server` writes the header and the body apart (40 ms a request until both are joined and Nagle
is off) and cannot end a reply in its middle, so this is a listener of its own: one thread accepts,
each connection has a thread, `Listener.close` ends them all and waits for them.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import cycle
from typing import BinaryIO, Literal, TypeAlias

Headers: TypeAlias = tuple[tuple[str, str], ...]

_LONGEST_LINE = 65_536
"""Bytes of a request line or header; a longer one is not from an SDK client."""

_CLOSE_SECONDS = 10.0
"""How long `Listener.close` waits for a function of the script that is still running."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """One HTTP request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    """By lower-case name; of a repeated header the last one."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Wire:
    """One HTTP reply: its bytes, the pieces they are sent in, and how it ends."""

    status: int
    headers: Headers
    frames: tuple[bytes, ...] = ()
    """The body: one frame a server-sent event, or the whole of a plain body in one."""
    streamed: bool = False
    """Sent in chunks (server-sent events) rather than with a content-length."""
    ending: Literal["whole", "cut", "hangup"] = "whole"
    """`cut`: the connection closes before the body is complete; `hangup`: before any byte."""
    missing: int = 0
    """Bytes that the content-length promises beyond the frames, for a plain body that is cut."""
    sizes: tuple[int, ...] = ()
    """Sizes of the pieces in bytes, over and over; empty: a piece is a frame."""
    gap: float = 0.0
    """Seconds between two pieces."""

    @property
    def body(self) -> bytes:
        """The body's bytes, all frames joined."""
        return b"".join(self.frames)

    def head(self) -> bytes:
        """The status line and the headers, with the length in the form this reply is sent in."""
        length = (
            ("transfer-encoding", "chunked")
            if self.streamed
            else ("content-length", str(len(self.body) + self.missing))
        )
        lines = [f"HTTP/1.1 {self.status} {_reason(self.status)}"]
        lines += [f"{name}: {value}" for name, value in (*self.headers, length)]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def pieces(self) -> Iterator[bytes]:
        """The body as it is written, each piece framed as one HTTP chunk when streamed."""
        for piece in _resized(self.frames, self.sizes):
            yield b"%x\r\n%s\r\n" % (len(piece), piece) if self.streamed else piece
        if self.streamed and self.ending == "whole":
            yield b"0\r\n\r\n"


def _reason(status: int) -> str:
    with contextlib.suppress(ValueError):
        return HTTPStatus(status).phrase
    return "Overloaded" if status == 529 else "Unknown"  # 529 is Anthropic's own


def _resized(frames: Sequence[bytes], sizes: Sequence[int]) -> Iterator[bytes]:
    """The same bytes in pieces of the given sizes; never an empty one, which would end a body."""
    if not sizes:
        yield from filter(None, frames)
        return
    body, start = b"".join(frames), 0
    for size in cycle(sizes):
        if start >= len(body):
            return
        yield body[start : start + size]
        start += size


class Listener:
    """Accepts connections on a free port of 127.0.0.1 and answers their requests until closed."""

    def __init__(self, answer: Callable[[Incoming], Wire]) -> None:
        self._answer = answer
        self._closing = threading.Event()
        self._connections: dict[threading.Thread, socket.socket] = {}
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._socket.getsockname()[1]
        self._acceptor = threading.Thread(
            target=self._accept, name=f"scripted-server-{self.port}", daemon=True
        )
        self._acceptor.start()

    def close(self) -> None:
        """End every connection and wait for its thread.

        Raises:
            RuntimeError: A function of the script is still running after 10 seconds.
        """
        if self._closing.is_set():
            return
        self._closing.set()
        with contextlib.suppress(OSError):  # wakes the acceptor, which then sees `_closing`
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        self._acceptor.join()
        self._socket.close()
        with self._lock:
            connections = dict(self._connections)
        for connection in connections.values():
            with contextlib.suppress(OSError):  # wakes a thread that waits for the next request
                connection.shutdown(socket.SHUT_RDWR)
        for thread in connections:
            thread.join(_CLOSE_SECONDS)
        if stuck := [thread.name for thread in connections if thread.is_alive()]:
            raise RuntimeError(
                f"{len(stuck)} request(s) of the scripted server are still being answered "
                f"({', '.join(stuck)}): a function of the script has not returned; "
                "release what it waits for before the server is closed"
            )

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except ConnectionError:  # a client that was gone before it was accepted
                continue
            if self._closing.is_set():
                connection.close()
                return
            thread = threading.Thread(
                target=self._serve,
                args=(connection,),
                name=f"{self._acceptor.name}-{connection.fileno()}",
                daemon=True,
            )
            with self._lock:
                self._connections[thread] = connection
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer one connection's requests, in their order, until either side has enough."""
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection.makefile("rb") as stream, contextlib.suppress(OSError):
                while (incoming := _read(stream, connection)) is not None:
                    if not self._send(connection, self._answer(incoming)):
                        break
        finally:
            connection.close()
            with self._lock:
                del self._connections[threading.current_thread()]

    def _send(self, connection: socket.socket, wire: Wire) -> bool:
        """Write one reply; True while the connection stays open for the next request."""
        if wire.ending == "hangup":
            return False
        if not wire.gap:
            connection.sendall(b"".join((wire.head(), *wire.pieces())))
            return wire.ending == "whole"
        connection.sendall(wire.head())
        for piece in wire.pieces():
            connection.sendall(piece)
            if self._closing.wait(wire.gap):
                return False
        return wire.ending == "whole"


def _read(stream: BinaryIO, connection: socket.socket) -> Incoming | None:
    """The next request of a connection; None when the client has hung up or speaks no HTTP."""
    try:
        method, target, _version = stream.readline(_LONGEST_LINE).decode("latin-1").split()
        headers = dict(_headers(stream))
        length = int(headers.get("content-length", "0"))
    except ValueError:
        return None
    if headers.get("expect", "").lower() == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = stream.read(length)
    return Incoming(method, target, headers, body) if len(body) == length else None


def _headers(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    while line := stream.readline(_LONGEST_LINE).decode("latin-1").strip():
        name, value = line.split(":", 1)
        yield name.strip().lower(), value.strip()
