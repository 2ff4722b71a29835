#!/usr/bin/env python3
"""The web console in a real browser, on a cluster without access control: each page is used by
clicks, keys and file inputs, and the result is asked of the API."""

import hashlib
import io
import os
import random
import tarfile

from browser import Browser
from lib import Cluster, check, equal, main, raw_exchange, wait_for

EVIL = "<img src=x onerror=window.stolen=1>"
TURNS = ("--proxy-arg=--keepalive-timeout=2s", "--proxy-arg=--keepalive-late=1s", "--proxy-arg=--stats-interval=2s")


class Shown(Cluster):
    """With a browser, for all tests: a start of Chromium takes seconds."""

    def __init__(self, **shape):
        super().__init__(args=TURNS, **shape)
        self.browser = Browser(self)

    def remove(self):
        if hasattr(self, "browser"):
            self.browser.__exit__()
            del self.browser
        super().remove()

    def local(self, name, data):
        path = os.path.join(self.browser.dir, name)
        with open(path, "wb") as f:
            f.write(data)
        return path


def test_files_and_their_headers(c):
    slash = c.http.request("GET", c.url() + "/ui", follow=False)
    equal((slash.status, slash.headers["Location"]), (308, "/ui/"), "without the slash")
    for path, kind in (("", "text/html"), ("app.js", "text/javascript"), ("views/jobs.js", "text/javascript"),
                       ("style.css", "text/css"), ("logo.svg", "image/svg+xml")):
        reply = c.http.request("GET", f"{c.url()}/ui/{path}").expect(200)
        check(reply.headers["Content-Type"].startswith(kind), f"{path}: {reply!r}")
        check("default-src 'self'" in reply.headers["Content-Security-Policy"], f"{path}: {reply!r}")
        check("unsafe" not in reply.headers["Content-Security-Policy"], f"{path}: {reply!r}")
        equal(reply.headers["X-Content-Type-Options"], "nosniff", path)
        again = c.http.request("GET", f"{c.url()}/ui/{path}", None, {"If-None-Match": reply.headers["ETag"]})
        equal((again.status, again.body), (304, b""), path)
        packed = c.http.request("GET", f"{c.url()}/ui/{path}", None, {"Accept-Encoding": "gzip, br"}).expect(200)
        equal((packed.headers["Content-Encoding"], packed.body[:2]), ("gzip", b"\x1f\x8b"), path)
    for path in ("nothing.js", "views", "..%2findex.html", "%00"):
        check(c.http.request("GET", f"{c.url()}/ui/{path}").status in (400, 404), path)
    foreign = {"Origin": "http://evil.example"}
    c.http.request("GET", c.url() + "/ui/", None, foreign).expect(403, "foreign_origin")
    raw_exchange(c.address(), b"GET /ui/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", shut=True).expect(421, "unknown_host")


def test_overview_shows_a_lost_target(c):
    b = c.browser
    b.open()
    b.sees("Overview", "Healthy", "3 of 3", "no access control", "No job is running")
    c.kill("t3")
    b.sees("Not healthy", "target 't3' is unreachable", "2 of 3")
    b.expect_errors("50")  # its mountpaths, as long as it is not known that it is away
    b.click("Node t3")
    b.sees("critical", "unreachable", "dfcctl node")
    c.start("t3")
    b.sees("active")
    b.click("Overview")
    b.sees("3 of 3")
    wait_for(lambda: c.get_json("/v1/cluster")["health"] == "green", "green")
    b.sees("Healthy", "All nodes are there")
    b.judge()


def test_nodes(c):
    b = c.browser
    b.open("#/nodes")
    b.sees("p1", "primary", "t1", "t2", "t3", "target", "active")
    b.click("t2")
    b.sees("Disks", c.url("t2"), "Files in quarantine")
    b.open("#/nodes/%3Cimg%20src%3Dx%3E")
    b.sees("<img src=x>", "The cluster has no node of this name")
    b.judge()


def test_charts_move(c):
    b = c.browser
    c.create("charted")
    for number in range(40):
        c.put("charted", f"o{number}", b"x" * 10000)
    said = """const chart = [...document.querySelectorAll(".chart > svg")].find((e) =>
      e.getAttribute("aria-label").startsWith("Operations"));
    return chart ? Number(/Writes: [^,]*, at most ([\\d.]+)/.exec(chart.getAttribute("aria-label"))?.[1]) : 0"""
    for page in ("#/overview", "#/nodes/t1"):
        b.open(page)
        b.sees("Throughput", "Operations", "Latency (p99)", "CPU", "Values")
        wait_for(lambda: (b.script(said) or 0) > 0, f"{page}: the chart shows the writes")
    b.sees("Mountpaths", "enabled", "Quarantine", c.node_dir("t1"))
    b.judge()


CHARTS = """return import("/ui/charts.js").then((charts) => [
  [0, 0.3, 1, 1.5, 4, 7, 99, 100, 101].map(charts.ceiling),
  charts.path([0, 10, null, 5, null, 10, 10], 10), charts.path([], 1), charts.path([null], 1)])"""


def test_lines_of_charts(c):
    ceilings, line, empty, unknown = c.browser.script(CHARTS)
    equal(ceilings, [1, 0.5, 1, 2, 5, 10, 100, 100, 200], "the greatest value of an axis")
    equal([line.count(letter) for letter in "MLh"], [3, 2, 1], f"two lines and a point: {line}")
    equal((empty, unknown), ("", ""), "no values")


VALUES = """return import("/ui/views/settings.js").then((s) => [
  [["duration", 12000], ["duration", 90], ["duration", 0], ["size", 67108864], ["size", 1000], ["percent", 75],
    ["count", 8], ["boolean", true]].map(([type, value]) => s.valueText(type, value)),
  [["duration", "2h"], ["size", "64MiB"], ["size", "0"], ["percent", "75%"], ["text", "a"]].map(([type, text]) =>
    s.valueOf(type, text))])"""


def test_values_of_settings(c):
    equal(c.browser.script(VALUES), [["12s", "90ms", "0", "64MiB", "1000", "75%", "8", "true"],
                                     [7200000, 67108864, 0, 75, "a"]], "values as text, and back")


def test_events(c):
    b = c.browser
    b.open("#/events")
    b.sees("joined the cluster", "began as the primary")
    c.create("seen-live")
    b.sees("bucket 'seen-live' was created")
    b.fill("Level", "Errors")
    b.gone("joined the cluster")
    b.fill("Level", "All events")
    b.click("seen-live")
    b.sees("Properties")
    b.open("#/overview")
    b.sees("Latest events", "bucket 'seen-live' was created")
    b.click("All events")
    b.sees("joined the cluster")
    b.judge()


def test_settings_and_users_of_an_open_cluster(c):
    b = c.browser
    b.open("#/settings")
    b.sees("rebalance_delay", "how long the owners in the map", "dfcctl config set")
    check("Change" not in b.text(), "an open cluster has no buttons there")
    b.open("#/users")
    b.sees("no access control, and so no users")
    b.judge()


def test_buckets(c):
    b = c.browser
    b.open("#/buckets")
    b.click("Create a bucket")
    b.fill("Name", "by-hand")
    b.fill("Copies of each object", "2")
    b.click("Create")
    b.sees("Properties", "2 copies", "protected")
    equal(c.get_json("/v1/buckets/by-hand")["props"]["copies"], 2, "copies")
    b.script("document.querySelector('[data-key=\"change verify_on_read\"]').click()")
    b.fill("verify_on_read", "true")
    b.click("Change")
    wait_for(lambda: c.get_json("/v1/buckets/by-hand")["props"]["verify_on_read"] is True, "the change")
    b.open("#/buckets")
    b.sees("by-hand")
    b.expect_errors("409", "400")
    for name, said in (("by-hand", "bucket_exists"), (EVIL, "invalid_name")):
        b.click("Create a bucket")
        b.fill("Name", name)
        b.click("Create")
        b.sees(said)
        b.click("Cancel")
    b.judge()
    b.click("by-hand")
    b.click("Destroy")
    button = b.find("click", "Destroy the bucket")
    check(not button.is_enabled(), "the name must be typed first")
    b.fill("Type", "by-hand")
    b.click("Destroy the bucket")
    b.sees("destroyed")
    equal([x for x in c.get_json("/v1/buckets")["buckets"] if x["name"] == "by-hand"], [], "buckets")
    b.judge()


def test_objects(c):
    b = c.browser
    c.create("data")
    c.put("data", "folder/note.txt", b"read me")
    data = random.Random(5).randbytes(20 << 20)
    b.open("#/objects/data")
    b.sees("folder/", "Choose files")
    b.upload(c.local("large.bin", data), c.local("small.json", b'{"a": 1}'))
    b.sees("large.bin", "Stored, 20 MiB.", "small.json")
    equal(hashlib.sha256(c.get("data", "large.bin").expect(200).body).digest(), hashlib.sha256(data).digest(), "bytes")
    b.expect_errors("412")
    b.upload(c.local("small.json", b'{"a": 2}'))
    b.sees("An object of this name exists.")
    equal(c.get("data", "small.json").body, b'{"a": 1}', "nothing is replaced unasked")
    b.click("Replace it")
    wait_for(lambda: c.get("data", "small.json").body == b'{"a": 2}', "the new one")
    b.judge()
    b.click("folder/")
    b.click("note.txt")
    b.sees("read me", "7 B", "dfc://data/folder/note.txt")
    b.open("#/object/data?name=large.bin")
    b.click("Download")
    path = os.path.join(b.downloads, "large.bin")
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) == len(data), "the download")
    with open(path, "rb") as f:
        equal(hashlib.sha256(f.read()).digest(), hashlib.sha256(data).digest(), "downloaded bytes")
    b.click("Rename")
    b.fill("New name", "other/large.bin")
    b.find("field", "New name").submit()
    b.sees("dfc://data/other/large.bin")
    c.get("data", "large.bin").expect(404)
    b.click("Delete")
    b.script("document.querySelector('dialog button[type=submit]').click()")
    b.sees("deleted")
    c.get("data", "other/large.bin").expect(404)
    b.judge()


def test_names_that_are_markup(c):
    b = c.browser
    c.create("evil")
    names = [f"{EVIL}.txt", f"{EVIL}/x.txt", "../up.txt", "a//b?c#d%2f.txt", "\u202ertl.txt"]
    for name in names:
        c.put("evil", name, EVIL.encode(), {"Dfc-Meta-Evil": EVIL})
    c.put("evil", "page.html", b"<script>window.stolen = 1</script>", {"Content-Type": "text/html"})
    b.open("#/objects/evil")
    b.sees(f"{EVIL}.txt", f"{EVIL}/", "../", "page.html")
    for name in names + ["page.html"]:
        b.open("#/overview")
        b.open("#/object/evil?name=" + b.script("return encodeURIComponent(arguments[0])", name))
        b.sees("Preview", "<script>" if name == "page.html" else EVIL)
    b.open("#/object/evil?name=" + b.script("return encodeURIComponent(arguments[0])", names[0]))
    b.sees("Metadata")
    b.click("Delete")
    b.sees("cannot be undone")
    b.script("document.querySelector('dialog button[type=submit]').click()")
    wait_for(lambda: c.get("evil", names[0]).status == 404, "it is deleted")
    b.open("#/objects/evil?prefix=" + b.script("return encodeURIComponent(arguments[0])", EVIL))
    b.sees(f"{EVIL}…")
    b.judge()


def test_many_objects_come_in_pages(c):
    b = c.browser
    c.create("many")
    for number in range(205):
        c.put("many", f"o{number:03}", b"")
    b.open("#/objects/many")
    b.sees("o000", "o199", "Next page")
    b.click("Next page")
    b.sees("o200", "o204")
    b.script("document.querySelector('[aria-label=\"Select o204\"]').click()")
    b.click("Delete 1 object")
    b.script("document.querySelector('dialog button[type=submit]').click()")
    wait_for(lambda: c.get("many", "o204").status == 404, "it is deleted")
    c.get("many", "o203").expect(200)
    b.judge()


def test_jobs(c):
    b = c.browser
    b.open("#/jobs")
    b.click("Start a job")
    b.fill("Job", "validate")
    b.click("Start")
    b.sees("validate", "finished")
    jobs = [j for j in c.get_json("/v1/jobs")["jobs"] if j["kind"] == "validate"]
    equal([j["state"] for j in jobs], ["finished"], "jobs")
    b.open("#/jobs")
    b.sees(jobs[0]["id"], "All kinds")
    b.expect_errors("404")
    b.open("#/jobs/nothing")
    b.sees("job_not_found")
    b.open("#/overview")
    b.judge()


def tar_of(names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 3
            tar.addfile(info, io.BytesIO(b"abc"))
    return out.getvalue()


def test_a_sort(c):
    b = c.browser
    c.create("shards")
    for number in range(3):
        c.put("shards", f"s-{number}.tar", tar_of([f"{number}{i}.cls" for i in range(10)]))
    b.open("#/sort")
    b.fill("Input bucket", "shards")
    b.fill("Input shards", "s-{0..2}.tar")
    b.fill("Order", "Shuffle")
    b.fill("Seed", "7")
    b.fill("Output shards", "out-%02d.tar")
    b.fill("Size of a shard", "10KiB")
    b.sees('"seed": "7"', "--algorithm shuffle --seed 7", "'s-{0..2}.tar'")
    b.click("Dry run")
    b.sees("finished", "nothing is stored", "30 records")
    b.open("#/sort?bucket=shards")
    b.fill("Input shards", "s-{0..2}.tar")
    b.fill("Output shards", "out-%02d.tar")
    b.fill("Size of a shard", "much")
    b.expect_errors("400")
    b.click("Start the sort")
    b.sees("invalid_spec")
    b.fill("Size of a shard", "10KiB")
    b.click("Start the sort")
    b.sees("Took", "finished", "30 records")
    names = [e["name"] for e in c.get_json("/v1/objects/shards?prefix=out-")["entries"]]
    check(names, "the sort has an output")
    b.open("#/object/shards?name=" + names[0])
    b.sees("Member", ".cls")
    b.judge()


def test_looks(c):
    b = c.browser
    c.put("data", "photo.txt", b"text of an object\n" * 20)
    pages = {"overview": "This cluster", "nodes": "Weight", "nodes/t1": "Disks", "buckets": "Kept as",
             "buckets/data": "Properties", "objects/data": "Choose files", "object/data?name=photo.txt": "text of an",
             "jobs": "Start a job", "sort": "As a command", "events": "What happened", "settings": "Meaning"}
    for scheme, width in (("light", 1280), ("light", 360), ("dark", 1280)):
        b.colours(scheme)
        b.resize(width)
        for page, text in pages.items():
            b.open("#/" + page)
            b.sees(text)
            b.accessible(f"{page}, {scheme}, {width}", names=(scheme, width) == ("light", 1280))
            b.shot(f"{page.split('?')[0].replace('/', '-')}-{scheme}-{width}")
    b.open("#/buckets")
    b.click("Create a bucket")
    b.accessible("dialog")
    b.shot("dialog")
    b.click("Cancel")
    b.judge()


def test_a_proxy_that_is_away_and_back(c):
    b = c.browser
    b.resize(1280)
    b.open("#/nodes")
    b.sees("t1")
    b.expect_errors("ERR_CONNECTION", "ERR_EMPTY")
    c.stop("p1")
    b.sees("Not connected since")
    c.start("p1")
    b.gone("Not connected")
    b.judge()


def test_without_a_console(c):
    c.stop("p1")
    c.start("p1", "--arg=--console=false")
    for path in ("/ui", "/ui/", "/ui/app.js"):
        c.http.request("GET", c.url() + path).expect(404, "no_such_route")
    c.stop("p1")
    c.start("p1")
    c.http.request("GET", c.url() + "/ui/").expect(200)


if __name__ == "__main__":
    main(make=Shown, targets=3)
