#include "target/copies_compare.h"

#include <string.h>
#include <unistd.h>

#include "cluster/owners.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/copies.h"
#include "target/copies_plan.h"
#include "target/earlier.h"
#include "target/object_copy.h"
#include "target/pull.h"
#include "target/repair_wanted.h"
#include "target/settle.h"
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

static int bring_from(const struct comparison *c, size_t i, struct error *err)
{
    const struct pull pull = {.target = c->target,
                              .state = c->state,
                              .bucket = c->bucket,
                              .name = c->name,
                              .from = c->nodes[i],
                              .held = &c->held[i]};
    return pull_object(&pull, err);
}

/* It does not know that what it has is damaged. */
static void tell_of_doubt(const struct comparison *c, size_t i)
{
    bool yes;
    struct error err = ERROR_INIT;
    struct unsettled_name name = {.bucket_id = c->bucket->id, .name = (char *)c->name};
    const struct unsettled_name *names[] = {&name};
    if (settle_ask(c->target, c->state, c->nodes[i], SETTLE_DOUBTED, names, 1, &yes, &err) != 0)
        log_warn("target not told of a damaged copy", lstr("target", c->nodes[i]->id),
                 lstr("name", c->name), lerr(&err));
}

/* From any of those who have it, until one gives it as it should be. */
static int bring(const struct comparison *c, struct error *err)
{
    int code = E_CORRUPT;
    for (size_t i = 0; i < c->count && code == E_CORRUPT; i++) {
        const struct object_held *h = &c->held[i];
        if (!h->found || h->damaged || version_compare(&h->version, &c->verdict.version) != 0)
            continue;
        code = bring_from(c, i, err);
        if (code == E_CORRUPT)
            tell_of_doubt(c, i);
    }
    return code;
}

static int send_one(const struct comparison *c, const struct object *o, const struct node *to,
                    struct error *err)
{
    const struct object_copy copy = {
        .from = o, .bucket_id = c->bucket->id, .name = c->name, .moves = true, .to = to->id};
    int code = object_copy(c->target->copier, &copy, err);
    if (code == E_NOT_MODIFIED)
        return 0;
    if (code == E_CHECKSUM) /* what is here is damaged */
        repair_wanted(c->target, c->bucket->id, c->name);
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
    if (c->verdict.damaged)
        return error_set(err, E_CORRUPT, "no owner of '%s' has its bytes any more", c->name);
    unsettled_mark(u, c->bucket->id, c->name, v, clock_ms());
    if (c->verdict.self_lacks)
        code = bring(c, err);
    if (code == 0 && owners_lack(c))
        code = send_to_lacking(c, err);
    return code;
}

/* All owners have what there is.  A mark of more than that, which was here before anybody was
 * asked, is of a commit that failed: what is marked is seen, or is not, before the name's lock is
 * given back, and nobody else commits by the map by which this target acts. */
static void settle(const struct comparison *c, const struct version *marked)
{
    struct unsettled *u = c->target->copies->unsettled;
    const struct version *v = &c->verdict.version;
    bool more = !c->verdict.found || version_compare(marked, v) > 0;
    unsettled_settle(u, c->bucket->id, c->name, more ? marked : v);
}

int copies_compare_all(struct target *t, const struct cluster_state *s, const struct bucket *b,
                       const char *name, struct object_held *lost, struct error *err)
{
    if (fault_skips("copies.compare"))
        return 0;
    struct comparison *c = xcalloc(1, sizeof *c);
    c->target = t;
    c->state = s;
    c->bucket = b;
    c->name = name;
    owners_of(s, b, name, &c->owners);
    struct version marked;
    (void)unsettled_upto(t->copies->unsettled, b->id, name, &marked);
    int code = ask_all(c, err);
    if (code == 0) {
        copies_compare(&c->self, c->held, c->count, &c->verdict, c->lacks);
        if (c->verdict.found)
            code = even_out(c, err);
        if (code == E_CORRUPT && lost != NULL)
            *lost = c->verdict.best == COPIES_SELF ? c->self : c->held[c->verdict.best];
    }
    if (code == 0)
        settle(c, &marked);
    free(c);
    return code;
}
