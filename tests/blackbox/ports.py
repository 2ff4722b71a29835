"""Ports that a test has for itself."""

import fcntl
import os
import socket
import tempfile


def is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what is merely over is free
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class Ports:
    """A block of ports that is this test's alone: its lock ends with the process.  One in which
    another program has a port is passed over."""

    FIRST, LAST, SIZE = 12000, 32000, 60

    def __init__(self):
        directory = os.path.join(tempfile.gettempdir(), f"dfc-test-ports-{os.getuid()}")
        os.makedirs(directory, exist_ok=True)
        count = (self.LAST - self.FIRST) // self.SIZE
        for i in range(count):
            block = (os.getpid() + i) % count
            self.file = open(os.path.join(directory, str(block)), "w", encoding="ascii")
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.file.close()
                continue
            self.base = self.FIRST + block * self.SIZE
            if all(is_free(port) for port in range(self.base, self.base + self.SIZE)):
                return
            self.file.close()
        raise OSError("no block of ports is free")
