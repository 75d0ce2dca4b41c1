#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs stay themselves, part four: a part of Python's own test suite has the same number of
tests and the same end. Chosen for what they do to a process: forks, threads, signals, descriptors,
crashes; of the slow modules only the classes that do not mainly wait. What mostly computes is left to `make check-long`,
and so are of the 75 tests of subprocess those that do to descriptors, groups and signals what another one does."""

import re

import identity
import cairn_test as t

OF_SUBPROCESS = ("preexec", "close_fds_0_1_2", "close_fds_after", "pipe_cloexec", "restore_signals", "run_abort", "fast_process_del",
                 "swap_fds", "start_new_session", "remapping", "pass_fds_redirected", "stopped")
SUITE = ["test_posix", "test_threading.ThreadTests", "test_signal.PosixTests", "test_fork1",
         " -k ".join(["test_subprocess.POSIXProcessTestCase", *([] if t.IS_LONG else OF_SUBPROCESS)])]
FURTHER = ["test_json", "test_ctypes", "test_dict", "test_list", "test_re", "test_struct", "test_zlib", "test_bytes", "test_gc",
           "test_threading.ThreadJoinOnShutdown", "test_signal.PendingSignalsTests",
           "test_concurrent_futures.ProcessPoolForkProcessPoolExecutorTest"]
SUMMARY = re.compile(rb"^(?:Ran \d+ tests?|OK.*|FAILED.*|(?:ERROR|FAIL): .*)", re.M)


def summary(text):
    """The number of tests, and how they ended; not how long it took nor which thread spoke first."""
    return b"\n".join(sorted(SUMMARY.findall(text)))


if t.run([t.PYTHON, "-c", "import test.test_json"]).status:
    t.cannot_run_here("no test suite of Python here (Debian: libpython3.11-testsuite)")
for name in SUITE + (FURTHER if t.IS_LONG else []):
    identity.compare(f"python {name.split()[0]}", [t.PYTHON, "-m", "unittest", *f"test.{name}".split()], see=summary)
t.finish()
