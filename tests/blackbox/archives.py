#!/usr/bin/env python3
"""Archives through dfcctl: a folder becomes shards, which a sort reads; their members come back."""

import io
import os
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

from lib import check, contents, equal, main


def run(c, *args, status=0):
    done = c.dfcctl(*args)
    equal((done.returncode, done.stderr if done.returncode != status else ""), (status, ""),
          f"dfcctl {' '.join(map(str, args))}")
    return done.stdout


def members(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as t:
        return [(m.name, t.extractfile(m).read()) for m in t.getmembers()]


def make_folder(c, count=120):
    """Files in a folder, and their names with what they hold, in the order of shards."""
    folder = os.path.join(c.dir, "folder")
    made = {}
    for i in range(count):
        made[f"part-{i % 4}/{i:04}.cls"] = b"%d" % (i % 7)
        made[f"part-{i % 4}/{i:04}.jpg"] = os.urandom(3000 + 500 * i)
    for name, data in made.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
    return folder, sorted(made.items())


def test_a_folder_goes_and_comes(c):
    folder, wanted = make_folder(c)
    for bucket, props in (("one", {}), ("two", {"copies": 2}), ("ec", {"ec": "2+1"})):
        c.create(bucket, **props)
        run(c, "put", folder, bucket + "/train", "--shards", "500KiB")
        names = c.names(bucket)
        check(len(names) > 5, f"shards: {names}")
        got = [m for n in names for m in members(c.get(bucket, n).expect(200).body)]
        equal(got, wanted, f"members of {bucket}")
        listed = run(c, "archive", "ls", f"{bucket}/{names[0]}").splitlines()[1:]
        first = members(c.get(bucket, names[0]).body)
        equal([line.split()[-1] for line in listed], [n for n, _ in first], "listed")
        for n in names:
            run(c, "archive", "extract", f"{bucket}/{n}", os.path.join(c.dir, bucket))
        for name, data in wanted:
            equal(contents(os.path.join(c.dir, bucket, name)), data, f"{bucket}: {name}")


def test_other_formats_are_read(c):
    folder = os.path.join(c.dir, "folder")
    for extension in ("tar.gz", "tar.zst", "tar.lz4", "zip"):
        run(c, "archive", "create", f"one/all.{extension}", folder)
        got = run(c, "archive", "cat", f"one/all.{extension}", "part-1/0001.cls", "part-2/0002.cls")
        equal(got, "12", extension)
    run(c, "archive", "cat", "one/all.zip", "none", status=3)


def test_append(c):
    """Whatever keeps the bucket's objects, the members are there, in their order."""
    path = os.path.join(c.dir, "more")
    data = os.urandom(300000)
    with open(path, "wb") as f:
        f.write(data)
    for bucket in ("one", "two", "ec"):
        name = next(n for n in c.names(bucket) if n.endswith(".tar"))
        old = c.get(bucket, name).body
        c.put(bucket, "grows", old).expect(200)
        run(c, "archive", "append", f"{bucket}/grows", path)
        equal(members(c.get(bucket, "grows").body), members(old) + [("more", data)], bucket)
        again = c.dfcctl("archive", "append", f"{bucket}/grows", path)
        check(again.returncode != 0 and "has a member 'more'" in again.stderr, again.stderr)
        run(c, "archive", "append", f"{bucket}/grows", path, "--overwrite")
        equal(members(c.get(bucket, "grows").body), members(old) + 2 * [("more", data)], bucket)


def test_append_to_a_zip(c):
    folder, wanted = os.path.join(c.dir, "folder"), {}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("first", b"1" * 10000)
    for bucket in ("one", "two", "ec"):
        c.put(bucket, "z.zip", out.getvalue()).expect(200)
        run(c, "archive", "append", f"{bucket}/z.zip", folder)
        with zipfile.ZipFile(io.BytesIO(c.get(bucket, "z.zip").body)) as z:
            got = {n: z.read(n) for n in z.namelist()}
        wanted = wanted or got
        equal(len(got), 241, "members")
        check(got == wanted and got["first"] == b"1" * 10000, bucket)


def test_appenders_at_once(c):
    """Each command repeats what lost a race: every file is there, once."""
    out = io.BytesIO()
    tarfile.open(fileobj=out, mode="w").close()
    c.put("two", "shared", out.getvalue()).expect(200)

    def append(who):
        for i in range(5):
            path = os.path.join(c.dir, f"{who}-{i}")
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"{who} {i}")
            run(c, "archive", "append", "two/shared", path)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(append, "abc"))
    got = members(c.get("two", "shared").body)
    equal(sorted(got), [(f"{w}-{i}", b"%s %d" % (w.encode(), i)) for w in "abc" for i in range(5)],
          "members")
    for who in "abc":
        equal([n for n, _ in got if n[0] == who], [f"{who}-{i}" for i in range(5)], "order")


def test_append_takes_so_many(c):
    folder = os.path.join(c.dir, "many")
    os.makedirs(folder)
    for i in range(4):
        os.makedirs(os.path.join(folder, f"{i}"))
    for i in range(262145):
        os.close(os.open(os.path.join(folder, f"{i % 4}", f"{i}"), os.O_CREAT | os.O_WRONLY))
    refused = c.dfcctl("archive", "append", "two/shared", folder)
    check(refused.returncode != 0 and "at most 262144 files" in refused.stderr, refused.stderr)


def test_a_sort_of_xz_and_bz2(c):
    """The same shards as of the plain tars."""
    c.create("mixed")
    plain = [n for n in c.names("one") if n.endswith(".tar")]
    for extension, mode in (("tar", "w:"), ("tar.xz", "w:xz"), ("tar.bz2", "w:bz2")):
        for n in plain:
            out = io.BytesIO()
            with tarfile.open(fileobj=out, mode=mode) as t:
                for name, data in members(c.get("one", n).body):
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    t.addfile(info, io.BytesIO(data))
            c.put("mixed", n[:-len("tar")] + extension, out.getvalue()).expect(200)
    results = []
    for extension in (".tar", ".tar.xz", ".tar.bz2"):
        out = f"sorted{extension.replace('.', '-')}-"
        job = c.sort({"input_bck": {"name": "mixed"}, "input_format": {"prefix": "train-"},
                      "input_extension": extension, "output_format": out + "%04d",
                      "output_extension": ".tar", "output_shard_size": "700KiB",
                      "algorithm": {"kind": "md5"}})
        done = c.wait_job(job, "finished", "failed")
        equal(done["state"], "finished", f"sort of {extension}: {done}")
        results.append([c.get("mixed", n).body for n in c.names("mixed", prefix=out)])
    check(len(results[0]) > 3, f"{len(results[0])} shards")
    check(results[0] == results[1] == results[2], "the sorts differ")


if __name__ == "__main__":
    main(targets=3)
