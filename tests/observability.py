#!/usr/bin/env python3
"""The rules in deploy/observability: promtool accepts them, each alert fires where it should and is
silent where it should be, and no rule names a metric that no program has.  The dashboards are those
of their table.

That a real Prometheus finds the nodes and gets an answer to each rule is shown by the test
`prometheus_scrape`."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("DFC_BUILD", ROOT / "build"))
HERE = ROOT / "deploy/observability"
PROMTOOL = shutil.which("promtool")
METRIC = re.compile(r"\b(?:dfc|process)_[a-z0-9_]+")


def rules():
    return [rule for group in yaml.safe_load((HERE / "rules.yml").read_text())["groups"]
            for rule in group["rules"]]


def alerts():
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def known_metrics():
    """With the parts of histograms."""
    text = subprocess.run([BUILD / "dfc-proxyd", "--metrics-markdown"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    names = set(re.findall(r"^\| `(\w+)`", text, re.M))
    parts = {name + part for name in re.findall(r"^\| `(\w+)` \| histogram", text, re.M)
             for part in ("_bucket", "_sum", "_count")}
    return names | parts


class Rules(unittest.TestCase):
    def promtool(self, *arguments):
        if PROMTOOL is None:
            self.skipTest("there is no promtool; on Debian: the package prometheus")
        done = subprocess.run([PROMTOOL, *arguments], cwd=HERE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_promtool_accepts_the_rules(self):
        self.promtool("check", "rules", "rules.yml")

    def test_promtool_accepts_the_configuration(self):
        self.promtool("check", "config", "--syntax-only", "prometheus.yml")

    def test_alerts_fire_and_are_silent(self):
        self.promtool("test", "rules", "rules_test.yml")

    def test_each_alert_has_a_case_that_fires_and_one_that_does_not(self):
        fires, silent = set(), set()
        for test in yaml.safe_load((HERE / "rules_test.yml").read_text())["tests"]:
            for case in test["alert_rule_test"]:
                (fires if case["exp_alerts"] else silent).add(case["alertname"])
        self.assertEqual(fires, set(alerts()))
        self.assertEqual(silent, set(alerts()))

    def test_rules_name_metrics_that_programs_have(self):
        known = known_metrics() | {rule["record"].split(":")[1] for rule in rules()
                                   if "record" in rule}
        self.assertGreater(len(known), 50)
        for rule in rules():
            for name in METRIC.findall(rule["expr"]):
                self.assertIn(name, known, rule.get("alert") or rule["record"])

    def test_alerts_have_severity_and_summary(self):
        for name, rule in alerts().items():
            self.assertIn(rule["labels"]["severity"], ("warning", "critical"), name)
            self.assertTrue(rule["annotations"]["summary"], name)

    def test_the_guide_explains_each_alert(self):
        text = (ROOT / "docs/guide/upgrade.md").read_text()
        explained = set(re.findall(r"`(Dfc\w+)`", text))
        self.assertEqual(explained, set(alerts()))


def make_dashboards():
    spec = importlib.util.spec_from_file_location("make_dashboards", HERE / "make_dashboards.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Dashboards(unittest.TestCase):
    """Grafana is in no package of Debian: what it would refuse is looked for here."""

    def boards(self):
        return {name: json.loads(text) for name, text in make_dashboards().texts().items()}

    def test_the_files_are_those_of_the_table(self):
        there = {path.name: path.read_text() for path in (HERE / "grafana").iterdir()}
        self.assertEqual(there, make_dashboards().texts(), "make_dashboards.py writes them")

    def test_panels_have_ids_and_places_of_their_own(self):
        for name, board in self.boards().items():
            ids, cells = set(), set()
            for panel in board["panels"]:
                place = panel["gridPos"]
                self.assertNotIn(panel["id"], ids, name)
                ids.add(panel["id"])
                self.assertLessEqual(place["x"] + place["w"], 24, name)
                for x in range(place["x"], place["x"] + place["w"]):
                    for y in range(place["y"], place["y"] + place["h"]):
                        self.assertNotIn((x, y), cells, f"{name}: {panel['title']}")
                        cells.add((x, y))
        self.assertEqual(len({board["uid"] for board in self.boards().values()}), 4)

    def test_expressions_name_metrics_and_variables_that_there_are(self):
        known = known_metrics()
        for name, board in self.boards().items():
            variables = {v["name"] for v in board["templating"]["list"]} | {"__rate_interval"}
            for panel in board["panels"]:
                for target in panel.get("targets", []):
                    for metric in METRIC.findall(target["expr"]):
                        self.assertIn(metric, known, f"{name}: {panel['title']}")
                    used = set(re.findall(r"\$(\w+)", target["expr"]))
                    self.assertLessEqual(used, variables, f"{name}: {panel['title']}")
                    self.assertIn("cluster", used, f"{name}: {panel['title']}")


if __name__ == "__main__":
    unittest.main()
