"""One call: where it goes, its redirects, and its repetitions.

    reply = caller.call(Request("GET", "/v1/objects/b/o", owner=("b", "o")))
    try:     reply.read()
    finally: reply.close()

A call about an object goes to the target that leads it (_map.py), else to an endpoint, whose
redirect leads there.  Where a target cannot be reached from here, an endpoint streams the bytes.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, Optional, Tuple, Type, Union
from urllib.parse import quote, urljoin, urlsplit

from . import _retry, _wire
from ._auth import Identity
from ._body import Body, Memory
from ._config import Origin
from ._map import Map, Place
from ._pool import KEPT_MAX, Pool
from ._retry import Outcome
from .errors import Error, Invalid, Timeout, Unreachable, of_reply

REDIRECTS_MAX = 5
#: A body up to this goes along at once: announcing it costs a round trip.
UNANNOUNCED_MAX = 16 << 10
#: For so long a target that could not be reached is not tried again: an endpoint streams.
RELAY_SECONDS = 300.0
#: A body up to this is read in one piece; a longer one by a reader, which can go on in its midst.
WHOLE_MAX = 1 << 20
_chance = random.SystemRandom()  # forked processes do not draw the same


def _request_id() -> str:
    """Of one call; all its tries have the same."""
    return os.urandom(12).hex()


def encode_name(name: str) -> str:
    """A bucket's or object's name as it stands in a path."""
    return quote(name, safe="/~()!*'")


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _check_value(name: str, value: str) -> str:
    if not _TOKEN.fullmatch(name):
        raise Invalid(f"'{name}' is no name of a header", code="invalid_argument")
    if any(ord(c) < 32 or ord(c) == 127 for c in value):
        raise Invalid(f"the header {name} has a control character", code="invalid_argument")
    return value


@dataclass
class Request:
    method: str
    path: str  #: encoded
    query: Dict[str, str] = field(default_factory=dict)
    headers: Dict[str, str] = field(default_factory=dict)
    body: Optional[Body] = None
    twice_is_harmless: bool = True
    owner: Optional[Tuple[str, str]] = None  #: bucket and object, where a target answers
    by_proxy: bool = False  #: a proxy knows the target, and the map does not
    node: Optional[str] = None  #: the target that answers, where it is not the object's
    endpoint: Optional[int] = None  #: this one alone
    resent: bool = False  #: since a kept connection broke: the first time may have done it


class Reply:
    """Head and body of a reply that is a success.  The body is read once; then close()."""

    def __init__(self, pool: Pool, origin: Origin, connection: _wire.Connection,
                 head: _wire.Head) -> None:
        self.status = head.status
        self.headers = head.headers
        self._pool = pool
        self._origin = origin
        self._connection: Optional[_wire.Connection] = connection

    def _open(self) -> _wire.Connection:
        if self._connection is None:
            raise ValueError("the reply is closed")
        return self._connection

    def read(self) -> bytes:
        return self._open().read()

    def pieces(self) -> Iterator[bytes]:
        return self._open().pieces()

    def read_into(self, view: memoryview) -> int:
        return self._open().read_into(view)

    def drop(self) -> None:
        """As close(), where nobody knows how far the body was read."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Keeps the connection for the next call if the body was read to its end."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give(self._origin, connection)


class Failed(Exception):
    """A try that may be followed by another."""

    def __init__(self, error: Error, outcome: Outcome, retry_after: float = 0.0,
                 target: Optional[Origin] = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.outcome = outcome
        self.retry_after = retry_after
        self.target = target  # a target that could not be reached


class Caller:
    """Threads: any."""

    def __init__(self, endpoints: Tuple[Origin, ...], pool: Pool, identity: Identity, agent: str,
                 policy: _retry.Policy, direct: bool) -> None:
        self.endpoints = endpoints
        self.policy = policy
        self.map = Map(self._fetch_map) if direct else None
        self._pool = pool
        self._identity = identity
        self._agent = agent
        self._current = 0  # the endpoint that answered last
        self._relayed: Dict[Origin, float] = {}  # targets that cannot be reached: until when

    # --- a call ---

    def call(self, request: Request, retry: Optional[_retry.Retry] = None,
             failed: Optional[Failed] = None) -> Reply:
        """The reply of a success.  `retry` goes on counting where a caller makes several calls for
        one purpose; `failed` is a try that was made before."""
        retry = retry or _retry.Retry(self.policy, time.monotonic())
        request_id = _request_id()
        tried = 0 if failed is None else self._pause(request, failed, retry, 0)
        while True:
            try:
                return self._try(request, request_id, (self._current + tried) % len(self.endpoints))
            except Failed as failed:
                tried = self._pause(request, failed, retry, tried)

    def _pause(self, request: Request, failed: Failed, retry: _retry.Retry, tried: int) -> int:
        """Waits before the next try, or raises.  How many endpoints of this round were tried."""
        if failed.target is not None:
            self._relayed[failed.target] = time.monotonic() + RELAY_SECONDS
        unsent = failed.outcome is Outcome.UNSENT
        other = unsent and (failed.target is not None or tried + 1 < len(self.endpoints))
        once = request.body is not None and not request.body.repeatable
        wait = retry.next(_retry.Question(
            failed.outcome, time.monotonic(), _chance.random(), other_endpoint=other,
            twice_is_harmless=request.twice_is_harmless and not once,
            retry_after=failed.retry_after))
        if wait is None or (once and not unsent):
            raise failed.error from None
        time.sleep(wait)
        return tried + 1 if other and failed.target is None else 0

    def get(self, bucket: str, name: str,
            path: str) -> Union[Tuple[bytes, bytes], Reply, Failed, None]:
        """One try to read a whole object over a kept connection: bytes and their xxh3 (or b""), or a
        reply whose body is still to be read.  Everything out of the ordinary is left to call(): a
        failure is for its count, None is for it to begin.  Raises what is final."""
        place = self.map.place(bucket, name) if self.map is not None else None
        if place is None or self.endpoints[0].tls and not place.origin.tls:
            return None
        if self._relayed and self._relayed.get(place.origin, 0.0) > time.monotonic():
            return None
        if not place.tail:
            self._prepare(place)
        known, token = self._identity.at_hand()
        if not known or not place.kept:
            return None
        try:
            connection = place.kept.pop()
        except IndexError:
            return None  # another thread was faster
        proof = "" if token is None else f"Authorization: Bearer {token}\r\n"
        request = f"GET {path}{place.tail}{proof}\r\n".encode()
        try:
            found = connection.get(request, WHOLE_MAX)
        except _wire.Broken as e:
            connection.close()
            return Failed(Timeout(f"{place.origin}: {e}", code="timeout"),
                          Outcome.BROKEN) if e.silent else None
        except BaseException:
            connection.close()
            raise
        if isinstance(found, tuple):
            if connection.reusable and len(place.kept) < KEPT_MAX:
                place.kept.append(connection)
            else:
                connection.close()
            return found
        return self._unusual(Reply(self._pool, place.origin, connection, found), place)

    def _unusual(self, reply: Reply, place: Place) -> Union[Reply, Failed, None]:
        if reply.status < 300:
            return reply
        if reply.status in (307, 308, 401):
            if reply.status != 401 and self.map is not None:
                self.map.is_old()
            reply.close()
            return None
        failed = self._judge(reply, place.origin)
        if isinstance(failed, Failed):
            return failed
        raise failed

    def _prepare(self, place: Place) -> None:
        place.kept = self._pool.idle(place.origin)
        place.tail = (f"?{place.query} HTTP/1.1\r\nHost: {place.origin.authority}\r\n"
                      f"User-Agent: {self._agent}\r\n")

    # --- one try ---

    def _try(self, request: Request, request_id: str, endpoint: int) -> Reply:
        if request.endpoint is not None:
            endpoint = request.endpoint
        origin, target, placed = self._place(request, endpoint)
        for again in (False, True):
            token = self._token(origin, endpoint)
            reply = self._follow(request, request_id, origin, target, token, placed)
            if reply.status < 300:
                if not placed:
                    self._current = endpoint
                return reply
            if again or not self._token_ended(token, reply, request):
                raise self._judge(reply, origin)
            reply.close()
        raise AssertionError("two tries end in a return or a raise")

    def _place(self, request: Request, endpoint: int) -> Tuple[Origin, str, bool]:
        """Where a call begins: its node, path and query, and whether the map says so."""
        query = dict(request.query)
        place = None
        if self.map is not None and request.owner is not None and not request.by_proxy:
            place = self.map.place(*request.owner) if request.node is None else \
                self.map.node(request.owner[0], request.node)
        now = time.monotonic()
        if place is not None and self._relayed.get(place.origin, 0.0) <= now and (
                place.origin.tls or not self.endpoints[0].tls):
            return place.origin, _target(request.path, query, place.query), True
        if request.owner is not None and any(t > now for t in list(self._relayed.values())):
            query["redirect"] = "never"
        return self.endpoints[endpoint], _target(request.path, query), False

    def _follow(self, request: Request, request_id: str, origin: Origin, target: str,
                token: Optional[str], placed: bool) -> Reply:
        for hop in range(REDIRECTS_MAX + 1):
            at_target = request.owner is not None and (placed or hop > 0)
            reply = self._exchange(request, request_id, origin, target, token, at_target)
            if reply.status not in (307, 308):
                return reply
            if self.map is not None and placed:
                self.map.is_old()
            url = urljoin(f"{origin}{target}", reply.headers.get("location", ""))
            reply.close()
            following = Origin.of(url)
            if origin.tls and not following.tls:
                raise Error(f"{origin} redirects to plain HTTP: refused")
            parts = urlsplit(url)
            target = parts.path + ("?" + parts.query if parts.query else "")
            origin, token = following, None  # a redirect has a proof of its own
        raise Error(f"more than {REDIRECTS_MAX} redirects, the last to {origin}")

    def _exchange(self, request: Request, request_id: str, origin: Origin, target: str,
                  token: Optional[str], at_target: bool) -> Reply:
        fresh = not request.twice_is_harmless
        for _ in range(2):
            try:
                connection = self._pool.take(origin, fresh)
            except _wire.Broken as e:
                raise Failed(Unreachable(str(e)), Outcome.UNSENT,
                             target=origin if at_target else None) from e
            used = connection.used > 0
            try:
                head = self._send(connection, request, request_id, origin, target, token)
                return Reply(self._pool, origin, connection, head)
            except _wire.Broken as e:
                kept = used and not e.silent
                connection.close()
                if kept and not fresh and (request.body is None or request.body.repeatable):
                    fresh = request.resent = True  # the node had closed a kept connection
                    continue
                kind: Type[Error] = Timeout if e.silent else Unreachable
                code = "timeout" if e.silent else "network_error"
                raise Failed(kind(f"{origin}: {e}", code=code),
                             Outcome.BROKEN if e.sent else Outcome.UNSENT) from e
            except BaseException:
                connection.close()
                raise
        raise AssertionError("a fresh connection ends in a return or a raise")

    def _send(self, connection: _wire.Connection, request: Request, request_id: str,
              origin: Origin, target: str, token: Optional[str]) -> _wire.Head:
        body = request.body
        lines = [f"{request.method} {target} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                 f"User-Agent: {self._agent}\r\nX-Request-Id: {request_id}\r\n"]
        if token is not None:
            lines.append(f"Authorization: Bearer {token}\r\n")
        for name, value in request.headers.items():
            lines.append(f"{name}: {_check_value(name, value)}\r\n")
        announced = body is not None and (body.size is None or body.size > UNANNOUNCED_MAX)
        if body is not None:
            lines.append("Transfer-Encoding: chunked\r\n" if body.size is None
                         else f"Content-Length: {body.size}\r\n")
        elif request.method in ("PUT", "POST"):
            lines.append("Content-Length: 0\r\n")
        if announced:
            lines.append("Expect: 100-continue\r\n")
        head = "".join(lines).encode("utf-8") + b"\r\n"
        if isinstance(body, Memory) and not announced:
            return connection.exchange(request.method, head + body.data)
        connection.send(head)
        if body is not None:
            early = _send_body(connection, body, announced)
            if early is not None:
                return early
        return connection.final_head(request.method)

    # --- what a reply means ---

    def _judge(self, reply: Reply, origin: Origin) -> BaseException:
        get = reply.headers.get
        try:
            text = reply.read()
        except _wire.Broken:
            text = b""
        reply.close()
        error = of_reply(reply.status, text, get("dfc-node", ""), get("x-request-id", ""))
        outcome = _retry.outcome_of(reply.status, error.code)
        if error.code in ("stale_map", "wrong_owner") and self.map is not None:
            self.map.is_old()
            outcome = Outcome.REFUSED
        if 'error="expired"' in get("www-authenticate", ""):
            outcome = Outcome.REFUSED  # the proof of a redirect: a proxy gives another
        if error.code == "no_such_route" and origin in self.endpoints:
            error.message += "; the endpoint has to be a proxy's public address"
        if outcome is Outcome.NEVER:
            return error
        after = get("retry-after", "")
        error.retry_after = float(after) if after.isdigit() else 0.0
        return Failed(error, outcome, error.retry_after)

    # --- the token ---

    def _token(self, origin: Origin, endpoint: int) -> Optional[str]:
        if self.endpoints[0].tls and not origin.tls:
            return None
        return self._identity.token(lambda body: self._login(body, endpoint))

    def _token_ended(self, token: Optional[str], reply: Reply, request: Request) -> bool:
        if reply.status != 401 or token is None:
            return False
        if not reply.headers.get("www-authenticate", "").startswith("Bearer"):
            return False
        if request.body is not None and not request.body.repeatable:
            return False
        return self._identity.refused(token)

    def _login(self, body: Dict[str, object], endpoint: int) -> Tuple[str, float]:
        request = json_request("POST", "/v1/auth/token", body)
        origin = self.endpoints[endpoint]
        reply = self._exchange(request, _request_id(), origin, request.path, None, False)
        if reply.status != 200:
            raise self._judge(reply, origin)
        document = read_json(reply)
        return str(document["token"]), float(str(document["expires_ms"])) / 1000

    def _fetch_map(self, bucket: str) -> Tuple[Dict[str, object], Dict[str, object]]:
        """The cluster's document and the bucket's, for _map.py.  Each endpoint is asked once: the
        call itself is what waits for a cluster that is away."""
        once = _retry.Policy(attempts=1)
        return (read_json(self.call(Request("GET", "/v1/cluster"),
                                    _retry.Retry(once, time.monotonic()))),
                read_json(self.call(Request("GET", "/v1/buckets/" + encode_name(bucket)),
                                    _retry.Retry(once, time.monotonic()))))


def _target(path: str, query: Dict[str, str], more: str = "") -> str:
    """Path and query; `more` is encoded already."""
    parts = [f"{k}={quote(v, safe='')}" for k, v in query.items()]
    if more:
        parts.append(more)
    return path + "?" + "&".join(parts) if parts else path


def _send_body(connection: _wire.Connection, body: Body, announced: bool) -> Optional[_wire.Head]:
    """The head of a reply that came in place of an invitation; None: the body was sent."""
    if announced:
        head = connection.next_head()
        if head.status != 100:
            return head
    send = connection.send_chunk if body.size is None else connection.send
    try:
        for piece in body.pieces():
            send(piece)
        if body.size is None:
            connection.send_chunk(b"")
        return None
    except _wire.Broken as e:
        return _refusal(connection, e)


def _refusal(connection: _wire.Connection, broken: _wire.Broken) -> _wire.Head:
    """Of a node that replied in the middle of a body, and hung up: a full disk, for example."""
    if broken.silent:
        raise broken
    try:
        head = connection.final_head("PUT")
    except _wire.Broken:
        raise broken from None
    if head.status < 300:
        raise broken
    return head


def json_request(method: str, path: str, document: object,
                 twice_is_harmless: bool = True) -> Request:
    return Request(method, path, headers={"Content-Type": "application/json"},
                   body=Memory(json.dumps(document).encode()),
                   twice_is_harmless=twice_is_harmless)


def read_json(reply: Reply) -> Dict[str, Any]:
    try:
        document = json.loads(reply.read())
    except _wire.Broken as e:
        raise Unreachable(f"the reply broke off: {e}") from e
    except ValueError as e:
        raise Error(f"a reply that is no JSON: {e}", code="invalid_json") from e
    finally:
        reply.close()
    if not isinstance(document, dict):
        raise Error("a reply that is no JSON object", code="invalid_json")
    return document
