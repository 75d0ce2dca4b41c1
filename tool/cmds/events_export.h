// SPDX-License-Identifier: Apache-2.0
// The events of a log in other formats.
#ifndef TOOL_CMDS_EVENTS_EXPORT_H
#define TOOL_CMDS_EVENTS_EXPORT_H

#include <stdio.h>

#include "tool/cmds/events_session.h"

typedef bool events_write_fn(FILE *out, struct events_session *session, struct error *error);

// A line an event, with a head line.
bool events_write_csv(FILE *out, struct events_session *session, struct error *error);

// The same as a table for engines (tool/export/parquet_file.h).
bool events_write_parquet(FILE *out, struct events_session *session, struct error *error);

// The interpreted form of heaptrack's recordings (version 3, gzip), which heaptrack_print reads.
bool events_write_heaptrack(FILE *out, struct events_session *session, struct error *error);

#endif
