#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn mcp and the protocol's own tools: @modelcontextprotocol/inspector (its command line) and the suite
@modelcontextprotocol/conformance, from npm, in a directory with node_modules that MCP_TOOLS names:
    npm install @modelcontextprotocol/inspector @modelcontextprotocol/conformance@0.2.0-alpha.12 node@22
The suite speaks HTTP, so that tests/mcp/bridge.mjs stands between. Its checks of HTTP, and those that need tools of its own
in the server, are left out by name."""

import json
import os
import pathlib
import re
import subprocess

import cairn_test as t

# Older suites know fewer scenarios; a scenario that one does not know is left out and said.
SCENARIOS = {
    "server-initialize": [], "ping": [], "tools-list": [], "resources-list": [], "sep-2164-resource-not-found": [],
    "caching": ["sep-2549-prompts-list-caching-hints"],  # there are no prompts
    "server-stateless": ["sep-2575-http-server-header-mismatch-400", "sep-2575-server-rejects-undeclared-capability",
                         "sep-2575-missing-capability-http-400", "sep-2575-http-server-no-independent-requests-on-stream",
                         "sep-2575-server-no-log-without-loglevel"],
}
MODERN = ("server-stateless", "caching", "sep-2164-resource-not-found")
CHECK = re.compile(r"\[([a-z0-9-]+) *\] (SUCCESS|FAILURE|WARNING|SKIPPED)")

TOOLS = os.environ.get("MCP_TOOLS")
if not TOOLS:
    t.cannot_run_here("MCP_TOOLS does not name a directory with the inspector and the conformance suite (npm)")
MODULES = pathlib.Path(TOOLS) / "node_modules"
NODE = MODULES / "node/bin/node"
NODE = str(NODE if NODE.exists() else "node")
PLACE = pathlib.Path("root").resolve()


def inspect(*words):
    result = t.run([NODE, str(MODULES / ".bin/mcp-inspector"), "--cli", t.CAIRN, "mcp", "--root", str(PLACE), *words])
    t.check_equal(f"inspector {words}", result.status, 0)
    return json.loads(result.out) if result.status == 0 else {}


def check_inspector():
    if not (MODULES / ".bin/mcp-inspector").exists():
        t.skip_part("the inspector is not installed in MCP_TOOLS")
        return
    tools = [tool["name"] for tool in inspect("--method", "tools/list")["tools"]]
    t.check("summary" in tools and "record" not in tools, f"{tools}")
    answer = inspect("--method", "tools/call", "--tool-name", "summary", "--tool-arg", "recording=one.cairn")
    t.check("peak heap" in answer["content"][0]["text"], f"{answer}")
    answer = inspect("--method", "tools/call", "--tool-name", "top", "--tool-arg", "recording=one.cairn", "--tool-arg", "limit=1")
    t.check(not answer["isError"] and "the first 1" in answer["content"][0]["text"], f"{answer}")
    uri = inspect("--method", "resources/list")["resources"][0]["uri"]
    t.check("peak heap" in inspect("--method", "resources/read", "--uri", uri)["contents"][0]["text"], uri)
    t.check(inspect("--method", "resources/templates/list")["resourceTemplates"], "templates")


def check_scenario(url, name, left_out):
    words = ["--spec-version", "2026-07-28"] if name in MODERN else []
    result = t.run([NODE, str(MODULES / ".bin/conformance"), "server", "--url", url, "--scenario", name, *words])
    text = re.sub(r"\x1b\[[0-9;]*m", "", (result.out + result.err).decode())
    checks = CHECK.findall(text)
    if not checks and "nknown" in text:
        t.skip_part(f"this conformance suite has no scenario {name}")
        return
    t.check([each for each in checks if each[1] == "SUCCESS"], f"{name}: nothing was checked: {text[-800:]}")
    for check, outcome in checks:
        t.check(outcome in ("SUCCESS", "SKIPPED") or check in left_out, f"{name}: {check}: {outcome}: {text[-1500:]}")


def check_conformance():
    if not (MODULES / ".bin/conformance").exists():
        t.skip_part("the conformance suite is not installed in MCP_TOOLS")
        return
    with t.Process([NODE, str(t.SOURCE / "tests/mcp/bridge.mjs"), t.CAIRN, "mcp", "--root", str(PLACE)], stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE, env=t.environment()) as bridge:
        url = bridge.stdout.readline().decode().strip()
        for name, left_out in SCENARIOS.items():
            check_scenario(url, name, left_out)
        bridge.stdin.close()


PLACE.mkdir()
t.check_equal("a recording", t.run([t.CAIRN, "run", "-q", "-o", str(PLACE / "one.cairn"), "ls"]).status, 0)
check_inspector()
check_conformance()
t.finish()
