# SPDX-License-Identifier: Apache-2.0
"""`cairn serve` beside a test, and requests to it."""

import base64
import http.client
import re
import signal
import socket
import subprocess

import cairn_test as t


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=t.PATIENCE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def text(self):
        return self.body.decode()


class Server:
    """`with Server(pid) as server: server.get("/metrics")`; `before`: what runs cairn."""

    def __init__(self, *words, listen="127.0.0.1:0", command="serve", env=None, before=()):
        argv = [*before, t.CAIRN, command, *map(str, words), *(("--listen", listen) if listen else ())]
        self.process = subprocess.Popen(argv, env=t.environment(env), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said = self.process.stderr.readline()
        found = re.search(r" at (http://|unix:)(.*?)/? until Ctrl-C", self.said)
        t.check(found, f"{argv}: {self.said}{'' if found else self.process.stderr.read()}")
        self.is_unix, self.address = found[1] == "unix:", found[2]
        self.url = found[1] + found[2]

    def connect(self):
        if self.is_unix:
            return UnixConnection(self.address)
        return http.client.HTTPConnection(self.address, timeout=t.PATIENCE_S)

    def ask(self, method, path, body=None, **headers):
        connection = self.connect()
        connection.request(method, path, body, headers)
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def metrics(self, path="/metrics"):
        """Values by name and labels."""
        rows = [line.rsplit(" ", 1) for line in self.get(path).text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in rows}

    def raw(self, request):
        """The first line of the answer to bytes that are no good request."""
        with socket.create_connection(self.address.rsplit(":", 1), timeout=t.PATIENCE_S) as connection:
            connection.sendall(request)
            return connection.makefile("rb").readline().decode()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.send_signal(signal.SIGKILL if kind else signal.SIGINT)
        out, err = self.process.communicate(timeout=t.PATIENCE_S)
        if not kind:
            t.check_equal(f"serve ends: {out}{err}", (self.process.returncode, out), (0, ""))


def basic(token):
    return "Basic " + base64.b64encode(f"any:{token}".encode()).decode()
