// SPDX-License-Identifier: Apache-2.0
// What names add to findings: stacks that read the same are one call site.
#include <stdlib.h>
#include <string.h>

#include "tool/render/findings.h"
#include "tool/render/findings_find.h"

size_t findings_nodes(const struct findings *findings, uint32_t nodes[FINDINGS_NODES_MAX]) {
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        if (finding->stack) nodes[count++] = finding->stack->node;
        if (finding->free_node != TREE_ROOT) nodes[count++] = finding->free_node;
        for (size_t j = 0; j < finding->stacks.count; j++)
            nodes[count++] = finding->stacks.list[j].stack->node;
    }
    for (size_t i = 0; i < findings->growth.count; i++)
        nodes[count++] = findings->growth.list[i].stack->node;
    return count;
}

bool findings_own_frame(const struct profile *profile, const struct frame_names *names,
                        uint32_t node, bool are_all_shown, const struct frame **frame) {
    struct frame_list frames = {.are_all_shown = are_all_shown};
    bool is_ok = frame_list_fill(&frames, profile, names, node, 0);
    *frame = is_ok ? frame_list_first_own(&frames) : NULL;
    frame_list_free(&frames);
    return is_ok;
}

// Labels of call sites: stacks with equal ones are one on the screen.
struct sites {
    char labels[GROWTH_STACKS_MAX][FRAME_TEXT_BYTES];
    size_t count;
};

static bool add_site(struct sites *sites, const struct profile *profile,
                     const struct frame_names *names, const struct stack *stack) {
    return finding_label(profile, names, stack, false, sites->labels[sites->count++]);
}

static bool is_same_site(const struct sites *sites, size_t a, size_t b) {
    return !strcmp(sites->labels[a], sites->labels[b]);
}

// Chooses the call site whose stacks have most together. One that holds what was never touched is
// named only if it must have more than half of it, whatever the others have; what was there before
// cairn attached has no call site.
static void choose_site(struct finding *finding, const struct sites *sites) {
    const struct finding_stacks *stacks = &finding->stacks;
    uint64_t all = stacks->rest;
    finding->part = 0;
    for (size_t i = 0; i < stacks->count; i++) {
        uint64_t part = 0;
        for (size_t j = 0; j < stacks->count; j++)
            if (is_same_site(sites, i, j)) part += stacks->list[j].part;
        all += stacks->list[i].part;
        if (part <= finding->part) continue;
        finding->part = part;
        finding->stack = stacks->list[i].stack;
    }
    if (finding->kind != FINDING_UNTOUCHED) return;
    if (all - finding->part >= finding->bytes / 2 || !finding->stack->allocations)
        finding->stack = NULL;
}

static bool choose_sites(struct findings *findings, const struct profile *profile,
                         const struct frame_names *names, struct sites *sites) {
    for (size_t i = 0; i < findings->count; i++) {
        struct finding *finding = &findings->list[i];
        sites->count = 0;
        for (size_t j = 0; j < finding->stacks.count; j++)
            if (!add_site(sites, profile, names, finding->stacks.list[j].stack)) return false;
        if (finding->stacks.count) choose_site(finding, sites);
    }
    return true;
}

// Takes away findings of stacks that are freed elsewhere.
static bool drop_contradicted(struct findings *findings, const struct profile *profile,
                              const struct frame_names *names) {
    size_t kept = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        const struct frame *allocates = NULL, *frees = NULL;
        bool is_about_two = finding->stack && finding->free_node != TREE_ROOT;
        if (is_about_two &&
            (!findings_own_frame(profile, names, finding->stack->node, false, &allocates) ||
             !findings_own_frame(profile, names, finding->free_node, false, &frees)))
            return false;
        bool is_one = allocates && frees && allocates->function && frees->function &&
                      frame_is_same_function(allocates, frees);
        if (!is_about_two || is_one) findings->list[kept++] = *finding;
    }
    findings->count = kept;
    return true;
}

static void drop_growth(struct findings *findings) {
    size_t kept = 0;
    for (size_t i = 0; i < findings->count; i++)
        if (findings->list[i].kind != FINDING_GROWTH) findings->list[kept++] = findings->list[i];
    findings->count = kept;
}

// Adds up the stacks of the call site of stack `first`, which is the first of them.
static struct finding growth_of_site(const struct finding_growth *growth, const struct sites *sites,
                                     size_t first) {
    struct finding finding = finding_of_growth(growth, first);
    for (size_t i = first + 1; i < growth->count; i++) {
        const struct growth_stack *how = &growth->list[i].how;
        bool is_alike = !how->has_stalled && (how->freed_bytes != 0) == finding.is_freed;
        if (!is_alike || !is_same_site(sites, first, i)) continue;
        finding_add_growth(&finding, how);
    }
    return finding;
}

static bool is_told(const struct finding_growth *growth, const struct sites *sites, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (is_same_site(sites, i, index) &&
            !growth->list[i].how.freed_bytes == !growth->list[index].how.freed_bytes)
            return true;
    return false;
}

// Puts call sites that grow in the place of the one stack that was found without names.
static bool settle_growth(struct findings *findings, const struct profile *profile,
                          const struct frame_names *names, struct sites *sites) {
    const struct finding_growth *growth = &findings->growth;
    size_t told = 0;
    sites->count = 0;
    for (size_t i = 0; i < growth->count; i++)
        if (!add_site(sites, profile, names, growth->list[i].stack)) return false;
    drop_growth(findings);
    for (size_t i = 0; i < growth->count && told < GROWTH_FINDINGS_MAX; i++) {
        if (growth->list[i].how.has_stalled || is_told(growth, sites, i)) continue;
        struct finding finding = growth_of_site(growth, sites, i);
        if (!finding_growth_is_much(&finding, profile)) continue;
        findings->list[findings->count++] = finding;
        told++;
    }
    return true;
}

bool findings_settle(struct findings *findings, const struct profile *profile,
                     const struct frame_names *names, struct error *error) {
    struct sites *sites = calloc(1, sizeof *sites);
    bool is_ok = sites && choose_sites(findings, profile, names, sites) &&
                 drop_contradicted(findings, profile, names) &&
                 settle_growth(findings, profile, names, sites);
    free(sites);
    findings_sort(findings);
    return is_ok || error_set(error, "no memory for a stack");
}
