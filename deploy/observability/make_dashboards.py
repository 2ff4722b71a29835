#!/usr/bin/env python3
"""Writes grafana/dfc-*.json, four dashboards for Grafana 10 and later, from the table below.

    make_dashboards.py [DIRECTORY]

A row of a dashboard is (title, unit, [(expression, legend)]); a string begins a section.  $cluster
and $node are the dashboard's variables, $interval is Grafana's rate interval."""

import json
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
SCHEMA = 38
COLUMNS, WIDTH, HEIGHT = 24, 8, 8

DASHBOARDS = {
    "cluster": ("dfc: cluster", [
        "Health",
        ("Health (1: this colour)", "short",
         [('max by (colour) (dfc_cluster_health{@})', "{{colour}}")]),
        ("Nodes by state", "short",
         [('max by (role, state) (dfc_cluster_nodes{@})', "{{role}} {{state}}")]),
        ("Buckets by protection", "short",
         [('max by (protection) (dfc_cluster_buckets{@})', "{{protection}}")]),
        ("Targets that wait for a repair", "short",
         [('max(dfc_cluster_lagging_targets{@})', "targets")]),
        ("Lost objects", "short", [('sum(dfc_objects_lost{@})', "objects")]),
        ("Builds", "short", [('count by (version, commit) (dfc_build_info{@})',
                              "{{version}} {{commit}}")]),
        "Traffic",
        ("Bytes of objects", "Bps",
         [('sum(rate(dfc_object_get_bytes_total{@}[$interval]))', "GET"),
          ('sum(rate(dfc_object_put_bytes_total{@}[$interval]))', "PUT")]),
        ("Requests by class", "reqps",
         [('sum by (code) (rate(dfc_http_requests_total{@}[$interval]))', "{{code}}")]),
        ("Slowest 1 % of GETs and PUTs", "s",
         [('histogram_quantile(0.99, sum by (route, le) (rate('
           'dfc_http_request_seconds_bucket{@,route=~"object_(get|put)"}[$interval])))',
           "{{route}}")]),
        "Space",
        ("Used space of each node", "percentunit",
         [('1 - sum by (node) (dfc_mountpath_available_bytes{@}) / '
           'sum by (node) (dfc_mountpath_capacity_bytes{@})', "{{node}}")]),
        ("Free bytes", "bytes", [('sum(dfc_mountpath_available_bytes{@})', "free")]),
        ("Buckets with a quota", "short", [('max by (use) (dfc_cluster_quotas{@})', "{{use}}")]),
        ("Largest buckets with a quota", "bytes",
         [('topk(10, max by (bucket) (dfc_bucket_bytes{@}))', "{{bucket}}")]),
    ]),
    "nodes": ("dfc: nodes and disks", [
        "Nodes",
        ("CPU", "percentunit", [('rate(process_cpu_seconds_total{@n}[$interval])', "{{node}}")]),
        ("Memory", "bytes", [('process_resident_memory_bytes{@n}', "{{node}}")]),
        ("Open files", "percentunit", [('process_open_fds{@n} / process_max_fds{@n}',
                                        "{{node}}")]),
        ("Connections", "short",
         [('sum by (node, listener) (dfc_http_connections{@n})', "{{node}} {{listener}}")]),
        ("Requests", "reqps",
         [('sum by (node) (rate(dfc_http_requests_total{@n}[$interval]))', "{{node}}")]),
        ("Refused at a limit", "reqps",
         [('rate(dfc_http_overload_total{@n}[$interval])', "{{node}}")]),
        "Disks",
        ("Slowest 1 % of operations", "s",
         [('histogram_quantile(0.99, sum by (node, mountpath, op, le) (rate('
           'dfc_mountpath_io_seconds_bucket{@n}[$interval])))', "{{node}} {{mountpath}} {{op}}")]),
        ("Bytes", "Bps",
         [('rate(dfc_mountpath_io_bytes_sum{@n}[$interval])', "{{node}} {{mountpath}} {{op}}")]),
        ("Operations in progress", "short", [('dfc_mountpath_queue{@n}', "{{node}} {{mountpath}}")]),
        ("Free space", "percentunit",
         [('dfc_mountpath_available_bytes{@n} / dfc_mountpath_capacity_bytes{@n}',
           "{{node}} {{mountpath}}")]),
        ("I/O errors", "short",
         [('increase(dfc_mountpath_errors_total{@n}[1h])', "{{node}} {{mountpath}}")]),
        ("Out of use, or in quarantine", "short",
         [('sum by (node, mountpath, state) (dfc_mountpath_state{@n,state!="enabled"})',
           "{{node}} {{mountpath}} {{state}}"),
          ('dfc_mountpath_quarantined{@n}', "{{node}} {{mountpath}} quarantine")]),
    ]),
    "jobs": ("dfc: jobs, sorts and rings", [
        "Jobs",
        ("Running", "short", [('sum by (kind) (dfc_jobs_running{@})', "{{kind}}")]),
        ("Failed in the last hour", "short",
         [('sum by (kind) (increase(dfc_jobs_failed_total{@}[1h]))', "{{kind}}")]),
        ("Time without progress", "s",
         [('max by (kind) (dfc_jobs_stalled_seconds{@})', "{{kind}}")]),
        "Scrubs and repairs",
        ("Age of the last scrub", "s", [('max(dfc_scrub_age_seconds{@})', "age")]),
        ("Read by scrubs", "Bps", [('sum(rate(dfc_scrub_bytes_total{@}[$interval]))', "bytes")]),
        ("Found and mended", "short",
         [('sum by (kind) (increase(dfc_scrub_found_total{@}[1h]))', "found: {{kind}}"),
          ('sum(increase(dfc_copies_mended_total{@}[1h]))', "mended copies")]),
        "Sorts",
        ("Records by phase", "short",
         [('sum by (phase) (rate(dfc_sort_records_total{@}[$interval]))', "{{phase}}")]),
        ("Bytes by phase", "Bps",
         [('sum by (phase) (rate(dfc_sort_bytes_total{@}[$interval]))', "{{phase}}")]),
        "Rings",
        ("Samples", "short",
         [('sum(rate(dfc_ring_pushed_samples_total{@}[$interval]))', "pushed"),
          ('sum(rate(dfc_ring_read_samples_total{@}[$interval]))', "read"),
          ('sum(rate(dfc_ring_dropped_samples_total{@}[$interval]))', "dropped")]),
        ("Refused and failed", "short",
         [('sum(rate(dfc_ring_refused_total{@}[$interval]))', "pushes into a full ring"),
          ('sum(rate(dfc_ring_gone_total{@}[$interval]))', "reads that were too slow"),
          ('sum(rate(dfc_ring_lost_reads_total{@}[$interval]))', "reads of lost samples"),
          ('sum(rate(dfc_ring_failed_steps_total{@}[$interval]))', "steps")]),
        ("Generations a second", "short",
         [('sum(rate(dfc_ring_swaps_total{@}[$interval]))', "swaps")]),
        ("Slowest 1 % of swaps", "s",
         [('histogram_quantile(0.99, sum by (le) (rate(dfc_ring_swap_seconds_bucket{@}[$interval])))',
           "swap")]),
        ("Samples in no generation", "short",
         [('sum by (node) (dfc_ring_waiting_samples{@})', "{{node}}")]),
        ("Rings, groups, full rings that wait", "short",
         [('sum(dfc_ring_kept{@})', "rings"), ('sum(dfc_ring_groups{@})', "groups"),
          ('sum(dfc_ring_held{@})', "held")]),
        ("Bytes", "bytes", [('sum by (node) (dfc_ring_bytes{@})', "{{node}}")]),
    ]),
    "backends": ("dfc: backends", [
        "Requests",
        ("Requests and repetitions", "reqps",
         [('sum(rate(dfc_backend_requests_total{@}[$interval]))', "requests"),
          ('sum(rate(dfc_backend_retries_total{@}[$interval]))', "repeated")]),
        ("Waiting for an overloaded backend", "short", [('sum(dfc_backend_waiting{@})', "requests")]),
        ("Fetched", "Bps", [('sum(rate(dfc_cold_fetch_bytes_total{@}[$interval]))', "bytes")]),
        "Writes",
        ("Sent to backends", "reqps",
         [('sum by (outcome) (rate(dfc_cold_write_total{@}[$interval]))', "{{outcome}}")]),
        ("Waiting uploads", "short", [('sum by (node) (dfc_back_waiting{@})', "{{node}}"),
                                      ('sum by (node) (dfc_back_stuck{@})', "{{node}} stuck")]),
        ("Age of the oldest waiting upload", "s",
         [('max by (node) (dfc_back_oldest_seconds{@})', "{{node}}")]),
    ]),
}


def variable(name, query, multi):
    return {"name": name, "type": "query", "label": name, "refresh": 2, "sort": 1,
            "datasource": {"type": "prometheus", "uid": "${datasource}"}, "multi": multi,
            "includeAll": multi, "query": {"query": query, "refId": name}, "definition": query}


def expression(text):
    """@ are the labels that choose a cluster, @n those that choose nodes of it, too."""
    text = text.replace("@n", '@,node=~"$node"').replace("@", 'cluster="$cluster"')
    return text.replace("$interval", "$__rate_interval")


def panel(number, place, row):
    title, unit, queries = row
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {"id": number, "type": "timeseries", "title": title, "datasource": source,
            "gridPos": place,
            "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
            "options": {"legend": {"displayMode": "list", "placement": "bottom",
                                   "showLegend": True},
                        "tooltip": {"mode": "multi", "sort": "desc"}},
            "targets": [{"refId": chr(ord("A") + i), "datasource": source, "expr": expression(e),
                         "legendFormat": legend} for i, (e, legend) in enumerate(queries)]}


def panels(rows):
    x = y = 0
    made = []
    for number, row in enumerate(rows, 1):
        if isinstance(row, str):
            y += HEIGHT if x else 0
            made.append({"id": number, "type": "row", "title": row, "collapsed": False,
                         "panels": [], "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}})
            x, y = 0, y + 1
            continue
        made.append(panel(number, {"x": x, "y": y, "w": WIDTH, "h": HEIGHT}, row))
        x += WIDTH
        if x == COLUMNS:
            x, y = 0, y + HEIGHT
    return made


def dashboard(name, title, rows):
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "source"}
    return {"uid": f"dfc-{name}", "title": title, "tags": ["dfc"], "schemaVersion": SCHEMA,
            "editable": True, "refresh": "30s", "time": {"from": "now-6h", "to": "now"},
            "timezone": "browser", "panels": panels(rows),
            "templating": {"list": [
                source, variable("cluster", "label_values(dfc_build_info, cluster)", False),
                variable("node", 'label_values(dfc_build_info{cluster="$cluster"}, node)', True)]}}


def texts():
    """{file name: content}"""
    return {f"dfc-{name}.json": json.dumps(dashboard(name, title, rows), indent=1) + "\n"
            for name, (title, rows) in DASHBOARDS.items()}


def main(directory):
    os.makedirs(directory, exist_ok=True)
    for name, text in texts().items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "grafana"))
