// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/stack_end.h"

#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/proc/process.h"
#include "tool/proc/remote.h"

enum { WORD = 8, PAGES_AT_ONCE = 16, SEARCHED_BYTES = 16 << 20 };

struct search {
    struct remote remote;
    uint64_t end;
};

// Finds whether the process has a thread of this number.
static bool is_thread(pid_t pid, uint32_t tid) {
    char name[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES];
    if (!tid || tid > INT32_MAX) return false;
    snprintf(name, sizeof name, "task/%u", tid);
    process_path(path, pid, name);
    return !access(path, F_OK);
}

// Tells whether the libc's data of a thread begin there: the places of the thread's number in glibc
// since 2.4 and in musl since 1.2.
static bool begins_thread(const struct search *search, uint64_t address) {
    enum { MUSL_TID = 48, GLIBC_TID = 720, GLIBC_SELF = 16 };
    uint64_t words[GLIBC_TID / WORD + 1] = {0};
    if (search->end - address < sizeof words) return false;
    if (!remote_read_present(&search->remote, address, words, sizeof words)) return false;
    if (words[GLIBC_SELF / WORD] == address &&
        is_thread(search->remote.pid, (uint32_t)words[GLIBC_TID / WORD]))
        return true;
    return is_thread(search->remote.pid, (uint32_t)words[MUSL_TID / WORD]);
}

// Returns the first address in a piece of memory at which a thread's data begin; 0: none.
static uint64_t find_in(const struct search *search, uint64_t at, const uint64_t *words,
                        size_t count) {
    for (size_t i = 0; i < count; i++)
        if (words[i] == at + i * WORD && begins_thread(search, words[i])) return words[i];
    return 0;
}

static uint64_t find_from(const struct search *search, uint64_t at, uint64_t end) {
    const uint64_t page_bytes = search->remote.pagemap.page_bytes;
    uint64_t words[4096 / WORD];
    uint8_t flags[PAGES_AT_ONCE];
    for (; at < end; at += PAGES_AT_ONCE * page_bytes) {
        const uint64_t left = (end - at) / page_bytes;
        const size_t count = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        memset(flags, 0, sizeof flags);
        pagemap_flags(&search->remote.pagemap, at, count, flags);
        for (uint64_t piece = at; piece < at + count * page_bytes; piece += sizeof words) {
            if (!(flags[(piece - at) / page_bytes] & PAGE_RESIDENT)) continue;
            if (!remote_read(&search->remote, piece, words, sizeof words)) continue;
            const uint64_t found = find_in(search, piece, words, sizeof words / WORD);
            if (found) return found;
        }
    }
    return 0;
}

uint64_t stack_end_find(pid_t pid, const struct pagemap *pagemap, uint64_t start, uint64_t end) {
    struct search search = {remote_of(pid), end};
    const uint64_t page_bytes = pagemap->page_bytes;
    if (pagemap->file < 0 || end - start < 2 * page_bytes) return 0;
    search.remote.pagemap = *pagemap;
    // most stacks are a mapping of their own
    uint64_t found = find_from(&search, end - 2 * page_bytes, end);
    const uint64_t most = end - start < SEARCHED_BYTES ? end : start + SEARCHED_BYTES;
    if (!found) found = find_from(&search, start, most);
    if (!found) return 0;
    found = (found + STACK_THREAD_BYTES + page_bytes - 1) / page_bytes * page_bytes;
    return found < end ? found : end;
}
