// SPDX-License-Identifier: Apache-2.0
// One short conversation with the tool: hello, memfd, goodbye. The socket is in the abstract name
// space, so that chroot and file permissions do not matter; the tool checks who is asking.
#include "runtime/sink/tool_link.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include "format/format.h"
#include "format/hello.h"
#include "runtime/sys/sys.h"

enum { PATIENCE_SECONDS = 2, INTERRUPTIONS_MAX = 256 };

static void link_close(long socket) {
    sys_call(SYS_close, socket, 0, 0, 0, 0, 0);
}

static long link_connect(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strnlen(name, sizeof address.sun_path - 2);
    memcpy(address.sun_path + 1, name, length);
    long socket = sys_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0, 0, 0);
    if (socket < 0) return -1;
    struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    sys_call(SYS_setsockopt, socket, SOL_SOCKET, SO_RCVTIMEO, (long)&patience, sizeof patience, 0);
    sys_call(SYS_setsockopt, socket, SOL_SOCKET, SO_SNDTIMEO, (long)&patience, sizeof patience, 0);
    size_t size = offsetof(struct sockaddr_un, sun_path) + 1 + length;
    if (sys_call(SYS_connect, socket, (long)&address, (long)size, 0, 0, 0) == 0) return socket;
    link_close(socket);
    return -1;
}

static long link_receive(long socket, uint64_t patience_ns, struct tool_link_files *files) {
    char byte = 0;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof *files)];
    } control = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    *files = (struct tool_link_files){-1, -1};
    long got = -EINTR;
    // the tool may stop the process before it answers; and signals come, perhaps from a quick timer
    const uint64_t start_ns = sys_clock_ns();
    for (int i = 0;
         got == -EINTR && (i < INTERRUPTIONS_MAX || sys_clock_ns() - start_ns < patience_ns); i++)
        got = sys_call(SYS_recvmsg, socket, (long)&message, MSG_CMSG_CLOEXEC, 0, 0, 0);
    struct cmsghdr *attached = CMSG_FIRSTHDR(&message);
    if (got == 1 && attached && attached->cmsg_type == SCM_RIGHTS)
        memcpy(files, CMSG_DATA(attached),
               attached->cmsg_len < CMSG_LEN(sizeof *files) ? sizeof files->memory : sizeof *files);
    // no descriptor is left for it
    if (files->memory < 0 && message.msg_flags & MSG_CTRUNC) return -EMFILE;
    return got;
}

// False if there is no answer.
static bool link_say(const char *name, const struct cairn_hello *hello,
                     struct tool_link_files *files) {
    long socket = link_connect(name);
    if (socket < 0) return false;
    long sent = sys_call(SYS_sendto, socket, (long)hello, sizeof *hello, MSG_NOSIGNAL, 0, 0);
    long got = sent == sizeof *hello ? link_receive(socket, 0, files) : -1;
    link_close(socket);
    return got == 1;
}

enum tool_answer tool_link_ask(const char *name, uint32_t forked_from, uint64_t attachment,
                               struct tool_link_files *files) {
    const struct cairn_hello hello = {.magic = CAIRN_HELLO_MAGIC,
                                      .version = CAIRN_VERSION,
                                      .forked_from = forked_from,
                                      .attachment = attachment,
                                      .is_in_place = true};
    if (!link_say(name, &hello, files)) return TOOL_ABSENT;
    return files->memory < 0 ? TOOL_REFUSED : TOOL_GAVE;
}

bool tool_link_ask_variables(const char *name, char *text, size_t size) {
    const struct cairn_hello hello = {.magic = CAIRN_HELLO_VARIABLES_MAGIC,
                                      .version = CAIRN_VERSION};
    long socket = link_connect(name), got = -EINTR;
    if (socket < 0) return false;
    long sent = sys_call(SYS_sendto, socket, (long)&hello, sizeof hello, MSG_NOSIGNAL, 0, 0);
    for (int i = 0; sent == sizeof hello && got == -EINTR && i < INTERRUPTIONS_MAX; i++)
        got = sys_call(SYS_recvfrom, socket, (long)text, (long)size, 0, 0, 0);
    link_close(socket);
    return got > 1 && !text[got - 1] && !text[got - 2];
}

void tool_link_say_unrecorded(const char *name, const struct tool_link_unrecorded *unrecorded) {
    const char *program = unrecorded->program;
    struct cairn_hello hello = {.magic = CAIRN_HELLO_MAGIC,
                                .version = CAIRN_VERSION,
                                .attachment = (uint64_t)sys_tid(),
                                .unrecorded = unrecorded->reason,
                                .is_in_place = unrecorded->is_in_place,
                                .is_withdrawn = unrecorded->is_withdrawn};
    struct tool_link_files unused;
    memcpy(hello.program, program, strnlen(program, sizeof hello.program - 1));
    link_say(name, &hello, &unused);
}

bool tool_link_is_alive(const char *name) {
    long socket = link_connect(name);
    if (socket < 0) return false;
    link_close(socket);
    return true;
}

bool tool_link_say_end(const char *name, uint32_t wait_us) {
    const struct cairn_hello goodbye = {.magic = CAIRN_HELLO_END_MAGIC, .version = CAIRN_VERSION};
    enum { US_PER_S = 1000000, NS_PER_US = 1000 };
    const struct timeval patience = {.tv_sec = wait_us / US_PER_S, .tv_usec = wait_us % US_PER_S};
    struct tool_link_files unused;
    long socket = link_connect(name);
    if (socket < 0) return false;
    bool is_bounded = sys_call(SYS_setsockopt, socket, SOL_SOCKET, SO_RCVTIMEO, (long)&patience,
                               sizeof patience, 0) == 0;
    long sent = sys_call(SYS_sendto, socket, (long)&goodbye, sizeof goodbye,
                         MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
    bool is_heard = is_bounded && sent == sizeof goodbye &&
                    link_receive(socket, (uint64_t)wait_us * NS_PER_US, &unused) == 1;
    link_close(socket);
    return is_heard || tool_link_is_alive(name);  // it may have been killed meanwhile
}
