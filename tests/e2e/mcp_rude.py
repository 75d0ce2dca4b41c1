#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn mcp and clients that send garbage, flood it, do not listen, or disappear: correct errors, bounded memory, a clean end,
nothing left behind."""

import json
import os
import pathlib

import cairn_test as t
from mcp_client import META, Client

MEMORY_KIB = 64 << 10
PLACE = pathlib.Path("root").resolve()


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def is_gone(pid):
    return t.is_in_state(pid, "ZX") or not pathlib.Path(f"/proc/{pid}").exists()


def check_garbage():
    good = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    cases = [(b"{", -32700), (b"\x00\xff\xfe", -32700), (b'{"a":1,"a":2}', -32700), (b'"\xc3"', -32700), (b"nonsense " * 1000, -32700),
             (b'{"id":' * 5000, -32700), (b"[" * 100000, -32700), (b"1e999", -32700), (b"[]", -32600), (b"3", -32600), (b"null", -32600),
             (b"{}", -32600), (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b"x" * (2 << 20), -32600)]
    cases += [(json.dumps({**good, **change}).encode(), code) for change, code in (
        ({"jsonrpc": "1.0"}, -32600), ({"method": 3}, -32600), ({"method": None}, -32600), ({"id": None}, -32600), ({"id": [1]}, -32600),
        ({"id": 1.5}, -32600), ({"params": []}, -32600), ({"params": 3}, -32600), ({"method": "\u202e" * 200}, -32601),
        ({"method": "resources/read", "params": {"_meta": META}}, -32602),
        ({"method": "tools/call", "params": {"_meta": META, "name": "é" * 300}}, -32602))]
    with Client(cwd=PLACE) as client:
        for line, code in cases:
            client.send_bytes(line + b"\n")
            answer = client.read()
            t.check_equal(f"{line[:60]}", answer and answer.get("error", {}).get("code"), code)
        # whoever asks waits for an answer with its number
        asked = b'{"jsonrpc":"2.0","params":{"name":"top","arguments":{"recording":"a%s"},"id":3},"method":"tools/call","id":%s}'
        for bad in (b"\\u0000", b"\\ud800", b"\xff", b'","x":1,"x":"'):
            for number, told in ((b"77", 77), (b'"of text"', "of text"), (b"[1]", None), (b'"\\u0000"', None)):
                client.send_bytes(asked % (bad, number) + b"\n")
                answer = client.read()
                t.check_equal(f"{bad} {number}", (answer and answer["id"], answer and answer["error"]["code"]), (told, -32700))
        for silent in (b"\n", b"  \t\r\n", b'{"jsonrpc":"2.0","id":5,"result":{}}\n', b'{"jsonrpc":"2.0","method":"notifications/what"}\n',
                       b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"record"}}\n'):
            client.send_bytes(silent)
        t.check("result" in client.request("tools/list"), "it goes on after garbage")
        t.check(resident_kib(client.server.pid) < MEMORY_KIB, "memory after garbage")
    with Client(cwd=PLACE) as client:
        client.send_bytes(json.dumps({**good, "params": {"_meta": META}}).encode())
        client.server.stdin.close()
        t.check_equal("a message without an end", client.read().get("id"), 1)


def check_batch():
    with Client(cwd=PLACE) as client:
        client.request("initialize", {"protocolVersion": "2025-03-26"}, meta={})
        client.send([{"jsonrpc": "2.0", "id": "a", "method": "ping"}, 3, {"jsonrpc": "2.0", "id": "b", "method": "ping"}])
        t.check_equal("a batch", [each.get("id") for each in (client.read(), client.read(), client.read())], ["a", None, "b"])


def check_flood():
    """Far more questions at once than are answered at once: each gets an answer, or hears that it is too many."""
    count = 300
    with Client(cwd=PLACE) as client:
        numbers = [client.ask("tools/call", {"name": "leaks", "arguments": {"recording": "one.cairn"}}) for _ in range(count)]
        answers = [client.answer(number) for number in numbers]
        answered = [each for each in answers if "result" in each]
        refused = [each["error"]["message"] for each in answers if "error" in each]
        t.check(len(answered) >= 32 and len(answered) + len(refused) == count, f"{len(answered)} answered, {len(refused)} refused")
        t.check(all("too many questions wait" in text for text in refused), f"{set(refused)}")
        t.check(all(not each["result"]["isError"] for each in answered), "wrong answers under load")
        t.check_equal("no process is left", t.children_of(client.server.pid), [])


def check_deaf():
    """A client that writes and does not read: the server stops reading, and both go on when it reads."""
    count = 20000
    line = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {"_meta": META}}).encode() + b"\n"
    with Client(cwd=PLACE) as client:
        os.set_blocking(client.server.stdin.fileno(), False)
        sent, data = 0, line * count
        stalled = 0
        while stalled < 20:
            try:
                sent += os.write(client.server.stdin.fileno(), data[sent:])
            except BlockingIOError:
                stalled += 1
                t.wait_until(lambda: t.is_in_state(client.server.pid, "S"))
        t.check(sent < len(data), "the server reads on though nobody listens")
        t.check(resident_kib(client.server.pid) < MEMORY_KIB, "memory for what nobody reads")
        os.set_blocking(client.server.stdin.fileno(), True)
        whole = sent // len(line)
        answers = 0
        while answers < whole and client.read() is not None:
            answers += 1
        t.check_equal("answers once it listens", answers, whole)


def running_child(client):
    """Begins to record a program that does not end; its pid."""
    path = PLACE / "pid"
    path.unlink(missing_ok=True)
    client.ask("tools/call", {"name": "record", "arguments": {"command": ["sh", "-c", "echo $$ >pid; exec sleep 1000"]}})
    t.wait_until(lambda: path.exists() and path.read_text().strip())
    pid = int(path.read_text())
    # earlier there may be nothing to record yet
    t.wait_until(lambda: t.is_called(pid, "sleep") and t.is_in_state(pid, "S"))
    return pid


def check_disappears():
    """However a client goes: the server ends, what it started ends, what was recorded is saved."""
    def close_input(client):
        client.server.stdin.close()

    def close_output(client):
        client.selector.unregister(client.server.stdout)
        client.server.stdout.close()
        client.ask("tools/list")

    def terminate(client):
        client.server.terminate()
        client.is_clean = False

    def kill(client):
        client.server.kill()
        client.is_clean = False

    for way in (close_input, close_output, terminate, kill):
        with Client("--allow-run", cwd=PLACE) as client:
            pid = running_child(client)
            way(client)
            t.wait_until(lambda: client.server.poll() is not None)
            t.wait_until(lambda: is_gone(pid))
            t.wait_until(lambda: (PLACE / "sh.cairn").is_file())
            (PLACE / "sh.cairn").unlink()


def check_stubborn():
    """A program that ignores SIGTERM is killed when its question is cancelled."""
    with Client("--allow-run", cwd=PLACE) as client:
        command = ["sh", "-c", "trap '' TERM; echo $$ >pid; while :; do sleep 1000; done"]
        (PLACE / "pid").unlink(missing_ok=True)
        number = client.ask("tools/call", {"name": "record", "arguments": {"command": command}})
        t.wait_until(lambda: (PLACE / "pid").exists() and (PLACE / "pid").read_text().strip())
        pid = int((PLACE / "pid").read_text())
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        t.wait_until(lambda: is_gone(pid))
        t.wait_until(lambda: not t.children_of(client.server.pid))
        t.check_equal("what it did is saved", t.run_cairn("report", str(PLACE / "sh.cairn")).status, 0)
        t.check("result" in client.request("tools/list"), "it goes on")


PLACE.mkdir()
t.check_equal("a recording", t.run([t.CAIRN, "run", "-q", "-o", str(PLACE / "one.cairn"), "true"]).status, 0)
check_garbage()
check_batch()
check_flood()
check_deaf()
check_disappears()
check_stubborn()
t.finish()
