// SPDX-License-Identifier: Apache-2.0
// Reports that the program asks for (include/cairn/cairn.h, cairn_report). The tool makes them: it
// is started beside the program, reads the recording as it is now and writes to the descriptor.
#ifndef RUNTIME_API_REPORT_H
#define RUNTIME_API_REPORT_H

#include "include/cairn/cairn.h"

int report_write(int descriptor, const char *form, cairn_rename rename, void *context);

#endif
