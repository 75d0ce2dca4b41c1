#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn push` to a real Prometheus and a real VictoriaMetrics: what they answer to PromQL is what the report says."""

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import cairn_test as t
from commanded import Commanded
from ports import free_port

t.need("curl")


def ask(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read()
    except (urllib.error.URLError, OSError):
        return None


def query(url, text):
    answer = ask(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': text})}")
    return json.loads(answer)["data"]["result"] if answer else []


def check_server(name, argv, port):
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not t.wait_until(lambda: ask(url + "/api/v1/query?query=1"), pause=0.1):
            return
        with Commanded(f"{name}.cairn") as program:
            program.do("early 1000", "late 500", "again 5 800")
            found = t.report(program.pid)
            for _ in range(2):
                result = t.run_cairn("push", program.pid, "--to", url, "-f", "prometheus", "--once", "--label", "env=test",
                                     env={"XDG_STATE_HOME": os.getcwd()})
                t.check_equal(f"{name}: {result.err.decode()}", result.status, 0)
            held = f'cairn_inuse_bytes{{env="test",pid="{program.pid}"}}'
            series, = t.wait_until(lambda: query(url, held), pause=0.1) or [None]
            if not t.check(series, f"{name}: {held} is known"):
                return
            t.check_equal(f"{name}: held", series["value"][1], str(found["at_exit"]["bytes"]))
            where = ("cgroup", "container_id", "pod_uid")  # as far as this machine has them
            t.check_equal(f"{name}: labels", {key: one for key, one in series["metric"].items() if key not in where},
                          {"__name__": "cairn_inuse_bytes", "env": "test", "instance": os.uname().nodename, "job": "cairn",
                           "name": "commands", "pid": program.pid})
            sums = query(url, "sum by (env) (cairn_allocated_bytes_total - cairn_inuse_bytes)")
            wanted = found["totals"]["allocated_bytes"] - found["at_exit"]["bytes"]
            t.check_equal(f"{name}: PromQL", [(one["metric"], one["value"][1]) for one in sums], [({"env": "test"}, str(wanted))])
    finally:
        server.terminate()
        server.wait()


PORT = free_port()
if shutil.which("prometheus"):
    with open("prometheus.yml", "w", encoding="ascii") as file:
        file.write("global: {scrape_interval: 1h}\n")
    check_server("prometheus", ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=prometheus.data",
                                f"--web.listen-address=127.0.0.1:{PORT}", "--web.enable-remote-write-receiver"], PORT)
else:
    t.skip_part("no prometheus")
if shutil.which("victoria-metrics"):
    check_server("victoria-metrics", ["victoria-metrics", "-storageDataPath=victoria.data", f"-httpListenAddr=127.0.0.1:{PORT}",
                                      "-search.latencyOffset=0s"], PORT)
else:
    t.skip_part("no victoria-metrics")
t.finish()
