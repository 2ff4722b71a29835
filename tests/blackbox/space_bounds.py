#!/usr/bin/env python3
"""space_out and space_reserve hold, whatever is written and whoever says how much it will be:
bodies and
answers of backends without a length, work files of sorts.  And a client that announces bytes, or
sends a
byte now and then, holds next to nothing.

On a small ext4 on a loop device."""

import contextlib
import gzip
import http.client
import http.server
import io
import json
import os
import select
import socket
import tarfile
import threading
import urllib.parse

from disks import Disk, enter, skip_without_disks
from lib import Cluster, check, equal, main, wait_for

MIB = 1 << 20
OUT_PERCENT = 90  # space_out
SLACK = 4 * MIB  # the file system's own blocks
FIRST = 8 * MIB  # allocate_first
PIECE = bytes(MIB)


def space(c):
    return os.statvfs(c.mountpath)


def available(c):
    fs = space(c)
    return fs.f_bavail * fs.f_frsize


def floor(c):
    fs = space(c)
    return fs.f_blocks * fs.f_frsize * (100 - OUT_PERCENT) // 100


class Lowest:
    """The least that was left while it watched."""

    def __init__(self, c):
        self.c, self.over, self.bytes = c, threading.Event(), available(c)
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.over.wait(0.001):
            self.bytes = min(self.bytes, available(self.c))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def check_floor(c, lowest):
    check(lowest >= floor(c) - SLACK,
          f"{lowest >> 20} MiB were left, space_out leaves {floor(c) >> 20}")


@contextlib.contextmanager
def room_left(c, size):
    """Somebody else has the rest of the disk, above what space_out leaves."""
    path = os.path.join(c.mountpath, f"filler-{size}")
    with open(path, "wb") as f:
        os.posix_fallocate(f.fileno(), 0, available(c) - floor(c) - size)
    try:
        yield
    finally:
        os.unlink(path)


def unfinished(c):
    """(size, allocated) of the files that are being written."""
    top = os.path.join(c.mountpath, ".dfc", "tmp")
    found = []
    for name in os.listdir(top):
        with contextlib.suppress(FileNotFoundError):
            st = os.stat(os.path.join(top, name))
            found.append((st.st_size, st.st_blocks * 512))
    return found


class Upload:
    """A PUT whose body this test sends as it likes."""

    def __init__(self, c, name, length=None, query=""):
        where = c.url() + f"/v1/objects/b/{name}?{query}"
        if not query:
            where = c.object("PUT", "b", name, b"", follow=False).expect(307).headers["Location"]
        parts = urllib.parse.urlsplit(where)
        self.chunked = length is None
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=60)
        framing = "Transfer-Encoding: chunked" if self.chunked else f"Content-Length: {length}"
        self.socket.sendall(
            f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n{framing}\r\n\r\n".
            encode())

    def send(self, data):
        """False: the server has answered, or takes no more."""
        if select.select([self.socket], [], [], 0)[0]:
            return False
        try:
            self.socket.sendall(b"%x\r\n%b\r\n" % (len(data), data) if self.chunked else data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def end(self):
        if self.chunked:
            self.socket.sendall(b"0\r\n\r\n")

    def reply(self):
        response = http.client.HTTPResponse(self.socket, method="PUT")
        response.begin()
        return response.status, response.read().decode()

    def close(self):
        self.socket.close()


def refused_in_the_middle(c, upload, most):
    sent = 0
    while sent < most and upload.send(PIECE):
        sent += len(PIECE)
    status, text = upload.reply()
    upload.close()
    equal((status, "delete objects, or add a mountpath" in text), (507, True),
          f"after {sent >> 20} MiB: {text}")
    wait_for(lambda: not unfinished(c), "what was cut is gone")


# --- space ---------------------------------------------------------------------------------------

def test_a_body_of_unknown_length_ends_at_space_out(c):
    before = available(c)
    with Lowest(c) as lowest:
        refused_in_the_middle(c, Upload(c, "endless"), space(c).f_blocks * space(c).f_frsize)
    check_floor(c, lowest.bytes)
    wait_for(lambda: available(c) >= before - SLACK, "the room is there again")
    c.get("b", "endless").expect(404)


def test_many_at_once_end_there_too(c):
    with room_left(c, 40 * MIB), Lowest(c) as lowest:
        threads = [
            threading.Thread(target=refused_in_the_middle,
                             args=(c, Upload(c, f"many{i}"), 100 * MIB)) for i in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    check_floor(c, lowest.bytes)


def test_what_fits_is_stored_and_takes_no_more_than_that(c):
    for i, size in enumerate((0, 1, MIB, MIB + 1, 5 * MIB + 17, 40 * MIB)):
        upload, data = Upload(c, f"fits{i}"), os.urandom(size)
        for at in range(0, size, MIB):
            check(upload.send(data[at:at + MIB]), "taken")
        upload.end()
        equal(upload.reply()[0], 200, "status")
        upload.close()
        equal(c.get("b", f"fits{i}").expect(200).body, data, "bytes")
    for path in c.object_files("t1"):
        st = os.stat(path)
        check(st.st_blocks * 512 <= st.st_size + 64 * 1024,
              f"{path}: {st.st_size} bytes take {st.st_blocks * 512}")


def test_an_answer_of_unknown_length_ends_there(c):
    class Endless(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(200):
                    self.wfile.write(b"%x\r\n%b\r\n" % (MIB, PIECE))
                self.wfile.write(b"0\r\n\r\n")

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                         Endless) as server, room_left(c, 60 * MIB):
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        c.create("cold", backend=f"http://127.0.0.1:{server.server_address[1]}")
        with Lowest(c) as lowest:
            try:
                reply = c.get("cold", "endless")
                check(reply.status >= 500, f"{reply.status}")
            except (http.client.HTTPException, ConnectionError):
                c.http.close()
            wait_for(lambda: not unfinished(c), "what was cut is gone")
        server.shutdown()
    check_floor(c, lowest.bytes)


def tgz_of(size):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for i in range(size // MIB):
            info = tarfile.TarInfo(f"r{i:04d}.bin")
            info.size = MIB
            tar.addfile(info, io.BytesIO((os.urandom(32 * 1024) + bytes(MIB))[:MIB]))
    return gzip.compress(raw.getvalue(), 1)


def test_decoded_shards_end_there(c):
    c.create("shards", durability="async")
    c.put("shards", "in-0.tgz", tgz_of(120 * MIB))
    with room_left(c, 60 * MIB), Lowest(c) as lowest:
        spec = {
            "input_extension": ".tgz", "input_bck": {"name": "shards"},
            "input_format": {"prefix": "in-"}, "output_format": "out-{000..999}",
            "output_shard_size": "10MB", "output_extension": ".tgz",
            "algorithm": {"kind": "shuffle"}
        }
        job = c.wait_job(c.call("POST", "/v1/sort", spec).expect(202).json()["id"])
        equal((job["state"], "no_space" in json.dumps(job)), ("failed", True), f"the sort {job}")
    check_floor(c, lowest.bytes)
    wait_for(lambda: available(c) > floor(c) + 60 * MIB,
             "the room of the work files is there again")


# --- bytes that are announced, or come slowly ----------------------------------------------------

def test_announced_bytes_take_room_as_they_come(c):
    size = 100 * MIB
    upload = Upload(c, "announced", size)
    check(upload.send(PIECE), "taken")
    wait_for(lambda: any(written > 0 for written, _ in unfinished(c)),
             "the first bytes are written")
    check(unfinished(c)[0][1] <= FIRST, f"size, allocated: {unfinished(c)}")
    for _ in range(size // MIB - 1):
        check(upload.send(PIECE), "taken")
    equal(upload.reply()[0], 200, "status")
    upload.close()
    upload = Upload(c, "forgotten", size)
    check(upload.send(PIECE), "taken")
    wait_for(lambda: unfinished(c), "it has begun")
    upload.close()
    wait_for(lambda: not unfinished(c), "what was announced is gone with its client")
    c.object("DELETE", "b", "announced").expect(204)


def test_announced_bytes_that_find_no_room_any_more(c):
    with room_left(c, 80 * MIB):
        upload = Upload(c, "late", 60 * MIB)
        check(upload.send(PIECE), "taken")
        wait_for(lambda: unfinished(c), "it has begun")
        with room_left(c, 12 * MIB), Lowest(c) as lowest:
            refused_in_the_middle(c, upload, 59 * MIB)
        check_floor(c, lowest.bytes)


def drip(upload, piece):
    """As slow as a client likes, until the server has something to say."""
    while not select.select([upload.socket], [], [], 0.02)[0]:
        if not upload.send(piece):
            break
    reply = upload.reply()
    upload.close()
    return reply


def test_a_body_that_drips_is_given_up(c):
    for name, length, query in (("drips", None, ""), ("announced-drips", 50 * MIB, ""),
                                ("streamed", None, "redirect=never")):
        status, text = drip(Upload(c, name, length, query), b"x")
        equal((status, "too slowly" in text), (408, True), f"{name}: {text}")
        wait_for(lambda: not unfinished(c), "its room is free again")
        c.get("b", name).expect(404)


def test_a_slow_body_that_is_fast_enough_is_taken(c):
    upload = Upload(c, "slow", 200 * 200)
    for _ in range(200):
        equal(select.select([upload.socket], [], [], 0.01)[0], [], "answers before the end")
        check(upload.send(b"y" * 200), "taken")
    equal(upload.reply()[0], 200, "status")
    upload.close()
    equal(len(c.get("b", "slow").expect(200).body), 200 * 200, "bytes")


class SmallDisk(Cluster):
    def __init__(self, **shape):
        self.disk = Disk("ext4")
        super().__init__(
            args=[
                f"--target-arg=--{a}"
                for a in ("space-low=1%", "space-high=2%", f"space-out={OUT_PERCENT}%",
                          f"allocate-first={FIRST >> 20}MiB", "sort-memory=1MiB",
                          "min-body-rate=1KiB", "min-body-time=300ms", "backend-retries=0")
            ] + ["--proxy-arg=--min-body-rate=0"], **shape)

    def run(self, command, *args, ok=True):
        if command == "up":
            self.mountpath = os.path.join(self.dir, "t1", "mp1")
            os.makedirs(self.mountpath)
            self.disk.mount(self.mountpath)
        return super().run(command, *args, ok=ok)


def with_bucket(**shape):
    c = SmallDisk(**shape)
    c.create("b", durability="async")
    return c


if __name__ == "__main__":
    skip_without_disks()
    enter()
    main(with_bucket, targets=1, mountpaths=1)
