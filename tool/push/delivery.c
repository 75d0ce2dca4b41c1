// SPDX-License-Identifier: Apache-2.0
#include "tool/push/delivery.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "tool/base/clock.h"
#include "tool/base/text.h"

static const uint64_t first_pause_ns = CLOCK_SECOND_NS;
static const uint64_t longest_pause_ns = 300 * CLOCK_SECOND_NS;
// Longer than any engine says for good reason, shorter than what it takes.
static const uint64_t longest_wish_s = 600;

enum verdict { VERDICT_SENT, VERDICT_AGAIN, VERDICT_REFUSED };

enum {
    STATUS_SUCCESS = 200,
    STATUS_MOVED = 300,
    STATUS_CLIENT = 400,
    STATUS_SERVER = 500,
};

static enum verdict judge(const struct outcome *outcome) {
    // of our settings or of the engine's state, not of this request
    static const unsigned may_pass[] = {401, 403, 404, 405, 408, 429};
    if (outcome->status >= STATUS_SUCCESS && outcome->status < STATUS_MOVED)
        return outcome->is_page ? VERDICT_AGAIN : VERDICT_SENT;
    if (outcome->status < STATUS_CLIENT || outcome->status >= STATUS_SERVER) return VERDICT_AGAIN;
    for (size_t i = 0; i < sizeof may_pass / sizeof *may_pass; i++)
        if (outcome->status == may_pass[i]) return VERDICT_AGAIN;
    return VERDICT_REFUSED;
}

static void say(const struct outcome *outcome, struct error *said) {
    char text[2 * sizeof outcome->text];
    text_escape(text, sizeof text, outcome->text);
    if (!outcome->status)
        error_set(said, "%s", *text ? text : "no answer");
    else if (outcome->is_page)
        error_set(said, "it answers %u with a page of HTML, as no engine does", outcome->status);
    else
        error_set(said, "it answers %u%s%s", outcome->status, *text ? ": " : "", text);
}

// Up to a quarter longer, at random: so that many hosts do not come back at one time.
static uint64_t spread(uint64_t ns) {
    const uint64_t shares = 4;
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) return ns;
    return ns + random % (ns / shares + 1);
}

static void back_off(struct delivery *delivery, uint64_t wish_s, uint64_t now_ns) {
    uint64_t pause_ns = delivery->pause_ns ? 2 * delivery->pause_ns : first_pause_ns;
    if (pause_ns > longest_pause_ns) pause_ns = longest_pause_ns;
    delivery->pause_ns = pause_ns;
    if (wish_s > longest_wish_s) wish_s = longest_wish_s;
    if (pause_ns < wish_s * CLOCK_SECOND_NS) pause_ns = wish_s * CLOCK_SECOND_NS;
    delivery->next_ns = now_ns + spread(pause_ns);
}

// The requests that were in flight are the first ones of the queue.
static void take(struct delivery *delivery, const struct outcome *outcomes, uint64_t now_ns) {
    size_t count = delivery->in_flight, at = 0;
    const struct outcome *failed = NULL;
    bool has_answer = false;
    delivery->in_flight = 0;
    for (size_t i = 0; i < count; i++) {
        enum verdict verdict = judge(&outcomes[i]);
        delivery->tries++;
        if (verdict == VERDICT_AGAIN) {
            delivery->failures++;
            failed = failed ? failed : &outcomes[i];
            at++;
            continue;
        }
        has_answer = true;
        delivery->sent += verdict == VERDICT_SENT;
        if (verdict == VERDICT_SENT)
            delivery->sent_bytes += delivery->queue->requests.items[at].bytes;
        delivery->refused += verdict == VERDICT_REFUSED;
        if (verdict == VERDICT_REFUSED) say(&outcomes[i], &delivery->refusal);
        queue_remove(delivery->queue, at);
    }
    if (has_answer) delivery->pause_ns = 0;
    if (failed) {
        say(failed, &delivery->problem);
        back_off(delivery, failed->retry_after_s, now_ns);
    } else {
        delivery->next_ns = now_ns;
    }
}

static void drop_old(struct delivery *delivery, uint64_t unix_ns) {
    struct queue *queue = delivery->queue;
    while (queue->requests.count &&
           queue->requests.items[0].made_unix_ns + delivery->age_most_ns < unix_ns) {
        queue_remove(queue, 0);
        delivery->too_old++;
    }
}

// One alone while it is not known whether anybody is there.
static size_t batch_of(const struct delivery *delivery) {
    size_t most = delivery->pause_ns ? 1 : DELIVERY_BATCH, count = delivery->queue->requests.count;
    return count < most ? count : most;
}

uint64_t delivery_turn(struct delivery *delivery, uint64_t now_ns, uint64_t unix_ns) {
    struct outcome outcomes[DELIVERY_BATCH];
    if (delivery->in_flight) {
        if (!delivery->sender.poll(delivery->sender.context, outcomes, delivery->in_flight))
            return UINT64_MAX;
        take(delivery, outcomes, now_ns);
    }
    drop_old(delivery, unix_ns);
    size_t count = batch_of(delivery);
    if (!count) return UINT64_MAX;
    if (now_ns < delivery->next_ns) return delivery->next_ns;
    struct error error;
    if (delivery->sender.begin(delivery->sender.context, delivery->queue, count, &error)) {
        delivery->in_flight = count;
        return UINT64_MAX;
    }
    delivery->problem = error;
    delivery->failures++;
    back_off(delivery, 0, now_ns);
    return delivery->next_ns;
}
