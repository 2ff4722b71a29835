#!/usr/bin/env python3
"""Lists: complete, in bytewise order, without duplicates, however they are cut into pages."""

import random
import urllib.parse

from lib import check, equal, in_parallel, main

COUNT = 3000


def make_names():
    rng = random.Random(3)
    names = {f"{rng.choice('abcde')}/{rng.choice(('x', 'y/z', 'é'))}/{i:05d}" for i in range(COUNT)}
    return sorted(names | {"a", "a/x", "b", "z", "~", "a/x/", "猫"}, key=str.encode)


NAMES = make_names()


def expected_page(prefix="", delimiter="", start_after=""):
    """Entries and common prefixes of a whole listing."""
    entries, prefixes = [], []
    for name in NAMES:
        if not name.startswith(prefix) or name.encode() <= start_after.encode():
            continue
        rest = name[len(prefix):]
        at = rest.find(delimiter) if delimiter else -1
        if at < 0:
            entries.append(name)
            continue
        folded = prefix + rest[:at + len(delimiter)]
        if folded not in prefixes and folded.encode() > start_after.encode():
            prefixes.append(folded)
    return entries, prefixes


def listed(c, bucket="b", node="p1", **query):
    """The same, as the cluster pages it; checks each page's own promises on the way."""
    entries, prefixes, limit = [], [], int(query.get("limit", 1000))
    for page in c.pages(bucket, node, **query):
        check(page["incomplete"] is False, "incomplete")
        names = [e["name"] for e in page["entries"]]
        check(len(names) + len(page["prefixes"]) <= limit, "a page has more than its limit")
        check(names or page["prefixes"] or not page["next"], "an empty page that is not the last")
        both = sorted((n.encode() for n in names + page["prefixes"]))
        if entries or prefixes:
            check(not both or both[0] > max(n.encode() for n in entries[-1:] + prefixes[-1:]),
                  "a page begins before the last one's end")
        entries += names
        prefixes += page["prefixes"]
    return entries, prefixes


def test_all_names(c):
    c.create("b")
    in_parallel(lambda name: c.put("b", name, name.encode()), NAMES)
    equal(listed(c), (NAMES, []), "names")


def test_any_page_size(c):
    for limit in (1, 7, 100, 999, COUNT, 10000):
        some = NAMES[:40] if limit == 1 else NAMES
        start = {} if limit > 1 else {"start_after": NAMES[-40]}
        want = some if limit > 1 else NAMES[-39:]
        equal(listed(c, limit=limit, **start)[0], want, f"names in pages of {limit}")


def test_prefixes(c):
    for prefix in ("a", "a/", "a/x", "a/é/", "c/y/z/000", "zzz", "猫", "~"):
        equal(listed(c, prefix=prefix), expected_page(prefix), f"prefix {prefix!r}")


def test_delimiters(c):
    for query in ({"delimiter": "/"}, {"delimiter": "/", "prefix": "a/"},
                  {"delimiter": "/", "prefix": "a"}, {"delimiter": "/", "prefix": "b/y/"},
                  {"delimiter": "/y"}, {"delimiter": "0"}, {"delimiter": "/", "start_after": "b"},
                  {"delimiter": "/", "start_after": "b/x/01000"}):
        for limit in (1000, 2, 1):
            want = expected_page(**query)
            if limit == 1 and len(want[0]) + len(want[1]) > 50:
                continue
            got = listed(c, limit=limit, **query)
            equal(got, want, f"{query} in pages of {limit}")


def test_start_after(c):
    for name in (NAMES[0], NAMES[1234], NAMES[-2], NAMES[-1], "b/", "b0", "c/y"):
        equal(listed(c, start_after=name), expected_page(start_after=name), f"after {name!r}")


def test_entries_describe_the_objects(c):
    page = c.get_json("/v1/objects/b?prefix=a/x/0&limit=5")
    for entry in page["entries"]:
        head = c.object("HEAD", "b", entry["name"]).expect(200)
        equal(entry["size"], len(entry["name"].encode()), "size")
        equal(entry["version"], head.headers["Dfc-Version"], "version")
        check(head.headers["Dfc-Checksum-Value"] in str(entry["checksum"]), "checksum")
        check(abs(entry["modified_ms"] / 1000) > 1.5e9, "modified_ms is no time")


def test_the_form_of_dfc(c):
    reply = c.call("POST", "/v1/buckets/b", {
        "action": "listobjects", "value": {"prefix": "a/", "limit": 3}}).expect(200).json()
    equal([e["name"] for e in reply["entries"]], expected_page("a/")[0][:3], "names")
    check(reply["next"], "there is a next page")


def test_limits_that_are_none(c):
    for query in ("limit=0", "limit=-1", "limit=10001", "limit=ten", "token=%00%01nonsense"):
        c.call("GET", "/v1/objects/b?" + query).expect(400, "invalid_argument")


def test_names_deleted_and_made_between_pages(c):
    """What was there all the time comes exactly once."""
    stable, seen = set(NAMES), []
    for i, page in enumerate(c.pages("b", limit=200)):
        seen += [e["name"] for e in page["entries"]]
        c.put("b", f"a/new-{i}", b"")
        c.put("b", f"zz/new-{i}", b"")
    equal(len(seen), len(set(seen)), "names without duplicates")
    equal(sorted(stable - set(seen)), [], "names that the listing missed")


def test_deleted_names_are_gone(c):
    gone = [n for n in NAMES if n.startswith("d/")]
    in_parallel(lambda name: c.object("DELETE", "b", name).expect(204), gone)
    equal(listed(c, prefix="d/"), ([], []), "names below d/")


def test_an_empty_bucket(c):
    c.create("empty")
    equal(c.get_json("/v1/objects/empty"),
          {"entries": [], "prefixes": [], "next": "", "incomplete": False}, "page")
    c.call("GET", "/v1/objects/nobucket").expect(404, "bucket_not_found")


def test_the_longest_texts(c):
    """Each has as many bytes as it may, and each byte is escaped in a URL: by GET, by POST, from
    page to page, and
    from the proxy to the targets."""
    prefix, delimiter = "é" * 509, "ü" * 512
    names = sorted((prefix + f"{i:06d}" for i in range(1, 8)), key=str.encode)
    equal(len(names[0].encode()), 1024, "bytes of a name")
    c.create("long")
    for name in names:
        c.put("long", name, b"l")
    query = {"prefix": prefix, "delimiter": delimiter, "start_after": names[0], "limit": 2}
    equal(c.names("long", **query), names[1:], "names by GET")
    found, token = [], ""
    while True:
        value = {**query, **({"token": token} if token else {})}
        page = c.call("POST", "/v1/buckets/long",
                      {"action": "listobjects", "value": value}).expect(200).json()
        found += [e["name"] for e in page["entries"]]
        token = page["next"]
        if not token:
            break
    equal(found, names[1:], "names by POST")
    state = c.get_json("/v1/cluster?what=state")
    number = next(b["id"] for b in state["bmd"]["buckets"] if b["name"] == "long")
    asked = urllib.parse.urlencode({
        **query, "prefix": "é" * 512, "from": names[1],
        "dfcv": f"{state['term']}.{state['version']}", "tombstones": "true"
    })
    for target in c.targets():  # a page that ended early goes on with `from`, too
        url = c.get_json("/v1/daemon", target)["data_url"]
        c.member.request("GET", f"{url}/v1/list/{number}?{asked}").expect(200)


if __name__ == "__main__":
    main(targets=4)
