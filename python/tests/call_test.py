#!/usr/bin/python3
"""Calls against a cluster of Python that misbehaves when it is told to (api/testing)."""

import dataclasses
import io
import json
import os
import pickle
import socket
import tarfile
import threading
import unittest
from unittest import mock

import frame  # noqa: F401
import dfc
from dfc import _retry, batch
from mock_cluster import Handler as MockHandler
from mock_cluster import MockCluster

DATA = bytes(range(256)) * 1200


class Changing(io.BytesIO):
    """A file that somebody changes when it has been read once, for its checksum."""

    def __init__(self, data, change):
        super().__init__(data)
        self._change, self._reads = change, 0

    def seek(self, *args):
        self._reads += 1
        if self._reads == 2:
            super().seek(0, io.SEEK_END)
            self._change(self)
        return super().seek(*args)


class HangUp:
    """In front of the mock's proxy: closes its connections when it is told to."""

    def __init__(self, mock):
        self._to = ("127.0.0.1", mock.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open = []

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()

    def _serve(self):
        try:
            while True:
                near = self._listener.accept()[0]
                far = socket.create_connection(self._to)
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()
        except OSError:
            pass  # closed

    @staticmethod
    def _pass(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass  # hung up

    def hang_up(self):
        for one in self._open:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other side was first
            one.close()
        self._open.clear()


class FullDisk:
    """A node that takes a part of a body, says why it takes no more, and hangs up."""

    REPLY = (b"HTTP/1.1 507 Insufficient Storage\r\nContent-Type: application/json\r\n"
             b"Connection: close\r\nContent-Length: 52\r\n\r\n"
             b'{"status": 507, "code": "no_space", "message": "no"}')

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self):
        try:
            while True:
                with self._listener.accept()[0] as peer:
                    peer.recv(65536)
                    peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                    peer.recv(65536)
                    peer.sendall(self.REPLY)
        except OSError:
            pass  # closed


class CallTest(unittest.TestCase):
    def setUp(self):
        self.mock = MockCluster()
        self.mock.__enter__()
        self.addCleanup(self.mock.__exit__, None, None, None)
        self.client = self.open()
        self.bucket = self.client.bucket("b").create()

    def open(self, **options):
        client = dfc.Client(self.mock.endpoint, profile="", **options)
        self.addCleanup(client.close)
        return client

    def calls(self, method, at="target"):
        return [row for row in self.mock.log if row["method"] == method and row["at"] == at
                and "/objects/" in row["path"]]

    def test_bytes_come_back(self):
        for size in (0, 1, 16384, 16385, len(DATA)):
            info = self.bucket.put(f"a/{size}", DATA[:size], meta={"k": "v"})
            self.assertEqual(info.size, size)
            self.assertEqual(self.bucket.get(f"a/{size}"), DATA[:size])
        self.assertEqual(self.bucket.head("a/1").meta, {"k": "v"})

    def test_sources(self):
        path = os.path.join(os.path.dirname(__file__), "frame.py")
        with open(path, "rb") as f:
            text = f.read()
            f.seek(10)
            self.bucket.put("file", f)
        self.bucket.put("stream", io.BytesIO(text))
        self.bucket.put("pieces", (text[i:i + 7] for i in range(0, len(text), 7)))
        self.bucket.put("view", memoryview(bytearray(text)))
        self.assertEqual([self.bucket.get(n) for n in ("file", "stream", "pieces", "view")],
                         [text[10:], text, text, text])
        for wrong in ("text", 5, io.StringIO("text")):
            with self.assertRaises(dfc.Invalid):
                self.bucket.put("x", wrong)

    def test_a_file_that_changes_while_it_is_sent(self):
        """No byte more than announced goes out, and none less is taken for the whole."""
        for size in (20, 20000):  # without and with an invitation
            for change in (lambda f: f.write(b"more" * 9999), lambda f: f.truncate(10)):
                source = Changing(DATA[:size], change)
                if change(io.BytesIO()) == 10:
                    with self.assertRaisesRegex(dfc.Error, "shorter"):
                        self.bucket.put("o", source)
                else:
                    self.bucket.put("o", source)
                    self.assertEqual(self.bucket.get("o"), DATA[:size])

    def test_a_body_goes_once_to_its_owner(self):
        self.open(direct=False).bucket("b").put("o", DATA)
        self.assertEqual([row["body"] for row in self.calls("PUT", "proxy")], [None])
        self.bucket.put("o", DATA)
        self.assertEqual([row["body"] for row in self.calls("PUT")], [len(DATA)] * 2)

    def test_refusals_are_repeated(self):
        self.bucket.put("o", b"x")
        for step in ({"do": "status", "status": 503}, {"do": "status", "status": 429},
                     {"do": "status", "status": 409, "code": "stale_map"}, {"do": "drop"}):
            for at in ("proxy", "target"):
                self.mock.plan({"at": at, "method": "GET", "path": "/objects/", **step})
                self.assertEqual(self.bucket.get("o"), b"x", step)

    def test_what_is_final_is_not_repeated(self):
        self.mock.plan({"at": "target", "method": "GET", "do": "status", "status": 500,
                        "code": "io_error", "times": 2})
        with self.assertRaises(dfc.Error) as caught:
            self.bucket.get("o")
        self.assertEqual((caught.exception.status, caught.exception.code), (500, "io_error"))
        self.assertEqual(len(self.calls("GET")), 1)

    def test_what_must_not_happen_twice_is_reported(self):
        for step in ({"at": "target", "method": "PUT", "do": "act"},
                     {"at": "target", "method": "PUT", "do": "drop"}):
            self.mock.plan(step)
            with self.assertRaises(dfc.Unreachable):
                self.bucket.put(f"new-{step['do']}", b"x", if_absent=True)
        self.mock.plan({"at": "proxy", "method": "POST", "path": "/buckets/c", "do": "act"})
        with self.assertRaises(dfc.Unreachable):
            self.client.bucket("c").create()
        self.mock.plan({"at": "target", "method": "PUT", "do": "drop"})
        with self.assertRaises(dfc.Unreachable):
            self.bucket.put("once", iter([b"a", b"b"]))
        self.mock.plan({"at": "target", "method": "PUT", "do": "drop"})
        self.bucket.put("again", b"whole")  # a PUT of a whole object may happen twice

    def test_pieces_that_nobody_asked_for_are_sent_again(self):
        """A node that refuses before it invites the body took nothing of the iterator."""
        for client in (self.client, self.open(direct=False)):
            for step in ({"do": "status", "status": 503}, {"do": "status", "status": 429},
                         {"do": "status", "status": 409, "code": "stale_map"}):
                self.mock.plan({"at": "target", "method": "PUT", **step})
                client.bucket("b").put("pieces", iter([b"one", b"", b"two"]))
                self.assertEqual(self.bucket.get("pieces"), b"onetwo", step)

    def test_pieces_over_a_kept_connection_that_the_node_closed(self):
        with HangUp(self.mock) as node:
            client = dfc.Client(node.endpoint, profile="", direct=False)
            self.addCleanup(client.close)
            client.buckets()
            node.hang_up()
            client.bucket("b").put("pieces", iter([b"one", b"two"]))
        self.assertEqual(self.bucket.get("pieces"), b"onetwo")

    def test_a_node_that_refuses_in_the_middle_of_a_body(self):
        """Its error is told, not that the connection broke."""
        with FullDisk() as node:
            client = dfc.Client(node.endpoint, profile="", direct=False)
            self.addCleanup(client.close)
            for body in (bytes(64 << 20), (bytes(1 << 20) for _ in range(64))):
                with self.assertRaises(dfc.Error) as caught:
                    client.bucket("b").put("o", body)
                self.assertEqual((caught.exception.status, caught.exception.code),
                                 (507, "no_space"))

    def test_a_read_that_breaks_off_goes_on(self):
        self.bucket.put("o", DATA)
        for bytes_ in (0, 1, 70000, len(DATA) - 1):
            self.mock.plan({"at": "target", "method": "GET", "do": "cut", "bytes": bytes_})
            self.assertEqual(self.bucket.get("o"), DATA)
            self.mock.plan({"at": "target", "method": "GET", "do": "cut", "bytes": bytes_})
            with self.bucket.open("o", buffering=0) as f:
                out = b"".join(iter(lambda: f.read(5000), b""))
            self.assertEqual(out, DATA)
        ranges = [row["headers"].get("range") for row in self.calls("GET")]
        self.assertIn("bytes=70000-", ranges)

    def test_a_long_read_that_makes_progress_never_gives_up(self):
        """Every reply breaks off; what came counts."""
        bucket = self.open(attempts=2).bucket("b")
        bucket.put("o", DATA)
        with mock.patch("dfc.object.STEP", 20_000):
            for read in (bucket.get, self.read_into(bucket)):
                self.mock.plan({"at": "target", "method": "GET", "do": "cut", "bytes": 50_000,
                                "times": 5})
                self.assertEqual(read("o"), DATA)

    @staticmethod
    def read_into(bucket):
        def read(name):
            room = bytearray(len(DATA))
            assert bucket.get_into(name, room) == len(DATA)
            return room
        return read

    def test_a_part_that_is_not_the_part_asked_for(self):
        self.bucket.put("o", DATA)
        with mock.patch.object(MockHandler, "resolve", lambda _, asked, size: (0, size - 1)):
            with self.assertRaisesRegex(dfc.Error, "bytes=7-16"):
                self.bucket.get("o", offset=7, length=10)
        for part in ((70, 79), (7, 17), (7, len(DATA) - 1)):
            with mock.patch.object(MockHandler, "resolve", lambda _, asked, size, part=part: part):
                with self.assertRaisesRegex(dfc.Error, "bytes=7-16"):
                    self.bucket.get("o", offset=7, length=10)
        with mock.patch.object(MockHandler, "resolve", lambda _, asked, size: (0, size - 1)):
            with self.assertRaisesRegex(dfc.Error, "bytes=-10"):
                self.bucket.get("o", offset=-10)
        self.assertEqual(self.bucket.get("o", offset=len(DATA) - 5, length=10), DATA[-5:])

    def test_the_rest_comes_in_shorter_parts_than_asked_for(self):
        """A reader neither ends early nor asks for ever."""
        self.bucket.put("o", DATA)

        def resolve(_, asked, size):
            first = int(asked.group(1))
            return first, min(first + 99_999, size - 1)

        with mock.patch("dfc.object.STEP", 20_000), mock.patch.object(MockHandler, "resolve", resolve):
            for read in (self.bucket.get, self.read_into(self.bucket),
                         lambda name: self.bucket.open(name).read()):
                self.mock.plan({"at": "target", "method": "GET", "do": "cut", "bytes": 50_000})
                self.assertEqual(read("o"), DATA)

    def test_a_part_that_breaks_off_goes_on(self):
        self.bucket.put("o", DATA)
        for offset, length, want in ((100, 50000, DATA[100:50100]), (-60000, None, DATA[-60000:])):
            self.mock.plan({"at": "target", "method": "GET", "do": "cut", "bytes": 10000})
            with self.bucket.open("o", offset=offset, length=length, buffering=0) as f:
                out = b"".join(iter(lambda: f.read(5000), b""))
            self.assertEqual(out, want)

    def test_a_batch_has_what_was_asked_for(self):
        """By name: also an object whose name ends with '/', or with a line's end."""
        items = [{"bucket": "b", "object": name, **more} for name, more in (
            ("x", {}), ("a/", {}), ("t.tar", {"member": "d/m"}), ("y" * 300 + "\n", {}), ("z", {}))]
        names = ["b/x", "b/a/", "b/t.tar/d/m", "b/" + "y" * 300 + "\n", "__404__/b/z"]

        def read(names):
            out = io.BytesIO()
            with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
                for name in names:
                    info = tarfile.TarInfo(name)
                    info.size = len(name)
                    t.addfile(info, io.BytesIO(name.encode()))
            reply = mock.Mock(pieces=lambda: iter([out.getvalue()]))
            return list(batch._come(reply, items))  # pylint: disable=protected-access

        self.assertEqual(read(names), [name.encode() for name in names[:-1]] + [None])
        for wrong in (names[1:], [names[1], names[0], *names[2:]], [*names, "b/more"]):
            with self.assertRaisesRegex(dfc.Corrupt, "was asked for|too many entries"):
                read(wrong)

    def test_errors_of_a_batch_count_in_what_was_asked_for(self):
        """After a part that came, and in a further request: the number is that of the caller's list."""
        names = [f"o{i}" for i in range(7)]
        tails = {"entry 0, 'b/o5': there is none": "entry 5, 'b/o5': there is none",
                 "entries[0].object: no name": "entries[5].object: no name",
                 "entry 0, 'b/entry 0, 'x'': it": "entry 5, 'b/entry 0, 'x'': it",
                 "no such call": "no such call"}

        def reply(names):
            out = io.BytesIO()
            with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
                for name in names:
                    t.addfile(tarfile.TarInfo("b/" + name))
            return mock.Mock(pieces=lambda: iter([out.getvalue()]))

        for said, wanted in tails.items():
            asked = []

            def call(request, _, said=said, asked=asked):
                entries = [e["object"] for e in json.loads(request.body.data)["entries"]]
                asked.append(entries)
                if entries == ["o5"]:
                    raise dfc.NotFound(said, status=404, code="object_not_found")
                return reply(entries[:2])

            client = mock.Mock(call=call, policy=_retry.Policy(base=0.0))
            with mock.patch("dfc.batch.REQUEST_MAX", 3), self.assertRaises(dfc.NotFound) as caught:
                list(batch.read(client, [{"bucket": "b", "object": n} for n in names], False))
            self.assertEqual(asked, [["o0", "o1", "o2"], ["o2"], ["o3", "o4", "o5"], ["o5"]])
            self.assertEqual((caught.exception.message, *caught.exception.args), (wanted, wanted))

    def test_a_batch_that_always_breaks_off_says_where(self):
        items = [{"bucket": "b", "object": f"o{i}"} for i in range(5)]
        client = mock.Mock(call=lambda *_: mock.Mock(pieces=lambda: iter([])),
                           policy=_retry.Policy(attempts=2, base=0.0))
        with self.assertRaisesRegex(dfc.Unreachable, "broke off at entry 3:"):
            list(batch._one(client, items, 3, False))  # pylint: disable=protected-access

    def test_an_object_that_changes_is_not_mixed(self):
        self.bucket.put("o", DATA)
        self.mock.plan({"at": "target", "method": "GET", "do": "cut", "bytes": 5000,
                        "change": "another"})
        with self.assertRaisesRegex(dfc.Precondition, "changed while it was read"):
            with self.bucket.open("o") as f:
                f.read()

    def test_damage_is_noticed(self):
        self.bucket.put("o", DATA)
        self.mock.plan({"at": "target", "method": "GET", "do": "corrupt", "times": 3})
        for read in (lambda: self.bucket.get("o"), lambda: self.bucket.open("o").read(),
                     lambda: self.bucket.get_into("o", bytearray(len(DATA)))):
            with self.assertRaises(dfc.Corrupt):
                read()
        self.mock.plan({"at": "target", "method": "PUT", "do": "corrupt"})
        with self.assertRaises(dfc.Corrupt):
            self.bucket.put("o", DATA)

    def test_conditions(self):
        first = self.bucket.put("o", b"1", if_absent=True)
        with self.assertRaises(dfc.Precondition):
            self.bucket.put("o", b"2", if_absent=True)
        second = self.bucket.put("o", b"3", if_match=first.etag)
        with self.assertRaises(dfc.NotModified):
            self.bucket.get("o", if_none_match=second.etag)
        with self.assertRaises(dfc.Precondition):
            self.bucket.get("o", if_match=first.etag)

    def test_lists_in_pages(self):
        for i in range(25):
            self.bucket.put(f"d{i % 5}/{i:02}", b"x")
        names = [e.name for e in self.bucket.list(page_size=3)]
        self.assertEqual(names, sorted(f"d{i % 5}/{i:02}" for i in range(25)))
        folded = list(self.bucket.list(delimiter="/", page_size=2))
        self.assertEqual([(e.name, e.is_prefix) for e in folded],
                         [(f"d{i}/", True) for i in range(5)])
        self.assertEqual(len(list(self.bucket.list("d1/", start_after="d1/06"))), 3)

    def test_the_map_outlives_the_proxies(self):
        """Objects are read at targets while no proxy answers, also when the map is old."""
        client = self.open(attempts=1)
        bucket = client.bucket("b")
        bucket.put("o", DATA)
        place = client._caller.map.place("b", "o")
        self.mock.plan({"at": "proxy", "do": "status", "status": 503, "times": 1000})
        for _ in range(2):
            client._caller.map._known["b"] = dataclasses.replace(
                client._caller.map._known["b"], begins=0.0, ends=0.0)
            client._caller.map.is_old()
            self.assertEqual(client._caller.map.place("b", "o"), place)

    def test_one_thread_fetches_the_map(self):
        self.bucket.put("o", b"x")
        known = self.client._caller.map._known
        known["b"] = dataclasses.replace(known["b"], ends=0.0)
        self.mock.plan({"at": "proxy", "method": "GET", "path": "/v1/cluster", "do": "stall",
                        "seconds": 1})
        threads = [threading.Thread(target=self.bucket.get, args=("o",)) for _ in range(8)]
        before = len(self.mock.requests(at="proxy"))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(self.mock.requests(at="proxy")) - before, 2)

    def test_redirects_that_never_end(self):
        self.mock.plan({"at": "target", "method": "GET", "do": "status", "status": 307,
                        "location": "/v1/objects/b/o", "times": 20})
        with self.assertRaisesRegex(dfc.Error, "more than 5 redirects"):
            self.bucket.get("o")

    def test_another_endpoint_is_tried(self):
        client = dfc.Client(f"http://127.0.0.1:9,{self.mock.endpoint}", profile="", attempts=1)
        self.addCleanup(client.close)
        self.assertEqual(len(client.buckets()), 1)
        with self.assertRaises(dfc.Unreachable):
            dfc.Client("http://127.0.0.1:9", profile="", attempts=1).buckets()

    def test_a_silent_node(self):
        client = self.open(idle_timeout=0.3, attempts=1)
        self.mock.plan({"method": "GET", "path": "/buckets", "do": "stall", "seconds": 30})
        with self.assertRaises(dfc.Timeout):
            client.buckets()

    def test_what_is_no_document(self):
        self.mock.plan({"method": "GET", "path": "/buckets", "do": "garbage"})
        with self.assertRaises(dfc.Error):
            self.client.buckets()

    def test_names_and_values_that_cannot_be(self):
        for call in (lambda: self.client.bucket(""), lambda: self.client.bucket("a/b"),
                     lambda: self.bucket.get(""), lambda: self.bucket.get("\ud800"),
                     lambda: self.bucket.put("o", b"", meta={"k": "a\r\nX: y"}),
                     lambda: self.bucket.put("o", b"", meta={"k: v\r\nX": "y"}),
                     lambda: self.bucket.put("o", b"", meta={"": "y", "a b": "c"}),
                     lambda: self.bucket.put("o", b"", content_type="a\nb"),
                     lambda: self.bucket.get("o", offset=-1, length=5)):
            with self.assertRaises(dfc.Invalid):
                call()

    def test_a_login_is_made_once_and_again_when_it_ends(self):
        self.mock.auth.change({"secrets": {"AK": "secret"}})
        with self.assertRaises(dfc.Denied):
            self.client.buckets()
        client = self.open(access_key="AK", secret_key="secret")
        threads = [threading.Thread(target=client.buckets) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(self.mock.auth.made, 1)
        self.mock.auth.change({"withdraw": True})
        client.bucket("b").put("o", DATA)
        self.assertEqual(self.mock.auth.made, 2)
        with self.assertRaises(dfc.Denied):
            self.open(access_key="AK", secret_key="other").buckets()

    def test_a_token_that_cannot_be_renewed_serves_until_it_ends(self):
        self.mock.auth.change({"secrets": {"AK": "secret"}})
        client = self.open(access_key="AK", secret_key="secret", attempts=1)
        client.buckets()
        client._caller._identity._renew_at = 0.0
        self.mock.plan({"path": "/auth/token", "do": "status", "status": 503, "times": 9})
        self.assertEqual([b["name"] for b in client.buckets()], ["b"])
        client._caller._identity._token = None
        with self.assertRaises(dfc.Unreachable):
            client.buckets()

    def test_threads_and_forked_processes(self):
        self.bucket.put("o", DATA)
        wrong = []

        def read():
            for _ in range(10):
                if self.bucket.get("o") != DATA:
                    wrong.append(1)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for t in threads:
            t.start()
        child = os.fork()
        if child == 0:
            os._exit(0 if all(self.bucket.get("o") == DATA for _ in range(10)) else 1)
        for t in threads:
            t.join()
        self.assertEqual((os.waitpid(child, 0)[1], wrong), (0, []))

    def test_errors_cross_processes(self):
        with self.assertRaises(dfc.NotFound) as caught:
            self.bucket.get("nothing")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(again), again.code, str(again)),
                         (dfc.NotFound, "object_not_found", str(caught.exception)))


if __name__ == "__main__":
    unittest.main()
