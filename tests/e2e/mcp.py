#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn mcp: what an agent's client can ask, in both eras of the protocol; that nothing leads out of the roots; commands only
where they are allowed; progress and cancellation."""

import os
import pathlib
import re
import subprocess
import tarfile

import cairn_test as t
from mcp_client import LIMIT, META, MODERN, Client

LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
CAPABILITIES = {"tools": {}, "resources": {}}
PLACE = pathlib.Path("root").resolve()


def unpack():
    """Recordings in a root, and one outside of it."""
    archive = t.SOURCE / "tests/compat/0.2.0/recordings.tar.xz"
    PLACE.mkdir()
    with tarfile.open(archive) as file:
        file.extractall("unpacked", filter="data") if hasattr(tarfile, "data_filter") else file.extractall("unpacked")
    for name in ("exact.cairn", "values.cairn", "processes.cairn"):
        os.rename(f"unpacked/recordings/{name}", PLACE / name)
    pathlib.Path("outside").mkdir()
    os.rename("unpacked/recordings/sampled.cairn", "outside/sampled.cairn")


def check_eras():
    for version, settled in [(version, version) for version in LEGACY] + [("1999-01-01", LEGACY[0])]:
        with Client(cwd=PLACE) as client:
            early = client.request("tools/list", meta={})
            t.check_equal("before initialize", early["error"]["code"], -32602)
            t.check_equal("ping", client.request("ping", meta={})["result"], {})
            result = client.request("initialize", {"protocolVersion": version, "capabilities": {},
                                                   "clientInfo": {"name": "x", "version": "1"}}, meta={})["result"]
            t.check_equal(f"version for {version}", result["protocolVersion"], settled)
            t.check_equal("capabilities", result["capabilities"], CAPABILITIES)
            t.check("resultType" not in result and result["serverInfo"]["name"] == "cairn", f"a legacy result: {result}")
            client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            tools = client.request("tools/list", meta={})["result"]
            t.check("ttlMs" not in tools and len(tools["tools"]) > 10, f"legacy tools/list: {list(tools)}")
            t.check_equal("method of the other era", client.request("server/discover", meta={})["error"]["code"], -32601)
            missing = client.request("resources/read", {"uri": "cairn:///nothing"}, meta={})
            t.check_equal("legacy: no resource", missing["error"]["code"], -32002)
    with Client(cwd=PLACE) as client:
        result = client.request("server/discover")["result"]
        t.check_equal("discover", (result["supportedVersions"], result["capabilities"], result["resultType"]),
                      ([MODERN], CAPABILITIES, "complete"))
        t.check_equal("who it is", result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "cairn")
        wrong = client.request("tools/list", meta={**META, "io.modelcontextprotocol/protocolVersion": "1900-01-01"})
        t.check_equal("unknown version", (wrong["error"]["code"], wrong["error"]["data"]),
                      (-32022, {"supported": [MODERN], "requested": "1900-01-01"}))
        bare = client.request("tools/list", meta={"io.modelcontextprotocol/protocolVersion": MODERN})
        t.check_equal("without capabilities", bare["error"]["code"], -32602)
        for gone in ("ping", "logging/setLevel", "prompts/list", "initialize"):
            t.check_equal(gone, client.request(gone)["error"]["code"], -32601)


def check_tools():
    names = []
    for options in ([], ["--allow-run"]):
        with Client(*options, cwd=PLACE) as client:
            result = client.request("tools/list")["result"]
            t.check(result["ttlMs"] > 0 and result["cacheScope"] == "private", "hints for caches")
            names.append([tool["name"] for tool in result["tools"]])
            for tool in result["tools"]:
                schema = tool["inputSchema"]
                t.check(re.fullmatch(r"[a-z_]+", tool["name"]) and tool["description"], f"a tool: {tool}")
                t.check(schema["type"] == "object" and set(schema["required"]) <= set(schema["properties"]),
                        f"{tool['name']}: {schema}")
            for name, wanted in (("nonsense", -32602), (None, -32602)):
                t.check_equal(f"tool {name}", client.request("tools/call", {"name": name})["error"]["code"], wanted)
            t.check_equal("arguments", client.request("tools/call", {"name": "top", "arguments": 3})["error"]["code"], -32602)
    t.check_equal("with --allow-run", sorted(set(names[1]) - set(names[0])), ["record"])
    with Client(cwd=PLACE) as client:
        for arguments, wanted in (({}, '"recording": is missing'), ({"recording": 3}, '"recording": is to be a text'),
                                  ({"recording": "exact.cairn", "limit": "5"}, '"limit": is to be a whole number'),
                                  ({"recording": "exact.cairn", "group": "stars"}, '"group": one of stacks functions'),
                                  ({"recording": "exact.cairn", "page": 0}, '"page": is to be'),
                                  ({"recording": "exact.cairn", "size": 1}, 'top has no argument "size"'),
                                  ({"recording": "exact.cairn", "function": "("}, "missing closing parenthesis"),
                                  ({"recording": "exact.cairn", "function": "--json"}, "matches nothing")):
            text, is_error = client.call("top", **arguments)
            t.check(is_error and wanted in text, f"{arguments}: {is_error} {text}")
        text, is_error = client.call("record", command=["touch", "ran"])
        t.check(is_error and "--allow-run" in text and not (PLACE / "ran").exists(), text)
        text, is_error = client.call("memory", subject=str(os.getpid()))
        t.check(is_error and "--allow-run" in text, text)


def check_same_words():
    """An answer is what the terminal shows, in pages."""
    env = {"COLUMNS": "100", "TERM": "dumb"}
    t.run([t.CAIRN, "run", "-q", "-o", str(PLACE / "long.cairn"), t.PYTHON, "-c", "import json"])
    with Client(cwd=PLACE) as client:
        for tool, arguments, words in (("leaks", {"recording": "exact.cairn"}, ["leaks", "exact.cairn"]),
                                       ("top", {"recording": "values.cairn", "group": "frees"},
                                        ["report", "--view", "frees", "values.cairn"]),
                                       ("timeline", {"recording": "values.cairn"},
                                        ["report", "--view", "timeline", "values.cairn"]),
                                       ("top", {"recording": "long.cairn", "limit": 30},
                                        ["report", "--view", "stacks", "--top", "30", "long.cairn"]),
                                       ("summary", {"recording": "values.cairn"}, ["report", "values.cairn"])):
            shown = t.run([t.CAIRN, *words], env=env, cwd=PLACE).out.decode()
            pages, page = "", 1
            while True:
                text, is_error = client.call(tool, **arguments, page=page)
                body, _, questions = text.partition("\nask next:\n")
                pages, page = pages + body, page + 1
                if is_error or f'"page":{page}' not in questions:
                    break
            t.check_equal(f"{tool}", pages.rstrip(), shown.rstrip())
            t.check(page > 3 or "long" not in arguments["recording"], f"{tool}: {page - 1} pages")
        long, _ = client.call("top", recording="long.cairn", limit=30)
        t.check('  top {"recording":"long.cairn","limit":30,"page":2}: page 2 of ' in long, f"no second page: {long}")
        text, is_error = client.call("top", recording="long.cairn", page=1000)
        t.check("pages" in text and not is_error, text)
        (PLACE / "long.cairn").unlink()
        text, is_error = client.call("check", recording="exact.cairn", max_peak="1K")
        t.check(not is_error and text.startswith("FAIL program"), text)
        text, is_error = client.call("diff", before="exact.cairn", after="values.cairn", before_at="peak", after_at="exit")
        t.check(not is_error and "make_row" in text, text)


def check_roots():
    """Neither a link nor .. nor a name in a recording leads out, and answers do not tell what is there."""
    outside = pathlib.Path("outside/sampled.cairn").resolve()
    (PLACE / "link.cairn").symlink_to(outside)
    (PLACE / "directory").symlink_to(outside.parent)
    run = PLACE / "run.cairn"
    run.mkdir()
    (run / "sampled.cairn").symlink_to(outside)
    with Client(cwd=PLACE) as client:
        for name in (str(outside), "../outside/sampled.cairn", "link.cairn", "directory/sampled.cairn", "directory",
                     "../outside/nothing.cairn", "/etc/passwd", "/proc/self/fd/0", ""):
            for arguments in ({"recording": name}, {"recording": "exact.cairn", "baseline": name}):
                text, is_error = client.call("leaks", **arguments)
                t.check(is_error and ("there is no such file below" in text or "is not empty" in text), f"{name}: {text}")
        text, is_error = client.call("summary", recording="run.cairn")
        t.check(is_error and "lies outside of the directories" in text and "program" not in text, f"a linked recording: {text}")
        missing = client.request("resources/read", {"uri": f"cairn://{outside}"})
        t.check_equal("a resource", missing["error"]["code"], -32602)
        listed = client.request("resources/list")["result"]["resources"]
        t.check_equal("listed", sorted(each["name"] for each in listed), ["exact.cairn", "processes.cairn", "values.cairn"])
    with Client("--root", PLACE, "--root", outside.parent) as client:
        text, is_error = client.call("summary", recording="link.cairn")
        t.check(not is_error and "program ended" in text, f"a link into the other root: {text}")
    result = t.run_cairn("mcp", "--root", "nowhere")
    t.check(result.status == 2 and b"--root nowhere: No such file" in result.err, f"{result.err}")
    for name in ("link.cairn", "directory"):
        (PLACE / name).unlink()
    (run / "sampled.cairn").unlink()
    run.rmdir()


def check_sources():
    """Lines of a source file that a recording names are shown if it lies below a root."""
    for place, is_shown in ((PLACE, True), (pathlib.Path("outside").resolve(), False)):
        (place / "seen.c").write_text("#include <stdlib.h>\nint main(void) {\n  void *secret = malloc(77);\n  return !secret;\n}\n")
        for words in (["cc", "-g", "-O0", "-o", str(place / "seen"), str(place / "seen.c")],
                      [t.CAIRN, "run", "-q", "-o", str(PLACE / "seen.cairn"), str(place / "seen")]):
            t.check_equal(f"{words[0]}", t.run(words).status, 0)
        with Client(cwd=PLACE) as client:
            text, is_error = client.call("source", recording="seen.cairn", file="seen.c")
            t.check_equal(f"source in {place.name}", ("secret" in text, is_error), (is_shown, not is_shown))
        (PLACE / "seen.cairn").unlink()
        (place / "seen.c").unlink()


def check_resources():
    with Client(cwd=PLACE) as client:
        for each in client.request("resources/list")["result"]["resources"]:
            contents = client.request("resources/read", {"uri": each["uri"]})["result"]["contents"][0]
            t.check(contents["uri"] == each["uri"] and "peak heap" in contents["text"] and
                    len(contents["text"].encode()) < LIMIT, f"{each}: {contents}")
        templates = client.request("resources/templates/list")["result"]["resourceTemplates"]
        t.check_equal("templates", [each["uriTemplate"] for each in templates], ["cairn://{+path}"])
        for uri in ("file:///etc/passwd", "cairn://x", "cairn:///%00", "cairn:///%zz", "cairn:///" + "a" * 5000, 3):
            t.check_equal(f"{str(uri)[:20]}", client.request("resources/read", {"uri": uri})["error"]["code"], -32602)
        t.check_equal("cursor", client.request("resources/list", {"cursor": "x"})["error"]["code"], -32602)


def check_record():
    with Client("--allow-run", cwd=PLACE) as client:
        text, is_error = client.call("record", command=["sh", "-c", "printf 'one\\033[2Jtwo\\n' >&2; exit 3"])
        t.check(not is_error and "ended with status 3" in text and "  one\\x1b[2Jtwo" in text and "recording: sh.cairn" in text, text)
        text, is_error = client.call("record", command=["sh", "-c", ":"], name="second")
        t.check("recording: second.cairn" in text and '  leaks {"recording":"second.cairn"}' in text, text)
        for arguments in ({"command": []}, {"command": "ls"}, {"command": ["ls", 3]}, {"command": ["ls"], "name": "../x"},
                          {"command": ["ls"], "directory": "/"}, {"command": ["ls"], "seconds": 0}):
            text, is_error = client.call("record", **arguments)
            t.check(is_error, f"{arguments}: {text}")
        text, is_error = client.call("record", command=["/nonexistent"])
        t.check(is_error and "No such file" in text and "status 127" in text, text)
        text, is_error = client.call("record", command=["sleep", "1000"], seconds=1)
        t.check(not is_error and "ended after 1 s, as asked" in text and (PLACE / "sleep.cairn").exists(), text)
        text, is_error = client.call("summary", recording="second.cairn")
        t.check(not is_error, text)
    for name in ("sh.cairn", "second.cairn", "sleep.cairn"):
        (PLACE / name).unlink()


def check_progress_and_cancel():
    with Client("--allow-run", cwd=PLACE) as client:
        command = ["sh", "-c", "echo $$ > pid; exec sleep 1000"]
        number = client.ask("tools/call", {"name": "record", "arguments": {"command": command}}, {**META, "progressToken": "p"})
        t.wait_until(lambda: (PLACE / "pid").exists() and (PLACE / "pid").read_text().strip())
        pid = int((PLACE / "pid").read_text())
        t.wait_until(lambda: t.is_called(pid, "sleep") and t.is_in_state(pid, "S"))
        values = []
        while len(values) < 2:
            message = client.read()
            t.check_equal("progress", (message["method"], message["params"]["progressToken"]), ("notifications/progress", "p"))
            values.append(message["params"]["progress"])
        t.check(values == sorted(set(values)), f"progress does not rise: {values}")
        same = client.ask("tools/list", number=number)
        t.check_equal("an id twice", client.answer(same)["error"]["code"], -32600)
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        t.wait_until(lambda: t.is_in_state(pid, "ZX") or not pathlib.Path(f"/proc/{pid}").exists())
        t.wait_until(lambda: (PLACE / "sh.cairn").is_file())
        other = client.request("tools/list")
        t.check("tools" in other["result"] and number not in client.early, "a cancelled request was answered")
        for stranger in (number, 999, "x", None, {}):
            client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": stranger}})
        t.check("tools" in client.request("tools/list")["result"], "cancelling strangers")
    (PLACE / "sh.cairn").unlink()
    (PLACE / "pid").unlink()


def check_subscriptions():
    with Client(cwd=PLACE) as client:
        number = client.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        message = client.read()
        t.check_equal("acknowledged", (message["method"], message["params"]),
                      ("notifications/subscriptions/acknowledged",
                       {"_meta": {"io.modelcontextprotocol/subscriptionId": number}, "notifications": {}}))
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        number = client.ask("subscriptions/listen", {"notifications": {}})
        client.read()
        client.server.stdin.close()
        end = client.read()
        t.check_equal("its end", (end["id"], end["result"]["resultType"]), (number, "complete"))


def check_heap():
    """Of a process that runs: who keeps what, and why a block is there."""
    with t.Process(t.program("owners"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with Client("--allow-run", cwd=PLACE) as client:
            text, is_error = client.call("memory", subject=process.pid, question="heap")
            t.check(not is_error and f"heap of process {process.pid}, paused for" in text, f"heap: {text}")
            text, is_error = client.call("memory", subject=str(process.pid))
            t.check(not is_error, f"owners: {text}")
            text, is_error = client.call("unreachable", subject=process.pid)
            t.check(not is_error, f"unreachable: {text}")
            text, is_error = client.call("explain", subject=process.pid, address="0x10")
            t.check(is_error and "address 10 is in no block of the heap" in text, f"explain: {text}")
        process.kill()


unpack()
check_eras()
check_tools()
check_same_words()
check_roots()
check_sources()
check_resources()
check_record()
check_progress_and_cancel()
check_subscriptions()
check_heap()
t.finish()
