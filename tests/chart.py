#!/usr/bin/env python3
"""The chart in deploy/helm agrees with itself, with the product's version, and with the files made
from it in deploy/kubernetes.  This needs no helm; chart_helm.py runs it."""

import hashlib
import json
import pathlib
import re
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm/dfc"
MADE = re.compile(r"# Made by deploy/helm/render\.py from deploy/helm/dfc/templates/(\S+):")
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def schema():
    return json.loads((CHART / "values.schema.json").read_text())


def values():
    return yaml.safe_load((CHART / "values.yaml").read_text())


def leaves(rule, path=()):
    """{path: rule} of what one can set: what has no properties of its own."""
    if "properties" not in rule:
        return {path: rule}
    found = {}
    for name, inner in rule["properties"].items():
        found.update(leaves(inner, (*path, name)))
    return found


def value_paths(value, rules, path=()):
    """Of values.yaml; a mapping that the schema has as one value is one."""
    if path in rules or not isinstance(value, dict):
        return {path}
    return set().union(*(value_paths(v, rules, (*path, k)) for k, v in value.items()))


def used():
    """{path: template} of each .Values.a.b"""
    return {tuple(path.split(".")): template.name for template in CHART.glob("templates/*")
            for path in re.findall(r"\.Values\.([\w.]+)", template.read_text())}


def fits(value, rule, definitions):
    """The part of JSON Schema that values.schema.json needs for its defaults."""
    rule = definitions[rule["$ref"].rpartition("/")[2]] if "$ref" in rule else rule
    if "enum" in rule:
        return value in rule["enum"]
    kind = KINDS[rule["type"]]
    return (isinstance(value, kind) and isinstance(value, bool) == (kind is bool) and
            (kind is not str or re.search(rule.get("pattern", ""), value) is not None) and
            (kind is not int or rule.get("minimum", value) <= value <= rule.get("maximum", value)))


class Values(unittest.TestCase):
    def setUp(self):
        self.schema = schema()
        self.rules = leaves(self.schema)
        self.rules.pop(("global",))  # helm's own

    def test_templates_use_what_there_is(self):
        uses = used()
        self.assertGreater(len(uses), 30)
        for path, template in uses.items():
            self.assertIn(path, self.rules, f"{template} uses .Values.{'.'.join(path)}")

    def test_all_of_it_is_used(self):
        self.assertEqual(set(self.rules) - set(used()), set())

    def test_values_and_schema_are_the_same(self):
        self.assertEqual(value_paths(values(), self.rules), set(self.rules))

    def test_defaults_fit_the_schema(self):
        for path, rule in self.rules.items():
            value = values()
            for name in path:
                value = value[name]
            self.assertTrue(fits(value, rule, self.schema["definitions"]),
                            f"{'.'.join(path)}: {value!r} is not {rule}")

    def test_what_does_not_fit_is_found(self):
        definitions = self.schema["definitions"]
        for value, rule in (("x", {"type": "integer"}), (True, {"type": "integer"}),
                            (0, {"type": "integer", "minimum": 1}), (2, {"enum": [1, 3]}),
                            ("5", {"$ref": "#/definitions/time"}),
                            ("0m", {"$ref": "#/definitions/time"}),
                            ("A B", {"$ref": "#/definitions/name"})):
            self.assertFalse(fits(value, rule, definitions), f"{value!r} is {rule}")

    def test_unknown_values_are_refused(self):
        def look(rule):
            if "properties" in rule:
                self.assertIs(rule.get("additionalProperties"), False)
                for inner in rule["properties"].values():
                    look(inner)
        look(self.schema)


class Version(unittest.TestCase):
    def test_the_chart_has_the_products(self):
        product = re.search(r"^\s+version: '([^']+)'", (ROOT / "meson.build").read_text(), re.M)[1]
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual((chart["version"], chart["appVersion"]), (product, product))


class Made(unittest.TestCase):
    """deploy/kubernetes is what render.py made from the chart as it is."""

    def test_digests(self):
        rows = dict(reversed(line.split("  ")) for line in
                    (DEPLOY / "kubernetes/SUMS").read_text().splitlines())
        made = {f"kubernetes/{p.name}" for p in (DEPLOY / "kubernetes").glob("*.yaml")
                if MADE.match(p.read_text())}
        chart = {str(p.relative_to(DEPLOY)) for p in CHART.rglob("*") if p.is_file()}
        self.assertEqual(set(rows), made | chart, "run deploy/helm/render.py")
        for name, digest in rows.items():
            self.assertEqual(hashlib.sha256((DEPLOY / name).read_bytes()).hexdigest(), digest,
                             f"deploy/{name} was changed: run deploy/helm/render.py")

    def test_kustomization_has_what_was_made(self):
        text = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())
        made = {p.name for p in (DEPLOY / "kubernetes").glob("*.yaml")
                if MADE.match(p.read_text())}
        self.assertEqual(set(text["resources"]), made - {"cached.yaml"})
        self.assertGreater(len(made), 3)


if __name__ == "__main__":
    unittest.main()
