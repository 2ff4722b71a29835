#!/usr/bin/env python3
"""The real Prometheus finds the nodes by a proxy, scrapes their public ports with a token from a
file, which it reads each time, and evaluates the rules of deploy/observability.  Skipped where it is
not installed."""

import atexit
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.parse

import frame  # noqa: F401 (first: the next one is found by it)
from access_lib import GuardedCluster, accessref, make_user
from lib import ROOT, check, equal, main, skip, wait_for

CONF = """global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}
rule_files: [{rules}]
scrape_configs:
- job_name: dfc
  tls_config: {{{tls}}}
  authorization: {{credentials_file: {token}}}
  http_sd_configs:
  - url: {endpoint}/v1/cluster?what=scrape
    refresh_interval: 1s
    tls_config: {{{tls}}}
    authorization: {{type: Bearer, credentials_file: {token}}}
"""
RULES = os.path.join(ROOT, "deploy", "observability", "rules.yml")


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
        rules = os.path.join(self.dir, "rules.yml")
        with open(RULES, encoding="utf-8") as f:
            at_once = re.sub(r"(?m)^ +for: .*\n", "", f.read())
        with open(rules, "w", encoding="utf-8") as f:
            f.write(at_once)
        with open(conf, "w", encoding="utf-8") as f:
            f.write(CONF.format(rules=rules, endpoint=self.url(),
                                tls=f"ca_file: {self.ca_file()}" if self.http.context else "",
                                token=self.token))
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

    def rules(self):
        return [rule for group in self.ask("/api/v1/rules").get("groups", [])
                for rule in group["rules"]]

    def firing(self):
        """[(alert, node)]; an alert of the whole cluster has no node."""
        return {(a["labels"]["alertname"], a["labels"].get("node"))
                for a in self.ask("/api/v1/alerts").get("alerts", []) if a["state"] == "firing"}

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
    equal({r["metric"]["node"] for r in found}, set(c.nodes), "nodes with the metric")


def test_promtool_accepts_the_metrics(c):
    promtool = shutil.which("promtool")
    check(promtool, "Debian's package prometheus has promtool")
    for node in c.nodes:
        text = c.http.request("GET", c.url(node) + "/metrics", headers=c.scraper.headers()).expect(
            200).body
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True,
                              check=False)
        equal((done.returncode, done.stdout + done.stderr), (0, b""), f"the metrics of {node}")


def test_each_rule_can_be_evaluated(c):
    rules = wait_for(lambda: (r := c.rules()) and all(rule["health"] != "unknown" for rule in r)
                     and r, "an evaluation of each rule")
    check(len(rules) > 20, f"{len(rules)} rules")
    for rule in rules:
        equal((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])


def test_each_expression_of_a_dashboard_can_be_evaluated(c):
    sys.path.insert(0, os.path.dirname(RULES))
    dashboards = importlib.import_module("make_dashboards").texts()
    cluster = c.get_json("/v1/cluster")["cluster"]
    answers = 0
    for name, text in dashboards.items():
        for panel in json.loads(text)["panels"]:
            for target in panel.get("targets", []):
                query = target["expr"].replace("$cluster", cluster).replace("$node", ".*").replace(
                    "$__rate_interval", "1m")
                data = c.ask("/api/v1/query?query=" + urllib.parse.quote(query))
                check("result" in data, f"{name}: {query}: {data}")
                answers += bool(data["result"])
    check(answers >= 20, f"{answers} of the expressions have a value")


def test_a_target_that_ends_raises_alerts(c):
    c.stop("t2")
    wait_for(lambda: {("DfcNodeDown", "t2"), ("DfcNodeUnreachable", None),
                      ("DfcRed", None)} <= c.firing(), "the alerts")
    c.start("t2")
    wait_for(lambda: not {"DfcNodeDown", "DfcNodeUnreachable", "DfcRed"} &
             {name for name, _ in c.firing()}, "the end of the alerts")


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
