#!/usr/bin/python3
"""One client in several processes, and under signals: no byte is mixed, nothing hangs."""

import os
import pickle
import random
import signal
import socket
import threading
import unittest

import frame  # noqa: F401
import dfc
from dfc import _wire
from mocked import MockedTest

DATA = random.Random(7).randbytes(3_000_000)


class Interrupt(Exception):
    pass


def interrupt(*_):
    raise Interrupt


def in_child(act):
    """The wait status of a forked child that does it: 0, or 1 for an exception.  A child that hangs
    is ended by an alarm."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            act()
        except BaseException as e:  # pylint: disable=broad-except
            print(repr(e))
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def connections():
    """All that are open, while threads open more."""
    while True:
        try:
            return list(_wire._open)
        except RuntimeError:
            pass  # one was opened meanwhile: look again


class ProcessTest(MockedTest):
    def setUp(self):
        super().setUp()
        self.bucket.put("o", DATA)
        self.bucket.put("other", DATA[::-1])

    def test_a_child_goes_on_reading_what_its_parent_began(self):
        """Each has its own connection: neither takes bytes of the other."""
        for options in ({}, {"offset": 10, "length": 2_000_000}):
            want = DATA if not options else DATA[10:2_000_010]
            with self.bucket.open("o", buffering=0, **options) as f:
                begun = f.read(100_000)

                def rest(f=f, want=want, begun=begun):
                    assert begun + f.readall() == want
                    f.close()
                    assert self.bucket.get("other") == DATA[::-1]

                self.assertEqual(in_child(rest), 0)
                self.assertEqual(begun + f.readall(), want)

    def test_a_child_keeps_no_connection_of_its_parent(self):
        """One that is read and not yet closed would serve both."""
        reply = self.client.call(dfc.bucket.Request("GET", "/v1/buckets"))
        reply.read()
        fd = reply._connection._socket.fileno()

        def child():
            reply.close()
            self.assertRaises(OSError, os.fstat, fd)
            self.assertEqual(sum(map(len, self.client._pool._idle.values())), 0)

        self.assertEqual(in_child(child), 0)
        reply.close()
        self.assertEqual(self.client.buckets()[0]["name"], "b")

    def test_a_fork_in_the_midst_of_calls(self):
        """A connection that a thread is using at that time does not stay open in the child."""
        over, wrong = threading.Event(), []

        def use():
            while not over.is_set():
                if self.bucket.get("o") != DATA:
                    wrong.append(1)

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        known = connections()

        def child():
            assert not [c for c in known if c._socket.fileno() >= 0]
            for _ in range(3):
                assert self.bucket.get("o") == DATA

        results = [in_child(child) for _ in range(5)]
        over.set()
        for thread in threads:
            thread.join()
        self.assertEqual((results, wrong), ([0] * 5, []))

    def test_a_signal_in_the_midst_of_a_read(self):
        """A read that a signal broke off goes on at the right byte, and its connection ends."""
        signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, signal.SIG_DFL)
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        with self.bucket.open("o", offset=5, buffering=0) as f:
            begun = f.read(1000)
            connection = f._reply._connection
            real, connection._socket, connection._buffer = connection._socket, ours, b""
            theirs.sendall(b"lost")  # a few bytes come, and no more
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with self.assertRaises(Interrupt):
                f.read(1000)
            real.close()
            self.assertEqual(begun + f.readall(), DATA[5:])
        self.assertEqual(ours.fileno(), -1)

    def test_pickles(self):
        """For workers that are spawned."""
        client = dfc.Client(self.mock.endpoint, profile="", attempts=3, idle_timeout=7.0)
        bucket, again = pickle.loads(pickle.dumps((client.bucket("b"), client.bucket("b"))))
        self.assertEqual(bucket.get("o"), DATA)
        self.assertIs(bucket._client, again._client)
        self.assertEqual((bucket._client.policy.attempts, bucket._client._pool._silence), (3, 7.0))
        bucket._client.close()
        client.close()


if __name__ == "__main__":
    unittest.main()
