#!/usr/bin/env python3
"""Lists that show the members of archives: complete, in pages of any size, or refused by name."""

import bz2
import io
import tarfile
import zipfile

from access_lib import GuardedCluster, make_user
from lib import check, equal, main
from members import BUCKETS, member

MANY = 100000
ODD = ["with space", "per%cent%2F", "\u00fc\u20ac", "../../up", "/root", "./here", "a\"quote", "new\nline"]


def tar_of(names, mode="w", **fields):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            member(tar, name, name.encode(errors="surrogateescape"), **fields)
    return out.getvalue()


def zip_of(names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, name)
    return out.getvalue()


def in_order(names):
    return sorted(set(names), key=lambda n: n.encode(errors="surrogateescape"))


def shown(archive, names):
    return [archive, *(f"{archive}/{n}" for n in in_order(names))]


def names(c, bucket, **query):
    return c.names(bucket, archives="true", **query)


def listing(c, bucket, query=""):
    return c.call("GET", f"/v1/objects/{bucket}?archives=true{query}")


def test_members_are_behind_their_archive(c):
    for bucket, props in BUCKETS.items():
        c.create(bucket, **props)
        c.put(bucket, "a.tar", tar_of(["m/2", "m/1", "m/1"]))
        c.put(bucket, "a.tar-no", b"no archive")
        c.put(bucket, "b.tgz", tar_of(["x", "y"] * 700, mode="w:gz"))
        c.put(bucket, "c.zip", zip_of(["z"]))
        wanted = [*shown("a.tar", ["m/1", "m/2"]), "a.tar-no", *shown("b.tgz", ["x", "y"]),
                  *shown("c.zip", ["z"])]
        for limit in (1, 2, 3, 4, 1000):
            equal(names(c, bucket, limit=limit), wanted, f"{bucket}, {limit} a page")
        equal(names(c, bucket, prefix="b"), wanted[4:7], "of a prefix")
        equal(names(c, bucket, start_after="a.tar"), wanted[3:], "behind an archive")
        equal(c.names(bucket), ["a.tar", "a.tar-no", "b.tgz", "c.zip"], "the plain list")


def test_a_member_is_described(c):
    page = listing(c, "plain", "&limit=2").expect(200).json()
    archive, first = page["entries"]
    equal({**first, "version": 0}, {"name": "a.tar/m/1", "size": 3, "version": 0,
                                    "modified_ms": 1700000000000, "member": True}, "a member")
    equal(first["version"], archive["version"], "the version of its archive")


def test_odd_names(c):
    """They are shown as they are, and read by what is shown."""
    c.create("odd")
    c.put("odd", "dir/o d%d.tar", tar_of(ODD))
    entries = [e for page in c.pages("odd", archives="true", limit=3) for e in page["entries"]]
    equal([e["name"] for e in entries], shown("dir/o d%d.tar", ODD), "names")
    c.put("odd", "latin.tar", latin_tar())
    escaped = listing(c, "odd", "&prefix=latin").json()["entries"][1]
    equal((escaped["name"], escaped["escaped"]), ("latin.tar/caf%E9%25", True), "no UTF-8")
    equal(names(c, "odd", prefix="latin", limit=1), ["latin.tar", "latin.tar/caf%E9%25", "latin.tar/\u00e9"],
          "one by one")


def latin_tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT, encoding="latin-1") as tar:
        member(tar, "caf\u00e9%", b"1")
        tar.encoding = "utf-8"
        member(tar, "\u00e9", b"2")
    return out.getvalue()


def test_what_has_no_members(c):
    c.create("bare")
    c.put("bare", "bytes.tar", b"these are no tar" * 100)
    c.put("bare", "empty.tar", b"")
    c.put("bare", "none.tar", tar_of([]))
    c.put("bare", "none.zip", zip_of([]))
    c.put("bare", "other.tar", tar_of(["d"], type=tarfile.DIRTYPE))
    equal(names(c, "bare", limit=1), ["bytes.tar", "empty.tar", "none.tar", "none.zip", "other.tar"],
          "names")


def test_a_damaged_archive_is_named(c):
    """What is before it is listed; a list that would lack members is refused."""
    c.create("damaged")
    c.put("damaged", "a.tar", tar_of(["1", "2"]))
    c.put("damaged", "b.tgz", tar_of(["1"] * 50, mode="w:gz")[:-20])
    c.put("damaged", "bomb.tar.bz2", bz2.compress(tar_head(100 << 20) + bytes(100 << 20)))
    listing(c, "damaged", "&prefix=a").expect(200)
    listing(c, "damaged", "&limit=4").expect(200)
    listing(c, "damaged").expect(422, "archive_damaged", "damaged/b.tgz")
    listing(c, "damaged", "&prefix=bomb").expect(422, "archive_damaged", "damaged/bomb.tar.bz2")
    equal(c.names("damaged"), ["a.tar", "b.tgz", "bomb.tar.bz2"], "the plain list")


def tar_head(size):
    info = tarfile.TarInfo("zeros")
    info.size = size
    return info.tobuf()


def test_pages_outlive_changes(c):
    """A token leads on behind the last name, whatever happens to the archive."""
    c.create("moving")
    c.put("moving", "a.tar", tar_of(["1", "2", "3", "4"]))
    c.put("moving", "b.tar", tar_of(["1"]))

    def behind(token):
        return [e["name"] for e in listing(c, "moving", f"&token={token}").expect(200).json()["entries"]]

    token = listing(c, "moving", "&limit=3").expect(200).json()["next"]
    equal(behind(token), ["a.tar/3", "a.tar/4", "b.tar", "b.tar/1"], "as it was")
    c.put("moving", "a.tar", tar_of(["0", "2", "25", "9"]))
    equal(behind(token), ["a.tar/25", "a.tar/9", "b.tar", "b.tar/1"], "overwritten")
    c.put("moving", "a.tar", b"no archive any more")
    equal(behind(token), ["b.tar", "b.tar/1"], "no archive")
    c.object("DELETE", "moving", "a.tar").expect(204)
    equal(behind(token), ["b.tar", "b.tar/1"], "deleted")
    c.call("GET", f"/v1/objects/moving?token={token}").expect(400, "invalid_argument", "token")


def test_many_members(c):
    c.create("many")
    wanted = [f"dir-{i % 7}/{i:06}" for i in range(MANY)]
    c.put("many", "large.tar", tar_of(wanted))
    c.put("many", "larger.tar", tar_of(["x"]))
    pages = list(c.pages("many", archives="true", limit=10000))
    got = [e["name"] for page in pages for e in page["entries"]]
    check(got == [*shown("large.tar", wanted), *shown("larger.tar", ["x"])], f"{len(got)} names")
    check(all(len(p["entries"]) <= 10000 for p in pages), "a page is larger than asked for")


def test_rights(c):
    """Names of members are bytes of objects: to list is not to read."""
    for name, rights, status in (("lister", ["list"], 403), ("reader", ["list", "read"], 200)):
        user = make_user(c, name, [{"rights": rights, "bucket": "plain", "prefix": "a"}])
        user.call("GET", "/v1/objects/plain?prefix=a").expect(200)
        user.call("GET", "/v1/objects/plain?prefix=a&archives=true").expect(status)
        user.call("GET", "/v1/objects/plain?archives=true").expect(403)


def test_what_is_asked_wrongly(c):
    listing(c, "plain", "&limit=0").expect(400, "invalid_argument", "limit")
    c.call("GET", "/v1/objects/plain?archives=maybe").expect(400, "invalid_argument", "archives")
    listing(c, "nowhere").expect(404, "bucket_not_found")


if __name__ == "__main__":
    main(GuardedCluster, targets=3)
