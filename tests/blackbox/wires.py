"""Wires between nodes that can be cut, in either direction, without root.

Each node of a WiredCluster listens on 127.0.0.1, as always, and tells the others that it is at an
address of its own, 127.0.1.N, with the same ports.  There this program listens and passes bytes on:

    t1 ──▶ 127.0.1.4:control of t2 ─ wires ─▶ 127.0.0.1:control of t2
           who is it?  the kernel's sock_diag has the socket, /proc/PID/fd its process

A cut link (from, to) swallows what is sent that way, on the connections of either side, as a
network does that loses packets in one direction: a request does not arrive, or its answer does not;
nobody is told.  A new connection needs both directions.  When the link is healed, what was
swallowed arrives late, though who sent it has given up long ago (as TCP repeats what was not
confirmed); or, where the heal says so, the connections that were struck are reset.

Clients go past the wires: a node's own address has the same ports.

    c = WiredCluster(proxies=2, targets=3)
    c.wires.cut([("t1", "p1")])
    c.wires.heal(late=True)
"""

import asyncio
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading

from lib import Cluster

SERVER = "127.0.0.1"
PIECE = 64 << 10


# --- the program ---------------------------------------------------------------------------------

class Processes:
    """Which node has a socket?"""

    def __init__(self, directory):
        self.path = os.path.join(directory, "cluster.json")
        self.stamp, self.pids = None, {}

    def read(self):
        with contextlib.suppress(OSError, ValueError):
            stamp = os.stat(self.path).st_mtime_ns
            if stamp == self.stamp:
                return
            with open(self.path, encoding="utf-8") as f:
                nodes = json.load(f)["nodes"]
            self.stamp, self.pids = stamp, {n["name"]: n["pid"] for n in nodes if n["pid"]}

    def owner(self, inside, outside):
        """The node whose socket goes from address `inside` to address `outside`; None: none of
        ours."""
        inode = inode_of(inside, outside)
        if inode is None:
            return None
        self.read()
        link = f"socket:[{inode}]"
        return next((name for name, pid in self.pids.items() if has_descriptor(pid, link)), None)


# inet_diag_req_v2 and inet_diag_sockid of linux/inet_diag.h: the socket of exactly these addresses.
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, REQUEST, NO_COOKIE = 4, 20, 1, 0xFFFFFFFF
HEADER, QUESTION = struct.Struct("=IHHII"), struct.Struct("=BBBxI2s2s4s12x4s12xIII")
INODE_AT = HEADER.size + 4 + 48 + 16  # in the answer's inet_diag_msg


def inode_of(inside, outside):
    question = QUESTION.pack(
        socket.AF_INET, socket.IPPROTO_TCP, 0, NO_COOKIE, inside[1].to_bytes(2, "big"),
        outside[1].to_bytes(2, "big"), socket.inet_aton(inside[0]), socket.inet_aton(outside[0]), 0,
        NO_COOKIE, NO_COOKIE)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as s:
        s.send(
            HEADER.pack(HEADER.size + len(question), SOCK_DIAG_BY_FAMILY, REQUEST, 1, 0) + question)
        answer = s.recv(4096)
    if HEADER.unpack_from(answer)[1] != SOCK_DIAG_BY_FAMILY:
        return None  # an error: it has gone already
    return int.from_bytes(answer[INODE_AT:INODE_AT + 4], sys.byteorder)


def has_descriptor(pid, link):
    with contextlib.suppress(OSError):  # it may have ended
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{fd}") == link:
                    return True
    return False


class Connection:
    """From `source` to `node`: two pumps, each stopped where its link is cut."""

    def __init__(self, exchange, source, node):
        self.exchange, self.out, self.back = exchange, (source, node), (node, source)
        self.struck = False
        self.writers = []
        self.task = asyncio.current_task()

    async def passable(self, *links):
        while self.exchange.cuts.intersection(links):
            self.struck = True
            await self.exchange.changed.wait()

    async def pump(self, reader, writer, link):
        while True:
            data = await reader.read(PIECE)
            await self.passable(link)
            if not data:
                writer.write_eof()
                return
            writer.write(data)
            await writer.drain()

    async def run(self, reader, writer, port):
        self.writers.append(writer)
        await self.passable(self.out, self.back)
        there_reader, there_writer = await asyncio.open_connection(SERVER, port)
        self.writers.append(there_writer)
        pumps = [asyncio.create_task(self.pump(reader, there_writer, self.out)),
                 asyncio.create_task(self.pump(there_reader, writer, self.back))]
        try:
            await asyncio.gather(*pumps)
        finally:
            for pump in pumps:
                pump.cancel()

    def abort(self):
        for writer in self.writers:
            writer.transport.abort()


class Exchange:
    def __init__(self, directory):
        self.processes = Processes(directory)
        self.cuts = set()
        self.changed = asyncio.Event()
        self.connections = set()
        self.servers = []

    def source_of(self, writer):
        return self.processes.owner(writer.get_extra_info("peername")[:2],
                                    writer.get_extra_info("sockname")[:2])

    async def serve(self, node, reader, writer):
        port = writer.get_extra_info("sockname")[1]
        connection = Connection(self, self.source_of(writer) or "nobody", node)
        self.connections.add(connection)
        try:
            await connection.run(reader, writer, port)
        except (OSError, asyncio.CancelledError):
            connection.abort()
        finally:
            self.connections.discard(connection)
            for w in connection.writers:
                w.close()

    async def do_lay(self, node, address, ports):
        for port in ports:
            self.servers.append(await asyncio.start_server(
                lambda r, w: self.serve(node, r, w), address, port, backlog=1000))

    async def do_cut(self, links):
        self.cuts.update(map(tuple, links))

    async def do_heal(self, links, late):
        self.cuts.difference_update(map(tuple, links))
        for connection in [c for c in self.connections if c.struck]:
            connection.struck = False
            if not late and not self.cuts.intersection((connection.out, connection.back)):
                connection.task.cancel()
        self.changed.set()
        self.changed.clear()  # who waits now looks again

    async def do_reset(self, links):
        for connection in list(self.connections):
            if connection.out in map(tuple, links):
                connection.task.cancel()

    async def obey(self):
        """Commands come a line each, and are answered when they are in force."""
        loop = asyncio.get_running_loop()
        commands = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while line := await commands.readline():
            command = json.loads(line)
            try:
                await getattr(self, "do_" + command.pop("do"))(**command)
                answer = "ok"
            except OSError as e:
                answer = str(e)
            print(answer, flush=True)


# --- the tests' side -----------------------------------------------------------------------------

class Wires:
    def __init__(self, directory):
        self.process = subprocess.Popen([sys.executable, os.path.realpath(__file__), directory],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()

    def command(self, **command):
        with self.lock:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().strip()
        if answer != "ok":
            raise OSError(f"wires: {command}: {answer or 'it has ended'}")

    def lay(self, node, address, ports):
        self.command(do="lay", node=node, address=address, ports=ports)

    def cut(self, links):
        self.command(do="cut", links=list(links))

    def heal(self, links, late=True):
        self.command(do="heal", links=list(links), late=late)

    def reset(self, links):
        """The connections that these nodes have opened die, with what is under way on them."""
        self.command(do="reset", links=list(links))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class WiredCluster(Cluster):
    """A cluster whose nodes know one another by the wires' addresses."""

    def __init__(self, proxies=1, targets=3, metastore="embedded", **shape):
        self.wires, self.laid = None, {}
        self.names = [f"p{i + 1}" for i in range(proxies)] + [f"t{i + 1}" for i in range(targets)]
        self.doors = self.names[:proxies] if metastore == "etcd" else ["p1"]  # where nodes join
        super().__init__(proxies=proxies, targets=targets, metastore=metastore, **shape)

    def args_of_up(self):
        """Ports and names are known before: see localcluster/layout.py."""
        self.wires = Wires(self.dir)
        for i, name in enumerate(self.names):
            self.lay(name, self.ports.base + 3 * i)
        return [f"--node-arg={name}={arg}" for name in self.names for arg in self.args_of(name)]

    def lay(self, name, port):
        address = f"127.0.1.{len(self.laid) + 1}"
        self.wires.lay(name, address, [port, port + 1, port + 2])
        self.laid[name] = (address, port)

    def args_of(self, name):
        doors = (self.laid[door] for door in self.doors)
        join = "--join=" + ",".join(f"http://{address}:{port + 1}" for address, port in doors)
        return [f"--advertise={self.laid[name][0]}", *([join] if name not in self.doors else [])]

    def add_target(self, *args):
        number = 1 + max(int(n[1:]) for n in self.targets())
        name = f"t{number}"
        if name not in self.laid:
            self.lay(name, max(int(n["url"].rpartition(":")[2]) for n in self.nodes.values()) + 3)
        return super().add_target(*[f"--arg={a}" for a in self.args_of(name)], *args)

    def remove(self):
        super().remove()
        if self.wires is not None:
            self.wires.close()


if __name__ == "__main__":
    asyncio.run(Exchange(sys.argv[1]).obey())
