#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recorded program starts others with LD_PRELOAD but without cairn's variables, as web servers start CGI
programs. They are recorded into the run, as it was asked for; once its tool is gone they are not, and no file
appears where they work. Whoever preloads the library by hand gets a file there, as ever."""

import os
import pathlib
import subprocess

import cairn_test as t
import ledger

# Starts argv[1:] in an empty environment but for LD_PRELOAD, in a directory of its own.
STARTER = """import os, sys
os.chdir(sys.argv[1])
kept = {name: value for name, value in os.environ.items() if name in ("LD_PRELOAD", "LEDGER")}
ended = os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(sys.argv[2], sys.argv[2:], kept), 0)[1])
sys.exit(ended)
"""
# The same once somebody wrote into the pipe, as a process that nobody waits for.
LATER = """import os, sys
if os.fork(): os._exit(0)
os.setsid()
os.close(1)
os.read(0, 1)
kept = {name: value for name, value in os.environ.items() if name == "LD_PRELOAD"}
os.chdir(sys.argv[1])
ended = os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(sys.argv[2], [sys.argv[2], "quick_exit"], kept), 0)[1])
os.write(2, b"%d" % ended)
"""
# Empties its environment, and forks once somebody wrote into the pipe.
CLEARED = """import os, sys
if os.fork(): os._exit(0)
os.setsid()
os.close(1)
os.environ.clear()
os.chdir(sys.argv[1])
os.read(0, 1)
child = os.fork()
if child == 0:
    kept = [bytes(2000) for _ in range(3000)]
    sys.exit(0)
os.write(2, b"%d %d" % (child, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""
DOOMED = t.program("doomed", "quick_exit")


def work_place(name):
    place = pathlib.Path(t.fresh_path(name))
    place.mkdir()
    return place


def check_empty(what, place):
    t.check_equal(f"{what}: files where it worked", sorted(os.listdir(place)), [])


def check_in_run(what, options, is_exact):
    """Its events are those of the program's own account, and how it was recorded is how the run was."""
    place = work_place("served")
    plain = t.run([t.PYTHON, "-c", STARTER, place, *DOOMED], env={"LEDGER": t.fresh_path("plain")})
    result, path, accounts = ledger.recorded([t.PYTHON, "-c", STARTER, str(place), *DOOMED], options=options)
    result.check_like(what, plain)
    check_empty(what, place)
    found = ledger.reports(path)
    for pid, account in accounts.items():
        one = found.get(pid)
        if t.check(one, f"{what}: {pid} is not in the run"):
            if is_exact:
                ledger.check(what, one, account)
            t.check_equal(f"{what}: sampled", "sampling" in one, not is_exact)


def run_daemon(what, code, *arguments):
    """Its run is over, and so is the tool, when it goes on. Returns the run's path, and what it said."""
    path = t.fresh_path("daemon") + ".cairn"
    with subprocess.Popen([t.CAIRN, "run", "-q", "-o", path, "--", t.PYTHON, "-c", code, *arguments],
                          stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=t.environment({"LEDGER": t.fresh_path("late")})) as run:
        t.check_equal(f"{what}: the run's end", run.wait(timeout=t.TIMEOUT_S), 0)
        run.stdin.write(b"x")
        run.stdin.close()
        return path, run.stderr.read()


def check_after_run():
    place = work_place("later")
    _, said = run_daemon("after the run", LATER, str(place), DOOMED[0])
    t.check(said.isdigit(), f"after the run: what it started ended with {said}")
    check_empty("after the run", place)


def check_cleared():
    """Forks know their run without the variables too: they write into it, as they do with them."""
    place = work_place("cleared")
    path, said = run_daemon("cleared", CLEARED, str(place))
    child, status = map(int, said.split())
    t.check_equal("cleared: the fork's end", status, 0)
    check_empty("cleared", place)
    found = ledger.reports(path).get(child)
    t.check(found and found["totals"]["allocations"] >= 3000, "cleared: the fork's recording is missing")


def check_without_tool():
    """cairn run --exec and the variables of cairn env: nobody can be asked."""
    place = work_place("alone")
    path = t.fresh_path("exec") + ".cairn"
    result = t.run_cairn("run", "--exec", "-q", "-o", path, "--", t.PYTHON, "-c", STARTER, str(place), *DOOMED,
                         env={"LEDGER": t.fresh_path("exec")})
    t.check_equal("--exec: output", result.err, b"")
    check_empty("--exec", place)
    line = f'eval "$({t.CAIRN} env -o {t.fresh_path("env")}.cairn)"; exec "$@"'
    t.run(["sh", "-c", line, "sh", t.PYTHON, "-c", STARTER, str(place), *DOOMED],
          env={"LEDGER": t.fresh_path("env")})
    check_empty("cairn env", place)


def check_by_hand():
    """Nothing but LD_PRELOAD, in a run or not: the person who wrote it wants the file."""
    place = work_place("hand")
    t.run(DOOMED, env={"LD_PRELOAD": t.RUNTIME, "LEDGER": t.fresh_path("hand")}, cwd=place)
    t.check_equal("by hand: files", len(list(place.glob("doomed.*.cairn"))), 1)


check_in_run("recorded", [], True)
check_in_run("sampled", ["--sample", "--rate", "1K"], False)
check_after_run()
check_cleared()
check_without_tool()
check_by_hand()
t.finish()
