// SPDX-License-Identifier: Apache-2.0
// Metrics as Prometheus' remote write takes them: text of the form that is scraped as a
// WriteRequest (prometheus/prompb), in snappy's block format.
#ifndef TOOL_PUSH_REMOTE_WRITE_H
#define TOOL_PUSH_REMOTE_WRITE_H

#include "tool/base/protobuf.h"
#include "tool/export/export.h"

// Every row of the text becomes a series with these labels beside its own, which come first.
bool remote_write_encode(const char *metrics, const struct export_label *labels, size_t count,
                         uint64_t unix_ns, struct byte_buffer *request, struct error *error);

// All of it as literals: valid for every reader, and as long as before. False without memory.
bool snappy_pack(const struct byte_buffer *plain, struct byte_buffer *packed);

#endif
