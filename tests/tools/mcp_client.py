# SPDX-License-Identifier: Apache-2.0
"""A client of cairn mcp that shares no code with it: sends what a test likes, and reads lines."""

import json
import selectors
import subprocess

import cairn_test as t

MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}}
LIMIT = 4096


class Client:
    """`with Client(...) as client`: the server has ended at the end, cleanly unless a test says otherwise."""

    def __init__(self, *options, cwd=None, env=None):
        self.server = subprocess.Popen([t.CAIRN, "mcp", *map(str, options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, cwd=cwd, env=t.environment(env), bufsize=0)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.server.stdout, selectors.EVENT_READ)
        self.rest, self.next_id, self.notifications, self.early = b"", 1, [], {}
        self.is_clean = True

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            self.server.kill()
        if not self.server.stdin.closed:
            self.server.stdin.close()
        status = self.server.wait(t.PATIENCE_S)
        errors = self.server.stderr.read()
        self.server.stdout.close()
        self.server.stderr.close()
        if not kind and self.is_clean:
            t.check_equal("status and messages of the server", (status, errors), (0, b""))

    def send_bytes(self, data):
        self.server.stdin.write(data)

    def send(self, message):
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def read(self, seconds=t.PATIENCE_S):
        """The next message; None at the end of the stream, or when nothing comes."""
        while b"\n" not in self.rest:
            if not self.selector.select(seconds):
                return None
            data = self.server.stdout.read(1 << 16)
            if not data:
                return None
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        message = json.loads(line)
        t.check_equal("jsonrpc", message.get("jsonrpc"), "2.0")
        return message

    def ask(self, method, params=None, meta=None, number=None):
        """Sends a request; returns its id."""
        number = self.next_id if number is None else number
        self.next_id += 1
        meta = META if meta is None else meta
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": {**(params or {}), "_meta": meta}})
        return number

    def answer(self, number):
        """The answer to an id; notifications and others' answers are kept."""
        while number not in self.early:
            message = self.read()
            if message is None:
                t.check(False, f"no answer to {number}")
                return {}
            if "id" in message:
                self.early[message["id"]] = message
            else:
                self.notifications.append(message)
        return self.early.pop(number)

    def request(self, method, params=None, meta=None):
        return self.answer(self.ask(method, params, meta))

    def call(self, tool, meta=None, **arguments):
        """(text, whether it is an error) of a tool's answer."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments}, meta)
        return text_of(answer)


def text_of(answer):
    result = answer.get("result", {})
    if "content" not in result:
        t.check(False, f"no content: {answer}")
        return "", True
    text = result["content"][0]["text"]
    t.check(len(text.encode()) < LIMIT, f"{len(text.encode())} bytes: {text[:80]}")
    return text, result["isError"]
