// SPDX-License-Identifier: Apache-2.0
#include "tool/render/trust_json.h"

#include "tool/model/left_out.h"

void trust_json_put_left_out(struct json *json, const struct recording *recording) {
    struct cairn_left_out list = {0};
    left_out_add_recording(&list, recording);
    if (!list.count) return;
    json_open_array(json, "not_recorded");
    for (size_t i = 0; i < CAIRN_LEFT_OUT_PROGRAMS; i++) {
        const struct cairn_left_out_program *program = &list.programs[i];
        if (!program->count) continue;
        json_open_object(json, NULL);
        json_put_string(json, "program", program->name);
        json_put_string(json, "reason", left_out_key(program->reason));
        json_put_uint(json, "count", program->count);
        json_close(json);
    }
    uint64_t unnamed = left_out_unnamed(&list);
    if (unnamed) {
        json_open_object(json, NULL);
        json_put_null(json, "program");
        json_put_string(json, "reason", "unknown");
        json_put_uint(json, "count", unnamed);
        json_close(json);
    }
    json_close(json);
}

void trust_json_put_looks(struct json *json, const struct recording *recording) {
    struct cairn_look look;
    if (!recording_look(recording, 0, &look)) return;
    json_open_array(json, "looks");
    for (size_t i = 0; recording_look(recording, i, &look); i++) {
        json_open_object(json, NULL);
        json_put_uint(json, "at_ns", look.at_ns);
        json_put_bool(json, "at_end", look.is_at_end);
        json_put_uint(json, "rss_bytes", look.rss_bytes);
        json_put_uint(json, "live_bytes", look.live_bytes);
        json_put_uint(json, "pause_ns", look.pause_ns);
        json_put_uint(json, "copied_bytes", look.copied_bytes);
        json_put_uint(json, "views", look.answer_count);
        json_put_string(json, "reason", look.reason[0] ? look.reason : NULL);
        json_close(json);
    }
    json_close(json);
}

void trust_json_put_unkept(struct json *json, const struct cairn_unkept *unkept) {
    if (!unkept->processes) return;
    json_open_object(json, "not_kept");
    json_put_uint(json, "processes", unkept->processes);
    json_put_uint(json, "allocations", unkept->allocations);
    json_put_uint(json, "allocated_bytes", unkept->allocated_bytes);
    json_close(json);
}
