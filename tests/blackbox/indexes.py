#!/usr/bin/env python3
"""A target's indexes: after kill -9 nothing is walked through; rebuilt by hand while it serves;
damaged on the disk, they are found out and mended, and no list is short."""

import pathlib
import re
import threading

from lib import check, equal, in_parallel, main, wait_for

NAMES = [f"n/{i:04d}" for i in range(400)]


def looked_at(c):
    """Files that targets have read, to bring indexes into step, since they started."""
    text = c.call("GET", "/metrics", node="t1").body.decode()
    return sum(int(n) for n in re.findall(r"^dfc_index_files_looked_at_total\S* (\d+)", text, re.M))


def restart(c):
    c.start("t1")
    c.wait_node("t1", "active")


def indexes(c):
    return c.get_json("/v1/daemon/indexes", node="t1")["indexes"]


def test_before(c):
    c.create("b")
    in_parallel(lambda name: c.put("b", name, b"x"), NAMES)
    for name in NAMES[::4]:
        c.object("DELETE", "b", name).expect(204)
    equal(c.names("b"), left(), "names")


def left():
    return [n for i, n in enumerate(NAMES) if i % 4]


def test_after_kill_9_no_files_are_walked_through(c):
    c.kill("t1", "-9")
    restart(c)
    check(looked_at(c) <= 8, f"{looked_at(c)} files were looked at")
    equal(c.names("b"), left(), "names")


def test_a_rebuild_goes_on_beside_everything(c):
    stop = threading.Event()
    wrong = []

    def use():
        while not stop.is_set():
            c.put("b", "changing", b"y").expect(200)
            names = c.names("b", prefix="n/")
            if names != left():
                wrong.append(names)

    user = threading.Thread(target=use)
    user.start()
    try:
        for words in ([], [indexes(c)[0]["path"]], [indexes(c)[1]["id"]]):
            out = c.dfcctl("storage", "reindex", "t1", *words, "--wait").stdout
            check("complete" in out and "stale" not in out and "yes" not in out, out)
    finally:
        stop.set()
        user.join()
    equal(wrong, [], "lists while the indexes were rebuilt")
    equal([i["rebuilds"] for i in indexes(c)], [2, 2], "rebuilds")
    check(looked_at(c) >= len(NAMES), "all files were looked at")
    c.object("DELETE", "b", "changing").expect(204)


def test_what_cannot_be_is_refused(c):
    c.call("PUT", "/v1/daemon/indexes", {"action": "reindex", "value": "/nowhere"},
           node="t1").expect(404, "not_found", "/nowhere")
    c.call("PUT", "/v1/daemon/indexes", {"action": "x"}, node="t1").expect(
        400, "invalid_argument", "reindex")
    equal(c.dfcctl("storage", "reindex", "t9").returncode, 3, "exit code")


def test_a_page_goes_on_where_an_early_end_was(c):
    """What a proxy asks after a page that ended within names that are not shown."""
    bucket = c.get_json("/v1/buckets/b")["id"]
    url = next(n["data_url"] for n in c.get_json("/v1/cluster")["nodes"] if n["id"] == "t1")

    def page(query):
        return c.member.request("GET", f"{url}/v1/list/{bucket}?{query}").expect(200).json()

    equal([e["name"] for e in page("from=n/0390")["entries"]],
          [n for n in left() if n > "n/0390"], "names behind")
    equal(page("from=n/0390&delimiter=/")["prefixes"], ["n/"], "not shown before")
    equal(page("from=n/0390&delimiter=/&start_after=n/")["prefixes"], [], "shown before")


def damage(c):
    """Every record of the data file that has one of the names: a letter is changed."""
    hits = 0
    for path in pathlib.Path(c.node_dir("t1")).glob("*/.dfc/index/data.mdb"):
        data = bytearray(path.read_bytes())
        for m in re.finditer(rb"n/0[12]\d\d", bytes(data)):
            data[m.start() + 2] ^= 1
            hits += 1
        path.write_bytes(data)
    return hits


def test_damage_is_found_and_mended(c):
    c.stop("t1")
    check(damage(c) > 50, "too little was damaged")
    restart(c)

    def complete():
        page = c.call("GET", "/v1/objects/b?limit=1000")
        if page.status != 200:
            check(page.status == 500 and "index" in page.json()["message"], repr(page))
            return False
        equal([e["name"] for e in page.json()["entries"]], left(), "names")
        return True

    check(not complete(), "the damage was not found")
    equal(c.get("b", NAMES[1]).expect(200).body, b"x", "an object is served meanwhile")
    c.put("b", "new", b"z").expect(200)
    c.object("DELETE", "b", "new").expect(204)
    wait_for(complete, "the indexes to be mended")
    c.stop("t1")
    restart(c)
    equal(looked_at(c), 0, "files looked at after an orderly end")
    equal(c.names("b"), left(), "names")


if __name__ == "__main__":
    main(targets=1)
