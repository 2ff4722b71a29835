#!/usr/bin/env python3
"""The real Prometheus scrapes the public ports with a token from a file, which it reads each time:
so a token is renewed without Prometheus.  Skipped where it is not installed."""

import atexit
import json
import os
import shutil
import subprocess
import time
import urllib.parse

import frame  # noqa: F401 (first: the next one is found by it)
from access_lib import GuardedCluster, accessref, make_user
from lib import check, equal, main, skip, wait_for

CONF = """global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}
scrape_configs:
- job_name: dfc
  scheme: {scheme}
  tls_config: {{{tls}}}
  authorization: {{credentials_file: {token}}}
  static_configs: [{{targets: [{nodes}]}}]
"""


class Scraped(GuardedCluster):
    def __init__(self, **shape):
        super().__init__(**shape)
        self.scraper = make_user(self, "scraper", [{"rights": ["see"]}])
        self.token = os.path.join(self.dir, "scraper.token")
        self.give(self.scraper.headers()["Authorization"].split()[1])
        self.port = self.ports.base + self.ports.SIZE - 1
        self.prometheus = self.begin()

    def give(self, token):
        """Whole: Prometheus may be reading."""
        with open(self.token + ".new", "w", encoding="ascii") as f:
            f.write(token)
        os.rename(self.token + ".new", self.token)

    def begin(self):
        conf = os.path.join(self.dir, "prometheus.yml")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(CONF.format(scheme=urllib.parse.urlsplit(self.endpoint).scheme,
                                tls=f"ca_file: {self.ca_file()}" if self.http.context else "",
                                token=self.token,
                                nodes=", ".join("'%s:%d'" % self.address(n) for n in self.nodes)))
        with open(os.path.join(self.dir, "prometheus.log"), "wb") as log:
            process = subprocess.Popen(
                [PROMETHEUS, f"--config.file={conf}", "--storage.tsdb.path",
                 os.path.join(self.dir, "tsdb"), f"--web.listen-address=127.0.0.1:{self.port}"],
                stdout=log, stderr=log)
        atexit.register(process.kill)
        return process

    def ask(self, path):
        """Of Prometheus: the data of its reply; {} where it does not answer yet."""
        try:
            reply = self.http.request("GET", f"http://127.0.0.1:{self.port}{path}")
        except OSError:
            check(self.prometheus.poll() is None, "Prometheus ended")
            return {}
        return json.loads(reply.body)["data"] if reply.status == 200 else {}

    def scrapes(self):
        """(health, last error) of each node."""
        return [(t["health"], t["lastError"])
                for t in self.ask("/api/v1/targets").get("activeTargets", [])]

    def verdict(self):
        self.prometheus.terminate()
        self.prometheus.wait(60)
        return super().verdict()


def wait_for_all(c, health, error):
    wait_for(lambda: (s := c.scrapes()) and len(s) == len(c.nodes) and
             all(h == health and error in e for h, e in s), f"all nodes to be {health} ({error})")


def test_all_nodes_are_scraped(c):
    wait_for_all(c, "up", "")
    query = urllib.parse.quote('dfc_build_info{job="dfc"}')
    found = wait_for(lambda: len(r := c.ask(f"/api/v1/query?query={query}").get("result", []))
                     == len(c.nodes) and r, "a metric of each node")
    equal(len({r["metric"]["instance"] for r in found}), len(c.nodes), "nodes with the metric")


def test_an_expired_token_is_refused_and_a_new_one_taken(c):
    now = int(time.time() * 1000)
    c.give(accessref.token(c.key_text, c.scraper.id(), now - 60000, now - 1))
    wait_for_all(c, "down", "401")
    c.scraper.token = None
    c.give(c.scraper.headers()["Authorization"].split()[1])
    wait_for_all(c, "up", "")


def test_a_user_without_the_right_is_refused(c):
    c.give(make_user(c, "blind", []).headers()["Authorization"].split()[1])
    wait_for_all(c, "down", "403")


if __name__ == "__main__":
    PROMETHEUS = shutil.which("prometheus")
    if PROMETHEUS is None:
        skip("there is no prometheus; on Debian: apt-get install --no-install-recommends prometheus")
    main(Scraped, proxies=2, targets=2)
