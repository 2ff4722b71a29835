"""One HTTP/1.1 connection to a node, as our nodes speak it.

    head = connection.exchange(b"GET /v1/... HTTP/1.1\\r\\n...\\r\\n\\r\\n")
    body = connection.read()            # or read_into(); whole, before the next call

A reply has a status line, headers, and a body with Content-Length or in chunks.  Anything else is
an error, not a guess.  `recv` releases the GIL while bytes move, and asks for a whole body at once.

A connection belongs to one thread at a time.  A forked child closes its descriptors of all
connections: what it goes on reading breaks off, and is read again over a connection of its own.
"""

from __future__ import annotations

import io
import os
import socket
import ssl
import struct
import weakref
from typing import Callable, Dict, Iterator, Optional, Tuple, Union

from .errors import Error, Invalid

HEAD_MAX = 64 << 10  #: bytes of a reply's status line and headers
FIRST = 8 << 10  #: bytes that are asked for with a head: small bodies come along
LINE_MAX = 4 << 10  #: bytes of the line before a chunk
CHUNK_MAX = 1 << 30  #: bytes of a chunk
STEP = 1 << 20  #: bytes of a body that are sent at once
COPIED_MAX = 64 << 10  #: a chunk up to this is copied, so that one call of the kernel sends it


class Broken(Exception):
    """The connection is of no use any more.  `sent`: the other side may have taken the request."""

    def __init__(self, why: str, *, sent: bool, silent: bool = False) -> None:
        super().__init__(why)
        self.sent = sent
        self.silent = silent  # it did not answer in time


class Head:
    """Status and headers of a reply.  Names are in small letters."""

    __slots__ = ("status", "headers")

    def __init__(self, status: int, headers: Dict[str, str]) -> None:
        self.status = status
        self.headers = headers

    def get(self, name: str) -> str:
        return self.headers.get(name, "")


def parse_head(block: bytes) -> Head:
    """The text before the empty line."""
    lines = block.decode("latin-1").split("\r\n")
    first = lines[0]
    if not first.startswith("HTTP/1.1 ") or not first[9:12].isdigit():
        raise Broken(f"no reply of HTTP/1.1: {first[:80]!r}", sent=True)
    headers: Dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise Broken(f"a header that is none: {line[:80]!r}", sent=True)
        name = name.lower()
        if name == "content-length" and headers.get(name, value.strip()) != value.strip():
            raise Broken("a reply with two lengths", sent=True)
        headers[name] = value.strip()
    return Head(int(first[9:12]), headers)


def body_length(method: str, head: Head) -> Optional[int]:
    """None: in chunks."""
    if method == "HEAD" or head.status in (204, 304) or head.status < 200:
        return 0
    coding = head.get("transfer-encoding")
    if coding:
        if coding.lower() != "chunked":
            raise Broken(f"the transfer coding {coding!r}", sent=True)
        return None
    text = head.get("content-length")
    if not text.isascii() or not text.isdigit():
        raise Broken(f"the length {text!r} of a body", sent=True)
    return int(text)


def plain_body(head: bytes) -> Optional[Tuple[int, bytes]]:
    """Length and xxh3 (or b"") of the body, out of the head of a 200 in small letters, with the end
    of its last line.  None: parse_head() has to look at it."""
    at = head.find(b"\r\ncontent-length:")
    if at < 0 or head.find(b"\r\ncontent-length:", at + 2) >= 0 or \
            b"\r\ntransfer-encoding:" in head or b"\r\nconnection:" in head:
        return None
    length = head[at + 17:head.find(b"\r\n", at + 2)].strip()
    if not length.isdigit():
        return None
    at = head.find(b"\r\ndfc-checksum-value:")
    if at < 0 or b"\r\ndfc-checksum-type: xxh3\r\n" not in head:
        return int(length), b""
    return int(length), head[at + 21:head.find(b"\r\n", at + 2)].strip()


def _connect(address: Tuple[str, int], tls: Optional[ssl.SSLContext],
             connect: float) -> socket.socket:
    plain = socket.create_connection(address, connect)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return plain if tls is None else tls.wrap_socket(plain, server_hostname=address[0])
    except ssl.SSLCertVerificationError as e:
        plain.close()
        raise Error(f"{address[0]}:{address[1]} is not trusted: {e.verify_message}; ca_file names "
                    "the authority of the cluster's certificates") from e
    except ssl.SSLError as e:
        plain.close()
        if e.reason != "WRONG_VERSION_NUMBER":
            raise
        raise Invalid(f"{address[0]}:{address[1]} does not speak TLS: the endpoint has to be "
                      "http://HOST:PORT", code="invalid_argument") from e
    except BaseException:
        plain.close()
        raise


def _limit_silence(sock: socket.socket, seconds: float, tls: bool) -> None:
    """With settimeout() each recv() is two calls of the kernel; so plain sockets have the kernel's
    own limits.  Those do nothing under TLS, where `ssl` asks again and again."""
    if tls:
        sock.settimeout(seconds)
        return
    sock.settimeout(None)
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def filled(count: int, fill: Callable[[memoryview], None]) -> bytes:
    """So many bytes, which fill() writes; they are not copied."""
    out = io.BytesIO(bytes(count))
    with out.getbuffer() as view:
        fill(view)
    return out.getvalue()


class Connection:
    """To one node.  `silence`: seconds without a byte after which it counts as dead."""

    def __init__(self, address: Tuple[str, int], tls: Optional[ssl.SSLContext], connect: float,
                 silence: float) -> None:
        self.used = 0  # replies that were read
        self._buffer = b""  # bytes that have come and belong to nobody yet
        self._left: Optional[int] = 0  # of the body; None: in chunks
        self._method = "GET"
        self._keep = True  # the node does
        self._sound = True
        try:
            self._socket = _connect(address, tls, connect)
            _limit_silence(self._socket, silence, tls is not None)
        except (OSError, UnicodeError) as e:
            raise Broken(f"{address[0]}:{address[1]}: {e}", sent=False,
                         silent=isinstance(e, TimeoutError)) from e
        self._whole = 0 if tls is not None else socket.MSG_WAITALL
        _open.add(self)

    def close(self) -> None:
        self._sound = False
        self._socket.close()

    @property
    def reusable(self) -> bool:
        """The reply was read to its end, and the node keeps the connection."""
        return self._sound and self._keep and self._left == 0 and not self._buffer

    # --- the request ---

    def send(self, data: "bytes | bytearray | memoryview") -> None:
        try:
            self._socket.sendall(data)
        except OSError as e:
            self._sound = False
            raise self._broken(e) from e

    def send_chunk(self, data: "bytes | bytearray | memoryview") -> None:
        """A piece of a body of unknown length; an empty one ends it.  A large one is not copied."""
        if len(data) <= COPIED_MAX:
            self.send(b"%x\r\n%b\r\n" % (len(data), data))
            return
        self.send(b"%x\r\n" % len(data))
        self.send(data)
        self.send(b"\r\n")

    def exchange(self, method: str, request: "bytes | bytearray") -> Head:
        """Sends it, and reads the head of the final reply."""
        self.send(request)
        return self.final_head(method)

    def get(self, request: bytes, most: int) -> Union[Tuple[bytes, bytes], Head]:
        """Sends a GET.  A body of at most `most` bytes comes whole, with its xxh3 or b"" where the
        reply has none; of any other reply there is the head.  One call of the kernel to send and one
        to receive, where the reply is small."""
        try:
            self._socket.sendall(request)
            data = self._socket.recv(FIRST)
        except OSError as e:
            self._sound = False
            raise self._broken(e) from e
        end = data.find(b"\r\n\r\n")
        if end > 0 and data.startswith(b"HTTP/1.1 200 "):
            body = plain_body(data[:end + 2].lower())
            if body is not None and body[0] <= most:
                self._buffer, self._left = data[end + 4:], body[0]
                self.used += 1
                return self.read(), body[1]
        self._buffer = data
        return self.final_head("GET")

    # --- the reply ---

    def final_head(self, method: str) -> Head:
        self._method = method
        while True:
            head = self.next_head()
            if head.status >= 200:
                return head

    def next_head(self) -> Head:
        """Also an interim one, as 100 Continue."""
        data = self._buffer
        end = data.find(b"\r\n\r\n")
        while end < 0:
            if len(data) > HEAD_MAX:
                raise Broken(f"a reply's head of more than {HEAD_MAX} bytes", sent=True)
            data += self._some(FIRST)
            end = data.find(b"\r\n\r\n")
        self._buffer = data[end + 4:]
        head = parse_head(data[:end])
        self._left = body_length(self._method, head)
        self._keep = head.get("connection").lower() != "close"
        self.used += head.status >= 200
        return head

    def read(self) -> bytes:
        """The whole body."""
        if self._left is None:
            return b"".join(self._chunks())
        data = self._exactly(self._left)
        self._left = 0
        return data

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes."""
        if self._left is None:
            yield from self._chunks()
            return
        while self._left > 0:
            step = min(self._left, CHUNK_MAX)
            self._left -= step
            yield self._exactly(step)

    def read_into(self, view: memoryview) -> int:
        """As much of the body as there is room for; how many bytes that were."""
        if self._left is None:
            raise Broken("a body in chunks where its length is needed", sent=True)
        want = min(len(view), self._left)
        self._fill(view[:want])
        self._left -= want
        return want

    # --- inside ---

    def _broken(self, e: OSError) -> Broken:
        """A kept connection that its node has closed broke before the request was looked at; but
        that cannot be told from one that broke after it."""
        silent = isinstance(e, (BlockingIOError, TimeoutError, ssl.SSLWantReadError))
        return Broken("the node is silent" if silent else str(e), sent=True, silent=silent)

    def _some(self, most: int) -> bytes:
        try:
            data = self._socket.recv(most)
        except OSError as e:
            raise self._broken(e) from e
        if not data:
            raise Broken("the node closed the connection", sent=True)
        return data

    def _exactly(self, count: int) -> bytes:
        if count <= len(self._buffer):
            data, self._buffer = self._buffer[:count], self._buffer[count:]
            return data
        return filled(count, self._fill)

    def _fill(self, view: memoryview) -> None:
        """With bytes of the buffer first."""
        at, end = min(len(view), len(self._buffer)), len(view)
        view[:at] = self._buffer[:at]
        self._buffer = self._buffer[at:]
        while at < end:
            try:
                got = self._socket.recv_into(view[at:], min(end - at, CHUNK_MAX), self._whole)
            except OSError as e:
                raise self._broken(e) from e
            if got == 0:
                raise Broken(f"the reply broke off {end - at} bytes before its end", sent=True)
            at += got

    def _line(self) -> bytes:
        data = self._buffer
        while b"\r\n" not in data:
            if len(data) > LINE_MAX:
                raise Broken(f"a chunk's line of more than {LINE_MAX} bytes", sent=True)
            data += self._some(FIRST)
        line, _, self._buffer = data.partition(b"\r\n")
        return line

    def _chunks(self) -> Iterator[bytes]:
        while True:
            size = self._line().split(b";", 1)[0]
            if not size or any(c not in b"0123456789abcdefABCDEF" for c in size) or \
                    int(size, 16) > CHUNK_MAX:
                raise Broken(f"the length {size[:20]!r} of a chunk", sent=True)
            count = int(size, 16)
            if count == 0:
                while self._line():  # trailers
                    pass
                self._left = 0
                return
            yield self._exactly(count)
            if self._line():
                raise Broken("a chunk that is longer than it says", sent=True)


_open: "weakref.WeakSet[Connection]" = weakref.WeakSet()


def _close_all() -> None:
    for connection in list(_open):
        connection.close()


os.register_at_fork(after_in_child=_close_all)
