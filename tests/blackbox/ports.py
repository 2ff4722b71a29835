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
    another program has a port is passed over.

    Of each 2000 ports the first half has blocks.  A port of S3 is 1000 above its block, where no
    block is, and below 32768, where outgoing connections begin."""

    FIRST, SIZE = 12000, 60
    STEP, STEPS, S3 = 2000, 10, 1000
    IN_STEP = S3 // SIZE

    def __init__(self):
        directory = os.path.join(tempfile.gettempdir(), f"dfc-test-ports-{os.getuid()}")
        os.makedirs(directory, exist_ok=True)
        count = self.STEPS * self.IN_STEP
        for i in range(count):
            block = (os.getpid() + i) % count
            self.file = open(os.path.join(directory, str(block)), "w", encoding="ascii")
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.file.close()
                continue
            step, place = divmod(block, self.IN_STEP)
            self.base = self.FIRST + step * self.STEP + place * self.SIZE
            both = (self.base, self.base + self.S3)
            if all(is_free(port + i) for port in both for i in range(self.SIZE)):
                return
            self.file.close()
        raise OSError("no block of ports is free")
