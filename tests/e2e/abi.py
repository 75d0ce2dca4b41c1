#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The public headers are those of tests/abi by abidiff (dev/abi.sh), which notices each kind of change that breaks
programs built before: another order of the table, another type, another size, a function that is gone."""

import pathlib
import shutil

import cairn_test as t

CHANGES = {
    "a member in the midst of the table": ("    int (*is_enabled)(int who);\n", "    int (*is_enabled)(int who);\n    int (*between)(int who);\n"),
    "a member at the end of the table": ("    void (*suspended)(void);\n};",
                                         "    void (*suspended)(void);\n    int (*more)(void);\n};"),
    "members that change places": ("    int64_t live_bytes;       /* allocated minus freed */\n"
                                   "    int64_t peak_bytes;       /* the most that live_bytes was */\n",
                                   "    int64_t peak_bytes;\n    int64_t live_bytes;\n"),
    "another type of an argument": ("int (*set_rate)(uint64_t bytes);", "int (*set_rate)(uint32_t bytes);"),
    "a larger array": ("#define CAIRN_HISTOGRAM_ENTRIES 65", "#define CAIRN_HISTOGRAM_ENTRIES 66"),
    "a function of another name": ("static inline int cairn_is_loaded(void)", "static inline int cairn_is_there(void)"),
    "an enumerator of another value": ("CAIRN_THREAD = 1", "CAIRN_THREAD = 2"),
}


def compare(*include):
    result = t.run([str(t.SOURCE / "dev/abi.sh"), *include])
    if result.status == t.NOT_HERE:
        t.cannot_run_here(result.out.decode().strip())
    return result


t.need("cc", "abidiff")
same = compare()
t.check_equal("the interface of these sources", (same.status, same.out, same.err), (0, b"", b""))
for what, (old, new) in CHANGES.items():
    include = pathlib.Path(t.fresh_path("include"))
    shutil.copytree(t.SOURCE / "include", include)
    header = include / "cairn/cairn.h"
    text = header.read_text("utf-8")
    if t.check_equal(f"{what}: places to change", text.count(old), 1):
        header.write_text(text.replace(old, new), "utf-8")
        result = compare(str(include))
        t.check(result.status == 1 and b"--renew" in result.err, f"{what} is not noticed: {result.status} {result.out}")
t.finish()
