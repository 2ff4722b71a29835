"""Redis servers of black-box tests, and a proxy that cuts their connections."""

import atexit
import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

from lib import Failed, skip, wait_for
from mount_lib import has_ended
from ports import Port

PROGRAM = shutil.which("redis-server")
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


def needs_redis():
    if PROGRAM is None:
        skip("redis-server is not installed")


# A process of its own starts the servers: a child of the test has its open files of the mount, and
# closing them waits for the server.
STARTER = 'while read -r line; do setpriv --pdeathsig KILL "$@" >/dev/null 2>&1 & echo $!; done'


class Redis:
    """A server in a directory of its own; it keeps the port from one start to the next."""

    def __init__(self, *options, parent=None):
        self.dir = tempfile.mkdtemp(prefix="dfc-test-redis-", dir=parent)
        self.own = Port()
        self.port = self.own.number
        argv = self.argv(options)
        self.starter = subprocess.Popen(["bash", "-c", STARTER, "-", *argv], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = None
        atexit.register(self.remove)
        self.start()

    def argv(self, options):
        return [PROGRAM, "--bind", "127.0.0.1", "--port", str(self.port), "--databases", "64",
                "--dir", self.dir, "--save", "", *(options or DURABLE)]

    def start(self):
        self.starter.stdin.write("\n")
        self.pid = int(self.starter.stdout.readline())
        wait_for(self.answers, "the server")

    def answers(self):
        if has_ended(self.pid):
            raise Failed("redis-server has ended")
        with contextlib.suppress(OSError):
            return self.say("PING").startswith((b"+PONG", b"-NOAUTH"))
        return False

    def say(self, *words):
        """The first bytes of the reply."""
        command = b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in map(str.encode, words))
        with socket.create_connection(("127.0.0.1", self.port), 10) as s:
            s.sendall(b"*%d\r\n%s" % (len(words), command))
            return s.recv(4096)

    def kill(self):
        """kill -9."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: has_ended(self.pid), "the end of the server")

    def remove(self):
        if self.starter.poll() is None:
            self.kill()
            self.starter.communicate()
        shutil.rmtree(self.dir, ignore_errors=True)

    def url(self, database=0, port=None):
        return f"redis://127.0.0.1:{port or self.port}/{database}"


class Cutter:
    """A proxy before a server of this machine."""

    def __init__(self, server_port):
        self.server_port = server_port
        self.lock = threading.Lock()
        self.pairs = set()
        self.ends = False
        self.own = Port()
        self.port = self.own.number
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.ends:
            with contextlib.suppress(OSError):
                client = self.listener.accept()[0]
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError), client, \
                socket.create_connection(("127.0.0.1", self.server_port), 10) as server:
            pair = (client, server)
            with self.lock:
                self.pairs.add(pair)
            try:
                while self.pass_on(client, server):
                    pass
            finally:
                with self.lock:
                    self.pairs.discard(pair)

    @staticmethod
    def pass_on(client, server):
        for source in select.select((client, server), (), ())[0]:
            data = source.recv(1 << 16)
            if not data:
                return False
            (server if source is client else client).sendall(data)
        return True

    def cut(self):
        """All connections, whatever is on its way in them."""
        with self.lock:
            for pair in self.pairs:
                for s in pair:
                    with contextlib.suppress(OSError):
                        s.shutdown(socket.SHUT_RDWR)
            return len(self.pairs)

    def close(self):
        self.ends = True
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
