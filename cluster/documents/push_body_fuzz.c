/* Any body of a push: at a node without a state, and at one that holds the state of the fixture. */
#include "cluster/documents/push_body.h"

#include <assert.h>
#include <string.h>

#include "common/jsonx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char held[] =
    "{\"format\": 1, \"cluster\": \"c-fuzz\", \"term\": 1, \"version\": 7, \"term_version\": 1,"
    " \"next_bucket_id\": 3, \"primary\": \"p1\", \"smap\": {\"version\": 4, \"nodes\": []},"
    " \"bmd\": {\"version\": 2, \"buckets\": [{\"id\": 1, \"name\": \"b\", \"created\": 1,"
    " \"props\": {}}]}, \"config\": {\"version\": 1, \"values\": {\"a\": \"b\"}},"
    " \"jobs\": {\"version\": 1, \"jobs\": []}}";

static void try_at(const struct cluster_state *now, const uint8_t *data, size_t size)
{
    struct cluster_state *out;
    struct error err = ERROR_INIT;
    if (push_body_read(now, (const char *)data, size, &out, &err) != 0) {
        assert(out == NULL && err.message[0] != '\0');
        return;
    }
    if (out == NULL)
        return;
    _cleanup_free_ char *again = push_body_text(NULL, out);
    struct cluster_state *same;
    int r = push_body_read(now, again, strlen(again), &same, &err);
    assert(r == 0 && state_compare(same, out) == 0);
    (void)r;
    state_unref(same);
    state_unref(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_state_ const struct cluster_state *empty = state_new("");
    struct cluster_state *now;
    int r = push_body_read(empty, held, sizeof held - 1, &now, NULL);
    assert(r == 0);
    (void)r;
    try_at(empty, data, size);
    try_at(now, data, size);
    state_unref(now);
    return 0;
}
