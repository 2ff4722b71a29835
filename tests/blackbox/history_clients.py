"""Clients whose histories are judged: they PUT, GET, HEAD and DELETE a few objects of one bucket at
once, through every proxy (redirected, and streamed), at targets directly, and by redirects that
they were given long ago; each writes down what it asked, when, and what it was told.

What a reply says is what docs/reference/http.md says of it.  Nothing is ever sent twice:

    2xx, 404, 412, 304   it was done, or there was this to be found
    REFUSED              it was not done, and never will be
    all else             unknown: it was done, or will be, or not

A body begins with its number and is made from it, so that who reads it knows which PUT it came
from, and
whether it is whole.  So are user metadata and content type."""

import dataclasses
import http.client
import json
import os
import random
import select
import sys
import threading
import urllib.parse

from lib import Failed, check, escape
from user_meta import random_meta
from wires import SERVER

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "reference"))
from linear import ABSENT, ANY, MATCH, NEVER, delete, missing, put, read, refused  # noqa: E402

# Codes of errors that are said before anything is done.
REFUSED = ("node_unreachable", "stale_map", "not_ready", "overloaded", "no_targets", "wrong_owner",
           "mountpath_disabled", "no_space", "bucket_not_found")
SIZES = (0, 60, 60, 700, 5000, 5000, 40000, 200000)
READS = 0.48  # share of the operations
TIMEOUT_SECONDS = 3
CUT = (OSError, http.client.HTTPException)


class NotSent(Exception):
    """Nobody was reached: nothing was done."""


class Unknown(Exception):
    """No answer, or none that says what became of it."""


@dataclasses.dataclass
class Seen:
    """A version that somebody was told of."""
    key: str
    value: str
    version: tuple
    begin: float
    end: float
    who: str
    note: str


def body_of(value):
    rng = random.Random(value)
    return f"{value}\n".encode() + rng.randbytes(rng.choice(SIZES))


def meta_of(value):
    return random_meta(random.Random(f"meta {value}"), own=(("Value", value),))


def value_of_head(reply, what):
    """Whose metadata and content type it has, all of them."""
    value = reply.headers["Dfc-Meta-Value"]
    meta_of(value).check(reply, f"{value}, {what}")
    return value


def value_of(body):
    value = body.split(b"\n", 1)[0].decode("ascii", "replace")
    check(body == body_of(value),
          f"a body of {len(body)} bytes that begins as {value} is not its own")
    return value


class Reply:
    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, response.headers, body

    def code(self):
        """Of an error; a HEAD has no body to say it in."""
        try:
            return json.loads(self.body).get("code", "")
        except ValueError:
            return ""


class Wire:
    """One client's connections: kept, looked at before they are used again, and never used twice
    for one
    request."""

    def __init__(self, timeout):
        self.timeout, self.connections = timeout, {}

    def connection(self, netloc):
        c = self.connections.pop(netloc, None)
        if c is not None and select.select([c.sock], [], [], 0)[0]:
            c.close()  # the other side has closed it, or says what nobody asked for
            c = None
        if c is None:
            port = int(
                netloc.rpartition(":")[2])  # past the wires, which would take it for a dead node
            c = http.client.HTTPConnection(SERVER, port, timeout=self.timeout)
            try:
                c.connect()
            except OSError as e:
                c.close()
                raise NotSent(str(e)) from None
        return c

    def once(self, method, url, body, headers):
        parts = urllib.parse.urlsplit(url)
        c = self.connection(parts.netloc)
        try:
            c.request(method, parts.path + ("?" + parts.query if parts.query else ""), body,
                      headers)
            response = c.getresponse()
            reply = Reply(response, response.read())
        except CUT as e:
            c.close()
            raise Unknown(repr(e)) from None
        if response.will_close:
            c.close()
        else:
            self.connections[parts.netloc] = c
        return reply

    def follow(self, method, url, body, headers):
        """The reply, and the URL that gave it."""
        for _ in range(5):
            reply = self.once(method, url, body, headers)
            if reply.status != 307:
                return reply, url
            url = reply.headers["Location"]
        raise NotSent("redirected without end")

    def close(self):
        for c in self.connections.values():
            c.close()
        self.connections.clear()


class Client(threading.Thread):
    """Acts at random until it is told to stop; `operations` and `seen` are what it has written
    down."""

    def __init__(self, round_, number, seed):
        super().__init__(name=f"c{number}", daemon=True)
        self.round, self.rng = round_, random.Random(f"{seed} {number}")
        self.wire = Wire(TIMEOUT_SECONDS)
        self.operations, self.seen = {key: [] for key in round_.keys}, []
        self.unread = []  # reads that were refused: (begin, end, what was said)
        self.last = {}  # key: (value, entity tag) that it was told last
        self.redirects = {}  # key: a URL that it was sent to
        self.count, self.told, self.failure = 0, 0, None

    def run(self):
        try:
            while not self.round.over.is_set():
                self.act(self.rng.choice(self.round.keys))
        except Exception as e:  # told by the round
            self.failure = e
            self.round.over.set()
        finally:
            self.wire.close()

    # --- one operation ---

    def act(self, key):
        kind = self.rng.random()
        if kind >= READS and not self.round.may_write():
            kind *= READS
        if kind < 0.40:
            self.get(key)
        elif kind < READS:
            self.head(key)
        elif kind < 0.86:
            self.put(key)
        else:
            self.delete(key)

    def route(self, key):
        """Where to ask, and how."""
        path = f"/v1/objects/{self.round.bucket}/{escape(key)}"
        way, node = self.rng.random(), None
        if way < 0.15 and key in self.redirects:
            return self.redirects[key], {}, "again"
        if way < 0.35:
            node = self.rng.choice(self.round.targets())
            return self.round.url(node) + path, {}, node
        node = self.rng.choice(self.round.proxies)
        headers = {"Dfc-Redirect": "never"} if way < 0.55 else {}
        return self.round.url(node) + path, headers, node + ("-" if headers else "")

    def ask(self, method, key, body=None, headers=None):
        """The reply with its times and a note; raises NotSent."""
        url, more, note = self.route(key)
        begin = self.round.now()
        try:
            reply, last = self.wire.follow(method, url, body, {**(headers or {}), **more})
        except Unknown as e:
            self.round.rest()
            return None, begin, NEVER, f"{note} {e}"
        except NotSent:
            self.round.rest()
            raise
        if last != url:
            self.redirects[key] = last
        node = reply.headers.get("Dfc-Node", "?")
        return reply, begin, self.round.now(
        ), f"{note}>{node} {reply.status} {reply.headers.get('X-Request-Id', '')}"

    def note(self, key, operation):
        operation.who = self.name
        self.operations[key].append(operation)
        self.told += operation.end != NEVER

    def condition(self, key):
        """(need, headers) of a write."""
        chance = self.rng.random()
        if chance < 0.2:
            return ABSENT, {"If-None-Match": "*"}
        if chance < 0.45 and key in self.last:
            value, etag = self.last[key]
            return MATCH(value), {"If-Match": etag}
        return ANY, {}

    def get(self, key):
        headers, known = {}, self.last.get(key)
        if known is not None and self.rng.random() < 0.2:
            headers["If-None-Match"] = known[1]
        self.find("GET", key, headers, known)

    def head(self, key):
        self.find("HEAD", key, {}, None)

    def find(self, method, key, headers, known):
        try:
            reply, begin, end, note = self.ask(method, key, None, headers)
        except NotSent:
            return
        if reply is None:
            return
        if reply.status == 404 and (method == "HEAD" or reply.code() == "object_not_found"):
            self.note(key, missing(begin, end, note=f"{method} {note}"))
        elif reply.status == 304:
            self.note(key, read(known[0], begin, end, note=f"{method} {note}"))
        elif reply.status == 200:
            value = self.value_found(method, key, reply, note)
            self.learn(key, value, reply, begin, end, note)
            self.note(key, read(value, begin, end, note=f"{method} {note} {reply.headers['ETag']}"))
        else:
            self.expect_trouble(reply, f"{method} {key} {note}")
            self.unread.append((begin, end, f"{method} {key} {note} {reply.body!r}"))

    def value_found(self, method, key, reply, note):
        value = value_of_head(reply, f"{method} {key} {note}")
        length = int(reply.headers["Content-Length"])
        check(length == len(body_of(value)), f"{key}: {value} with {length} bytes; {note}")
        if method == "GET":
            check(
                value_of(reply.body) == value, f"{key}: the head of {value}, another body; {note}")
        return value

    def put(self, key):
        self.count += 1
        value = f"{self.name}-{self.count}"
        need, headers = self.condition(key)
        self.write("PUT", key, body_of(value), {**headers, **meta_of(value).headers}, need,
                   lambda *times: put(value, *times, need=need))

    def delete(self, key):
        need, headers = self.condition(key)
        if need is ABSENT:
            need, headers = ANY, {}
        self.write("DELETE", key, None, headers, need,
                   lambda *times: delete(*times, need=need) if need is not ANY else delete(*times))

    def write(self, method, key, body, headers, need, made):
        try:
            reply, begin, end, note = self.ask(method, key, body, headers)
        except NotSent:
            return
        status = reply.status if reply is not None else None
        done = made(begin, end)
        if status in (200, 204):
            if method == "PUT":
                self.learn(key, done.effect, reply, begin, end, note)
                note += f" {reply.headers['ETag']}"
        elif status == 412:
            done = refused(need, begin, end, present=method == "DELETE")
        elif status == 404 and reply.code() == "object_not_found":
            check(method == "DELETE", f"PUT {key}: {note}")
            done = missing(begin, end)
        elif status is not None:
            self.expect_trouble(reply, f"{method} {key} {note}")
            if reply.code() in REFUSED:
                return
            note += f" {reply.code()}"
            done = made(begin, NEVER)
        done.note = f"{method} {note}"
        self.note(key, done)

    def expect_trouble(self, reply, what):
        """Codes with which a client lives while nodes come and go."""
        check(reply.status in (409, 429, 502, 503, 504) or reply.code() == "bucket_not_found" or
              reply.status == 507 and what.startswith("PUT"), f"{what}: {reply.body!r}")
        self.round.trouble(reply.code() or str(reply.status))
        self.round.rest()

    def learn(self, key, value, reply, begin, end, note):
        etag = reply.headers["ETag"]
        self.last[key] = (value, etag)
        version = tuple(map(int, etag.strip('"').split(".")))
        self.seen.append(Seen(key, value, version, begin, end, self.name, note))


def check_versions(seen):
    """Each value has one version, and versions only grow: what was heard of before something began
    is not
    greater than what that was told."""
    by_value, by_version = {}, {}
    for s in seen:
        first = by_value.setdefault((s.key, s.value), s)
        check(first.version == s.version, f"two versions of one value: {first} {s}")
        other = by_version.setdefault((s.key, s.version), s)
        check(other.value == s.value, f"two values of one version: {other} {s}")
    for key in {s.key for s in seen}:
        check_growth([s for s in seen if s.key == key])


def check_growth(seen):
    greatest, ended = None, sorted(seen, key=lambda s: s.end)
    at = 0
    for s in sorted(seen, key=lambda s: s.begin):
        while ended[at].end < s.begin:
            if greatest is None or ended[at].version > greatest.version:
                greatest = ended[at]
            at += 1
        if greatest is not None and greatest.version > s.version:
            raise Failed(f"a version that is less than one known before: {greatest} then {s}")
