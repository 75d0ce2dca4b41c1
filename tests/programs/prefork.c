// SPDX-License-Identifier: Apache-2.0
// A server that forks workers, to be attached to with all of them: `prefork`. It does what it is
// told on stdin, a line each, and answers with a line:
//   worker            forks a worker; its pid
//   program           the same, and the child becomes this program again (exec)
//   become PATH       a child that becomes that program; its pid
//   do PID N SIZE     worker PID keeps N more blocks
//   fork PID          worker PID forks a worker, which is told what to do by nobody; its pid
//   end PID           ends worker PID; its status: 7, if every block was what it should be
//   crowd N           N children, one after the other, that allocate and end
//   own N SIZE        keeps N more blocks itself
//   quit              ends; its workers allocate and free from then on until they are ended
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS_MAX = 64, KEPT_MAX = 1 << 16, SOUND = 7, DAMAGED = 9, PAUSE_US = 1000 };

struct order {
    enum { DO, FORK, END } what;
    size_t count, size;
};

static struct worker {
    pid_t pid;
    int socket;
} workers[WORKERS_MAX];
static size_t workers_count;

static struct {
    unsigned char *bytes;
    size_t size;
} kept[KEPT_MAX];
static size_t kept_count;

__attribute__((noinline)) static void keep(size_t count, size_t size) {
    while (count-- && kept_count < KEPT_MAX) {
        kept[kept_count].bytes = malloc(size);
        kept[kept_count].size = size;
        memset(kept[kept_count].bytes, (int)(kept_count & 0xff), size);
        kept_count++;
    }
}

static int look_at_kept(void) {
    int status = SOUND;
    for (size_t i = 0; i < kept_count; i++)
        for (size_t at = 0; at < kept[i].size; at++)
            if (kept[i].bytes[at] != (i & 0xff)) status = DAMAGED;
    return status;
}

// Nobody tells it what to do any more.
static void go_on(void) {
    for (;;) {
        void *volatile block = malloc(PAUSE_US);
        free(block);
        usleep(PAUSE_US);
    }
}

static pid_t fork_idle(void) {
    pid_t pid = fork();
    if (pid == 0) go_on();
    return pid;
}

static void work(int socket) {
    struct order order;
    while (read(socket, &order, sizeof order) == sizeof order) {
        pid_t answer = 0;
        if (order.what == END) _exit(look_at_kept());
        if (order.what == DO) keep(order.count, order.size);
        if (order.what == FORK) answer = fork_idle();
        if (write(socket, &answer, sizeof answer) != sizeof answer) break;
    }
    go_on();
}

// `path`: NULL: a worker by fork alone.
static void start(const char *path) {
    int ends[2];
    char number[16];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends)) exit(3);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        if (!path) work(ends[1]);
        snprintf(number, sizeof number, "%d", ends[1]);
        execl(path, path, "worker", number, (char *)NULL);
        _exit(4);
    }
    close(ends[1]);
    workers[workers_count++] = (struct worker){pid, ends[0]};
    printf("%d\n", (int)pid);
}

static void order(pid_t pid, struct order order) {
    pid_t answer = 0;
    for (size_t i = 0; i < workers_count; i++) {
        if (workers[i].pid != pid) continue;
        if (write(workers[i].socket, &order, sizeof order) != sizeof order ||
            (order.what != END && read(workers[i].socket, &answer, sizeof answer) != sizeof answer))
            exit(5);
    }
    if (order.what != END) printf("%d\n", (int)answer);
}

static void end_worker(pid_t pid) {
    int status = 0;
    order(pid, (struct order){.what = END});
    for (size_t i = 0; i < workers_count; i++)
        if (workers[i].pid == pid) {
            close(workers[i].socket);
            workers[i] = workers[--workers_count];
        }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void crowd(size_t count) {
    enum { BLOCKS = 100, BYTES = 50 };
    while (count--) {
        pid_t pid = fork();
        if (pid == 0) {
            keep(BLOCKS, BYTES);
            _exit(look_at_kept());
        }
        int status = 0;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        if (WEXITSTATUS(status) != SOUND) exit(6);
    }
    puts("done");
}

static void obey(const char *own, char *line) {
    size_t count = 0, size = 0;
    int pid = 0;
    line[strcspn(line, "\n")] = 0;
    if (!strcmp(line, "worker")) {
        start(NULL);
    } else if (!strcmp(line, "program")) {
        start(own);
    } else if (!strncmp(line, "become ", 7)) {
        start(line + 7);
    } else if (sscanf(line, "do %d %zu %zu", &pid, &count, &size) == 3) {
        order(pid, (struct order){DO, count, size});
    } else if (sscanf(line, "fork %d", &pid) == 1) {
        order(pid, (struct order){.what = FORK});
    } else if (sscanf(line, "end %d", &pid) == 1) {
        end_worker(pid);
    } else if (sscanf(line, "crowd %zu", &count) == 1) {
        crowd(count);
    } else if (sscanf(line, "own %zu %zu", &count, &size) == 2) {
        keep(count, size);
        puts("done");
    } else if (!strcmp(line, "quit")) {
        printf("%s\n", look_at_kept() == SOUND ? "sound" : "damaged");
        exit(SOUND);
    } else {
        puts("what?");
    }
}

int main(int count, char **arguments) {
    char line[512];
    if (count > 2) work((int)strtol(arguments[2], NULL, 10));
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) obey(arguments[0], line);
    return 0;
}
