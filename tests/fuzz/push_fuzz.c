// SPDX-License-Identifier: Apache-2.0
// Any bytes as what others tell cairn push: after a letter that says which, what curl printed, with
// an engine's answers in it (c), a file of the queue (q), or metrics that are sent on (m).
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tool/push/curl.h"
#include "tool/push/remote_write.h"

static void require(bool is_true) {
    if (!is_true) abort();
}

static void check_outcomes(char *text, size_t size) {
    struct outcome outcomes[DELIVERY_BATCH];
    curl_read_outcomes(text, size, "MARK ", outcomes, DELIVERY_BATCH);
    for (size_t i = 0; i < DELIVERY_BATCH; i++) {
        require(strlen(outcomes[i].text) < sizeof outcomes[i].text);
        require(!strpbrk(outcomes[i].text, "\r\n"));
    }
}

static void check_request(char *text, size_t size) {
    struct queue_request request;
    if (!queue_parse_request(text, size, &request)) return;
    for (const char *c = request.query; *c; c++) require(*c > ' ' && *c != '"' && *c != '\\');
}

static void check_metrics(char *text, size_t size) {
    const struct export_label labels[] = {{"instance", "host"}, {"job", "cairn"}};
    struct byte_buffer request = {0}, packed = {0};
    struct error error;
    text[size] = 0;
    if (remote_write_encode(text, labels, 2, 1, &request, &error)) {
        require(snappy_pack(&request, &packed));
        require(packed.size > request.size);
    }
    byte_buffer_free(&request);
    byte_buffer_free(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (!size) return 0;
    char *text = malloc(size);  // with room for the 0 in the letter's place
    require(text);
    memcpy(text, bytes + 1, size - 1);
    text[size - 1] = 0;
    if (*bytes == 'c') check_outcomes(text, size - 1);
    if (*bytes == 'q') check_request(text, size - 1);
    if (*bytes == 'm') check_metrics(text, size - 1);
    free(text);
    return 0;
}
