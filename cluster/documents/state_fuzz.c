/* Any JSON either is refused with a sentence, or is a state: one that survives its own JSON form,
 * whose names are what they must be, and by which objects have owners, whatever was in the
 * document. */
#include "cluster/documents/state.h"

#include <assert.h>

#include "cluster/documents/delta.h"
#include "cluster/placement/owners.h"
#include "common/jsonx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_names(const struct cluster_state *s)
{
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        assert(node_id_check(n->id, NULL) == 0 && smap_node(&s->smap, n->id) == n);
    }
    for (size_t i = 0; i < s->bmd.count; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        assert(bucket_name_check(b->name, NULL) == 0 && bmd_bucket(&s->bmd, b->name) == b);
        assert(b->id > 0 && b->id < s->next_bucket_id);
    }
}

static void check_owners(const struct cluster_state *s)
{
    for (size_t i = 0; i < s->bmd.count; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        const struct node *nodes[OWNERS_ASKED_MAX];
        struct owners o;
        owners_of(s, b, "name", &o);
        assert(o.count <= OWNERS_MAX);
        assert(o.acting == NULL || owners_has(&o, o.acting->id));
        const char *self = o.count > 0 ? o.all[0]->id : "t1";
        assert(owners_readers(s, b, &o, nodes) <= o.count);
        assert(owners_others(&o, self, nodes) <= o.count);
        assert(owners_asked(s, b, "name", self, nodes) <= OWNERS_ASKED_MAX);
        size_t former = owners_former(s, b, "name", self, nodes);
        assert(former <= OWNERS_ASKED_MAX);
        owners_know(s, b, "name", nodes, former);
        owners_good_suffice(s, b);
        owners_not_asked(s, b, "name");
    }
}

static void check_round_trip(const struct cluster_state *s)
{
    _cleanup_json_ json_t *doc = state_to_json(s);
    struct cluster_state *again;
    assert(doc != NULL);
    int r = state_from_json(doc, &again, NULL);
    assert(r == 0 && state_compare(s, again) == 0);
    (void)r;
    _cleanup_json_ json_t *doc_again = state_to_json(again);
    assert(json_equal(doc, doc_again));
    state_unref(again);
}

/* The same bytes as a delta to the state, or to an empty one. */
static void try_patch(const struct cluster_state *s, json_t *doc)
{
    struct cluster_state *next;
    struct error err = ERROR_INIT;
    if (state_patch(s, doc, &next, &err) != 0) {
        assert(err.message[0] != '\0');
        return;
    }
    assert(state_compare(next, s) > 0);
    check_names(next);
    check_owners(next);
    state_unref(next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_json_ json_t *doc = NULL;
    struct cluster_state *s = NULL;
    struct error err = ERROR_INIT;
    if (json_parse((const char *)data, size, &doc, NULL) != 0)
        return 0;
    if (state_from_json(doc, &s, &err) == 0) {
        check_names(s);
        check_owners(s);
        check_round_trip(s);
    } else {
        assert(err.code != 0 && err.message[0] != '\0');
        s = state_new("c-fuzz");
    }
    try_patch(s, doc);
    state_unref(s);
    return 0;
}
