#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Making allocations fail is a library of its own: what records knows nothing of it and is the same without it, nobody
but `cairn torture` loads it, and loaded without that command's file it changes nothing either."""

import json
import os
import pathlib

import cairn_test as t

TORTURE = t.BUILD / "libcairn-torture.so"

BARE = ["libcairn-bare.so"] if (t.BUILD / "libcairn-bare.so").exists() else []  # not of every processor

for name in ("libcairn.so", "libcairn-cxx.so", "libcairn-musl.so", *BARE, "libcairn_static.a", "libcairn_embed.a"):
    content = (t.BUILD / name).read_bytes()
    t.check(b"TORTURE" not in content and b"torture" not in content, f"{name} knows of it")

# with the variable set, and even with a file that asks for a failure, a recording is as always
head = [0x31657275747274, 1, 1, 0, 0, 0, 0, 0, 0]
pathlib.Path("asks").write_bytes(b"".join(word.to_bytes(8, "little") for word in head) + bytes(504))
probe = ["cat", "/proc/self/maps"]
result, _ = t.record(probe, env={"CAIRN_TORTURE": os.path.abspath("asks")})
t.check(b"libcairn.so" in result.out and b"torture" not in result.out, "cairn run loads it")
# loaded by hand: without a file, with one that is none, too short, or a directory, nothing fails
SCRIPT = "import json; print(json.dumps([str(i) * 50 for i in range(2000)])[-20:])"
wanted = t.run(["python3", "-c", SCRIPT])
pathlib.Path("short").write_bytes(b"\0" * 100)
pathlib.Path("foreign").write_bytes(b"x" * 100000)
pathlib.Path("directory").mkdir()
for path in (None, "", "nothing", "short", "foreign", "directory", "/dev/null"):
    env = {"LD_PRELOAD": str(TORTURE)}
    if path is not None:
        env["CAIRN_TORTURE"] = path
    found = t.run(["python3", "-c", SCRIPT], env=env)
    t.check_equal(f"with {path}", (found.status, found.out, found.err), (wanted.status, wanted.out, wanted.err))
    t.check(not pathlib.Path(path or "nothing").is_file() or path in ("short", "foreign"), f"{path} was made")

# exactly one allocation fails, and with the errno of real ones
pathlib.Path("one.c").write_text("""#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    int failed = 0;
    for (int i = 0; i < 1000; i++) {
        errno = 0;
        void *block = malloc(100 + i);
        if (!block) failed += errno == ENOMEM ? 1 : 1000;
        else if (errno) failed += 100000;
        free(block);
    }
    fprintf(stderr, "%d failed\\n", failed);
    return failed != 1;
}
""")
t.check_equal("gcc", t.run(["gcc", "-O1", "-g", "-fno-builtin", "-o", "one", "one.c"]).status, 0)
# usually none fails, and its status is 1; with one that fails it is 0, which is an outcome without findings
result = t.run_cairn("torture", "-q", "--json", "--no-leaks", "--stacks", "^main$", "--state", "state", "--", "./one")
found = json.loads(result.out)
t.check_equal("usual status", found["usual"]["status"], 1)
ends = [json.loads(line) for line in pathlib.Path("state/results").read_text().splitlines()[1:]]
t.check(any(end["status"] == 0 for end in ends), f"one that fails: {ends}")
t.check({end["tail"].strip() for end in ends} <= {"1 failed", "0 failed"}, f"what failed: {ends}")
t.check(found["results"]["missed"] == 0 and found["results"]["clean"] == found["planned"] >= 2, f"runs: {found}")
t.finish()
