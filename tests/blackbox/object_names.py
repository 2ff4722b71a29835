#!/usr/bin/env python3
"""Names: any UTF-8 up to 1024 bytes; nothing in a name is special, nothing leaves its bucket."""

import os
import urllib.parse

from lib import check, equal, main

NAMES = [
    "plain", "a", "a/b", "a/b/c", "a/", "a//b", "/leading", "//", "/", ".", "..", "../..",
    "../../etc/passwd", "a/../b", "a/./b", "..%2f", "%2e%2e", "%", "%41", "100%", "a b", " ", "a+b",
    "a?b", "a#b", "a&b=c", "a;b", "a:b", "a\\b", "a\"b", "a'b", "a<b>", "a|b", "a*b", "a\tb",
    "a\nb", "a\rb", "\x01", "\x7f", "~", "-", "--help", "été", "e\u0301te\u0301", "猫/犬", "🦊",
    "\u202e", "\ufeff", "CON", ".dfc", ".dfc/tmp/1", "obj", "tmp",
    "n" * 1024, "d/" * 511 + "xx", "é" * 512, "🦊" * 256,
]


def raw_path(name):
    """Every byte escaped: the other way to write a name."""
    return "".join(f"%{b:02X}" for b in name.encode())


def test_every_name_holds_its_own_object(c):
    c.create("b")
    for name in NAMES:
        c.put("b", name, b"contents of " + name.encode())
    for name in NAMES:
        equal(c.get("b", name).expect(200).body, b"contents of " + name.encode(), f"GET {name!r}")


def test_escaped_and_plain_are_one_name(c):
    for name in NAMES:
        got = c.call("GET", "/v1/objects/b/" + raw_path(name)).expect(200)
        equal(got.body, b"contents of " + name.encode(), f"GET {raw_path(name)}")


def test_dots_as_they_come_from_a_client_that_does_not_normalise(c):
    for path in ("..", "../..", "a/../b", "%2e%2e", "%2E%2E/%2e%2e", "../../etc/passwd"):
        got = c.call("GET", "/v1/objects/b/" + path).expect(200)
        equal(got.body, b"contents of " + urllib.parse.unquote(path).encode(), f"GET {path}")


def test_the_listing_has_them_all_in_bytewise_order(c):
    equal(c.names("b"), sorted(NAMES, key=str.encode), "names")


def test_nothing_left_its_place_on_disk(c):
    for target in c.targets():
        top = c.node_dir(target)
        for mountpath in (d for d in os.listdir(top) if d.startswith("mp")):
            equal(os.listdir(os.path.join(top, mountpath)), [".dfc"], f"{target}'s {mountpath}")


def test_names_that_are_none(c):
    for path, code in (("n" * 1025, "invalid_name"), ("%C3%A9" * 513, "invalid_name"),
                       ("a%00b", "invalid_name"), ("%ff", "invalid_name"),
                       ("a%C3", "invalid_name"), ("%ED%A0%80", "invalid_name"),
                       ("%C0%AF", "invalid_name")):
        for method in ("PUT", "GET", "DELETE"):
            reply = c.call(method, "/v1/objects/b/" + path, b"x" if method == "PUT" else None)
            check(reply.status == 400, f"{method} {path[:40]}: {reply!r}")
            check(reply.json()["code"] in (code, "invalid_argument"), f"{path[:40]}: {reply!r}")


def test_deleting_one_leaves_its_neighbours(c):
    c.object("DELETE", "b", "a/b").expect(204)
    for name in ("a", "a/", "a/b/c", "a//b"):
        c.get("b", name).expect(200)
    c.get("b", "a/b").expect(404, "object_not_found")


if __name__ == "__main__":
    main(targets=2)
