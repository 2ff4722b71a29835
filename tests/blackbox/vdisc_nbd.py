#!/usr/bin/env python3
"""A dataset image as a block device: what libnbd and QEMU read is the exported image, also while a
target is dead; the zeros between files are known to be zeros; a replaced object is an error."""

import concurrent.futures
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import threading

from copies import wait_repaired
from lib import BUILD, check, equal, main, skip, wait_for

KIB = 1024
PROGRAMS = ("nbdkit", "nbdinfo", "nbdcopy", "qemu-img", "qemu-io")


def needs_nbd():
    for program in PROGRAMS:
        if shutil.which(program) is None:
            skip(f"there is no {program}")
    if not os.path.exists(os.path.join(BUILD, "nbdkit-dfc-vdisc-plugin.so")):
        skip("the build has no plugin of nbdkit: nbdkit-plugin-dev was missing")


def path_of(c, name):
    return os.path.join(c.dir, name)


def run(*words, code=0):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300, check=False)
    equal(done.returncode, code, f"{words}: {done.stdout[-300:]}{done.stderr[-500:]}")
    return done.stdout


@contextlib.contextmanager
def served(c, url, *flags):
    """The URI of the server."""
    socket = path_of(c, "nbd.sock")
    log = path_of(c, "nbd.log")
    with open(log, "ab") as out:
        process = subprocess.Popen(
            [os.path.join(BUILD, "dfcctl"), "vdisc", "serve", url, "--socket", socket, *flags],
            env=c.dfcctl_environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        wait_for(lambda: os.path.exists(socket) or process.poll() is not None, "the server's socket")
        check(process.poll() is None, f"the server has ended: {process.poll()}")
        yield f"nbd+unix:///?socket={socket}", process
        equal(process.poll(), None, "the server's end")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        code = process.wait(60)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket)
    equal(code, 0, "the end of the server")


def burn(c, name, *words):
    image = f"dfc://images/{name}.vdsc"
    equal(c.dfcctl("vdisc", "burn", *words, "-o", image).returncode, 0, f"burn {name}")
    flat = path_of(c, name + ".iso")
    equal(c.dfcctl("vdisc", "export", image, "-o", flat).returncode, 0, f"export {name}")
    return image, flat


def write_tree(c):
    rng = random.Random(3)
    for i in range(200):
        path = path_of(c, f"tree/d{i % 7}/{i}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(rng.randbytes(rng.choice([0, 1, 2047, 2048, 30000])))
    with open(path_of(c, "tree/large"), "wb") as f:
        f.write(rng.randbytes(5 * KIB * KIB + 5))
    return path_of(c, "tree")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def test_the_device_is_the_export(c):
    c.create("images", copies=2)
    tree = write_tree(c)
    for store in ("unique", "pack"):
        image, flat = burn(c, store, "--tree", tree, "--store", store)
        with served(c, image) as (uri, _):
            info = json.loads(run("nbdinfo", "--json", uri))["exports"][0]
            equal((info["export-size"], info["is_read_only"], info["can_multi_conn"]),
                  (os.path.getsize(flat), True, True), "what nbdinfo says")
            for connections in (1, 4):
                copy = path_of(c, "copy.iso")
                run("nbdcopy", f"--connections={connections}", uri, copy)
                check(read(copy) == read(flat), f"{store}: other bytes by {connections} connections")
                os.unlink(copy)
            run("qemu-img", "compare", "-f", "raw", "-F", "raw", uri, flat)


def test_the_socket_of_an_earlier_server(c):
    """It stays after SIGTERM and after SIGKILL, and is replaced; a live one is not."""
    socket = path_of(c, "kept.sock")
    words = ["vdisc", "serve", "dfc://images/unique.vdsc", "--socket", socket]
    asked = ["nbdinfo", "--size", f"nbd+unix:///?socket={socket}"]
    for number in (signal.SIGTERM, signal.SIGKILL):
        with subprocess.Popen([os.path.join(BUILD, "dfcctl"), *words], env=c.dfcctl_environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            try:
                wait_for(lambda: process.poll() is not None or
                         subprocess.run(asked, capture_output=True, check=False).returncode == 0, "the server")
                equal(process.poll(), None, "the server's end")
                done = c.dfcctl(*words)
                equal(done.returncode, 1, done.stderr)
                check("a process serves it already" in done.stderr, done.stderr)
                run(*asked)
            finally:
                process.send_signal(number)
        check(os.path.exists(socket), "the socket does not stay: this test tests nothing")
    os.unlink(socket)
    with open(socket, "w", encoding="utf-8"):
        pass
    done = c.dfcctl(*words)
    equal(done.returncode, 1, done.stderr)
    check("is no socket" in done.stderr, done.stderr)


def test_odd_places(c):
    """Sizes and offsets that are no blocks."""
    flat = read(path_of(c, "unique.iso"))
    with served(c, "dfc://images/unique.vdsc", "--buffer-size", "8MiB") as (uri, _):
        for seed in range(20):
            rng = random.Random(seed)
            at = rng.randrange(len(flat) // 512) * 512
            size = min(rng.randrange(1, 16) * 512, len(flat) - at)
            out = run("qemu-io", "-r", "-f", "raw", "-c", f"read -v {at} {size}", uri)
            got = bytes(int(part, 16) for line in out.splitlines() if ":  " in line
                        for part in line.split(":  ")[1].split("  ")[0].split())
            check(got == flat[at:at + size], f"seed {seed}: other bytes at {at}")


def test_zeros_are_known(c):
    """Only zeros of the export are said to be zero, and the padding is."""
    flat = read(path_of(c, "unique.iso"))
    with served(c, "dfc://images/unique.vdsc") as (uri, _):
        ranges = json.loads(run("nbdinfo", "--map", "--json", uri))
    equal(sum(r["length"] for r in ranges), len(flat), "the map")
    zeros = [r for r in ranges if r["type"] & 2]
    check(len(zeros) > 50, f"{len(zeros)} ranges of zeros")
    for r in zeros:
        check(not any(flat[r["offset"]:r["offset"] + r["length"]]), f"no zeros: {r}")


def test_exports_of_a_bucket(c):
    with served(c, "dfc://images") as (uri, _):
        names = [e["export-name"] for e in json.loads(run("nbdinfo", "--json", "--list", uri))["exports"]]
        equal(sorted(names), ["pack.vdsc", "unique.vdsc"], "exports")
        socket = uri.partition("=")[2]
        for name in names:
            copy = path_of(c, "copy.iso")
            run("nbdcopy", f"nbd+unix:///{name}?socket={socket}", copy)
            check(read(copy) == read(path_of(c, name[:-5] + ".iso")), f"other bytes of {name}")
        run("nbdinfo", f"nbd+unix:///none.vdsc?socket={socket}", code=1)


def test_a_target_is_killed(c):
    victim = sorted(c.targets())[0]
    with served(c, "dfc://images/pack.vdsc", "--buffer-size", "8MiB") as (uri, _):
        run("nbdinfo", uri)
        c.kill(victim)
        for _ in range(3):
            copy = path_of(c, "copy.iso")
            run("nbdcopy", uri, copy)
            check(read(copy) == read(path_of(c, "pack.iso")), "other bytes without a target")
        c.start(victim)
        c.wait_node(victim, "active")


def test_targets_are_killed_under_load(c):
    """One after another, each while the device is read; no read fails."""
    flat, copies, ended = read(path_of(c, "pack.iso")), [], threading.Event()

    def copy_on(uri, name):
        while not ended.is_set():
            copy = path_of(c, name)
            run("nbdcopy", uri, copy)
            copies.append(read(copy) == flat)
            os.unlink(copy)

    def more(count):
        begun = len(copies)
        wait_for(lambda: len(copies) >= begun + count or any(r.done() for r in readers), "copies")

    with served(c, "dfc://images/pack.vdsc", "--buffer-size", "8MiB") as (uri, _), \
            concurrent.futures.ThreadPoolExecutor() as pool:
        readers = [pool.submit(copy_on, uri, f"load-{i}") for i in range(2)]
        try:
            more(2)
            for victim in sorted(c.targets()):
                c.kill(victim)
                more(4)  # two of them began later
                c.start(victim)
                c.wait_node(victim, "active")
                wait_repaired(c)
        finally:
            ended.set()
        for reader in readers:
            reader.result()
    check(all(copies), "other bytes")


def test_an_object_is_replaced(c):
    data = random.Random(9).randbytes(100000)
    c.put("images", "raw", data).expect(200)
    with open(path_of(c, "list.csv"), "w", encoding="utf-8") as f:
        f.write(f"/raw,dfc://images/raw,{len(data)}\n")
    image, flat = burn(c, "raw", "-i", path_of(c, "list.csv"))
    with served(c, image) as (uri, _):
        c.put("images", "raw", b"x" * len(data)).expect(200)
        run("nbdcopy", uri, path_of(c, "copy.iso"), code=1)
    check(b"images/raw" in read(path_of(c, "nbd.log")), "the log does not name the object")
    check(os.path.getsize(flat) > len(data), "the export")


def test_the_plugin_stays_in_memory(c):
    """nbdkit unloads it while threads of an image may run: they crashed one of 50 servers that were stopped
    right behind their client."""
    flags = run("readelf", "--dynamic", os.path.join(BUILD, "nbdkit-dfc-vdisc-plugin.so"))
    check("NODELETE" in flags, f"it may be unloaded: {flags}")


def test_what_is_wrong(c):
    for words, code, said in ((["dfc://images/none.vdsc"], 1, "none.vdsc"), (["x"], 1, "is not dfc://"),
                              (["dfc://images", "--socket", "a", "--port", "1"], 2, "not both")):
        done = c.dfcctl("vdisc", "serve", *words, "--retries", "0",
                        *([] if "--socket" in words else ["--socket", path_of(c, "none.sock")]))
        equal(done.returncode, code, f"{words}: {done.stderr}")
        check(said in done.stderr, done.stderr)


if __name__ == "__main__":
    needs_nbd()
    main(targets=3)
