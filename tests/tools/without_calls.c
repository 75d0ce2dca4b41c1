// SPDX-License-Identifier: Apache-2.0
// without_calls COMMAND [ARG ...]: runs a program as on a kernel that lacks what cairn can do
// without. System calls below give ENOSYS, kinds of madvise below EINVAL: what older kernels say.
// Not among them: getrandom, without which OpenSSL and node do not start, and MADV_WIPEONFORK,
// without which children of a raw clone are not told from their parent (docs/explain/trust.md).
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STATUS_NOT_FOUND = 127, RULES_MAX = 64, POPULATE_READ = 22, POPULATE_WRITE = 23 };

static const uint32_t calls[] = {
    SYS_pidfd_open, SYS_clone3,     SYS_statx, SYS_close_range,     SYS_process_madvise,
    SYS_openat2,    SYS_faccessat2, SYS_rseq,  SYS_copy_file_range, SYS_epoll_pwait2};
static const uint32_t advice[] = {POPULATE_READ, POPULATE_WRITE, MADV_COLD, MADV_PAGEOUT};

static struct sock_filter rules[RULES_MAX];
static unsigned short rule_count;

static void add(uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false) {
    rules[rule_count++] = (struct sock_filter){code, if_true, if_false, value};
}

// A comparison and its answer, for each.
static void refuse(const uint32_t *values, size_t count, uint32_t error) {
    for (size_t i = 0; i < count; i++) {
        add(BPF_JMP | BPF_JEQ | BPF_K, values[i], 0, 1);
        add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error, 0, 0);
    }
}

int main(int argc, char **argv) {
    const uint8_t of_madvise = 2 * sizeof advice / sizeof *advice + 1;
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    refuse(calls, sizeof calls / sizeof *calls, ENOSYS);
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, of_madvise);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]), 0, 0);
    refuse(advice, sizeof advice / sizeof *advice, EINVAL);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    struct sock_fprog filter = {.len = rule_count, .filter = rules};
    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        perror("without_calls");
        return 2;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "without_calls: %s: %s\n", argv[1], strerror(errno));
    return STATUS_NOT_FOUND;
}
