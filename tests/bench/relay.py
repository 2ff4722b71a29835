#!/usr/bin/env python3
"""A slow link to local ports:  relay.py DELAY_MS PORT…  prints the port that leads to each, and
relays until standard input ends.  Bytes arrive DELAY_MS later, in each direction: so a round trip
takes twice that.  In place of netem, which needs root and a module of the kernel."""

import collections
import socket
import sys
import threading
import time

STEP = 256 << 10


class Way:
    """One direction of a connection: a thread reads, another writes when the time has come."""

    def __init__(self, from_, to, delay):
        self.from_, self.to, self.delay = from_, to, delay
        self.waiting, self.some = collections.deque(), threading.Semaphore(0)
        for act in (self.read, self.write):
            threading.Thread(target=act, daemon=True).start()

    def read(self):
        try:
            while data := self.from_.recv(STEP):
                self.note(data)
        except OSError:
            pass  # closed: the same as its end
        self.note(b"")

    def note(self, data):
        self.waiting.append((time.monotonic() + self.delay, data))
        self.some.release()

    def write(self):
        try:
            while True:
                self.some.acquire()
                due, data = self.waiting.popleft()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    self.to.shutdown(socket.SHUT_WR)
                    return
                self.to.sendall(data)
        except OSError:
            pass  # the other side has closed


def serve(listener, port, delay):
    while True:
        near = listener.accept()[0]
        far = socket.create_connection(("127.0.0.1", port))
        for one in (near, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Way(near, far, delay)
        Way(far, near, delay)


def main():
    delay, ports = float(sys.argv[1]) / 1000, [int(p) for p in sys.argv[2:]]
    for port in ports:
        listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=serve, args=(listener, port, delay), daemon=True).start()
        print(f"{port}={listener.getsockname()[1]}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
