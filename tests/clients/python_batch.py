#!/usr/bin/python3
"""Batches and members by the package of python/: order, rights, replies that break off."""

import io
import os
import random
import socket
import sys
import tarfile
import threading

import frame
from access_lib import GuardedCluster, make_user
from lib import check, equal, main

SOURCE = os.path.join(frame.ROOT, "python", "src")
sys.path.insert(0, SOURCE)
import dfc  # noqa: E402 pylint: disable=wrong-import-position

RNG = random.Random(3)
OBJECTS = {f"dir/{i:03}": RNG.randbytes(RNG.choice((0, 1, 511, 512, 513, 30000))) for i in range(60)}
MEMBERS = {f"m/{i}": RNG.randbytes(2000) for i in range(30)} | {"long/" * 40 + "x": b"long", "empty": b""}


class Locked(GuardedCluster):
    def client(self, endpoint=None, identity=None, **options):
        who = identity or self.root
        tls = {"ca_file": self.ca_file()} if self.http.context else {}
        return dfc.Client(endpoint or self.url("p1"), profile="", access_key=who.access,
                          secret_key=who.secret, **tls, **options)


def archive():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in MEMBERS.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_batches_in_order(c):
    bucket = c.client().bucket("b").create()
    for name, data in OBJECTS.items():
        bucket.put(name, data)
    names = RNG.choices(sorted(OBJECTS), k=1500)  # two requests
    found = list(bucket.batch(names))
    equal([n for n, _ in found], names, "names")
    check(all(data == OBJECTS[n] for n, data in found), "other bytes")
    equal(list(bucket.batch([])), [], "a batch of nothing")


def test_members(c):
    client = c.client()
    bucket = client.bucket("b")
    bucket.put("a.tar", archive())
    for name, data in MEMBERS.items():
        check(bucket.member("a.tar", name) == data, f"{name}: other bytes")
    equal([m["name"] for m in bucket.members("a.tar")], sorted(MEMBERS), "names of members")
    pairs = [("a.tar", name) for name in MEMBERS]
    check([d for _, d in bucket.batch(pairs)] == list(MEMBERS.values()), "other bytes in a batch")
    items = [{"bucket": "b", "object": "a.tar", "member": "m/3", "offset": 10, "length": 5}]
    equal(list(client.batch(items)), [MEMBERS["m/3"][10:15]], "a range of a member")
    for call in (lambda: bucket.member("a.tar", "none"), lambda: list(bucket.batch(["dir/000", "none"]))):
        try:
            call()
            check(False, "what does not exist was read")
        except dfc.NotFound as e:
            check(e.code in ("member_not_found", "object_not_found"), repr(e))
    found = list(bucket.batch(["none", "dir/001", ("a.tar", "none")], missing_ok=True))
    equal([d for _, d in found], [None, OBJECTS["dir/001"], None], "what is missing")


def test_rights(c):
    """A batch gives no more than its objects one by one, and a range is no proof for members."""
    user = make_user(c, "reader", [{"rights": ["read"], "bucket": "b", "prefix": "dir/"}])
    bucket = c.client(identity=user).bucket("b")
    equal(list(bucket.batch(["dir/003"])), [("dir/003", OBJECTS["dir/003"])], "what it may read")
    for names in (["a.tar"], ["dir/003", ("a.tar", "m/1")]):
        try:
            list(bucket.batch(names))
            check(False, f"{names} were read")
        except dfc.Denied as e:
            equal(e.code, "access_denied", "code")
    body = {"entries": [{"bucket": "b", "object": "a.tar"}]}
    for node in ("p1", "t1", "t2"):
        user.call("POST", "/v1/batch", body, node=node).expect(403, "access_denied")
        c.bare("POST", "/v1/batch", body, node).expect(401, "unauthorized")
    user.call("GET", "/v1/objects/b/a.tar?member=empty").expect(403, "access_denied")
    c.bare("GET", "/v1/objects/b/a.tar?members=list").expect(401, "unauthorized")
    url = c.call("POST", "/v1/auth/url", {"method": "GET", "bucket": "b", "object": "a.tar",
                                          "seconds": 60}).expect(200).json()["url"]
    c.http.request("GET", url).expect(200)
    for more in ("&member=empty", "&members=list"):
        equal(c.http.request("GET", url + more).status, 403, f"a signed URL with {more}")


class Cutting:
    """Forwards connections to a port; the first ones are cut after some bytes of their replies."""

    def __init__(self, port, cuts):
        self.port, self.cuts = port, list(cuts)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, socket.create_connection(("127.0.0.1", self.port)) as node:
            threading.Thread(target=self.pump, args=(client, node, None), daemon=True).start()
            self.pump(node, client, self.cuts.pop(0) if self.cuts else None)

    @staticmethod
    def pump(source, to, left):
        try:
            while left is None or left > 0:
                data = source.recv(65536 if left is None else min(left, 65536))
                if not data:
                    break
                to.sendall(data)
                left = None if left is None else left - len(data)
            source.shutdown(socket.SHUT_RDWR)
            to.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def test_a_batch_that_breaks_off_goes_on(c):
    if c.http.context:
        return  # what forwards cannot cut inside of TLS any better
    port = int(c.url("p1").rsplit(":", 1)[1])
    names = sorted(OBJECTS)
    for cuts in ([1000], [3000, 50000, 200, 100000], [200000] * 5):
        proxy = Cutting(port, cuts)
        token = c.root.headers()["Authorization"].split()[1]
        client = dfc.Client(proxy.endpoint, profile="", token=token, direct=False)
        found = list(client.bucket("b").batch(names))
        check(found == [(n, OBJECTS[n]) for n in names], f"{cuts}: other bytes")
        check(len(proxy.cuts) < len(cuts), "nothing was cut")
        client.close()
        proxy.listener.close()


if __name__ == "__main__":
    main(make=Locked, targets=3, mountpaths=1)
