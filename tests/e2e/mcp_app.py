#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `cairn open` as an MCP App: told to clients that show apps and to no others, and, in Chromium, in a sandboxed
frame of a host (the AppBridge of ext-apps, from npm, where MCP_TOOLS names a directory with it; else tests/web/app_host.mjs
alone): it shows the recording of the question, and a place in source code becomes a message. The same page in a webview of an editor."""

import json
import os
import pathlib
import shutil
import sys

import cairn_test as t
from browser_modules import modules
from mcp_client import META, Client, text_of

APPS = {**META, "io.modelcontextprotocol/clientCapabilities": {
    "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}}
URI = "ui://cairn/page"
PLACE = pathlib.Path("root").resolve()


def check_server():
    """What the host is told; the page, and the data of the recording."""
    with Client(cwd=PLACE) as client:
        names = [tool["name"] for tool in client.request("tools/list")["result"]["tools"]]
        t.check("page" not in names and "page_data" not in names and "summary" in names, f"to a client without apps: {names}")
        tools = {tool["name"]: tool for tool in client.request("tools/list", meta=APPS)["result"]["tools"]}
        t.check_equal("page", tools["page"]["_meta"], {"ui": {"resourceUri": URI}})
        t.check_equal("page_data", tools["page_data"]["_meta"], {"ui": {"resourceUri": URI, "visibility": ["app"]}})
        t.check("_meta" not in tools["summary"], "summary is of no app")
        page = client.request("resources/read", {"uri": URI})["result"]["contents"][0]
        t.check_equal("kind", (page["uri"], page["mimeType"]), (URI, "text/html;profile=mcp-app"))
        t.check('id="data"></script>' in page["text"] and "{{" not in page["text"], page["text"][:500])
        t.check("peak heap" in client.call("page", recording="held.cairn")[0], "page: the summary")
        answer = client.request("tools/call", {"name": "page_data", "arguments": {"recording": "held.cairn"}})["result"]
        data = answer["content"][0]["text"]
        whole = t.run_cairn("open", "-o", "-", "held.cairn", cwd=PLACE).out.decode()
        t.check(not answer["isError"] and len(data) > 500 and f'id="data">{data}</script>' in whole, data[:200])
        for name in ("broken.cairn", "nowhere.cairn", "../held.cairn"):
            text, is_error = client.call("page_data", recording=name)
            t.check(is_error and len(text) < 500, f"{name}: {text}")
        resources = client.request("resources/list")["result"]["resources"]
        t.check(all(not one["uri"].startswith("ui:") for one in resources), f"{resources}")
    with Client(cwd=PLACE) as client:
        client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "clientInfo": {"name": "x", "version": "1"},
            "capabilities": APPS["io.modelcontextprotocol/clientCapabilities"]}})
        client.read()
        client.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        t.check("page" in [tool["name"] for tool in client.read()["result"]["tools"]], "a client of before")
    return page["text"], data


def make_bridge():
    """The host's side of ext-apps as one module; "": it is not there."""
    tools = os.environ.get("MCP_TOOLS", "")
    if not (tools and (pathlib.Path(tools) / "node_modules/@modelcontextprotocol/ext-apps").exists()):
        t.skip_part("MCP_TOOLS does not name a directory with @modelcontextprotocol/ext-apps: a host of the test's own")
        return ""
    entry = 'export * from "@modelcontextprotocol/ext-apps/app-bridge";'
    command = [str(modules() / "node_modules/.bin/esbuild"), "--bundle", "--format=esm"]
    (pathlib.Path(tools) / "bridge-entry.js").write_text(entry)
    result = t.run([*command, f"--outfile={os.getcwd()}/bridge.js", "bridge-entry.js"], cwd=tools)
    t.check_equal(f"esbuild: {result.err.decode()}", result.status, 0)
    return "bridge.js"


def check_browser(page, data):
    pathlib.Path("page.html").write_text(page)
    pathlib.Path("data.txt").write_text(data)
    t.check_equal("open", t.run_cairn("open", "-o", "whole.html", str(PLACE / "held.cairn")).status, 0)
    plan = {"modules": str(modules() / "node_modules"), "browser": shutil.which("chromium"), "here": os.getcwd(),
            "bridge": make_bridge()}
    pathlib.Path("plan.json").write_text(json.dumps(plan))
    result = t.run(["node", str(t.SOURCE / "tests/web/app_host.mjs"), "plan.json"])
    t.check_equal(f"app_host.mjs: {result.err.decode()}", result.status, 0)
    if result.status:
        sys.exit(1)
    told = json.loads(result.out)
    t.check_equal("the question of the page", told["calls"], [{"name": "page_data", "arguments": {"recording": "held.cairn"}}])
    t.check("held" in told["shown"] and "2.9 MiB" in told["shown"], told["shown"])
    t.check_equal("a place, as a message", told["messages"], [f"Look at {PLACE}/held.c:4"])
    t.check_equal("colours of the host", told["theme"], "dark")
    t.check_equal("a failure", told["failed"], "The data in this page cannot be read: no such recording. Was the file cut off?")
    t.check_equal("in an editor", told["editor"], [{"ready": True}, {"show": {"file": f"{PLACE}/held.c", "line": 4}}])
    t.check_equal("complaints, requests", (told["complaints"], told["requests"]), ([], []))


t.need("node", "npm", "chromium", "cc")
PLACE.mkdir()
(PLACE / "held.c").write_text("#include <stdlib.h>\nvoid *volatile kept;\nint main(void) {\n    kept = malloc(3000000);\n    return 0;\n}\n")
t.check_equal("cc", t.run(["cc", "-g", "-O0", "-o", "held", str(PLACE / "held.c")], cwd=PLACE).status, 0)
t.check_equal("run", t.run_cairn("run", "-q", "-o", "held.cairn", "./held", cwd=PLACE).status, 0)
(PLACE / "broken.cairn").write_text("no recording")
shutil.copy(PLACE / "held.cairn", PLACE.parent / "held.cairn")
check_browser(*check_server())
t.finish()
