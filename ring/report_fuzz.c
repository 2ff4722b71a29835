/* Whatever is taken for a report comes back as it was, and a keeper makes generations of exactly
 * cap samples of it.  The same bytes as an answer are taken or refused. */
#include "ring/report.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/jsonx.h"

enum { ANSWERS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_keeper(const char *node, const struct ring_report *reports, size_t count)
{
    struct ring_keeper *k = ring_keeper_new();
    const struct ring_rules rules = {.cap = 3, .keep = 5, .fresh_ms = 10};
    struct ring_head next;
    ring_keeper_load(k, NULL);
    ring_keeper_report(k, node, reports, count, 1);
    while (ring_keeper_head(k)->generation < 10 &&
           ring_keeper_plan(k, &rules, RING_WHEN_FULL, 1, 1, &next)) {
        for (size_t i = 0; i < next.generations_count; i++)
            assert(next.generations[i].samples == rules.cap);
        const bool drops = next.generation == ring_keeper_head(k)->generation;
        ring_keeper_stored(k, &next);
        if (drops)
            break;
    }
    for (size_t i = 0; i < count; i++) {
        const struct ring_answer a = ring_keeper_answer(k, &reports[i]);
        assert(a.release <= RING_ORDINAL_MAX && a.taken <= RING_ORDINAL_MAX);
    }
    ring_keeper_free(k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *node, *node_again;
    size_t count, count_again;
    _cleanup_free_ struct ring_report *reports = NULL, *again = NULL;
    struct ring_answer answers[ANSWERS];
    if (json_parse((const char *)data, size, &doc, NULL) != 0)
        return 0;
    for (size_t i = 0; i <= ANSWERS; i++)
        (void)ring_answers_from_json(doc, answers, i, NULL);
    if (ring_reports_from_json(doc, &node, &reports, &count, NULL) != 0)
        return 0;
    _cleanup_json_ json_t *printed = ring_reports_to_json(node, reports, count);
    assert(ring_reports_from_json(printed, &node_again, &again, &count_again, NULL) == 0);
    _cleanup_json_ json_t *twice = ring_reports_to_json(node_again, again, count_again);
    assert(count_again == count && json_equal(printed, twice));
    try_keeper(node, reports, count);
    return 0;
}
