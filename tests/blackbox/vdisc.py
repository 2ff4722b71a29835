#!/usr/bin/env python3
"""Dataset images of a cluster: burned by several clients at once, read while a target is killed,
broken and mended by its objects, and the same whichever node the list names."""

import hashlib
import json
import os
import random
import subprocess

from lib import BUILD, check, equal, in_parallel, main, wait_for

FILES = {f"raw/{i % 7}/{i}.bin": random.Random(i).randbytes(i * 331) for i in range(120)}
BURNERS = 4
RETRIES = 30  # of a read, until the cluster has noticed that a target is dead


def path_of(c, name):
    return os.path.join(c.dir, name)


def write_list(c, name, rows):
    with open(path_of(c, name), "w", encoding="utf-8") as f:
        f.write("".join(f"{row}\n" for row in rows))
    return path_of(c, name)


def rows(address="dfc://data/"):
    return [f"/{key},{address}{key},{len(data)}" for key, data in FILES.items()]


def dfcctl(c, *words, code=0):
    done = c.dfcctl(*words)
    equal(done.returncode, code, f"{words}: {done.stderr[-500:]}")
    return done


def fill(c):
    c.create("data", copies=2)
    in_parallel(lambda key: c.put("data", key, FILES[key]).expect(200), FILES)


def export(c, image, name):
    dfcctl(c, "vdisc", "export", image, "-o", path_of(c, name), "--retries", RETRIES)
    with open(path_of(c, name), "rb") as f:
        return f.read()


def test_every_address_of_an_object_is_the_same(c):
    fill(c)
    images = []
    for number, address in enumerate(["dfc://data/", "s3://data/", *(
            c.url(node) + "/v1/objects/data/" for node in ["p1", *c.targets()])]):
        image = f"dfc://data/images/{number}.vdsc"
        dfcctl(c, "vdisc", "burn", "-i", write_list(c, "list.csv", rows(address)), "-o", image)
        images.append(export(c, image, "x.iso"))
    check(all(image == images[0] for image in images), "two images differ")


def test_the_export_has_the_files(c):
    out = path_of(c, "out")
    os.mkdir(out)
    subprocess.run(["bsdtar", "-xf", path_of(c, "x.iso"), "-C", out], check=True)
    for key, data in FILES.items():
        with open(os.path.join(out, key), "rb") as f:
            check(f.read() == data, f"{key}: other bytes")


def test_burns_of_one_name_at_once(c):
    """One of them is the image, and it is whole."""
    lists = [write_list(c, f"list{i}.csv", rows()[i:]) for i in range(BURNERS)]
    image = "dfc://data/images/raced.vdsc"
    done = in_parallel(lambda i: c.dfcctl("vdisc", "burn", "-i", lists[i], "-o", image),
                       range(BURNERS))
    burned = [d for d in done if d.returncode == 0]
    equal(len(burned), 1, "burns of one name that succeeded")
    check(all("dfcctl: " in d.stderr for d in done if d.returncode != 0), "a burn failed and said nothing")
    dfcctl(c, "vdisc", "verify", image)


def burn(c, rows_of_list, name, *flags, code=0):
    listed = write_list(c, "listed.csv", rows_of_list)
    return dfcctl(c, "vdisc", "burn", "-i", listed, "-o", f"dfc://data/images/{name}.vdsc", *flags,
                  *(("-o", "json") if code == 0 else ()), code=code)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def test_the_targets_compute_checksums(c):
    """The image is that of a list with checksums, whose author has read all bytes."""
    c.create("sliced", ec={"data": 1, "parity": 1, "min_size": 1000})
    objects = {f"twice/{key}": FILES[key] for key in list(FILES)[60:80]}
    in_parallel(lambda key: c.put("sliced", key, objects[key]).expect(200), objects)
    bare = rows() + [f"/{key},dfc://sliced/{key},{len(data)}" for key, data in objects.items()]
    known = [f"{row},{sha256({**FILES, **objects}[row.split(',')[0][1:]])}" for row in bare]
    learnt = json.loads(burn(c, bare, "learnt", "--digest").stdout)
    listed = json.loads(burn(c, known, "listed").stdout)
    equal(learnt["image_id"], listed["image_id"], "the image with checksums of the targets")
    equal(learnt["extents"], len(FILES) + 1, "extents, the header's too; equal objects have one")
    shown = json.loads(dfcctl(c, "vdisc", "inspect", "dfc://data/images/learnt.vdsc", "-o", "json").stdout)
    check(shown["content_id"], "no content id, though every SHA-256 is known")
    dfcctl(c, "vdisc", "verify", "dfc://data/images/learnt.vdsc")


def test_a_checksum_of_the_list_that_is_wrong(c):
    key = "raw/3/80.bin"
    row = f"/x,dfc://data/{key},{len(FILES[key])},md5:"
    right = hashlib.md5(FILES[key]).hexdigest()
    burn(c, [row + right], "md5", "--digest")
    done = burn(c, [row + right[::-1]], "wrong", "--digest", code=1)
    check("has another checksum than the list says" in done.stderr, done.stderr)
    done = burn(c, [f"/x,dfc://data/none,{len(FILES[key])}"], "wrong", "--digest", code=3)
    check("line 1: object 'data/none'" in done.stderr, done.stderr)
    done = burn(c, [f"/x,dfc://data/{key},1"], "wrong", "--digest", code=1)
    check(f"has {len(FILES[key])} bytes, and the list says 1" in done.stderr, done.stderr)


def test_digests_of_one_object(c):
    key = "raw/3/80.bin"
    got = c.get("data", key, query="digest=sha256").expect(200).json()
    equal(got["checksum"], {"type": "sha256", "value": sha256(FILES[key])}, "the digest")
    equal(got["size"], len(FILES[key]), "the size")
    for query in ("digest=sha1", "digest=none", "digest=", "digest=md5&offset=1", "digest=md5&member=x"):
        c.get("data", key, query=query).expect(400)
    c.get("data", "none", query="digest=md5").expect(404)


def test_a_target_is_killed(c):
    wanted = export(c, "dfc://data/images/0.vdsc", "y.iso")
    victim = sorted(c.targets())[0]
    c.kill(victim)
    check(export(c, "dfc://data/images/0.vdsc", "y.iso") == wanted, "other bytes without a target")
    done = dfcctl(c, "vdisc", "verify", "dfc://data/images/0.vdsc", "-o", "json", "--retries", RETRIES)
    said = json.loads(done.stdout)
    equal((said["ok"], said["not_compared"]), (True, 0), "the verdict without a target")
    c.start(victim)
    c.wait_node(victim, "active")


def test_a_burn_whose_lease_was_removed(c):
    """A collection may have removed contents meanwhile: no image appears."""
    tree = path_of(c, "leased")
    os.mkdir(tree)
    for i in range(2000):
        with open(os.path.join(tree, str(i)), "wb") as f:
            f.write(b"leased %d" % i)
    leases = "/v1/objects/data?prefix=.dfc-vdisc/burn/"
    command = [os.path.join(BUILD, "dfcctl"), "vdisc", "burn", "--tree", tree, "-o",
               "dfc://data/leased.vdsc"]
    with subprocess.Popen(command, env=c.dfcctl_environment(), stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as burner:
        wait_for(lambda: c.get_json(leases)["entries"], "the lease")
        for entry in c.get_json(leases)["entries"]:
            c.call("DELETE", "/v1/objects/data/" + entry["name"]).expect(204)
        said = burner.stderr.read()
    check(burner.returncode != 0 and "was removed: 'vdisc gc'" in said, said)
    check("leased.vdsc" not in c.names("data"), "an image without a lease")


def test_an_object_is_replaced(c):
    key, image = "raw/3/80.bin", "dfc://data/images/0.vdsc"
    c.put("data", key, b"x" * len(FILES[key])).expect(200)
    done = dfcctl(c, "vdisc", "cat", image, key, code=1)
    equal(done.stdout, "", "bytes of a stale extent")
    check(f"'data/{key}' has been replaced" in done.stderr, done.stderr)
    said = json.loads(dfcctl(c, "vdisc", "verify", image, "-o", "json", code=6).stdout)
    equal((said["ok"], said["differing"]), (False, 1), "the verdict on a stale image")
    equal(said["found"][0]["object"], f"data/{key}", "what differs")


def test_a_bucket_that_is_not_there(c):
    done = dfcctl(c, "vdisc", "burn", "-i", path_of(c, "list.csv"), "-o", "dfc://none/x.vdsc", code=3)
    check("none" in done.stderr, done.stderr)


if __name__ == "__main__":
    main(targets=3)
