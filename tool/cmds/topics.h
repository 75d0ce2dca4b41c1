// SPDX-License-Identifier: Apache-2.0
// Pages of `cairn help TOPIC`: how to go about a question.
#ifndef TOOL_CMDS_TOPICS_H
#define TOOL_CMDS_TOPICS_H

struct topic {
    const char *name;
    const char *title;
    const char *text;
};

extern const struct topic topics[];  // ends with name NULL

#endif
