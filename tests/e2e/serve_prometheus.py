#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes `cairn serve`: what it has is what the report says, and an alert fires. The rule of
docs/howto/serve.md fires of a heap that grows, and not of one that does not (promtool test rules)."""

import json
import pathlib
import re
import shutil
import subprocess
import textwrap
import urllib.error
import urllib.request

import cairn_test as t
from commanded import Commanded
from ports import free_port
from served import Server

CONFIG = """
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [fires.yml]
scrape_configs: [{job_name: heap, static_configs: [{targets: ["127.0.0.1:PORT"]}]}]
"""
FIRES = 'groups: [{name: heap, rules: [{alert: Held, expr: "cairn_inuse_bytes > 100000"}]}]\n'
TESTS = """
rule_files: [grows.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'cairn_inuse_bytes{job="leaks"}', values: '5000000+2000000x300'}
      - {series: 'cairn_inuse_bytes{job="waves"}', values: '50000000x300'}
      - {series: 'cairn_inuse_bytes{name="shop",pid="1"}', values: '5000000+2000000x39'}
      - {series: 'cairn_inuse_bytes{name="shop",pid="2"}', values: '_x39 5000000+2000000x39'}
      - {series: 'cairn_inuse_bytes{name="shop",pid="3"}', values: '_x79 5000000+2000000x39'}
      - {series: 'cairn_inuse_bytes{name="calm",pid="4"}', values: '50000000x300'}
    alert_rule_test:
      - {alertname: HeapGrowsAgain, eval_time: 100m, exp_alerts: [{exp_labels: {name: shop}}, {exp_labels: {}}]}
      - {alertname: HeapGrows, eval_time: 1h, exp_alerts: []}
      - {alertname: HeapGrows, eval_time: 2h, exp_alerts: [{exp_labels: {job: leaks}}]}
"""


def ask(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.loads(answer.read())["data"]
    except (urllib.error.URLError, OSError):
        return {}


def check_scraped():
    with Commanded("scraped.cairn") as program:
        program.do("early 1000", "late 150000", "free 0")
        with Server(program.pid) as server:
            pathlib.Path("prometheus.yml").write_text(CONFIG.replace("127.0.0.1:PORT", server.address), encoding="ascii")
            pathlib.Path("fires.yml").write_text(FIRES, encoding="ascii")
            url = f"http://127.0.0.1:{free_port()}"
            prometheus = subprocess.Popen(
                ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=prometheus.data",
                 f"--web.listen-address={url.removeprefix('http://')}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                known = lambda: ask(url + "/api/v1/query?query=cairn_inuse_bytes").get("result")
                series, = t.wait_until(known, pause=0.1) or [None]
                t.check_equal("held", series and series["value"][1], str(t.report(program.pid)["at_exit"]["bytes"]))
                alerts = t.wait_until(lambda: ask(url + "/api/v1/alerts").get("alerts"), pause=0.1) or [{}]
                t.check_equal("the alert", [(one["labels"]["alertname"], one["state"]) for one in alerts], [("Held", "firing")])
            finally:
                prometheus.terminate()
                prometheus.wait()


def check_rule():
    page = (t.SOURCE / "docs/howto/serve.md").read_text(encoding="utf-8")
    rule = textwrap.dedent(re.search(r"^    - alert: HeapGrows\n(?:    .*\n)+", page, re.M)[0])
    pathlib.Path("grows.yml").write_text("groups:\n- name: heap\n  rules:\n" + textwrap.indent(rule, "  "), encoding="ascii")
    pathlib.Path("tests.yml").write_text(TESTS, encoding="ascii")
    for words in (["check", "rules", "grows.yml"], ["test", "rules", "tests.yml"]):
        result = t.run(["promtool", *words])
        t.check_equal(f"promtool {words}: {result.out}{result.err}", result.status, 0)


if shutil.which("prometheus") and shutil.which("promtool"):
    check_rule()
    check_scraped()
else:
    t.skip_part("prometheus (Debian's prometheus) is not installed")
t.finish()
