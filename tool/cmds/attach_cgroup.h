// SPDX-License-Identifier: Apache-2.0
// `cairn attach --cgroup PATH --when 'rss>85%' --keep DIR`: waits outside of a cgroup until its
// memory runs short, and then keeps what can be known of its largest processes before the kernel
// kills one (evidence.h). Where enough is left it records what they do from then on as well.
#ifndef TOOL_CMDS_ATTACH_CGROUP_H
#define TOOL_CMDS_ATTACH_CGROUP_H

#include "tool/query/arguments.h"

// The status to end with; what went wrong is printed.
int attach_cgroup(const struct command_args *args);

#endif
