#!/usr/bin/python3
"""Replies as a node sends them, cut at every byte, and replies that are none."""

import contextlib
import os
import random
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

import frame  # noqa: F401
from dfc.errors import Invalid, of_reply
from dfc._wire import Broken, Connection, parse_head

PLAIN = b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\nhello"
CHUNKS = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
          b"3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: z\r\n\r\n")


def any_node():
    """TLS without a look at the node's certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def certified(folder):
    """A node's side of TLS."""
    key, certificate = os.path.join(folder, "key"), os.path.join(folder, "certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key,
                    "-out", certificate, "-days", "2", "-subj", "/CN=node"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@contextlib.contextmanager
def served(*pieces, hold=False, tls=None):
    """A connection to a node that sends these pieces for any request, and then hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve():
        peer, _ = listener.accept()
        with peer if tls is None else tls.wrap_socket(peer, server_side=True) as peer:
            peer.recv(64)
            for piece in pieces:
                peer.sendall(piece)
            if hold:
                done.wait()

    thread = threading.Thread(target=serve)
    thread.start()
    connection = Connection(listener.getsockname(), None if tls is None else any_node(), 30.0,
                            1.0 if hold else 30.0)
    try:
        yield connection
    finally:
        done.set()
        connection.close()
        thread.join()
        listener.close()


def exchange(*pieces, method="GET"):
    with served(*pieces) as connection:
        head = connection.exchange(method, b"x")
        return head, connection.read(), connection.reusable


class WireTest(unittest.TestCase):
    def test_a_reply_in_two_pieces_cut_at_every_byte(self):
        for reply in (PLAIN, CHUNKS):
            for at in range(len(reply) + 1):
                head, body, reusable = exchange(reply[:at], reply[at:])
                self.assertEqual((head.status, body, reusable), (200, b"hello", True), at)

    def test_a_small_get_cut_at_every_byte(self):
        """Whole, with its checksum, however it comes; broken where it ends too early."""
        for sum_, want in ((b"", b""), (b"DFC-Checksum-Value: ab\r\n", b""),
                           (b"Dfc-Checksum-Type: xxh3\r\ndfc-checksum-value:  ab \r\n", b"ab")):
            reply = PLAIN.replace(b"ETag: \"1\"\r\n", sum_)
            for at in range(len(reply) + 1):
                with served(reply[:at], reply[at:]) as connection:
                    found = connection.get(b"x", 5)
                    if isinstance(found, tuple):
                        self.assertEqual(found, (b"hello", want))
                    else:  # the head came in two pieces
                        self.assertEqual((found.status, connection.read()), (200, b"hello"))
                    self.assertTrue(connection.reusable)
            for at in range(len(reply)):
                with served(reply[:at]) as connection, self.assertRaises(Broken, msg=at):
                    connection.get(b"x", 5)
                    connection.read()

    def test_a_get_whose_reply_is_not_small_and_plain(self):
        """It is there to be read, by the rules of any reply."""
        for reply, most in ((PLAIN, 4), (CHUNKS, 9), (PLAIN.replace(b"200", b"203"), 9),
                            (PLAIN.replace(b"ETag: \"1\"", b"CONNECTION: Close"), 9)):
            with served(reply) as connection:
                found = connection.get(b"x", most)
                self.assertEqual(connection.read(), b"hello")
                self.assertEqual((found.status, connection.reusable),
                                 (int(reply[9:12]), b"CONN" not in reply))
        for reply in (PLAIN.replace(b"Content-Length: 5", b"Content-Length: 5\r\nContent-length: 4"),
                      PLAIN.replace(b": 5", b": +5"), PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0")):
            with served(reply) as connection, self.assertRaises(Broken, msg=reply):
                connection.get(b"x", 9)
        with served(PLAIN + b"more") as connection:
            connection.get(b"x", 9)
            self.assertFalse(connection.reusable)

    def test_a_reply_that_ends_too_early(self):
        for reply in (PLAIN, CHUNKS):
            for at in range(len(reply)):
                with self.assertRaises(Broken, msg=at) as caught:
                    exchange(reply[:at])
                self.assertTrue(caught.exception.sent)

    def test_large_bodies(self):
        data = random.Random(1).randbytes(3_000_000)
        reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data
        self.assertEqual(exchange(reply)[1], data)
        with served(reply) as connection:
            connection.exchange("GET", b"x")
            into = bytearray(len(data))
            self.assertEqual(connection.read_into(memoryview(into)), len(data))
            self.assertEqual(into, data)

    def test_bodies_that_are_none(self):
        for status in (b"204 No Content", b"304 Not Modified"):
            self.assertEqual(exchange(b"HTTP/1.1 " + status + b"\r\n\r\n")[1], b"")
        self.assertEqual(exchange(PLAIN[:-5], method="HEAD")[1], b"")

    def test_interim_replies_are_passed_over(self):
        head, body, _ = exchange(b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN)
        self.assertEqual((head.status, body), (200, b"hello"))

    def test_a_connection_that_is_closed_is_not_kept(self):
        closing = PLAIN.replace(b"ETag: \"1\"", b"Connection: close")
        self.assertFalse(exchange(closing)[2])
        self.assertFalse(exchange(PLAIN + b"more than was announced")[2])

    def test_what_is_no_reply(self):
        for text in (b"SSH-2.0\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 abc OK\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
                     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
                     CHUNKS.replace(b"3;x=y", b"zz"), CHUNKS.replace(b"3;x=y", b""),
                     CHUNKS.replace(b"3;x=y", b"2"), CHUNKS.replace(b"3;x=y", b"40000001"), CHUNKS.replace(b"3;x=y", b"f" * 20),
                     b"HTTP/1.1 200 OK\r\nX: " + b"y" * (70 << 10)):
            with self.assertRaises(Broken, msg=text[:60]):
                exchange(text)

    def test_a_node_that_is_silent(self):
        with served(PLAIN[:20], hold=True) as connection:
            with self.assertRaises(Broken) as caught:
                connection.exchange("GET", b"x")
            self.assertTrue(caught.exception.silent)

    def test_tls(self):
        """Large bodies, and a node that is silent in a head and in a body."""
        data = random.Random(2).randbytes(300_000)
        reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data
        with tempfile.TemporaryDirectory() as folder:
            tls = certified(folder)
        with served(reply, tls=tls) as connection:
            connection.exchange("GET", b"x")
            self.assertEqual(connection.read(), data)
        for text in (PLAIN[:20], reply[:100_000]):
            with served(text, hold=True, tls=tls) as connection:
                with self.assertRaises(Broken) as caught:
                    connection.exchange("GET", b"x")
                    connection.read()
                self.assertTrue(caught.exception.silent)

    def test_nothing_listens(self):
        free = socket.create_server(("127.0.0.1", 0))
        address = free.getsockname()
        free.close()
        with self.assertRaises(Broken) as caught:
            Connection(address, None, 5.0, 5.0)
        self.assertFalse(caught.exception.sent)

    def test_a_port_without_tls(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def answer():
                peer, _ = listener.accept()
                with peer:
                    peer.recv(64)
                    peer.sendall(PLAIN)

            thread = threading.Thread(target=answer)
            thread.start()
            with self.assertRaisesRegex(Invalid, "http://HOST:PORT"):
                Connection(listener.getsockname(), any_node(), 30.0, 30.0)
            thread.join()

    def test_an_error_of_an_s3_port(self):
        error = of_reply(404, b'<?xml version="1.0"?>\n<Error/>', "p1", "r")
        self.assertIn("as that of an S3 port", error.message)

    def test_random_bytes_never_hang_or_end_otherwise(self):
        draw = random.Random(3)
        for _ in range(300):
            text = bytearray(draw.choice((PLAIN, CHUNKS)))
            for _ in range(draw.randrange(1, 4)):
                text[draw.randrange(len(text))] = draw.randrange(256)
            try:
                exchange(bytes(text))
            except Broken:
                pass

    def test_a_head(self):
        head = parse_head(b"HTTP/1.1 404 Not Found\r\nDfc-Node:  t1 \r\nX-Y: a: b")
        self.assertEqual((head.status, head.headers),
                         (404, {"dfc-node": "t1", "x-y": "a: b"}))


if __name__ == "__main__":
    unittest.main()
