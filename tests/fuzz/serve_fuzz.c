// SPDX-License-Identifier: Apache-2.0
// What clients of cairn serve write, and what its user writes: the first byte says what the rest
// is. Whatever it is, it is taken or refused, and what is taken is within its bounds.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tool/export/metrics.h"
#include "tool/serve/access.h"
#include "tool/serve/listen.h"
#include "tool/serve/requests.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void require(bool is_right) {
    if (!is_right) abort();
}

static void try_access(const char *text) {
    static const struct access_rule rule = {.token = "correct-horse-battery"}, none = {.token = ""};
    if (access_is_allowed(&rule, text)) require(strchr(text, ' ') != NULL);
    require(access_is_allowed(&none, text));
    access_host_is_right(&none, text);
    require(access_host_is_right(&rule, text));
}

static void try_address(const char *text) {
    struct listen_address address;
    struct error error = {""};
    if (!listen_address_parse(text, &address, &error))
        require(*error.text);
    else
        require(address.length > 0 && address.length <= sizeof address.address);
}

static void try_path(const char *text) {
    unsigned seconds;
    pid_t pid = -1;
    const char *rest = text;
    if (request_cut_pid(&rest, &pid)) require(pid >= 0 && rest > text && (!*rest || *rest == '/'));
    if (request_seconds(text, &seconds)) require(seconds <= REQUEST_SECONDS_MAX);
    metrics_form_wanted(text);
}

// Without a zero at the end.
static void try_addresses(const char *text, const char *end) {
    uint64_t address;
    for (const char *at = text; request_next_address(&text, end, &address); at = text)
        require(text > at && text <= end);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    enum { KINDS = 4 };
    if (!count) return 0;
    char *text = malloc(count);
    if (!text) return 0;
    memcpy(text, bytes + 1, count - 1);
    if (*bytes % KINDS == 0) try_addresses(text, text + count - 1);
    text[count - 1] = 0;
    if (*bytes % KINDS == 1) try_access(text);
    if (*bytes % KINDS == 2) try_address(text);
    if (*bytes % KINDS == 3) try_path(text);
    free(text);
    return 0;
}
