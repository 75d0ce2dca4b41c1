#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pair of malloc and free takes no more instructions under cairn than at the commit that
bench/compared_with names: its library is built and counted beside this one's, unless this one is the same. `make check`
counts a row for each way that an event takes, `make check-long` those of other depths, sizes and orders too."""

import os
import subprocess
import sys

import cairn_test as t

NOT_HERE = 77

t.need("git", "valgrind")
done = subprocess.run([t.SOURCE / "bench/compare.py", *([] if t.IS_LONG else ["--part"])], env=dict(os.environ, BUILD_DIR=str(t.BUILD)),
                      stdout=subprocess.PIPE, text=True, check=False)
print(done.stdout)
if done.returncode == NOT_HERE:
    sys.exit(NOT_HERE)
t.check_equal("no row of bench/compare.py rose", done.returncode, 0)
t.finish()
