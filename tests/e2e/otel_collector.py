#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn push` to a real OpenTelemetry Collector, built from the sources that Debian's sid packages
(tests/tools/otel_collector.go): it takes the profiles, and prints the values, names and labels that the report has."""

import pathlib
import re
import shutil
import socket
import subprocess

import cairn_test as t
import chroots
from commanded import Commanded
from ports import free_port

t.need("curl")
PACKAGES = ["golang-go", "golang-opentelemetry-collector-dev"]
CONFIG = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:PORT"}}}}
exporters: {debug: {verbosity: detailed, use_internal_logger: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [debug]}}
"""
SOURCE = t.SOURCE / "tests/tools/otel_collector.go"


def build(root):
    """The collector's program inside the chroot, made again when its source is another one."""
    place = root / "tmp/otel"
    place.mkdir(exist_ok=True)
    made = place / "main.go"
    if not (place / "collector").exists() or made.read_bytes() != SOURCE.read_bytes():
        shutil.copy(SOURCE, made)
        result = t.run(chroots.inside(root, ["GO111MODULE=off", "GOPATH=/usr/share/gocode", "GOCACHE=/tmp/otel/cache",
                                             "go", "build", "-o", "/tmp/otel/collector", "/tmp/otel/main.go"]))
        if not t.check_equal(f"go build: {result.err.decode()}", result.status, 0):
            return None
    return place


def answers(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Collector:
    """`with Collector(root, place) as collector`: .printed() is what it has printed."""

    def __init__(self, root, place):
        port = free_port()
        (place / "config.yaml").write_text(CONFIG.replace("PORT", str(port)), encoding="ascii")
        self.url, self.path = f"http://127.0.0.1:{port}", pathlib.Path("collector.out")
        with self.path.open("wb") as out, open("collector.err", "wb") as err:
            words = ["/tmp/otel/collector", "--config=/tmp/otel/config.yaml", "--feature-gates=service.profilesSupport"]
            self.process = subprocess.Popen(chroots.inside(root, words), stdout=out, stderr=err)
        t.wait_until(lambda: answers(port) or self.process.poll() is not None, pause=0.1)

    def __enter__(self):
        return self

    def printed(self):
        return self.path.read_text(encoding="utf-8", errors="replace")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def sums(printed):
    """Of each profile of one request: alloc_objects, alloc_space, inuse_objects, inuse_space."""
    return [sum(map(int, re.findall(r"Values: \[(\d+)\]", part))) for part in re.split(r"^Profile #\d+$", printed, flags=re.M)[1:]]


def check_takes(collector):
    with Commanded("collected.cairn") as program:
        program.do("early 1000", "late 500", "again 3 700", "free 0")
        pid = program.pid
        found = t.report(pid)
        result = t.run_cairn("push", pid, "--to", collector.url, "-f", "otlp", "--once", "--every", "1s", "--label", "env=test")
        t.check_equal(f"push: {result.err.decode()}", result.status, 0)
        t.wait_until(lambda: len(sums(collector.printed())) == 4, pause=0.1)
        printed = collector.printed()
        t.check_equal("held: blocks, bytes", sums(printed)[2:], [found["at_exit"]["blocks"], found["at_exit"]["bytes"]])
        for text in (f"process.pid: Str({pid})", "service.name: Str(commands)", "env: Str(test)", "InstrumentationScope cairn",
                     "main", "late"):
            t.check(text in printed, f"the collector prints {text}")
    collector.path.write_bytes(b"")
    result = t.run_cairn("push", "collected.cairn", "--to", collector.url, "-f", "otlp")
    t.check_equal(f"a recording: {result.err.decode()}", result.status, 0)
    found = t.report("collected.cairn")
    t.wait_until(lambda: len(sums(collector.printed())) == 4, pause=0.1)
    t.check_equal("all that it allocated and left", sums(collector.printed()),
                  [found["totals"]["allocations"], found["totals"]["allocated_bytes"], found["at_exit"]["blocks"],
                   found["at_exit"]["bytes"]])


root = chroots.find("sid", "otel", PACKAGES)
place = root and build(root)
if place:
    with Collector(root, place) as collector:
        check_takes(collector)
t.finish()
