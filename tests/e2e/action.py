#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""action.yml: its script, with a server in place of GitHub. It takes a release's file by its checksum, records two
commits, and writes and renews one comment with what moved."""

import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading

import cairn_test as t

t.need("git", "curl", "jq")
SCRATCH = pathlib.Path.cwd()
SCRIPT = t.SOURCE / "action/run.sh"
MACHINE = os.uname().machine
TOKEN = "a-token"


class Forge(http.server.BaseHTTPRequestHandler):
    """A release below /release, and the comments of issue 7."""
    comments, release, requests, is_forbidden = [], SCRATCH / "release", [], False

    def answer(self, status, data):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        file = self.release / pathlib.Path(self.path).name
        if self.path.startswith("/release/") and file.exists():
            self.answer(200, file.read_bytes())
        elif self.path.startswith("/api/repos/me/it/issues/7/comments?"):
            self.check_token()
            self.answer(200, json.dumps(self.comments).encode())
        else:
            self.answer(404, b"")

    def check_token(self):
        self.requests.append((self.command, self.path))
        t.check_equal(f"{self.path}: token", self.headers.get("Authorization"), f"Bearer {TOKEN}")

    def change(self):
        self.check_token()
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        if self.is_forbidden:
            self.answer(403, b"{}")
        elif self.command == "POST" and self.path == "/api/repos/me/it/issues/7/comments":
            self.comments.append({"id": 40 + len(self.comments), "body": body})
            self.answer(201, b"{}")
        elif self.command == "PATCH" and (found := re.fullmatch(r"/api/repos/me/it/issues/comments/(\d+)", self.path)):
            one, = [comment for comment in self.comments if comment["id"] == int(found[1])]
            one["body"] = body
            self.answer(200, b"{}")
        else:
            self.answer(404, b"")

    do_POST = do_PATCH = change

    def log_message(self, *words):
        pass


def make_release():
    Forge.release.mkdir()
    name = f"cairn-9.9.9-linux-{MACHINE}"
    if t.CAIRN == t.BUILT_CAIRN:  # its libraries lie beside it
        (Forge.release / name).write_text(f'#!/bin/sh\nexec "{t.CAIRN}" "$@"\n', encoding="utf-8")
    else:
        shutil.copy(t.CAIRN, Forge.release / name)
    digest = hashlib.sha256((Forge.release / name).read_bytes()).hexdigest()
    other = "0" * 64
    (Forge.release / "SHA256SUMS").write_text(f"{other}  cairn-9.9.9-linux-none\n{other}  cairn-9.9.9.tar.xz\n"
                                              f"{digest}  {name}\n", encoding="utf-8")


def git(*words):
    subprocess.run(["git", *words], check=True, stdout=subprocess.DEVNULL, cwd=SCRATCH / "it", env=t.environment(
        {"GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "e"}))


def commit(calls):
    (SCRATCH / "it/plan").write_text(f"parse {calls} 64\nfill_map {calls} 1000\n", encoding="utf-8")
    git("add", "plan")
    git("commit", "-q", "--allow-empty", "-m", f"{calls} calls")


def run_action(address, status=0, **inputs):
    for name in ("summary", "output"):
        (SCRATCH / name).write_text("", encoding="utf-8")
    (SCRATCH / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}), encoding="utf-8")
    env = {"GITHUB_API_URL": f"{address}/api", "GITHUB_REPOSITORY": "me/it", "GITHUB_SERVER_URL": address,
           "GITHUB_EVENT_PATH": str(SCRATCH / "event.json"), "GITHUB_STEP_SUMMARY": str(SCRATCH / "summary"),
           "GITHUB_OUTPUT": str(SCRATCH / "output"), "RUNNER_TEMP": str(SCRATCH),
           "INPUT_COMMAND": f"'{t.PROGRAMS / 'planned'}' plan", "INPUT_TOKEN": TOKEN,
           "INPUT_RELEASE": f"{address}/release", **inputs}
    result = t.run([str(SCRIPT)], env=env, cwd=SCRATCH / "it")
    text = (result.out + result.err).decode()
    t.check_equal(f"the action {inputs}: status ({text})", result.status, status)
    outputs = dict(line.split("=", 1) for line in (SCRATCH / "output").read_text(encoding="utf-8").splitlines())
    return text, outputs


def check_runs(address):
    commit(10)
    text, outputs = run_action(address)
    t.check_equal("the first run moves nothing", (outputs["moved"], len(Forge.comments)), ("0", 1))
    commit(12)
    text, outputs = run_action(address)
    t.check(re.search(r"::notice file=.*planned\.c,line=\d+", text), f"annotations: {text}")
    t.check(int(outputs["moved"]) >= 2, f"what moved is counted: {outputs}")
    body = Forge.comments[0]["body"]
    t.check_equal("one comment is renewed", len(Forge.comments), 1)
    t.check("| moved | planned | calls |" in body and "fill_map" in body and "+4" in body, f"the comment: {body}")
    t.check("| moved |" in (SCRATCH / "summary").read_text(encoding="utf-8"), "the summary has it")
    t.check_equal("SARIF is there", json.loads(pathlib.Path(outputs["sarif"]).read_text())["version"], "2.1.0")
    commit(13)
    text, _ = run_action(address, status=3, INPUT_FAIL_ON_RISE="true")
    t.check("::error title=cairn::figures rose" in text, f"a rise fails: {text}")
    run_action(address, status=1, INPUT_OPTIONS="--max-calls 5")
    t.check("**FAIL**" in Forge.comments[0]["body"], "a budget that is exceeded is in the comment")
    Forge.is_forbidden = True
    text, _ = run_action(address)
    t.check("::warning title=cairn::the comment could not be written" in text, f"without permission: {text}")
    count = len(Forge.requests)
    run_action(address, INPUT_COMMENT="false")
    t.check_equal("no comment if none is wanted", len(Forge.requests), count)


def check_failures(address):
    file = next(Forge.release.glob("cairn-*"))
    file.write_bytes(file.read_bytes() + b"\n# changed\n")
    text, _ = run_action(address, status=1)
    t.check("is not what SHA256SUMS says" in text, f"a changed file is not run: {text}")
    text, _ = run_action(address, status=1, INPUT_RELEASE=f"{address}/nowhere")
    t.check("cannot be fetched" in text, f"a missing release: {text}")
    text, _ = run_action(address, status=1, INPUT_COMMAND="")
    t.check("needs a command" in text, text)


def check_description():
    text = (t.SOURCE / "action.yml").read_text(encoding="utf-8")
    given = set(re.findall(r"^        (INPUT_\w+|ACTION_\w+):", text, re.M))
    used = set(re.findall(r"\b(INPUT_[A-Z_]+|ACTION_[A-Z_]+)\b", SCRIPT.read_text(encoding="utf-8")))
    t.check_equal("what the script reads is what the action gives", used, given)
    inputs = set(re.findall(r"^  ([a-z-]+):\n    description", text.split("outputs:")[0], re.M))
    t.check_equal("each input reaches the script", {f"INPUT_{name.upper().replace('-', '_')}" for name in inputs},
                  {name for name in given if name.startswith("INPUT_")})
    try:
        import yaml
    except ImportError:
        t.skip_part("python3-yaml is not installed")
        return
    steps = yaml.safe_load(text)["runs"]["steps"]
    t.check_equal("the step that runs the script", steps[-1]["run"], '"$GITHUB_ACTION_PATH/action/run.sh"')


make_release()
(SCRATCH / "it").mkdir()
git("init", "-q", "-b", "main", ".")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forge)
threading.Thread(target=server.serve_forever, daemon=True).start()
where = f"http://127.0.0.1:{server.server_address[1]}"
check_description()
check_runs(where)
check_failures(where)
server.shutdown()
t.finish()
