#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/kubernetes, prometheus and grafana: each metric is one of `cairn serve`, each command and variable one of this
cairn; rules and expressions are Prometheus' own language (promtool), the rules that docs/howto/serve.md shows are those
of the file, and each fires of what it is for and not else. CAIRN_LONG=1 compares the manifests with the schemas and types
of Kubernetes, which npm brings."""

import json
import pathlib
import re
import shutil

import cairn_test as t

EXAMPLES = t.SOURCE / "examples"
RULES = EXAMPLES / "prometheus/cairn.rules.yml"
BOARD = json.loads((EXAMPLES / "grafana/cairn.json").read_text("utf-8"))
NAMES = re.compile(r"\b(?:cairn|process)_[a-z_]+\b")
SERIES = """
rule_files: [RULES]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'cairn_cgroup_used_bytes{cgroup="/full"}', values: '95x60'}
      - {series: 'cairn_cgroup_limit_bytes{cgroup="/full"}', values: '100x60'}
      - {series: 'cairn_cgroup_used_bytes{cgroup="/calm"}', values: '80x60'}
      - {series: 'cairn_cgroup_limit_bytes{cgroup="/calm"}', values: '100x60'}
      - {series: 'cairn_cgroup_oom_kills_total{cgroup="/full"}', values: '0x20 1x40'}
      - {series: 'cairn_cgroup_oom_kills_total{cgroup="/calm"}', values: '3x60'}
      - {series: 'cairn_sample_slowdowns_total{name="busy",pid="1"}', values: '0+1x60'}
      - {series: 'cairn_inuse_error_bytes{name="busy",pid="1"}', values: '50x60'}
      - {series: 'cairn_inuse_bytes{name="busy",pid="1"}', values: '100x60'}
      - {series: 'cairn_sample_slowdowns_total{name="calm",pid="2"}', values: '0+1x60'}
      - {series: 'cairn_inuse_error_bytes{name="calm",pid="2"}', values: '10x60'}
      - {series: 'cairn_inuse_bytes{name="calm",pid="2"}', values: '100x60'}
    promql_expr_test:
      - expr: sort(count by (alertname, cgroup, name) (ALERTS{alertstate="firing"}))
        eval_time: 55m
        exp_samples:
          - {labels: '{alertname="ContainerNearItsLimit", cgroup="/full"}', value: 1}
          - {labels: '{alertname="SamplesAreRare", name="busy"}', value: 1}
      - expr: count by (cgroup) (ALERTS{alertname="ContainerRanOutOfMemory"})
        eval_time: 25m
        exp_samples: [{labels: '{cgroup="/full"}', value: 1}]
"""


def known_metrics():
    page = (t.SOURCE / "docs/howto/serve.md").read_text("utf-8")
    table = page[page.index("## Metrics"):page.index("[metrics.md]")]
    return {name for row in table.splitlines() if row.startswith("| `") for name in NAMES.findall(row.split("|")[1])}


def expressions():
    """What the dashboard asks, with Grafana's variables filled in."""
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "1m").replace("$name", ".*")


def check_metrics():
    known = known_metrics()
    asked = {"rules": RULES.read_text("utf-8"), "dashboard": "\n".join([*expressions(), BOARD["templating"]["list"][1]["query"]["query"]])}
    for what, text in asked.items():
        found = set(NAMES.findall(text))
        t.check(len(found) >= 5 and found <= known, f"{what}: no such metrics: {sorted(found - known)}")
    ids = [panel["id"] for panel in BOARD["panels"]]
    t.check_equal("dashboard: numbers of panels", sorted(set(ids)), ids)


def check_board_layout():
    """No panel lies over another, or beyond the 24 columns of a dashboard."""
    taken = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        t.check(not cells & taken and max(x for x, _ in cells) < 24, f"dashboard: {panel['title']}: {at}")
        taken |= cells


def check_promtool():
    if not shutil.which("promtool"):
        return t.skip_part("promtool (Debian's prometheus) is not installed")
    rules = [f"      - record: board:{i}\n        expr: '{expr}'\n" for i, expr in enumerate(expressions())]
    pathlib.Path("board.yml").write_text("groups:\n  - name: board\n    rules:\n" + "".join(rules), "utf-8")
    pathlib.Path("tests.yml").write_text(SERIES.replace("RULES", str(RULES)), "utf-8")
    for words in (["check", "rules", RULES], ["check", "rules", "board.yml"], ["test", "rules", "tests.yml"]):
        result = t.run(["promtool", *words])
        t.check_equal(f"promtool {words}: {result.out.decode()}{result.err.decode()}", result.status, 0)


def check_page():
    """The page has the rules' expressions as they are in the file."""
    page = (t.SOURCE / "docs/howto/serve.md").read_text("utf-8")
    said = dict(re.findall(r"^    - alert: (\w+)\n      expr: (.*)$", page, re.M))
    there = dict(re.findall(r"- alert: (\w+)\n +expr: (.*)$", RULES.read_text("utf-8"), re.M))
    t.check(said and said.items() <= there.items(), f"serve.md: {said}")


def check_commands():
    for name in ("sidecar", "daemonset"):
        text = (EXAMPLES / f"kubernetes/{name}.yaml").read_text("utf-8")
        for line in re.findall(r"args: \[(.*)\]", text):
            command, *words = [word.strip(' "') for word in line.split(",")]
            told = t.run_cairn(command, "--help=all").out.decode()
            options = [word for word in words if word.startswith("-")]
            t.check(options and all(re.search(rf"{option}\b", told) for option in options), f"{name}: cairn {command} {options}")
    text = (EXAMPLES / "kubernetes/sidecar.yaml").read_text("utf-8")
    variables = dict(re.findall(r'name: (CAIRN_\w+), value: "([^"]*)"', text))
    told = dict(re.findall(r'ENV (CAIRN_\w+)="(.*)"', t.run_cairn("env", "--preset", "production", "--for", "docker").out.decode()))
    t.check_equal("sidecar: variables of the preset", variables, told)


def check_schemas():
    if not t.IS_LONG:
        return
    if not shutil.which("npm"):
        return t.skip_part("npm is not installed")
    place = shutil.copytree(t.SOURCE / "tests/deployed", pathlib.Path("schemas").resolve())
    made = t.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=place, env={"HOME": str(place)})
    if made.status:
        return t.skip_part(f"npm cannot install the schemas: {made.err.decode()[-200:]}")
    right = t.run(["node", "check.mjs", EXAMPLES / "kubernetes"], cwd=place)
    t.check_equal(f"schemas: {right.err.decode()}", (right.status, right.out.decode()), (0, ""))
    broken = pathlib.Path("broken").resolve()
    broken.mkdir()
    for path in (EXAMPLES / "kubernetes").iterdir():
        text = path.read_text("utf-8").replace("allowPrivilegeEscalation", "allowEscalation").replace("value: /tmp", "values: /tmp")
        (broken / path.name).write_text(text, "utf-8")
    said = t.run(["node", "check.mjs", broken], cwd=place).out.decode()
    t.check_equal("schemas: what is wrong is found", {line.split(":")[0] for line in said.splitlines()},
                  {"sidecar.yaml", "daemonset.yaml", "ephemeral.yaml"})


check_metrics()
check_board_layout()
check_promtool()
check_page()
check_commands()
check_schemas()
t.finish()
