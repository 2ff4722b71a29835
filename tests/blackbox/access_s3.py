#!/usr/bin/env python3
"""Every operation of S3 asks for its right, on the S3 listener and below /s3 of the public one, at a
proxy and at a target.  s3/ops.def drives the test, so that a new operation cannot be forgotten."""

import os
import re
from dataclasses import dataclass

from access_lib import make_user
from lib import ROOT, check, equal, main, wait_for
from s3_lib import S3, S3Cluster, code_of, root_of, time_text

ROW = re.compile(r'^S3_OP\((\w+), "(\w+)", (\w+), "([^"]*)", "([^"]*)", (\w+), \w+\)', re.M)
BUCKET = "there-is-none"  # grants name it all the same; what an operation makes is destroyed


@dataclass
class Operation:
    name: str
    method: str
    level: str
    query: str
    header: str
    right: str

    def call(self, client, headers=None, **options):
        path = {"SERVICE": "/", "BUCKET": f"/{BUCKET}", "OBJECT": f"/{BUCKET}/o"}[self.level]
        name, _, value = self.query.partition("=")
        body = b"" if self.method in ("PUT", "POST") else None
        headers = {**(headers or {}), **({self.header: f"/{BUCKET}/o"} if self.header else {})}
        return client.call(self.method, path, body, [(name, value)] if name else [], headers,
                           **options)

    def grants(self):
        """This right alone.  A copy reads its source, too."""
        rights = [self.right.lower()] + (["read"] if self.header else [])
        return {"rights": rights} if self.right == "CREATE" else {"rights": rights, "bucket": BUCKET}


def operations():
    with open(os.path.join(ROOT, "s3", "ops.def"), encoding="utf-8") as f:
        return [Operation(*row) for row in ROW.findall(f.read())]


def each(c, access, secret, judge, **options):
    """Each operation that needs a right, by this key, at each listener."""
    count = 0
    for node, base in c.places:
        client = S3(c, access, secret, node, base)
        for op in operations():
            if op.right != "NONE":
                judge(f"{node} {base or '/s3'} {op.name}", op, op.call(client, **options))
                count += 1
    check(count >= 4 * 80, f"only {count} calls")


def denied(*codes):
    def judge(what, op, reply):
        equal(reply.status, 403, f"{what}: {reply!r}")
        if op.method != "HEAD":
            check(code_of(reply) in codes, f"{what}: {reply!r}")
    return judge


def test_what_needs_no_right(_):
    equal([op.name for op in operations() if op.right == "NONE"],
          ["PreflightBucket", "PreflightObject"], "operations without a right")


def test_without_a_signature(c):
    each(c, None, None, denied("AccessDenied"))


def test_with_a_wrong_signature(c):
    each(c, c.root.access, "x" * 40, denied("SignatureDoesNotMatch"))
    each(c, "A" * 20, c.root.secret, denied("InvalidAccessKeyId"))


def test_with_an_expired_signature(c):
    each(c, c.root.access, c.root.secret, denied("RequestTimeTooSkewed"), time=time_text(-1000))


def test_a_token_is_no_signature(c):
    """Nor may anonymous what the token's user may."""
    for node, base in c.places:
        client = S3(c, None, None, node, base)
        for op in operations():
            if op.right != "NONE":
                reply = op.call(client, headers=c.root.headers())
                check(reply.status in (400, 403), f"{node} {op.name}: {reply!r}")


def test_operators_calls_are_not_there(c):
    """On a listener for S3 alone /v1/users is the object 'users' of the bucket 'v1'."""
    for _, base in c.places:
        if base is not None:
            for method, path in (("GET", "/v1/users"), ("GET", "/v1/daemon/indexes")):
                reply = c.http.request(method, base + path, headers=c.root.headers())
                check(reply.status in (400, 403), f"{base} {path}: {reply!r}")
                code_of(reply)


def test_without_the_right(c):
    user = make_user(c, "nobody", [])

    def judge(what, op, reply):
        if op.right != "ANY":
            denied("AccessDenied")(what, op, reply)

    each(c, user.access, user.secret, judge)


def gone(c, node, base):
    return root_of(c, node, base=base).call("HEAD", f"/{BUCKET}").status == 404


def test_with_the_right(c):
    """One user for each right, who has no other."""
    kinds = {op.right: op.grants() for op in operations() if not op.header}
    for right in sorted(set(kinds) - {"ANY", "NONE"}):
        grants = kinds[right]
        user = make_user(c, f"only-{right}".lower(), [grants])

        def judge(what, op, reply, right=right):
            if op.right not in (right, "ANY"):
                denied("AccessDenied")(what, op, reply)
            elif not op.header:
                check(reply.status != 403, f"{what} with '{right}': {reply!r}")
            if op.name == "CreateBucket" and reply.status == 200:  # its owner may do everything
                root = root_of(c, what.split()[0])
                root.call("DELETE", f"/{BUCKET}").expect(204)
                wait_for(lambda: all(gone(c, *place) for place in c.places), "all to hear of it")

        each(c, user.access, user.secret, judge)


if __name__ == "__main__":
    main(S3Cluster, targets=1)
