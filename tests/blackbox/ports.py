"""Ports that a test has for itself."""

import fcntl
import os
import random
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


def locked(name):
    """A file of this name, which no other process has locked; or None."""
    directory = os.path.join(tempfile.gettempdir(), f"dfc-test-ports-{os.getuid()}")
    os.makedirs(directory, exist_ok=True)
    file = open(os.path.join(directory, str(name)), "w", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


class Ports:
    """A block of ports that is this test's alone: its lock ends with the process.  One in which
    another program has a port is passed over.

    Of each 2000 ports the first half has blocks.  A port of S3 is 1000 above its block, where no
    block is, and below 32768, where outgoing connections begin."""

    FIRST, SIZE = 12000, 60
    STEP, STEPS, S3 = 2000, 10, 1000
    IN_STEP = S3 // SIZE

    def __init__(self):
        count = self.STEPS * self.IN_STEP
        for i in range(count):
            block = (os.getpid() + i) % count
            self.file = locked(block)
            if self.file is None:
                continue
            step, place = divmod(block, self.IN_STEP)
            self.base = self.FIRST + step * self.STEP + place * self.SIZE
            both = (self.base, self.base + self.S3)
            if all(is_free(port + i) for port in both for i in range(self.SIZE)):
                return
            self.file.close()
        raise OSError("no block of ports is free")


class Port:
    """One port where no block is, which is this test's alone: its lock ends with the process."""

    FIRST = Ports.FIRST + Ports.IN_STEP * Ports.SIZE
    END = Ports.FIRST + Ports.S3

    def __init__(self):
        ports = [port + step * Ports.STEP + half for port in range(self.FIRST, self.END)
                 for step in range(Ports.STEPS) for half in (0, Ports.S3)]
        for self.number in random.sample(ports, len(ports)):
            self.file = locked(f"port-{self.number}")
            if self.file is not None and is_free(self.number):
                return
            if self.file is not None:
                self.file.close()
        raise OSError("no port is free")
