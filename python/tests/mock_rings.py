"""Rings of the mock cluster: one lane a target, and a keeper that is always right."""

import json
import struct
import threading

import frame  # noqa: F401
from dfc import _frame
from mock_cluster import Handler, MockCluster
from mock_objects import Failure, Object


def stamped(data, ordinal):
    """A frame with its ordinal, as a target stores it."""
    head_len = struct.unpack_from("<I", data, 4)[0]
    head = bytearray(data[:head_len])
    struct.pack_into("<Q", head, 16, ordinal)
    struct.pack_into("<Q", head, 56, 0)
    struct.pack_into("<Q", head, 56, _frame._sum(head))
    return bytes(head) + data[head_len:]


def cut(body):
    """The frames of a push; each is checked."""
    list(_frame.parse(body))
    frames = []
    while body:
        total = struct.unpack_from("<Q", body, 8)[0]
        frames.append(body[:total])
        body = body[total:]
    return frames


class MockRing:
    def __init__(self, cap, keep):
        self.lock = threading.Lock()
        self.cap, self.keep = cap, keep
        self.lanes, self.taken, self.first = {}, {}, {}
        self.done = {}  # (node, producer): (sequence, answer)
        self.generations, self.number, self.total = [], 0, 0
        self.clock_ms = 1  # of the next generation
        self.most = 1 << 30  # samples of one reply
        self.lost = set()  # (lane, ordinal)
        self.groups = {}  # name: (acknowledged, lease)

    def push(self, node, producer, sequence, frames):
        with self.lock:
            known = self.done.get((node, producer))
            if producer and known and known[0] == sequence:
                return known[1]
            lane = self.lanes.setdefault(node + ".1", [])
            answer = {"lane": node + ".1", "first": len(lane), "count": len(frames)}
            for data in frames:
                lane.append(stamped(data, len(lane)))
            self.done[(node, producer)] = (sequence, answer)
            while self.fill() >= self.cap:
                self.seal(self.cap)
            return answer

    def fill(self):
        return sum(len(lane) - self.taken.get(name, 0) for name, lane in self.lanes.items())

    def seal(self, count):
        cuts = []
        for name, lane in sorted(self.lanes.items()):
            begin = self.taken.get(name, 0)
            take = min(count, len(lane) - begin)
            if take:
                cuts.append({"lane": name, "from": begin, "to": begin + take})
                self.taken[name] = begin + take
            count -= take
        self.number += 1
        self.total += sum(c["to"] - c["from"] for c in cuts)
        self.generations = [*self.generations, {"generation": self.number, "sealed_ms": self.clock_ms,
                                                "cuts": cuts}][-1 - self.keep:]
        for name in self.lanes:
            self.first[name] = min([c["from"] for g in self.generations for c in g["cuts"]
                                    if c["lane"] == name], default=self.taken.get(name, 0))

    def read(self, lane, begin, count):
        with self.lock:
            if lane not in self.lanes or begin < self.first.get(lane, 0):
                raise Failure(410, "generation_gone", "it is gone: read the head again")
            end = min([at for name, at in self.lost if name == lane and at >= begin],
                      default=len(self.lanes[lane]))
            if end == begin < len(self.lanes[lane]):
                raise Failure(410, "generation_gone", "it is lost", {"Dfc-Ring-Lost": "1"})
            return self.lanes[lane][begin:min(begin + min(count, self.most), end)]

    def document(self):
        return {"format": 1, "generation": self.number, "samples_total": self.total,
                "lanes": [{"lane": name, "taken": at} for name, at in sorted(self.taken.items())],
                "generations": self.generations}


class RingHandler(Handler):
    def route(self):
        words = self.url_path.split("/")
        if words[2] != "rings":
            super().route()
        elif self.server.role == "proxy":
            self.redirect(self.query.get("lane") or self.query.get("producer", ""))
        else:
            self.ring_call(words[3], self.mock.rings[words[3]], words[4])

    def redirect(self, key):
        """A lane's samples are at the target of its name."""
        if key[:3] in ("t1.", "t2."):
            key = "" if key[:2] == "t1" else "x"
        super().redirect(key)

    def ring_call(self, name, ring, what):
        self.body = self.read_body()
        self.note(self.body)
        if what == "generation":
            if not ring.fill():
                raise Failure(404, "no_generation", "there is no sample")
            ring.seal(ring.cap)
        elif what == "groups":
            group, done = self.query["group"], self.query.get("done")
            joined = group not in ring.groups
            ring.groups[group] = (done, self.query.get("lease"))
            if self.command == "DELETE":
                del ring.groups[group]
            self.send_json(200, {"generation": ring.number, "joined": joined})
            return
        elif what == "status":
            self.send_json(200, {"fill": ring.fill(), "cap": ring.cap, "head": ring.document()})
            return
        elif self.command == "POST":
            answer = ring.push(self.server.node, self.query.get("producer"),
                               self.query.get("sequence"), cut(self.body))
            self.show(name, ring)
            self.reply_unless_act(201, answer)
            return
        elif self.command == "GET":
            frames = ring.read(self.query["lane"], int(self.query["from"]),
                               int(self.query["count"]))
            body = b"".join(frames)
            self.send(200, body, {"Dfc-Ring-Count": str(len(frames))},
                      cut=self.step["bytes"] if self.step["do"] == "cut" else None)
            return
        else:
            ring.generations = []
        self.show(name, ring)
        self.send_json(200, {"generation": ring.number})

    def show(self, name, ring):
        """A head that is the same stays the same version."""
        if ring.number:
            objects, data = self.mock.buckets[name][1], json.dumps(ring.document()).encode()
            if "head" not in objects or objects["head"].data != data:
                objects["head"] = Object(data)


class RingCluster(MockCluster):
    def __init__(self):
        super().__init__()
        self.rings = {}
        for server in self.servers:
            server.RequestHandlerClass = RingHandler

    def ring(self, name, cap, keep=1):
        self.create(name)
        self.rings[name] = MockRing(cap, keep)
        return self.rings[name]
