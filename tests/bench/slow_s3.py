"""The backend of the benchmarks: the tests' S3 service, slowed down to what a distant one gives.

SlowS3 runs in threads of this process, for clients that are processes of their own.  A client in
Python takes apart(): the service in another process, so that the two do not wait for one another's
interpreter."""

import contextlib
import multiprocessing.managers
import os
import random
import sys
import threading
import time
import urllib.request

from benchlib import ROOT

sys.path.insert(0, str(ROOT / "tests" / "reference"))
from fake_s3 import FakeS3, Handler, Noughts  # noqa: E402,F401

# The daemons that are started from here may sign for it.
os.environ.setdefault("DFC_BACKEND_ENDPOINTS", "s3 http://127.0.0.1:*")

PIECE = 64 << 10


class SlowHandler(Handler):
    """Each object waits for its delay (a HEAD for one of its own, if there is one); all answers
    together are no faster than the rate, each for itself than the limit."""

    def send_object(self, data, fault):
        service = self.server.service
        time.sleep(service.head_delay_s if self.command == "HEAD" and service.head_delay_s is not None
                   else service.delay_s)
        super().send_object(data, fault)

    def write_out(self, data, fault):
        begun, limit = time.monotonic(), self.server.service.limit_of_each
        for at in range(0, len(data), PIECE):
            piece = data[at:at + PIECE]
            self.server.service.pay(len(piece))
            self.wfile.write(piece)
            if limit is not None:
                time.sleep(max(0.0, begun + (at + len(piece)) / limit - time.monotonic()))


class SlowS3(FakeS3):
    handler = SlowHandler

    def __init__(self, rate=None, delay_s=0.0, head_delay_s=None):
        super().__init__()
        self.head_delay_s = head_delay_s
        self.rate, self.delay_s, self.limit_of_each = rate, delay_s, None
        self.turn, self.next, self.sent = threading.Lock(), 0.0, 0

    def pay(self, size):
        with self.turn:
            self.sent += size
            if self.rate is None:
                return
            self.next = max(self.next, time.monotonic()) + size / self.rate
            wait = self.next - time.monotonic()
        if wait > 0:
            time.sleep(wait)

    def etag(self, bucket, key):
        """None that is computed anew for each request."""
        return f'"{key}-1"'


class Apart(SlowS3):
    """What a client in another process may say and ask."""

    def start(self):
        self.__enter__()

    def stop(self):
        self.__exit__()

    def where(self):
        return self.url

    def be(self, delay_s, rate):
        self.delay_s, self.rate = delay_s, rate

    def limit(self, limit):
        """Bytes a second, of each answer."""
        self.limit_of_each = limit

    def make(self, key, size):
        self.put("data", key, random.Random(key).randbytes(size))

    def asked(self):
        """Requests so far."""
        with self.lock:
            return len(self.requests)


class Manager(multiprocessing.managers.BaseManager):
    pass


Manager.register(
    "Apart", Apart,
    exposed=("start", "stop", "where", "be", "limit", "make", "remove", "count", "asked"))


@contextlib.contextmanager
def apart():
    with Manager() as manager:
        service = manager.Apart()
        service.start()
        try:
            yield service
        finally:
            service.stop()


def create(cluster, url, bucket, first):
    """A bucket of the backend's bucket `data`.  The first read goes by the proxy: from then on the
    target knows it."""
    value = {"backend": f"s3://data?endpoint={url}&auth=none"}
    cluster.call("POST", f"/v1/buckets/{bucket}", {"action": "create", "value": value})
    urllib.request.urlopen(f"{cluster.proxy['url']}/v1/objects/{bucket}/{first}").read()
