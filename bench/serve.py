#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cairn serve` and `cairn push` cost: the processor time of redis-server for the same requests, recorded alone,
while it is served, scraped each second, asked for a profile every five, and followed by a live page, and while its
profile is pushed each second; in turns. And what a server for many processes takes.
bench/serve.py [--requests N] [--rounds N] [--many N] [--build-dir DIR]"""

import argparse
import http.server
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests/tools"))
from ports import free_port  # noqa: E402

IDLE_S, SCRAPES = 20, 10
MANY = """import subprocess, sys
all = [subprocess.Popen(["sleep", "600"]) for _ in range(int(sys.argv[1]))]
print("up", flush=True)
sys.stdin.read()
for one in all: one.kill()
"""


def processor_s(pid):
    """Its own time, and that of its children that have ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return int(children.read().split()[0])


class Served:
    """A server with a scraper, a fetcher of profiles and a live page that takes what it can get."""

    def __init__(self, cairn, *words):
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen([cairn, "serve", *words, "--listen", self.url.removeprefix("http://")],
                                        stderr=subprocess.PIPE, text=True)
        self.process.stderr.readline()
        self.is_over = threading.Event()
        self.threads = []

    def ask(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            answer.read()
            return int(answer.headers.get("X-Next-Milliseconds", 0)) / 1000

    def again(self, path, pause):
        while not self.is_over.is_set():
            self.is_over.wait(max(pause, self.ask(path)))

    def be_asked(self):
        for path, pause in (("/metrics", 1), ("/debug/pprof/heap", 5), ("/live.data", 1)):
            self.threads.append(threading.Thread(target=self.again, args=(path, pause)))
            self.threads[-1].start()

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        took = processor_s(self.process.pid)
        self.process.terminate()
        self.process.wait()
        return took


class Taker(http.server.BaseHTTPRequestHandler):
    """An engine that takes everything."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Pushed:
    """A push of each second's profile, with its curl."""

    def __init__(self, cairn, pid):
        self.engine = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker)
        threading.Thread(target=self.engine.serve_forever).start()
        url = f"http://127.0.0.1:{self.engine.server_port}"
        self.process = subprocess.Popen([cairn, "push", pid, "--to", url, "--format", "pyroscope", "--every", "1s"],
                                        stderr=subprocess.PIPE, text=True)
        self.process.stderr.readline()

    def stop(self):
        took = processor_s(self.process.pid)
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()
        self.engine.shutdown()
        self.engine.server_close()
        return took


class Alone:
    def __init__(self, *_):
        pass

    def stop(self):
        return 0


class Asked(Served):
    def __init__(self, cairn, pid):
        super().__init__(cairn, pid)
        self.be_asked()


BESIDE = {"alone": Alone, "served": Asked, "pushed": Pushed}


def measure_redis(cairn, options, scratch):
    port = free_port()
    argv = [cairn, "run", "-q", "-o", scratch + "/redis.cairn", "--", "redis-server", "--port", str(port), "--save", "",
            "--appendonly", "no"]
    load = ["redis-benchmark", "-p", str(port), "-t", "set,lpush,sadd", "-n", str(options.requests), "-r", "100000", "-d",
            "100", "-q"]
    used, took = {name: [] for name in BESIDE}, {name: [] for name in BESIDE}
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as run:
        time.sleep(1)
        redis = child_of(run.pid)
        for turn in range(options.rounds + 1):
            for name, kind in BESIDE.items():
                other = kind(cairn, str(redis))
                before, began = processor_s(redis), time.monotonic()
                subprocess.run(load, stdout=subprocess.DEVNULL, check=True)
                seconds, elapsed = processor_s(redis) - before, time.monotonic() - began
                if turn:  # the first one warms up
                    used[name].append(seconds)
                    took[name].append(other.stop() / elapsed)
                else:
                    other.stop()
        run.terminate()
    alone = statistics.median(used["alone"])
    print(f"redis-server, {options.requests} requests of three kinds: {alone:.2f} s of processor time alone")
    for name in list(BESIDE)[1:]:
        beside = statistics.median(used[name])
        print(f"  {name}: {beside:.2f} s ({beside / alone:.3f}); cairn took {100 * statistics.median(took[name]):.1f} % of a core")


def measure_many(cairn, options, scratch):
    argv = [cairn, "run", "-q", "-o", scratch + "/many.cairn", "--", "python3", "-c", MANY, str(options.many)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        run.stdout.readline()
        time.sleep(2)
        served = Served(cairn, "--all")
        began, before = time.monotonic(), processor_s(served.process.pid)
        time.sleep(IDLE_S)
        idle = (processor_s(served.process.pid) - before) / (time.monotonic() - began)
        before = processor_s(served.process.pid)
        for _ in range(SCRAPES):
            served.ask("/metrics")
        scrape = (processor_s(served.process.pid) - before) / SCRAPES
        resident = resident_mib(served.process.pid)
        served.stop()
        run.stdin.close()
        run.wait()
    print(f"{options.many} recorded processes: {100 * idle:.2f} % of a core, {1000 * scrape:.0f} ms a scrape, {resident:.1f} MiB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default=str(TOP / "build"))
    parser.add_argument("--requests", type=int, default=300000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--many", type=int, default=500)
    options = parser.parse_args()
    cairn = str(pathlib.Path(options.build_dir).resolve() / "cairn")
    with tempfile.TemporaryDirectory() as scratch:
        measure_redis(cairn, options, scratch)
        measure_many(cairn, options, scratch)


if __name__ == "__main__":
    main()
