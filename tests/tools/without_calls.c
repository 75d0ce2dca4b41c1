// SPDX-License-Identifier: Apache-2.0
// without_calls [--NAME,NAME...] COMMAND [ARG ...]: runs a program as on a kernel that lacks the
// calls with these names, all of the table below with --all; --list prints the names. A call that
// is missing gives ENOSYS, a kind of madvise, fcntl or a flag of mmap EINVAL, a request of ptrace
// EIO: what older kernels say. (Of a flag that mmap does not know they say nothing; what asks for
// it has to look at the address all the same.)
//
// Without names: what every program can do without. Not getrandom, without which OpenSSL and node
// do not start, nor what costs cairn something: memfd_create and MADV_WIPEONFORK
// (tests/e2e/old_kernels.py).
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STATUS_NOT_FOUND = 127, RULES_MAX = 512, NO_ARGUMENT = -1 };
enum { POPULATE_READ = 22, POPULATE_WRITE = 23, WIPE_ON_FORK = 18, GET_SIGNAL_MASK = 0x420a };
enum { FIXED_NOREPLACE = 0x100000 };

// A call, or where `argument` is one of its arguments, the calls with this value there; `is_flag`:
// with this bit.
struct row {
    const char *name;
    uint32_t call;
    int argument;
    uint32_t value, error;
    bool is_flag, is_usual;
};

#define CALL(name, is_usual)                                                                       \
    { #name, SYS_##name, NO_ARGUMENT, 0, ENOSYS, false, is_usual }
#define KIND(name, value, is_usual)                                                                \
    { name, SYS_madvise, 2, value, EINVAL, false, is_usual }

static const struct row rows[] = {
    CALL(pidfd_open, true),
    CALL(clone3, true),
    CALL(statx, true),
    CALL(close_range, true),
    CALL(process_madvise, true),
    CALL(openat2, true),
    CALL(faccessat2, true),
    CALL(rseq, true),
    CALL(copy_file_range, true),
    CALL(epoll_pwait2, true),
    KIND("MADV_POPULATE_READ", POPULATE_READ, true),
    KIND("MADV_POPULATE_WRITE", POPULATE_WRITE, true),
    KIND("MADV_COLD", MADV_COLD, true),
    KIND("MADV_PAGEOUT", MADV_PAGEOUT, true),
    KIND("MADV_WIPEONFORK", WIPE_ON_FORK, false),
    KIND("MADV_FREE", MADV_FREE, false),
    CALL(memfd_create, false),
    CALL(getrandom, false),
    CALL(renameat2, false),
    CALL(execveat, false),
    CALL(membarrier, false),
    CALL(preadv2, false),
    CALL(pwritev2, false),
    CALL(sched_setattr, false),
    CALL(sched_getattr, false),
    CALL(mlock2, false),
    CALL(userfaultfd, false),
    CALL(pidfd_send_signal, false),
    {"F_ADD_SEALS", SYS_fcntl, 1, F_ADD_SEALS, EINVAL, false, false},
    {"PTRACE_GETSIGMASK", SYS_ptrace, 0, GET_SIGNAL_MASK, EIO, false, false},
    {"MAP_FIXED_NOREPLACE", SYS_mmap, 3, FIXED_NOREPLACE, EINVAL, true, false},
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

static struct sock_filter rules[RULES_MAX];
static unsigned short rule_count;

static void add(uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false) {
    rules[rule_count++] = (struct sock_filter){code, if_true, if_false, value};
}

// Each row begins and ends with the number of the call in the filter's register.
static void refuse(const struct row *row) {
    const uint32_t number = offsetof(struct seccomp_data, nr),
                   answer = SECCOMP_RET_ERRNO | row->error;
    if (row->argument == NO_ARGUMENT) {
        add(BPF_JMP | BPF_JEQ | BPF_K, row->call, 0, 1);
        add(BPF_RET | BPF_K, answer, 0, 0);
        return;
    }
    const uint32_t at =
        (uint32_t)(offsetof(struct seccomp_data, args) + (size_t)row->argument * sizeof(uint64_t));
    add(BPF_JMP | BPF_JEQ | BPF_K, row->call, 0, 4);
    add(BPF_LD | BPF_W | BPF_ABS, at, 0, 0);
    add(BPF_JMP | (row->is_flag ? BPF_JSET : BPF_JEQ) | BPF_K, row->value, 0, 1);
    add(BPF_RET | BPF_K, answer, 0, 0);
    add(BPF_LD | BPF_W | BPF_ABS, number, 0, 0);
}

// Whether the comma-separated names have this one.
static bool is_named(const char *names, const char *name) {
    size_t length = strlen(name);
    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, length) && (at[length] == ',' || !at[length])) return true;
    return false;
}

static bool is_chosen(const struct row *row, const char *names) {
    return names ? !strcmp(names, "all") || is_named(names, row->name) : row->is_usual;
}

static int list(void) {
    for (size_t i = 0; i < ROW_COUNT; i++) puts(rows[i].name);
    return 0;
}

int main(int argc, char **argv) {
    const char *names = argc > 1 && !strncmp(argv[1], "--", 2) ? argv[1] + 2 : NULL;
    char **command = argv + (names ? 2 : 1);
    size_t chosen = 0;
    if (names && !strcmp(names, "list")) return list();
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (!is_chosen(&rows[i], names)) continue;
        refuse(&rows[i]);
        chosen++;
    }
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    struct sock_fprog filter = {.len = rule_count, .filter = rules};
    if (!chosen || argc < (names ? 3 : 2)) {
        fprintf(stderr, "without_calls: no command, or none of its names\n");
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        perror("without_calls");
        return 2;
    }
    execvp(*command, command);
    fprintf(stderr, "without_calls: %s: %s\n", *command, strerror(errno));
    return STATUS_NOT_FOUND;
}
