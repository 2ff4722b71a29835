#!/usr/bin/env python3
"""Names that go while a writable mount stores the file, or writes in the directory."""

import contextlib
import errno
import os
import socket
import subprocess
import sys
import threading
import urllib.parse

from lib import check, equal, main
from mount_bucket import fails
from mount_lib import mounted, needs_fuse, said_by_sanitizers, waits_for_fuse

UNLINK = 87 if os.uname().machine == "x86_64" else 35
UNLINKER = "import os, sys; os.unlink(sys.argv[1])"


class Holder:
    """An endpoint before a proxy.  It holds requests to put an object until `go` is set."""

    def __init__(self, endpoint):
        address = urllib.parse.urlsplit(endpoint)
        self.proxy = address.hostname, address.port
        self.came, self.go = threading.Event(), threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.threads = []
        self.start(self.accept)

    def start(self, run, *args):
        thread = threading.Thread(target=run, args=args)
        self.threads.append(thread)
        thread.start()

    def accept(self):
        with contextlib.suppress(OSError):  # its end
            while True:
                client = self.listener.accept()[0]
                server = socket.create_connection(self.proxy)
                self.start(self.pump, client, server)
                self.start(self.pump, server, client)

    def pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if data.startswith(b"PUT "):
                    self.came.set()
                    self.go.wait()
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.go.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        self.listener.close()


def test_an_unlink_waits_for_the_store(c):
    c.create("late")
    with contextlib.closing(Holder(c.endpoint)) as holder, \
            mounted(c, "dfc://late", "--writable", f"--endpoint={holder.url}") as path:
        f = os.open(path + "/o", os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(f, b"1")
        closing = threading.Thread(target=os.close, args=(f,))
        closing.start()
        check(holder.came.wait(60), "no put came")
        with subprocess.Popen([sys.executable, "-c", UNLINKER, path + "/o"]) as process:
            waits_for_fuse(process, UNLINK)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)  # one that does not wait has ended by then
            holder.go.set()
            equal(process.wait(60), 0, "unlink")
        closing.join()
        equal(os.listdir(path), [], "names")
    equal(c.names("late"), [], "objects")


def test_a_directory_with_a_new_file_stays(c):
    c.create("dir")
    with mounted(c, "dfc://dir", "--writable") as path:
        os.mkdir(path + "/d")
        with open(path + "/d/new", "wb", buffering=0) as f:
            f.write(b"1")
            fails(errno.ENOTEMPTY, os.rmdir, path + "/d")
            os.unlink(path + "/d/new")
            os.rmdir(path + "/d")
        equal(os.listdir(path), [], "names")
    equal(c.names("dir"), [], "objects")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=2)
