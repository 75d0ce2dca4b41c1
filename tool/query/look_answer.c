// SPDX-License-Identifier: Apache-2.0
#include "tool/query/look_answer.h"

#include <stdio.h>

#include "tool/base/text.h"
#include "tool/proc/process.h"

void look_answer_of(struct look_answer *of, const struct heap_look *look, struct answer *answer) {
    text_escape(of->subject, sizeof of->subject, look->name);
    answer->subject = of->subject;
    answer_fact_text(answer, "core", look->is_core ? look->name : NULL);
    answer_fact_known(answer, "pause_ns", ANSWER_TIME, (int64_t)look->live.pause_ns,
                      !look->is_core);
    if (look->is_core) return;
    answer->pid = (uint32_t)look->pid;
    answer->program = process_name(look->pid, of->program) ? of->program : NULL;
}

void look_answer_claims(struct answer *answer, const struct claim *claims, size_t count) {
    char sentence[CLAIM_SENTENCE_BYTES];
    claim_sentence(claims, answer->options->is_plain_number, sentence);
    snprintf(answer->title, sizeof answer->title, "%.*s", (int)sizeof answer->title - 1, sentence);
    answer->claims = claims;
    answer->claim_count = count;
}

bool look_answer_print(const struct request *request, struct answer *answer, struct error *error) {
    FILE *out = request->out ? request->out : stdout;
    const struct terminal terminal = terminal_of(out);
    bool is_ok = request->form ? request->form->print(out, answer, error)
                               : answer_print_text(&terminal, answer, error);
    answer_close(answer);
    return is_ok;
}
