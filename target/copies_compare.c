#include "target/copies_compare.h"

#include <string.h>
#include <unistd.h>

#include "cluster/owners.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"
#include "target/copies.h"
#include "target/copies_plan.h"
#include "target/earlier.h"
#include "target/object_copy.h"
#include "target/pull.h"
#include "target/target.h"
#include "target/unsettled.h"

struct comparison {
    struct target *target;
    const struct cluster_state *state;
    const struct bucket *bucket;
    const char *name;
    size_t count;
    const struct node *nodes[OWNERS_ASKED_MAX];
    struct object_held held[OWNERS_ASKED_MAX];
    bool lacks[OWNERS_ASKED_MAX];
    struct object_held self;
    struct owners owners;
    struct copies_verdict verdict;
};

static int ask_all(struct comparison *c, struct error *err)
{
    struct target *t = c->target;
    c->count = owners_asked(c->state, c->bucket, c->name, t->id, c->nodes);
    int code = object_look(t->store, c->bucket->id, c->name, &c->self, err);
    if (code != 0)
        return code;
    return earlier_ask_nodes(t, c->state, c->nodes, c->count, c->bucket->id, c->name, c->held, err);
}

static int bring(const struct comparison *c, struct error *err)
{
    const struct pull pull = {.target = c->target,
                              .state = c->state,
                              .bucket = c->bucket,
                              .name = c->name,
                              .from = c->nodes[c->verdict.best],
                              .held = &c->held[c->verdict.best]};
    return pull_object(&pull, err);
}

static int send_one(const struct comparison *c, const struct object *o, const struct node *to,
                    struct error *err)
{
    const struct object_copy copy = {
        .from = o, .bucket_id = c->bucket->id, .name = c->name, .moves = true, .to = to->id};
    int code = object_copy(c->target->copier, &copy, err);
    if (code == E_NOT_MODIFIED)
        return 0;
    return code != 0
               ? error_recode(err, E_NODE_UNREACHABLE, "send '%s' to target '%s'", c->name, to->id)
               : 0;
}

/* To those who own it now: who did before loses it anyway. */
static int send_to_lacking(const struct comparison *c, struct error *err)
{
    struct object o;
    int code = object_open_held(c->target->store, c->bucket->id, c->name, &o, err);
    if (code != 0)
        return code;
    for (size_t i = 0; i < c->count && code == 0; i++) {
        if (c->lacks[i] && owners_has(&c->owners, c->nodes[i]->id))
            code = send_one(c, &o, c->nodes[i], err);
    }
    close(o.fd);
    return code;
}

static bool owners_lack(const struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->lacks[i] && owners_has(&c->owners, c->nodes[i]->id))
            return true;
    }
    return false;
}

static int even_out(struct comparison *c, struct error *err)
{
    struct unsettled *u = c->target->copies->unsettled;
    const struct version *v = &c->verdict.version;
    int code = 0;
    unsettled_mark(u, c->bucket->id, c->name, v, clock_ms());
    if (c->verdict.self_lacks)
        code = bring(c, err);
    if (code == 0 && owners_lack(c))
        code = send_to_lacking(c, err);
    if (code == 0)
        unsettled_settle(u, c->bucket->id, c->name, v);
    return code;
}

int copies_compare_all(struct target *t, const struct cluster_state *s, const struct bucket *b,
                       const char *name, struct error *err)
{
    if (fault_skips("copies.compare"))
        return 0;
    struct comparison *c = xcalloc(1, sizeof *c);
    c->target = t;
    c->state = s;
    c->bucket = b;
    c->name = name;
    owners_of(s, b, name, &c->owners);
    int code = ask_all(c, err);
    if (code == 0) {
        copies_compare(&c->self, c->held, c->count, &c->verdict, c->lacks);
        if (c->verdict.found)
            code = even_out(c, err);
    }
    free(c);
    return code;
}
