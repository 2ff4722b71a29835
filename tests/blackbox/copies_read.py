#!/usr/bin/env python3
"""`read_from: any`: each owner answers reads of what all owners have, the same bytes, ranges and
entity tags; a name that is being written, or that is damaged or missing there, is sent on to the
owner that acts, which a follower does by itself; proxies spread reads; `read_from: acting` has one
owner answer alone."""

import random
import re

from copies_damage import flip
from lib import check, equal, main, wait_for
from scrub import quarantine

TARGETS = 4
PATIENCE = 120
BODY = random.Random(5).randbytes(50000)


def url(c, node, bucket, name):
    return f"{c.url(node)}/v1/objects/{bucket}/{name}"


def at(c, node, bucket, name, method="GET", headers=None):
    """What this node says itself."""
    return c.http.request(method, url(c, node, bucket, name), None, headers, follow=False)


def own(c, node, bucket, name, *more, **options):
    """Its own answer: without a lease, for a moment, it sends everything on."""
    replies = []
    wait_for(
        lambda: replies.append(at(c, node, bucket, name, *more, **options)) or replies[-1].status !=
        307, f"{node} to answer by itself", PATIENCE)
    return replies[-1]


def metric(c, node, name):
    text = c.call("GET", "/metrics", node=node).expect(200).body.decode()
    return sum(int(n) for n in re.findall(rf"^dfc_{name} (\d+)", text, re.M))


def beside(c, bucket, name):
    """The owners that answer by themselves, once all know that all have it."""
    first = c.owner(bucket, name)

    def all_answer():
        found = [t for t in c.targets() if t != first and at(c, t, bucket, name).status == 200]
        return found if len(found) == 2 else None

    return wait_for(all_answer, f"the other owners answer reads of {name}", PATIENCE)


def test_each_owner_answers_what_all_have(c):
    c.create("any", copies=3, read_from="any")
    reply = c.put("any", "o", BODY, {"Content-Type": "text/x", "Dfc-Meta-A": "b"}).expect(200)
    etag = reply.json()["etag"]
    first = c.owner("any", "o")
    for node in [first] + beside(c, "any", "o"):
        whole = own(c, node, "any", "o")
        equal((whole.status, whole.body, whole.headers["Dfc-Node"]), (200, BODY, node), node)
        equal([whole.headers[h] for h in ("ETag", "Content-Type", "Dfc-Meta-A")],
              [etag, "text/x", "b"], node)
        part = own(c, node, "any", "o", headers={"Range": "bytes=7-99", "If-Range": etag})
        equal((part.status, part.body), (206, BODY[7:100]), node)
        equal(own(c, node, "any", "o", headers={"If-None-Match": etag}).status, 304, node)
        equal(own(c, node, "any", "o", headers={"If-Match": '"1.2.3"'}).status, 412, node)
        equal(own(c, node, "any", "o", "HEAD").headers["Content-Length"], str(len(BODY)), node)


def test_what_is_not_there_or_being_written_is_sent_on(c):
    """As long as an owner may have it alone, and where it has nothing."""
    first, others = c.owner("any", "o"), beside(c, "any", "o")
    body = BODY + b"!"

    def is_sent_on(node):
        before = metric(c, node, "reads_sent_on_total")
        c.put("any", "o", body).expect(200)
        reply = at(c, node, "any", "o")
        if reply.status == 200:  # it stood still until all was settled
            check(reply.body == body, f"{node} answers with what was there before")
            return False
        equal(reply.status, 307, node)
        check(reply.headers["Location"].startswith(c.url(first) + "/"), "to the one that acts")
        return metric(c, node, "reads_sent_on_total") > before

    for node in others:
        wait_for(lambda node=node: is_sent_on(node), f"{node} sends on what was just written",
                 PATIENCE)
    c.object("DELETE", "any", "o").expect(204)
    for node in others:
        equal(at(c, node, "any", "o").status, 307, node)
    c.put("any", "o", BODY).expect(200)


def test_proxies_spread_reads_and_follow(c):
    others = beside(c, "any", "o")

    def led_to():
        return c.get("any", "o", follow=False).expect(307).headers["Location"].partition("/v1/")[0]

    seen = set()
    wait_for(lambda: seen.add(led_to()) or len(seen) == 3, "redirects lead to all owners", PATIENCE)
    before = [metric(c, node, "reads_beside_total") for node in others]

    def all_stream():
        equal(
            c.get("any", "o", {"Dfc-Redirect": "never"}).expect(200).body, BODY, "what is streamed")
        return all(metric(c, node, "reads_beside_total") > n for node, n in zip(others, before))

    wait_for(all_stream, "a follower streams from all owners", PATIENCE)
    for i in range(9):
        body = BODY + bytes([i])
        c.put("any", "o", body).expect(200)  # the name is dirty: the others send on
        equal(
            c.get("any", "o", {"Dfc-Redirect": "never"}).expect(200).body, body,
            "what was written last")
    c.put("any", "o", BODY).expect(200)


def test_one_alone_answers_where_it_is_told_to(c):
    c.dfcctl("bucket", "props", "any", "--read-from", "acting")
    first = c.owner("any", "o")
    for node in c.targets():
        wait_for(lambda n=node: at(c, n, "any", "o").status == (200 if n == first else 307),
                 f"{node} knows", PATIENCE)
    equal({c.get("any", "o").expect(200).headers["Dfc-Node"]
           for _ in range(9)}, {first}, "who answers")
    c.dfcctl("bucket", "props", "any", "--read-from", "any")
    beside(c, "any", "o")


def test_a_damaged_copy_is_sent_on_and_mended(c):
    c.create("checked", copies=3, verify_on_read=True, read_from="any")
    c.put("checked", "o", BODY[:9000]).expect(200)
    node = beside(c, "checked", "o")[0]
    [path] = [p for p in c.object_files(node) if holds(p, BODY[:9000])]
    flip(path, None)

    def is_mended():
        check(
            at(c, node, "checked", "o").status == 307 or holds(path, BODY[:9000]),
            "damaged bytes were served")
        return holds(path, BODY[:9000])

    wait_for(is_mended, "a good copy", PATIENCE)
    check(quarantine(c), "the damaged one was moved aside")
    wait_for(lambda: at(c, node, "checked", "o").status == 200, "it answers again", PATIENCE)


def holds(path, body):
    try:
        with open(path, "rb") as f:
            return f.read() == body
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    main(targets=TARGETS, args=["--proxy-arg=--read-spread=0"])
