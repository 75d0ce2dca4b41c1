#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Static programs that are not as a linker leaves them, or live under a policy: that give up the right to make memory
executable, by PR_SET_MDWE or a filter; whose address space has no room near their code; that read their own code; packed
ones, by UPX if it is here, and by a file in memory. Each does as it does without cairn, and is recorded whole, or refused
or named with the reason."""

import os
import pathlib
import shutil
import struct
import subprocess

import cairn_test as t
import ledger
import static_counter
from attached import Attached, files_mapped

WORK = """
#include <stdlib.h>
__attribute__((noinline)) static void work(void) {
    for (int i = 0; i < 100; i++)
        if (!malloc(1000)) abort();
}
"""
LEAF = WORK + """
#include <stdio.h>
int main(void) {
    work();
    puts("worked");
    return 5;
}
"""
# Puts itself under a policy, by its first word; becomes its second, or works when it is told to.
POLICY = WORK + """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { SET_MDWE = 65, RANGES = 64, ARGUMENT = 2 };
static const unsigned long lowest = 1 << 16, far = 4ul << 30;
static int forbid(int number) {
    struct sock_filter rows[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
                                 BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[ARGUMENT])),
                                 BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {sizeof rows / sizeof *rows, rows};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}
static void keep(unsigned long from, unsigned long to) {
    if (to > from)
        mmap((void *)from, to - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
// Nothing is free within 4 GiB of the code.
static int fill(void) {
    static unsigned long ranges[RANGES][2];
    char line[300];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) && count < RANGES) {
        sscanf(line, "%lx-%lx", &ranges[count][0], &ranges[count][1]);
        count++;
    }
    fclose(maps);
    unsigned long end = lowest;
    for (int i = 0; i < count; i++) {
        keep(end, ranges[i][0] - end < far ? ranges[i][0] : end + far);
        end = ranges[i][1];
    }
    return 0;
}
int main(int count, char **words) {
    const char *how = words[1];
    if (!strcmp(how, "mdwe") && prctl(SET_MDWE, 1, 0, 0, 0)) return 77;
    if (!strcmp(how, "mmap") && forbid(SYS_mmap)) return 77;
    if (!strcmp(how, "mprotect") && forbid(SYS_mprotect)) return 77;
    if (!strcmp(how, "full") && fill()) return 77;
    if (count > 2) {
        execv(words[2], words + 2);
        return 9;
    }
    puts("ready");
    fflush(stdout);
    getchar();
    work();
    return 5;
}
"""
# Compares its code with its file's, and says which functions differ in how many of their bytes, beyond which nothing may.
SELF = WORK + """
#include <elf.h>
#include <stdio.h>
#include <string.h>
extern const char __ehdr_start[];
int main(void) {
    static char file[4 << 20];
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    FILE *self = fopen("/proc/self/exe", "r");
    size_t bytes = fread(file, 1, sizeof file, self), places = 0, last = 0;
    fclose(self);
    work();
    const Elf64_Phdr *segment = (const Elf64_Phdr *)(file + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++, segment++)
        for (size_t k = 0; segment->p_type == PT_LOAD && segment->p_flags & PF_X && k < segment->p_filesz; k++)
            if (((const char *)segment->p_vaddr)[k] != file[segment->p_offset + k]) {
                if (!places || k - last >= 5) places++, last = k;
            }
    printf("%zu\\n", bytes < sizeof file ? places : 0);
    return 5;
}
"""
# A packer that needs none: the program is its own end, in a file in memory.
PACKED = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    static char file[4 << 20];
    long program = 0;
    FILE *self = fopen("/proc/self/exe", "r");
    size_t bytes = fread(file, 1, sizeof file, self);
    memcpy(&program, file + bytes - sizeof program, sizeof program);
    int out = memfd_create("program", MFD_CLOEXEC);
    if (write(out, file + bytes - sizeof program - program, program) != program) return 1;
    fexecve(out, words, environ);
    return count + 8;
}
"""


def build(name, text):
    source = pathlib.Path(f"{name}.c")
    source.write_text(text, "ascii")
    output = str(pathlib.Path(name).absolute())
    return output if static_counter.must(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-w", "-fno-builtin", "-static", source, "-o",
                                          output]) else None


def check_worked(what, found, has_names=True):
    work = t.stacks_through(found, "work") if has_names else [s for s in found["stacks"] if s["allocations"] == 100]
    t.check_equal(f"{what}: blocks", [(s["allocations"], s["allocated_bytes"]) for s in work], [(100, 100_000)])
    t.check_nothing_lost(what, found)


def reports_of(what, argv, options=()):
    """All recordings of a run, which ends as it does without cairn."""
    plain, path = t.run(argv), t.fresh_path("run")
    result = t.run_cairn("run", "-q", *options, "-o", path, "--", *argv)
    t.check_equal(f"{what}: end", (result.status, result.out), (plain.status, plain.out), is_grave=True)
    return [found for found in (t.report(file) for file in ledger.files(path)) if found] if os.path.exists(path) else []


def check_refused(what, argv, *said):
    result = t.run_cairn("run", "-q", "-o", t.fresh_path("refused"), "--", *argv)
    t.check(result.status == 125 and result.out == b"" and all(word in result.err.decode() for word in said),
            f"{what}: status {result.status}, {result.out!r}, {result.err!r}")


def check_named(what, starter, program, how="none"):
    named = [(one["program"], one["reason"]) for found in reports_of(what, [starter, how, program])
             for one in found["trust"]["not_recorded"]]
    t.check_equal(f"{what}: named", named, [(os.path.basename(program), "static")])


class Waiting:
    """The program under a policy, until it is told to work."""

    def __init__(self, policy, how):
        self.process = subprocess.Popen([policy, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment())
        self.is_there = self.process.stdout.readline() == b"ready\n"

    def end(self, what):
        self.process.communicate(b"\n", timeout=t.PATIENCE_S)
        t.check_equal(f"{what}: its end", self.process.returncode, 5, is_grave=True)


def check_attach_refused(policy, how, *said, options=()):
    waiting = Waiting(policy, how)
    mapped = files_mapped(waiting.process.pid)
    result = t.run_cairn("attach", str(waiting.process.pid), "--record-for", "10ms", "-o", t.fresh_path("refused"), *options)
    t.check(result.status == 1 and all(word in result.err.decode() for word in said),
            f"attach, {how}: status {result.status}, {result.err!r}")
    t.check_equal(f"attach, {how}: nothing is left", files_mapped(waiting.process.pid), mapped)
    waiting.end(f"attach, {how}")


def attach_without_right(policy):
    """Memory that may not become executable: the library's is so from the first."""
    waiting = Waiting(policy, "mdwe")
    if not waiting.is_there:
        t.skip_part("PR_SET_MDWE, which this kernel lacks (6.3)")
        return
    attached = Attached(waiting.process.pid, "--exact", "--no-scan-heap")
    waiting.end("attach, mdwe")
    check_worked("attach, mdwe", attached.leave(lambda: None))


def without_room(leaf):
    """All but the lowest addresses belong to the program, by a part of it that has nothing in the file."""
    low = str(pathlib.Path("low").absolute())
    static_counter.must(["gcc", "-O1", "-g", "-fno-builtin", "-static", "-Wl,-Ttext-segment=0x10000", "leaf.c", "-o", low])
    data, loaded, note = bytearray(pathlib.Path(low).read_bytes()), 1, 4
    (headers,), (count,) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<H", data, 56)
    rows = [struct.unpack_from("<IIQQQQQQ", data, headers + 56 * i) for i in range(count)]
    last = max(i for i, row in enumerate(rows) if row[0] == loaded)
    place = next(i for i, row in enumerate(rows) if row[0] == note and i > last)
    end = (rows[last][3] + rows[last][6] + 0xfffff) & ~0xfffff
    struct.pack_into("<IIQQQQQQ", data, headers + 56 * place, loaded, 4, 0, end, end, 0, 3 << 30, 4096)
    wide = pathlib.Path("wide").absolute()
    wide.write_bytes(data)
    wide.chmod(0o755)
    if t.run([wide]).status != t.run([leaf]).status:
        t.skip_part("a program without room near its code, which this kernel does not load")
        return None
    check_refused("no room", [wide], "no free memory near its executable")
    return str(wide)


def packed(leaf, policy):
    stub, self_made = build("packed", PACKED), pathlib.Path("self-made").absolute()
    body = pathlib.Path(leaf).read_bytes()
    self_made.write_bytes(pathlib.Path(stub).read_bytes() + body + struct.pack("<q", len(body)))
    self_made.chmod(0o755)
    found = reports_of("packed, in memory", [self_made])
    t.check_equal("packed, in memory: recorded", len(found), 1)
    for one in found:
        check_worked("packed, in memory", one, has_names=False)  # the file is gone with the process
    if not shutil.which("upx"):
        t.skip_part("UPX, since there is no upx")
        return
    upx = shutil.copy(leaf, "by-upx")
    static_counter.must(["upx", "-q", upx])
    check_refused("UPX", [os.path.abspath(upx)], "no symbol says where its malloc is")
    check_named("UPX", policy, os.path.abspath(upx))


def reads_itself():
    """Of its code a program finds the jumps and nothing else changed; its file is its own."""
    self = build("self", SELF)
    path = t.fresh_path("self")
    plain, result = t.run([self]), t.run_cairn("run", "-q", "-o", path, "--", self)
    t.check_equal("reads itself, without cairn", (plain.status, plain.out), (5, b"0\n"))
    t.check_equal("reads itself: status", result.status, 5)
    t.check(0 < int(result.out or 0) < 40, f"reads itself: {result.out} functions begin with a jump")
    check_worked("reads itself", t.report(path))


t.need("gcc", "strip")
leaf, policy = build("leaf", LEAF), build("policy", POLICY)
for how in ("mdwe", "mprotect"):
    if t.run([policy, how, leaf]).status != 77:
        found = [one for one in reports_of(f"start, {how}", [policy, how, leaf]) if t.stacks_through(one, "work")]
        t.check_equal(f"start, {how}: recorded", len(found), 1)
        for one in found:
            check_worked(f"start, {how}", one)
check_named("start, mmap", policy, leaf, "mmap")
wide = without_room(leaf)
if wide:
    check_named("no room, as a child", policy, wide)
packed(leaf, policy)
reads_itself()
if not t.need_attach():
    attach_without_right(policy)
    check_attach_refused(policy, "full", "no free memory near its executable")
    check_attach_refused(policy, "mprotect", "a seccomp filter is in force")
    check_attach_refused(policy, "mmap", "memory", options=["--ignore-checks"])
t.finish()
