#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `cairn open`: made of the sources that lie beside it, and driven in Chromium (tests/web/drive.mjs):
screens, zoom, search, switches, comparison, keys, hostile names, contrast, no request, no complaint."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import cairn_test as t
import wrapped_heaps
from browser_modules import modules

t.need("node", "npm", "chromium", "gcc")
WEB = t.SOURCE / "web"
LARGE_STACKS = 100_000 if t.IS_LONG else 10_000
LARGE_PAGE_BYTES = 5_000_000 if t.IS_LONG else 800_000
HOSTILE = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>&amp;\'"'


def check_bundle(made):
    for name in ("build.mjs", "lean.mjs", "tsconfig.json", ".prettierrc.json"):
        shutil.copy(WEB / name, made)
    shutil.rmtree(made / "src", ignore_errors=True)
    shutil.copytree(WEB / "src", made / "src")
    result = t.run(["node_modules/.bin/tsc", "--noEmit"], cwd=made)
    t.check_equal("tsc", (result.status, result.out.decode()), (0, ""))
    result = t.run(["node_modules/.bin/prettier", "--config", ".prettierrc.json", "--check", "src/*.{ts,css}", "build.mjs", "lean.mjs",
                    str(t.SOURCE / "tests/web/*.mjs")], cwd=made)
    t.check_equal(f"prettier: cd web && npm run format: {result.err.decode()}", result.status, 0)
    result = t.run(["node", "build.mjs", "made.html"], cwd=made)
    t.check_equal("build.mjs", (result.status, result.err), (0, b""))
    t.check((made / "made.html").read_bytes() == (WEB / "report.html").read_bytes(),
            "web/report.html is not what web/src makes: cd web && npm ci && node build.mjs")


def check_values(made):
    result = t.run(["node", str(t.SOURCE / "tests/web/values.mjs"), str(WEB / "src"), str(made / "node_modules")])
    t.check_equal("values.mjs", (result.status, result.out.decode()), (0, ""))


def massif_of(name):
    """A file of massif with one function, to be imported."""
    return (f"desc: x\ncmd: {name}\ntime_unit: ms\n" + "".join(
        f"#-----------\nsnapshot={i}\n#-----------\ntime={i}\nmem_heap_B=1000\nmem_heap_extra_B=0\n"
        f"mem_stacks_B=0\nheap_tree={kind}\nn1: 1000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
        f" n0: 1000 0x401136: {name} (in /lib/{name.replace('/', '|')}.so)\n"
        for i, kind in ((0, "peak"), (1, "detailed"))))


def make_page(name, *subjects):
    path = os.path.abspath(name + ".html")
    result = t.run_cairn("open", "-o", path, *subjects)
    t.check_equal(f"open {name}: {result.err.decode(errors='replace')}", result.status, 0)
    return path


def size(number):
    return f"{number} B" if number < 1023.5 else f"{number / 1024:.1f} KiB" if number < 102349 else f"{number / 1024:.0f} KiB"


def exit_bytes(found, name):
    return sum(stack["at_exit_bytes"] for stack in t.stacks_through(found, name))


made = modules()
check_bundle(made)
check_values(made)

_, leak = t.record(t.program("leak"))
_, steady = t.record(t.program("mixed"))
_, aged = t.record(t.program("mixed"), options=("--ages",))
threads = "threads.cairn"
t.run_cairn("run", "-q", "--snapshot-every", "256KiB", "-o", threads, "--", *t.program("threads", "pipe"))
_, labelled = t.record(t.program("contexts"))
wrapped_heaps.make()
_, heaps = t.record(["./program"], options=wrapped_heaps.ROWS) if os.uname().machine == "x86_64" else (None, None)
_, many_labels = t.record(t.program("contexts", 6000))
_, run = t.record(["sh", "-c", "; ".join(" ".join(t.program(*words)) for words in (("leak",), ("threads", "pipe"))) + "; true"])
pathlib.Path("hostile.massif").write_text(massif_of(HOSTILE))
t.run_cairn("import", "-o", "hostile.cairn", "hostile.massif")
_, alone = t.record_alone(t.program("leak"))
pathlib.Path("half.cairn").write_bytes(pathlib.Path(alone).read_bytes()[:-1000])
_, bare = t.run_cairn("run", "-q", "--no-stacks", "-o", "bare.cairn", "--", *t.program("leak")), "bare.cairn"
t.run_cairn("run", "-q", "--sample", "--rate", "1KiB", "--seed", "7", "-o", "sampled.cairn", "--", *t.program("leak"))
t.run_cairn("run", "-q", "--sample", "--rate", "1KiB", "--seed", "7", "-o", "sampled2.cairn", "--", *t.program("containers", 3))
t.run([str(t.BUILD / "tests/snapshots_recording"), "snapshots.cairn"])
t.run([str(t.BUILD / "tests/large_recording"), "none.cairn", "0"])
t.run([str(t.BUILD / "tests/large_recording"), "large.cairn", str(LARGE_STACKS)])

copies = []
for name in ("a", "b"):
    os.makedirs(name)
    shutil.copy(t.program("leak")[0], name)
    copies.append(t.record([os.path.abspath(name) + "/leak"])[1])
few, many = (t.record(t.program("containers", rounds))[1] for rounds in (3, 5))
t.run_cairn("import", "-o", "told.cairn", t.export_file(few, "pprof"))
told = json.loads(t.run_cairn("diff", "--json", "told.cairn", many).out)["rows"]
t.check(any(row["change"] == "grown" for row in told), f"nothing has grown: {told}")
pathlib.Path("script.py").write_text("def main_of_it():\n    return [str(i) * 20 for i in range(9000)]\nkept = main_of_it()\n")
result, python = t.record([t.PYTHON, "script.py"], python=True)

owned = {}
with t.Process(t.program("owners"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
    t.check_equal("owners begin", process.stdout.readline(), b"ready\n")
    owned = {row["name"]: row["retained_bytes"] for row in t.answer(str(process.pid), "owners")["owners"]}
    t.check_equal("open --owners", t.run_cairn("open", "-o", "owners.html", "--owners", str(process.pid)).status, 0)
    t.check_equal("open --owners of none", t.run_cairn("open", "-o", "none.html", "--owners").status, 2)
    process.stdin.close()
    process.wait()
with t.Process([t.CAIRN, "run", "-q", "--ages", "-o", "owned.cairn", *t.program("owners")], stdin=subprocess.PIPE,
               stdout=subprocess.PIPE, env=t.environment()) as process:
    t.check_equal("owners of an age begin", process.stdout.readline(), b"ready\n")
    pid = next(child for child in t.children_of(process.pid) if t.is_called(child, "owners"))
    t.check_equal("open --owners of an age", t.run_cairn("open", "-o", "owners_aged.html", "--owners", str(pid)).status, 0)
    process.stdin.close()
    process.wait()
found, by_thread = t.report(leak), {one["name"]: one for one in t.report(threads)["threads"]}
pages = {"owners": os.path.abspath("owners.html"), "owners_aged": os.path.abspath("owners_aged.html"), "leak": make_page("leak", leak), "diff": make_page("diff", steady, leak), "aged": make_page("aged", aged), "run": make_page("run", run),
         "hostile": make_page("hostile", "hostile.cairn"), "half": make_page("half", "half.cairn"),
         "bare": make_page("bare", bare), "sampled": make_page("sampled", "sampled.cairn"), "sampled2": make_page("sampled2", "sampled.cairn", "sampled2.cairn"), "none": make_page("none", "none.cairn"), "large": make_page("large", "large.cairn"),
         "snapshots": make_page("snapshots", "snapshots.cairn"), "at": make_page("at", "snapshots.cairn@780ms", "snapshots.cairn@3.9s"), "threads": make_page("threads", threads),
         "contexts": make_page("contexts", labelled), "other": make_page("other", many_labels),
         "heaps": heaps and make_page("heaps", heaps),
         "copies": make_page("copies", *copies), "told": make_page("told", "told.cairn", many), "python": make_page("python", python)}
t.check(os.path.getsize(pages["large"]) < LARGE_PAGE_BYTES,
        f"a page of {LARGE_STACKS} stacks has {os.path.getsize(pages['large'])} bytes")
cut = pathlib.Path(pages["leak"]).read_text()
start = cut.index('id="data">') + len('id="data">')
end = cut.index("</script>", start)
pages["cut"] = os.path.abspath("cut.html")
pathlib.Path(pages["cut"]).write_text(cut[:start + (end - start) // 8 * 4] + cut[end:])

# the page's intervals of differences are those of cairn diff: of the whole, of a stack that one side alone has
differ = t.run_cairn("diff", "--by", "exit", "--depth", "1", "sampled.cairn", "sampled2.cairn").out.decode()
sure = r"(\S+ [KM]?i?B)( ± .*?\))"
changes = {"peak": re.search(rf"peak heap .*?   {sure}", differ), "end": re.search(rf"at exit .*?   {sure}", differ),
           "stack": re.search(r"^ *(-\S+ KiB) .* 0 B *(± .*?) +gone\n +leak_large", differ, re.M)}
t.check(all(changes.values()), f"differences of samples: {differ}")

tenants, in_work = {}, 0
for one in t.report(labelled)["contexts"]:
    name = one["labels"].get("tenant", "(none)")
    tenants[name] = tenants.get(name, 0) + one["peak_bytes"]
for stack in t.stacks_through(t.report(labelled, "--context", "endpoint=/b c"), "work"):
    in_work += stack["peak_bytes"]
producer_bytes = by_thread["producer"]["allocated_bytes"]
plan = {
    "owners": {"sessions": size(owned["sessions"])},
    "leak_peak": size(found["peak"]["bytes"]),
    # the first thread keeps what it took, the consumer takes nothing
    "threads": {"share": f"{100 * producer_bytes / sum(one['allocated_bytes'] for one in by_thread.values()):.0f} % of all",
                "most": {"threads": size(by_thread["threads"]["at_exit_bytes"]), "consumer": "0 B"}},
    "contexts": {"tenants": {name: size(held) for name, held in tenants.items()}, "work": size(in_work)},
    "told": sorted(row["change"].split()[-1] for row in told),
    "changes": {name: [one[1], one[2].strip()] for name, one in changes.items()},
    "modules": str(made), "chromium": shutil.which("chromium"), "pages": pages, "hostile": HOSTILE,
    "odd": ["hostile", "half", "bare"], "large_stacks": LARGE_STACKS, "grows": "example+0x4000ff", "stays": "example+0x4001ff",
    "only": sys.argv[1] if len(sys.argv) > 1 else None,
    "leak": {
        "words": [size(found["peak"]["bytes"]), f"{found['totals']['allocations']:,} calls", "leak ended with status 3",
                  "nothing lost", size(found["at_exit"]["bytes"]) + " were never freed", "leak_large"],
        "shared_at_exit": size(exit_bytes(found, "leak_shared")), "two_at_exit": size(exit_bytes(found, "caller_two")),
        "large_at_exit": size(exit_bytes(found, "leak_large")),
        "shared_calls": f"of {sum(s['allocations'] for s in t.stacks_through(found, 'leak_shared'))},",
    },
}
pathlib.Path("plan.json").write_text(json.dumps(plan))
result = t.run(["node", str(t.SOURCE / "tests/web/drive.mjs"), "plan.json"], env={"HOME": os.getcwd()})
print(result.out.decode(errors="replace") + result.err.decode(errors="replace"))
t.check_equal("the page in a browser", result.status, 0)
t.finish()
