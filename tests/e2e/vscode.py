#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The extension for VS Code (editors/vscode): its package, and all that it shows of a recording, driven in a stand-in of
the editor's interface (tests/editors/vscode.cjs). With VSCODE_TOOLS, a directory whose node_modules have code-server that
starts, in code-server under Chromium as well (tests/editors/real.mjs): the page of 100,000 stacks, jump to source, bytes
beside lines, problems, a test that is recorded, and no request of a page."""

import json
import os
import pathlib
import re
import shutil
import sys
import zipfile

import cairn_test as t
from browser_modules import modules

sys.dont_write_bytecode = True
sys.path.insert(0, str(t.SOURCE / "dev"))
import vsix

EXTENSION = t.SOURCE / "editors/vscode"
ABOUT = json.loads((EXTENSION / "package.json").read_text("utf-8"))
HERE = pathlib.Path.cwd() / "folder"
HELD_BYTES, CALLS = 3_000_000, 4
PROGRAM = f"""#include <stdio.h>
#include <stdlib.h>
static void *volatile kept[{CALLS}];
__attribute__((noinline)) void *wanted(unsigned long bytes);
__attribute__((noinline)) static void hold(int i) {{
    // the next line holds all
    kept[i] = malloc({HELD_BYTES // CALLS});
}}
int main(int count, char **words) {{
    if (count > 1) printf("test %s\\n", words[1]);
    for (int i = 0; i < {CALLS}; i++) hold(i);
    for (int i = 0; i < 20000; i++) free(wanted(40));
    return 0;
}}
"""
LINE = 1 + PROGRAM.splitlines().index(f"    kept[i] = malloc({HELD_BYTES // CALLS});")
MOVED = "#include <stdlib.h>\nvoid *wanted(unsigned long bytes) {\n    void *volatile made = malloc(bytes);\n    return made;\n}\n"
TESTS = {
    "tests.rs": "mod tests {\n    #[test]\n    fn parses() {}\n    #[tokio::test(flavor = \"x\")]\n    #[ignore]\n    pub async fn waits() {}\n    fn no_test() {}\n}\n",
    "test_shop.py": "def test_sum():\n    pass\nclass TestShop:\n    def test_sell(self):\n        pass\n    def helper(self):\n        pass\n",
    "tests.cc": "TEST(Parser, Empty) {}\nTEST_F(Parser, Deep) {}\n\nTEST_CASE(\"reads [a] \\\"row\\\"\") {}\nCONTEST(a, b)\n",
}


def check_package():
    path = vsix.write(pathlib.Path.cwd())
    with zipfile.ZipFile(path) as package:
        names = package.namelist()
        sources = {f"extension/src/{one.name}" for one in (EXTENSION / "src").iterdir()}
        t.check_equal("files", set(names), sources | {"extension.vsixmanifest", "[Content_Types].xml", "extension/package.json",
                                                      "extension/README.md", "extension/LICENSE.txt"})
        manifest = package.read("extension.vsixmanifest").decode()
        assets = re.findall(r'Path="([^"]*)"', manifest)
        t.check(len(assets) == 3 and set(assets) <= set(names), f"assets: {assets}")
        t.check(f'Version="{ABOUT["version"]}"' in manifest, manifest)
        ending = {"." + name.rsplit(".", 1)[-1] for name in names if "[" not in name}
        t.check_equal("content types", ending - set(vsix.TYPES), set())
    t.check_equal("twice the same", vsix.write(pathlib.Path.cwd()).read_bytes(), path.read_bytes())
    version = t.run_cairn("--version").out.decode().split()[1]
    t.check_equal("the tool's version", ABOUT["version"], version.split("+")[0].split("-")[0])


def make_folder():
    (HERE / "elsewhere/src").mkdir(parents=True)
    (HERE / "gone/src").mkdir(parents=True)
    (HERE / "held.c").write_text(PROGRAM)
    (HERE / "gone/src/moved.c").write_text(MOVED)
    for name, text in TESTS.items():
        (HERE / name).write_text(text)
    t.check_equal("cc", t.run(["cc", "-g", "-O1", "-o", "held", str(HERE / "held.c"), str(HERE / "gone/src/moved.c")], cwd=HERE).status, 0)
    (HERE / "gone/src/moved.c").rename(HERE / "elsewhere/src/moved.c")  # as if the project had been moved
    t.check_equal("run", t.run_cairn("run", "-q", "-o", str(HERE / "held.cairn"), str(HERE / "held")).status, 0)
    # tells nothing of what slow.cairn has, and that late
    (HERE / "slow.sh").write_text(f"""#!/bin/sh
cd '{HERE}' || exit
case "$*" in
*--view=findings*slow.cairn) touch asked; until [ -e go ]; do sleep 0.01; done ;;
*) exec '{t.CAIRN}' "$@" ;;
esac
""")
    (HERE / "slow.sh").chmod(0o755)
    (HERE / "cairn-budgets.toml").write_text('max-exit = "1 MiB"\n')


def drive():
    plan = {"folder": str(HERE), "extension": str(EXTENSION / "src/extension.js"), "cairn": t.CAIRN}
    pathlib.Path("plan.json").write_text(json.dumps(plan))
    result = t.run(["node", str(t.SOURCE / "tests/editors/drive.cjs"), "plan.json"], env={"TMPDIR": os.getcwd()})
    t.check_equal(f"drive: {result.err.decode()}", result.status, 0)
    return json.loads(result.out) if result.status == 0 else sys.exit(1)


def check_shown(told):
    t.check_equal("commands", set(told["commands"]), {one["command"] for one in ABOUT["contributes"]["commands"]})
    page = told["page"]
    t.check(page["bytes"] > 150_000 and "default-src 'none'" in page["html"] and "connect-src" not in page["html"], page["html"])
    t.check_equal("what a page may read", page["options"], {"enableScripts": True, "localResourceRoots": []})
    held = next((row for row in told["lines"] if row[0] == LINE), None)
    t.check(held and held[1] == "2.9 MiB" and "2.9 MiB in 4 blocks at the peak came through this line" in held[2], f"{told['lines']}")
    t.check_equal("a file that lies elsewhere now", [row[0] for row in told["movedLines"]], [3])
    places = {(pathlib.Path(file).name, line) for file, line, severity, code, text in told["findings"]}
    t.check(("moved.c", 3) in places or ("held.c", 12) in places, f"no finding of 20,000 blocks: {told['findings']}")
    t.check_equal("status", told["status"], f"cairn: held.cairn, {len(told['findings'])} finding{'s' * (len(told['findings']) != 1)}")
    t.check_equal("findings beside a page that was left", told["kept"], len(told["findings"]))
    t.check_equal("jumps", told["documents"], [[str(HERE / "held.c"), 7], [str(HERE / "elsewhere/src/moved.c"), 3]])
    t.check_equal("a file that is not here", told["warnings"], ["cairn: /nowhere/at/all.c is not here"])
    t.check(all(text.endswith(" ?") for text in told["newer"]) and told["newer"], f"of a file that is newer: {told['newer']}")
    result = told["results"][0]
    t.check(len(told["results"]) == 1 and result[:4] == [str(HERE / "held.c"), LINE, 0, "memory/exit"], f"{told['results']}")
    t.check("2.9 MiB, more than 1.0 MiB" in result[4], result[4])
    t.check_equal("check", told["infos"], ["cairn: 1 of 1 budget exceeded"])
    t.check_equal("cleared", told["cleared"], [[], [], [], ""])
    t.check_equal("tests", told["lenses"], {
        "rust": [[2, "cargo", "parses"], [4, "cargo", "waits"]],
        "python": [[1, "pytest", "test_sum"], [4, "pytest", "TestShop::test_sell"]],
        "cpp": [[1, "gtest", "Parser.Empty"], [2, "gtest", "Parser.Deep"], [4, "catch2", 'reads [a] \\"row\\"']]})
    t.check_equal("record this test", (told["recorded"][0].split(",")[0], told["recorded"][1].split("\n")[0]),
                  ("cairn: Parser.Empty.cairn", "test --gtest_filter=Parser.Empty"))
    t.check_equal("no complaint until then", told["errorsBefore"], [])
    t.check(len(told["broken"]) == 2 and "not SARIF" in told["broken"][0], f"{told['broken']}")
    t.check("broken.cairn" in told["broken"][1] and "broken.cairn" in told["brokenPage"], f"{told['broken']}")
    missing = "cairn: the command is not found; install it, or name it in the setting cairn.path"
    t.check_equal("without the tool", told["missing"], [missing, missing])
    t.check(missing in told["missingPage"], told["missingPage"])
    t.check_equal("left behind", [name for name in os.listdir() if name.startswith("cairn-")],
                  [f"cairn-heap-{ABOUT['version']}.vsix"])


def check_real():
    """The extension where it is at home."""
    tools = os.environ.get("VSCODE_TOOLS")
    if not tools:
        t.skip_part("VSCODE_TOOLS does not name a directory with code-server (npm)")
        return
    server = f"{tools}/node_modules/code-server/out/node/entry.js"
    package = str(next(pathlib.Path.cwd().glob("*.vsix")))
    data, extensions = (str(pathlib.Path(name).resolve()) for name in ("data", "extensions"))
    places = ["--user-data-dir", data, "--extensions-dir", extensions]
    t.check_equal("install", t.run(["node", server, *places, "--install-extension", package]).status, 0)
    (HERE / ".vscode").mkdir()
    (HERE / ".vscode/settings.json").write_text(json.dumps({"cairn.path": t.CAIRN, "cairn.testProgram": "./held"}))
    (HERE / "Parser.Empty.cairn").unlink()
    os.utime(HERE / "held.c", (0, 0))  # drive.cjs left it newer than the recording
    t.run([str(t.BUILD / "tests/large_recording"), str(HERE / "large.cairn")])
    plan = {"modules": str(modules() / "node_modules"), "server": server, "data": data, "extensions": extensions,
            "folder": str(HERE), "browser": shutil.which("chromium"), "large": "large.cairn", "failed": "failed.png"}
    pathlib.Path("real.json").write_text(json.dumps(plan))
    result = t.run(["node", str(t.SOURCE / "tests/editors/real.mjs"), "real.json"])
    told = json.loads(result.out or b"{}")
    t.check(told.get("recorded") and not told.get("problem"), f"{told} {result.err.decode()}")
    print(f"first picture of 100,000 stacks: {told.get('firstPictureMs')} ms, "
          f"{told.get('firstPictureProcessorMs')} ms of a processor in editor, browser and cairn")
    t.check(told.get("problems"), f"no list of problems: {told}")
    t.check(re.match(r"(held|moved)\.c:\d+", told["place"]) and "Ln " in told["cursor"], f"{told}")
    t.check("2.9 MiB" in told["lines"], f"{told['lines']}")
    t.check_equal("requests that are not the editor's own", [url for url in told["elsewhere"] if "open-vsx.org" not in url], [])


t.need("node", "cc")
check_package()
make_folder()
check_shown(drive())
check_real()
t.finish()
