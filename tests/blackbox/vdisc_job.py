#!/usr/bin/env python3
"""The job `burn`: an image made inside the cluster has the bytes of a client's burn, whatever the
order of the list, the number of threads, and the way the files come."""

import hashlib
import json
import os
import random

from lib import SANITIZED, check, equal, in_parallel, main, wait_for

TREES = 8 if SANITIZED else 48  # random ones, each burned in five ways
NAMES = ("a", "b.txt", "Read Me", "é", "x" * 120, "z-1", "INDEX", "index")


def path_of(c, name):
    return os.path.join(c.dir, name)


def dfcctl(c, *words, code=0):
    done = c.dfcctl(*words)
    equal(done.returncode, code, f"{words}: {done.stderr[-500:]}")
    return done


def image_of(c, name):
    """The id, and the bytes of the image."""
    found = json.loads(dfcctl(c, "vdisc", "inspect", f"dfc://{name}", "-o", "json").stdout)
    dfcctl(c, "vdisc", "export", f"dfc://{name}", "-o", path_of(c, "x.iso"))
    with open(path_of(c, "x.iso"), "rb") as f:
        return found["image_id"], f.read()


def start(c, bucket, **value):
    reply = c.call("POST", f"/v1/buckets/{bucket}", {"action": "burn", "value": value})
    return reply.expect(202).json()["id"]


def ended(c, job, *states):
    def reached():
        doc = c.get_json(f"/v1/jobs/{job}")
        return doc if doc["state"] in ("finished", "failed", "aborted") else None
    doc = wait_for(reached, f"the end of {job}")
    check(doc["state"] in states, doc)
    return doc


def burn(c, bucket, **value):
    """The image's part of the status."""
    doc = ended(c, start(c, bucket, **value), "finished")
    images = [t["status"]["image"] for t in doc["targets"].values() if "image" in t["status"]]
    equal(len(images), 1, f"targets that made the image: {doc}")
    return images[0]


def fail(c, bucket, code, text, **value):
    doc = ended(c, start(c, bucket, **value), "failed")
    equal(doc["errors"][0]["code"], code, doc["errors"])
    check(text in doc["errors"][0]["message"], doc["errors"])


def test_a_bucket(c):
    c.create("raw", copies=2)
    c.create("sum", checksum="sha256")
    c.create("img")
    files = {f"set/{i % 5}/{i}.bin": random.Random(i % 40).randbytes(i % 40 * 97) for i in range(70)}
    for bucket in ("raw", "sum"):
        in_parallel(lambda key, to=bucket: c.put(to, key, files[key]), files)
        c.put(bucket, "set/empty/", b"")
        c.put(bucket, ".dfc-unique/x", b"internal")
        for number, (flags, value) in enumerate((
                ([], {}), (["--digest"], {"digest": True}), (["--no-check"], {"check": False}),
                (["--joliet", "--date", "7", "--names", "portable"],
                 {"joliet": True, "date": 7, "names": "portable"}),
                (["--iso9660-volume-identifier", "SET"], {"identifiers": {"volume": "SET"}}))):
            mine, theirs = f"{bucket}-{number}-client.vdsc", f"{bucket}-{number}-job.vdsc"
            dfcctl(c, "vdisc", "burn", "--bucket", f"dfc://{bucket}/set/", "-o", f"dfc://img/{mine}",
                   *flags)
            told = burn(c, bucket, prefix="set/", image=theirs, to="img", **value)
            one, other = image_of(c, f"img/{mine}"), image_of(c, f"img/{theirs}")
            check(one == other, f"{bucket}, {value}: {one[0]} and {other[0]}")
            equal(told["image_id"], one[0], "the job's image id")


def test_what_a_job_refuses(c):
    c.create("other")
    c.put("other", "o", b"o")
    c.put("raw", "away.csv", b"/o,dfc://other/o,1\n")
    c.put("raw", "gone.csv", b"/a,dfc://raw/nothing,1\n")
    c.put("raw", "long.csv", b"/a,dfc://raw/away.csv,99\n")
    c.put("raw", "wrong.csv", b"/a;dfc://raw/away.csv\n")
    c.put("raw", "empty.csv", b"")
    fail(c, "raw", "object_exists", "not overwritten", prefix="set/", image="raw-0-job.vdsc", to="img")
    fail(c, "raw", "nothing_matched", "empty", prefix="none/", image="n.vdsc")
    fail(c, "raw", "nothing_matched", "empty", csv="empty.csv", image="n.vdsc")
    fail(c, "raw", "invalid_argument", "--job", csv="away.csv", image="n.vdsc")
    fail(c, "raw", "object_not_found", "line 1: object 'raw/nothing'", csv="gone.csv", image="n.vdsc")
    fail(c, "raw", "image_changed", "the list says 99", csv="long.csv", image="n.vdsc")
    fail(c, "raw", "invalid_argument", "line 1", csv="wrong.csv", image="n.vdsc")
    fail(c, "raw", "object_not_found", "no.csv", csv="no.csv", image="n.vdsc")
    fail(c, "raw", "invalid_spec", "identifiers", prefix="set/", image="n.vdsc",
         identifiers={"colour": "RED"})
    for value in ({"prefix": "a"}, {"image": "a"}, {"prefix": "a", "csv": "b", "image": "c"}):
        c.call("POST", "/v1/buckets/raw", {"action": "burn", "value": value}).expect(
            400, "invalid_spec")
    c.call("POST", "/v1/buckets/raw", {"action": "burn", "value": {
        "prefix": "", "image": "a", "to": "nowhere"}}).expect(404, "bucket_not_found")
    check("n.vdsc" not in c.names("raw"), "a failed burn has left an image")
    c.put("img", ".dfc-vdisc/gc/0123456789abcdef", b"")
    fail(c, "raw", "object_reserved", "'vdisc gc' is at work", prefix="set/", image="n.vdsc", to="img")
    c.call("DELETE", "/v1/objects/img/.dfc-vdisc/gc/0123456789abcdef").expect(204)
    fail(c, "raw", "invalid_name", "'vdisc gc'", prefix="set/", image="n", to="img")


def test_a_header_of_other_bytes(c):
    """It has the name of the header that an image would get."""
    burn(c, "raw", prefix="set/", image="h.vdsc", to="img", date=7)
    dfcctl(c, "vdisc", "inspect", "dfc://img/h.vdsc")
    header = next(name for name in c.names("img") if name.startswith("h.vdsc."))
    size = len(c.get("img", header).expect(200).body)
    for body in (b"short", b"x" * size):
        c.call("DELETE", "/v1/objects/img/h.vdsc")
        c.put("img", header, body).expect(200)
        dfcctl(c, "vdisc", "burn", "--bucket", "dfc://raw/set/", "--date", "7", "-o", "dfc://img/h.vdsc",
               code=1)
        fail(c, "raw", "object_exists", "is not the header of this image", prefix="set/", image="h.vdsc",
             to="img", date=7)
        check("h.vdsc" not in c.names("img"), "an image without its header")
    c.call("DELETE", f"/v1/objects/img/{header}").expect(204)
    burn(c, "raw", prefix="set/", image="h.vdsc", to="img", date=7)
    c.call("DELETE", "/v1/objects/img/h.vdsc").expect(204)
    dfcctl(c, "vdisc", "burn", "--bucket", "dfc://raw/set/", "--date", "7", "-o", "dfc://img/h.vdsc")
    dfcctl(c, "vdisc", "verify", "dfc://img/h.vdsc")


def test_lists_that_are_empty(c):
    burn(c, "raw", csv="empty.csv", image="empty.vdsc", allow_empty=True)
    dfcctl(c, "vdisc", "burn", "--job", "-i", "local.csv", "-o", "dfc://img/n.vdsc", code=2)
    dfcctl(c, "vdisc", "burn", "--job", "--tree", "/etc", "-o", "dfc://img/n.vdsc", code=2)


def test_jobs_of_one_name_at_once(c):
    jobs = in_parallel(lambda i: start(c, "raw", prefix=f"set/{i}/", image="race.vdsc", to="img"),
                       range(4))
    ends = [ended(c, job, "finished", "failed") for job in jobs]
    equal(sorted(end["state"] for end in ends), ["failed"] * 3 + ["finished"], "ends")
    equal({end["errors"][0]["code"] for end in ends if end["state"] == "failed"}, {"object_exists"},
          "why three have failed")
    dfcctl(c, "vdisc", "verify", "dfc://img/race.vdsc")


def make_tree(c, number):
    """A directory, and the rows of a list that say the same."""
    rng = random.Random(number)
    top = path_of(c, f"tree-{number}")
    os.mkdir(top)
    rows, places = [], [""]
    for _ in range(rng.randint(1, 14)):
        place = rng.choice(places) + "/" + rng.choice(NAMES)
        path = top + place
        if os.path.lexists(path):
            continue
        if rng.random() < 0.3:
            os.mkdir(path, 0o755)
            os.chmod(path, 0o755)
            places.append(place)
            rows.append(f"\"{place}/\",,,,,755,0,0")
        elif rng.random() < 0.1:
            os.symlink("a/../b", path)
            rows.append(f"\"{place}\",symlink:a/../b,,,,777,0,0")
        else:
            data = rng.randbytes(rng.choice((0, 1, 2048, 2049, 5000)))
            with open(path, "wb") as f:
                f.write(data)
            os.chmod(path, 0o640)
            os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
            digest = hashlib.sha256(data).hexdigest()
            rows.append(f"\"{place}\",dfc://trees/.dfc-unique/{digest[:2]}/{digest},{len(data)},"
                        f"{digest},{1_000_000_000 + number},640,0,0")
    os.chmod(top, 0o755)
    rng.shuffle(rows)
    return top, rows


def burn_tree(c, number):
    top, rows = make_tree(c, number)
    tree, mine, theirs = (f"{number}-{how}.vdsc" for how in ("tree", "list", "job"))
    flags = ["--date", "1234567", "--allow-empty"]
    dfcctl(c, "vdisc", "burn", "--tree", top, "-o", f"dfc://trees/{tree}", *flags)
    rows_text = [f"{row}\n".encode() for row in rows]
    c.put("trees", f"{number}.csv", b"".join(rows_text))
    with open(path_of(c, f"{number}.csv"), "wb") as f:
        f.write(b"".join(reversed(rows_text)))
    for threads in (1, 8):
        dfcctl(c, "vdisc", "burn", "-i", path_of(c, f"{number}.csv"), "-o",
               f"dfc://trees/{threads}-{mine}", "--parallel", threads, *flags)
    told = burn(c, "trees", csv=f"{number}.csv", image=theirs, date=1234567, allow_empty=True)
    ids = {told["image_id"]}
    for name in (tree, f"1-{mine}", f"8-{mine}", theirs):
        found = json.loads(dfcctl(c, "vdisc", "inspect", f"dfc://trees/{name}", "-o", "json").stdout)
        ids.add(found["image_id"])
    equal(len(ids), 1, f"images of tree {number}")


def test_random_trees(c):
    c.create("trees")
    in_parallel(lambda number: burn_tree(c, number), range(TREES), workers=4)


def numbered(seed, count, sizes):
    rng = random.Random(seed)
    return {f"d{i % 4}/{i}": rng.randbytes(rng.choice(sizes)) for i in range(count)}


def write_files(c, name, files):
    for path, data in files.items():
        full = path_of(c, f"{name}/{path}")
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as f:
            f.write(data)
        os.chmod(full, 0o644)
        os.utime(full, (1_000_000_000, 1_000_000_000))
    for at, _, _ in os.walk(path_of(c, name)):
        os.chmod(at, 0o755)
    return path_of(c, name)


def write_list(c, bucket, name, files, checksums=True):
    """The same as a list of objects; without checksums the targets compute them."""
    in_parallel(lambda path: c.put(bucket, path, files[path]), files)
    rows = [f"/{path},dfc://{bucket}/{path},{len(data)},"
            f"{hashlib.sha256(data).hexdigest() if checksums else ''},1000000000,644,0,0\n"
            for path, data in files.items()]
    rows += [f"/{top}/,,,,,755,0,0\n" for top in {path.split("/")[0] for path in files}]
    random.Random(name).shuffle(rows)
    c.put(bucket, name, "".join(rows).encode())
    return name


def same(c, one, other):
    """Bytes; and the id, which has the tags of objects, if both images refer to the same ones."""
    a, b = image_of(c, one), image_of(c, other)
    check(a[1] == b[1], f"other bytes of {one} and {other}")
    if one.split("/")[0] == other.split("/")[0]:
        equal(a[0], b[0], f"ids of {one} and {other}")


def internal(c, bucket):
    out = dfcctl(c, "ls", bucket, "--prefix", ".dfc-", "--allow-empty", "-o", "json").stdout
    return {e["name"]: e["size"] for e in json.loads(out)["entries"]}


def test_contents_are_stored(c):
    """A job and a client that store the same contents make the same objects and the same image."""
    files = numbered(5, 90, (0, 1, 2047, 2048, 5000, 70000))
    files["d0/large"] = random.Random(6).randbytes((1 << 20) + 3)
    files["d1/again"] = files["d0/large"]
    for bucket in ("files", "mine", "theirs"):
        c.create(bucket)
    tree = write_files(c, "stored", files)
    for store in ("unique", "pack"):
        for checksums in (True, False):
            mine, theirs = f"{store}.vdsc", f"{store}-{checksums}.vdsc"
            if checksums:
                dfcctl(c, "vdisc", "burn", "--tree", tree, "--store", store, "-o", f"dfc://mine/{mine}",
                       "--date", "9")
            told = burn(c, "files", csv=write_list(c, "files", f"{checksums}.csv", files, checksums),
                        image=theirs, to="theirs", store=store, date=9)
            same(c, f"mine/{mine}", f"theirs/{theirs}")
            check((told["stored_objects"] > 0) == checksums, f"what was stored: {told}")
        dfcctl(c, "vdisc", "burn", "--tree", tree, "--store", store, "-o", f"dfc://theirs/{mine}", "--date", "9")
        same(c, f"theirs/{mine}", f"theirs/{store}-True.vdsc")
    equal(internal(c, "theirs"), internal(c, "mine"), "objects")
    c.call("DELETE", "/v1/objects/files/d1/1").expect(204)
    dfcctl(c, "vdisc", "verify", "dfc://theirs/pack-True.vdsc")


def test_a_base(c):
    """Contents of an older image are not stored again."""
    files = numbered(5, 90, (0, 1, 2047, 2048, 5000, 70000))
    files |= {f"d1/new{i}": random.Random(i).randbytes(3000) for i in range(5)}
    tree = write_files(c, "based", files)
    for store, base in (("pack", "pack"), ("unique", "unique"), ("unique", "pack")):
        image = f"{store}-of-{base}.vdsc"
        dfcctl(c, "vdisc", "burn", "--tree", tree, "--store", store, "--date", "9", "-o",
               f"dfc://mine/{image}", "--base", f"dfc://mine/{base}.vdsc")
        told = burn(c, "files", csv=write_list(c, "files", "based.csv", files), image=image,
                    to="theirs", store=store, base=f"{base}-True.vdsc", date=9)
        same(c, f"mine/{image}", f"theirs/{image}")
        check(told["stored_bytes"] < 30000, f"what was stored: {told}")
    equal(internal(c, "theirs"), internal(c, "mine"), "objects")


def test_an_older_image(c):
    """Entries of an image, without some, and with some in their place."""
    c.put("theirs", "more", b"more")
    c.put("theirs", "more.csv", b"/d0/4,dfc://theirs/more,4\n/new,dfc://theirs/more,4\n")
    with open(path_of(c, "more.csv"), "wb") as f:
        f.write(b"/d0/4,dfc://theirs/more,4\n/new,dfc://theirs/more,4\n")
    older = "theirs/pack-True.vdsc"
    dfcctl(c, "vdisc", "burn", "--from", f"dfc://{older}", "--remove", "/d1", "-o", "dfc://theirs/less.vdsc")
    dfcctl(c, "vdisc", "burn", "--job", "--wait", "--from", f"dfc://{older}", "--remove", "/d1", "-o",
           "dfc://theirs/less-job.vdsc")
    same(c, "theirs/less.vdsc", "theirs/less-job.vdsc")
    dfcctl(c, "vdisc", "burn", "--from", f"dfc://{older}", "-i", path_of(c, "more.csv"), "-o",
           "dfc://theirs/more.vdsc")
    dfcctl(c, "vdisc", "burn", "--job", "--wait", "--from", f"dfc://{older}", "-i", "dfc://theirs/more.csv",
           "-o", "dfc://theirs/more-job.vdsc")
    same(c, "theirs/more.vdsc", "theirs/more-job.vdsc")


def test_what_a_job_refuses_of_older_images(c):
    c.put("theirs", "no.vdsc", b"no image")
    c.put("files", "wrong.csv", b"/a,dfc://files/d0/4,%d,%s\n"
          % (len(c.get("files", "d0/4").body), b"0" * 64))
    fail(c, "theirs", "image_damaged", "no.vdsc", **{"from": "no.vdsc", "image": "n.vdsc"})
    fail(c, "theirs", "object_not_found", "none.vdsc", **{"from": "none.vdsc", "image": "n.vdsc"})
    fail(c, "theirs", "not_found", "remove '/zzz'",
         **{"from": "pack-True.vdsc", "image": "n.vdsc", "remove": ["/zzz"]})
    fail(c, "theirs", "nothing_matched", "empty",
         **{"from": "pack-True.vdsc", "image": "n.vdsc", "remove": ["/"]})
    fail(c, "files", "image_changed", "line 1: object 'files/d0/4' has another checksum",
         csv="wrong.csv", image="n.vdsc", to="theirs", store="pack")
    c.create("third")
    dfcctl(c, "vdisc", "burn", "--bucket", "dfc://files/d0/", "-o", "dfc://third/away.vdsc")
    fail(c, "third", "invalid_argument", "--job", **{"from": "away.vdsc", "image": "n.vdsc"})
    image = "dfc://theirs/pack-True.vdsc"
    for words in (["--from", image, "-o", "dfc://files/n.vdsc"],
                  ["--bucket", "dfc://files", "--base", image, "-o", "dfc://theirs/n.vdsc"],
                  ["--bucket", "dfc://files", "--store", "pack", "--no-check", "-o", "dfc://theirs/n.vdsc"]):
        dfcctl(c, "vdisc", "burn", "--job", *words, code=2)
    for bucket in ("files", "theirs", "third"):
        check("n.vdsc" not in c.names(bucket), "a failed burn has left an image")


def test_a_target_is_killed(c):
    job = start(c, "raw", prefix="set/", image="killed.vdsc", to="img", digest=True)
    c.kill("t2")
    c.wait_node("t2", "unreachable")
    c.start("t2")
    c.wait_node("t2", "active")
    doc = ended(c, job, "finished", "failed")
    if doc["state"] == "failed":  # the job says so, and nothing of the image can be seen
        check("killed.vdsc" not in c.names("img"), doc)
        return
    wait_for(lambda: c.dfcctl("vdisc", "verify", "dfc://img/killed.vdsc").returncode == 0,
             "an image that is whole")


main()
