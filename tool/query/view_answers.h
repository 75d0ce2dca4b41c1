// SPDX-License-Identifier: Apache-2.0
// The functions of the table of views: the answer of each, which prints nothing.
#ifndef TOOL_QUERY_VIEW_ANSWERS_H
#define TOOL_QUERY_VIEW_ANSWERS_H

#include "tool/query/views.h"

view_answer_fn view_answer_groups;
view_answer_fn view_answer_threads;
view_answer_fn view_answer_regions;
view_answer_fn view_answer_contexts;
view_answer_fn view_answer_pools;
view_answer_fn view_answer_snapshots;
view_answer_fn view_answer_annotated;
view_answer_fn view_answer_memory;
view_answer_fn view_answer_processes;
view_answer_fn view_answer_tree;
view_answer_fn view_answer_temporary;
view_answer_fn view_answer_sizes;
view_answer_fn view_answer_ages;
view_answer_fn view_answer_heap_totals;
view_answer_fn view_answer_no_contents;

view_browse_fn view_browse_tree;

#endif
