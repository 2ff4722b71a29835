"""User metadata as clients give it: 0 to 64 pairs, empty values, blanks, long ones; and the content
type.

    meta = random_meta(rng)
    c.put(bucket, name, body, meta.headers)
    meta.check(reply, what)
"""

import dataclasses

from lib import equal

PREFIX = "dfc-meta-"
PAIRS_MAX = 64
BYTES_MAX = 2048  # names, values and a NUL behind each
TYPES = (None, "", "text/x-mine", "application/octet-stream", "a/b; c=\"" + "d" * 200 + "\"")
WITHOUT_TYPE = "application/octet-stream"


@dataclasses.dataclass(frozen=True)
class Meta:
    pairs: tuple  # (name, value) …
    content_type: str  # None: none is sent

    @property
    def headers(self):
        found = {f"Dfc-Meta-{name}": value for name, value in self.pairs}
        if self.content_type is not None:
            found["Content-Type"] = self.content_type
        return found

    @property
    def wanted(self):
        """What a reader is to see: blanks around a value are no part of it."""
        shown = self.content_type if self.content_type is not None else WITHOUT_TYPE
        return sorted((name.lower(), value.strip(" \t")) for name, value in self.pairs), shown

    def check(self, reply, what):
        equal(seen(reply), self.wanted, f"metadata and type of {what}")


NO_META = Meta((), None)


def seen(reply):
    """(sorted pairs, content type) of a reply to GET or HEAD."""
    pairs = [(name.lower()[len(PREFIX):], value) for name, value in reply.headers.items()
             if name.lower().startswith(PREFIX)]
    return sorted(pairs), reply.headers.get("Content-Type")


def random_value(rng, room):
    kind = rng.random()
    if kind < 0.3 or room == 0:
        return ""
    if kind < 0.4:
        return " " * min(room, 3)
    if kind < 0.9:
        return "v%d" % rng.randrange(10) if room > 1 else "v"
    return "l" * rng.randint(1, room)


def random_meta(rng, own=()):
    """`own`: pairs that are to be among them."""
    most = PAIRS_MAX - len(own)
    count = rng.choice((0, 1, 2, 3, rng.randint(0, most), most))
    names = ["M%d" % i for i in range(count)]
    pairs = list(own)
    room = BYTES_MAX - sum(len(n) + 2 for n in names) - sum(len(n) + len(v) + 2 for n, v in own)
    for name in names:
        value = random_value(rng, room)
        room -= len(value)
        pairs.append((name, value))
    return Meta(tuple(pairs), rng.choice(TYPES))
