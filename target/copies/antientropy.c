#include "target/copies/antientropy.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/placement/owners.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/copies/copies.h"
#include "target/disk/index_merge.h"
#include "target/copies/dirty_worker.h"
#include "target/node/target.h"
#include "target/copies/dirty.h"

enum {
    PAUSE_FIRST_MS = 20,
    PAUSE_MAX_MS = 2000,
    TRIES_FEW = 6,  /* about a second: then the others' turn comes first */
    TRIES_MAX = 40, /* about a minute: others may be restarting */
    CHOICES_PER_SECOND = 4,
};

struct item {
    struct dirty_name name;
    struct owners owners;
    uint64_t size; /* of its bytes here */
    bool visible;  /* no tombstone */
    bool chosen;   /* it is being looked at, or brought, now */
    bool over;     /* everybody has it, or the bucket is gone, or it is left for later */
    bool due;      /* it was found lacking, and is to be brought */
    bool aside;    /* it resists: it is paid for, and tried again when the others are there */
    bool lacking;
    unsigned whole, short_of; /* other owners who have said that they have it, and who have not */
    uint64_t to_bring;        /* bytes that they lacked altogether since it was chosen */
    bool mine;                /* this target is an owner */
};

/* Names of one index. */
struct batch {
    const struct antientropy *spec;
    uint64_t bucket_id;
    size_t count;
    struct item items[DIRTY_AT_ONCE];
    uint64_t brought;  /* bytes, of the chosen ones */
    struct error why;  /* somebody could not be asked */
    struct error away; /* an owner that cannot be asked, and has to */
    struct error lack; /* an owner that was asked lacks something */
    char last[ATTR_NAME_MAX + 1];
    bool more;
};

/* --- the names -------------------------------------------------------------------------------- */

static void take(struct batch *b, const char *name, const struct index_record *rec)
{
    struct item *it = &b->items[b->count];
    const struct antientropy *s = b->spec;
    /* Its job gives it to all owners, or takes it back. */
    if (object_job_hides(s->target->store, rec->job))
        return;
    bool passed = s->walk != NULL && s->walk->passed(s->ctx, b->bucket_id, name);
    job_tally_looked(s->tally, passed);
    if (passed)
        return;
    *it = (struct item){
        .size = rec->sliced ? 0 : rec->size, .visible = !rec->tombstone, .chosen = true};
    it->name = (struct dirty_name){
        .bucket_id = b->bucket_id, .version = rec->version, .name = xstrdup(name)};
    b->count++;
}

static int collect(struct batch *b, struct mountpath *mp, struct error *err)
{
    struct index_merge m = {.count = 0};
    const struct index_cursor *c;
    int code = index_merge_open(&m, b->spec->target->mountpaths, mp, b->bucket_id, err);
    if (code == 0)
        code = index_merge_seek(&m, b->last, *b->last != '\0', err);
    b->more = false;
    for (size_t steps = 0; code == 0 && (c = index_merge_least(&m)) != NULL; steps++) {
        b->more = b->count == DIRTY_AT_ONCE || steps == INDEX_STEPS_MAX;
        if (b->more)
            break;
        snprintf(b->last, sizeof b->last, "%s", index_cursor_name(c));
        take(b, b->last, index_cursor_record(c));
        code = index_merge_skip(&m, b->last, err);
    }
    index_merge_close(&m);
    return code;
}

static void take_content(struct dirty_name *n, const struct object_held *held)
{
    n->rank = held->rank;
    n->has_content = held->slices == 0 && !held->damaged;
    n->size = held->size;
    n->checksum = held->checksum;
}

/* Owners that have this version without something that users see (attr_rank.h) lack it, too.  The
 * index does not know it. */
static void rank(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        struct item *it = &b->items[i];
        struct object_held held;
        if (it->visible &&
            object_look(b->spec->target->store, b->bucket_id, it->name.name, &held, NULL) == 0 &&
            held.found && version_compare(&held.version, &it->name.version) == 0)
            take_content(&it->name, &held);
    }
}

static void forget(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        free(b->items[i].name.name);
    b->count = 0;
}

/* --- one round -------------------------------------------------------------------------------- */

static bool owes(const struct item *it, const struct node *n)
{
    for (size_t i = 0; i < it->owners.count && it->chosen && !it->over; i++) {
        if (it->owners.all[i] == n)
            return true;
    }
    return false;
}

static void ask_node(struct batch *b, const struct cluster_state *s, const struct node *n)
{
    const struct dirty_name *names[DIRTY_AT_ONCE];
    struct item *asked[DIRTY_AT_ONCE];
    bool yes[DIRTY_AT_ONCE];
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++) {
        if (owes(&b->items[i], n)) {
            asked[count] = &b->items[i];
            names[count++] = &b->items[i].name;
        }
    }
    if (count == 0)
        return;
    int code = dirty_ask(b->spec->target, s, n, DIRTY_IS_HELD, names, count, yes, &b->why);
    for (size_t i = 0; i < count; i++) {
        bool lacks = code != 0 || !yes[i];
        asked[i]->lacking = asked[i]->lacking || lacks;
        asked[i]->short_of += lacks;
        asked[i]->whole += !lacks;
        if (lacks)
            error_set(&b->lack, E_NOT_READY,
                      "target '%s' did not take all objects: 'dfcctl object show' says why", n->id);
    }
}

/* Those of which somebody lacks what is here, to the owner that acts. */
static void tell_node(struct batch *b, const struct cluster_state *s, const struct node *n)
{
    const struct dirty_name *names[DIRTY_AT_ONCE];
    bool yes[DIRTY_AT_ONCE];
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++) {
        const struct item *it = &b->items[i];
        if (it->chosen && !it->over && it->lacking && it->owners.acting == n)
            names[count++] = &it->name;
    }
    if (count > 0)
        (void)dirty_ask(b->spec->target, s, n, DIRTY_WANTED, names, count, yes, &b->why);
}

/* What is not ours: the owners have it, or it is somebody else's to see to. */
static bool is_left(const struct antientropy *spec, const struct cluster_state *s,
                    const struct bucket *b, const char *name)
{
    return spec->strange == NULL || (spec->passes != NULL && spec->passes(spec->ctx, s, b, name));
}

static void begin_round(struct batch *b, const struct cluster_state *s)
{
    const struct bucket *bucket = bmd_bucket_by_id(&s->bmd, b->bucket_id);
    b->why = b->away = b->lack = ERROR_INIT;
    for (size_t i = 0; i < b->count; i++) {
        struct item *it = &b->items[i];
        it->lacking = false;
        it->whole = it->short_of = 0;
        it->over = it->over || bucket == NULL;
        if (it->over || !it->chosen)
            continue;
        owners_of(s, bucket, it->name.name, &it->owners);
        it->mine = owners_has(&it->owners, b->spec->target->id);
        it->over = !it->mine && is_left(b->spec, s, bucket, it->name.name);
    }
}

/* One that is away is passed over where this target keeps what it has. */
static void take_away(struct batch *b, const struct node *n)
{
    for (size_t i = 0; i < b->count; i++) {
        struct item *it = &b->items[i];
        if (!owes(it, n) || it->mine || b->spec->strange == NULL)
            continue;
        it->lacking = true;
        error_set(&b->away, E_NODE_UNREACHABLE, "target '%s' is %s", n->id,
                  n->absent_since != 0 ? "absent" : node_state_name(n->state));
    }
}

static void look(struct batch *b, const struct cluster_state *s)
{
    begin_round(b, s);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (strcmp(n->id, b->spec->target->id) == 0)
            continue;
        if (n->state == NODE_ACTIVE && node_is_present(n))
            ask_node(b, s, n);
        else
            take_away(b, n);
    }
}

static void tell(struct batch *b, const struct cluster_state *s)
{
    for (size_t i = 0; i < s->smap.count; i++) {
        if (s->smap.nodes[i].state == NODE_ACTIVE)
            tell_node(b, s, &s->smap.nodes[i]);
    }
}

/* How many of the chosen ones are left. */
static size_t end_round(struct batch *b)
{
    const struct antientropy *s = b->spec;
    size_t left = 0;
    for (size_t i = 0; i < b->count; i++) {
        struct item *it = &b->items[i];
        if (it->over || !it->chosen)
            continue;
        uint64_t bytes = it->short_of * it->size;
        it->to_bring = it->to_bring > bytes ? it->to_bring : bytes;
        if (it->lacking) {
            left++;
            continue;
        }
        it->over = true;
        if (it->due) {
            job_tally_done(s->tally, it->to_bring);
            b->brought += it->aside ? 0 : it->to_bring;
        }
        if (!it->mine && s->strange != NULL)
            s->strange(s->ctx, b->bucket_id, it->name.name, &it->name.version);
    }
    return left;
}

/* --- rounds ----------------------------------------------------------------------------------- */

static void give_up(struct batch *b)
{
    const struct antientropy *s = b->spec;
    const struct error *why = &b->lack;
    if (b->why.code != 0)
        why = &b->why;
    else if (b->away.code != 0)
        why = &b->away;
    for (size_t i = 0; i < b->count; i++) {
        struct item *it = &b->items[i];
        if (it->over || !it->chosen)
            continue;
        log_error("object not on all its owners", lstr("name", it->name.name), lerr(why));
        job_tally_fail(s->tally, it->name.name, why);
        if (s->walk != NULL)
            s->walk->resists(s->ctx, b->bucket_id, it->name.name);
        it->over = true;
    }
}

/* What is found lacking, all names being chosen, is due now or left for later. */
static int look_at_all(struct batch *b, struct error *err)
{
    const struct antientropy *s = b->spec;
    _cleanup_state_ const struct cluster_state *state = state_current(s->target->state);
    int code = s->check(s->ctx, state, err);
    if (code != 0)
        return code;
    look(b, state);
    size_t left = end_round(b);
    for (size_t i = 0; i < b->count; i++) {
        struct item *it = &b->items[i];
        it->due = !it->over && (s->put_off == NULL || it->whole == 0);
        if (it->over || it->due)
            continue;
        it->over = true;
        *s->put_off = true;
        left--;
    }
    job_tally_expect(s->tally, left);
    return 0;
}

/* The chosen ones, until nobody lacks any of them, or for so many tries none has got any further.
 */
static int bring(struct batch *b, size_t left, int tries_max, struct error *err)
{
    const struct antientropy *s = b->spec;
    uint64_t pause_ms = PAUSE_FIRST_MS;
    for (int tries = 0; tries < tries_max; tries++) {
        _cleanup_state_ const struct cluster_state *state = state_current(s->target->state);
        int code = s->check(s->ctx, state, err);
        if (code != 0)
            return code;
        look(b, state);
        size_t now_left = end_round(b);
        if (now_left == 0)
            return 0;
        if (now_left < left)
            tries = 0;
        left = now_left;
        tell(b, state);
        if (!job_stop_pause(s->stop, pause_ms))
            return error_set(err, E_ABORTED, "the job was stopped");
        pause_ms = 2 * pause_ms < PAUSE_MAX_MS ? 2 * pause_ms : PAUSE_MAX_MS;
    }
    return 0;
}

/* The next ones that are to be brought: one, or as many as the rate allows in a moment. */
static size_t choose(struct batch *b, uint64_t rate_bytes_s)
{
    size_t count = 0;
    uint64_t bytes = 0, most = rate_bytes_s == 0 ? UINT64_MAX : rate_bytes_s / CHOICES_PER_SECOND;
    for (size_t i = 0; i < b->count; i++) {
        struct item *it = &b->items[i];
        it->chosen = !it->over && !it->aside && (count == 0 || bytes + it->to_bring <= most);
        if (!it->chosen)
            continue;
        count++;
        bytes += it->to_bring;
        it->to_bring = 0; /* somebody else may have brought it by now */
    }
    b->brought = 0;
    return count;
}

/* Those of the chosen ones that are not there yet.  They may be on their way, and so have their
 * share of the rate now. */
static void set_aside(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        struct item *it = &b->items[i];
        if (it->over || !it->chosen)
            continue;
        it->aside = true;
        it->name.rank = 0; /* the acting target may be of an earlier build, which knows neither */
        it->name.has_content = false;
        b->brought += it->to_bring;
    }
}

/* What has been brought of them before counts, too. */
static size_t choose_aside(struct batch *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++) {
        b->items[i].chosen = !b->items[i].over;
        count += b->items[i].chosen;
    }
    b->brought = 0;
    return count;
}

static int compare_batch(struct batch *b, struct error *err)
{
    const struct antientropy *s = b->spec;
    int code = look_at_all(b, err);
    size_t count;
    while (code == 0 && (count = choose(b, job_pace_rate(s->pace))) > 0) {
        code = bring(b, count, TRIES_FEW, err);
        if (code != 0)
            return code;
        set_aside(b);
        if (!job_pace_wait(s->pace, b->brought))
            return error_set(err, E_ABORTED, "the job was stopped");
    }
    if (code == 0 && (count = choose_aside(b)) > 0)
        code = bring(b, count, TRIES_MAX, err);
    if (code == 0)
        give_up(b);
    return code;
}

int antientropy_bucket(const struct antientropy *s, struct mountpath *mp, uint64_t bucket_id,
                       struct error *err)
{
    struct batch *b = xcalloc(1, sizeof *b);
    *b = (struct batch){.spec = s, .bucket_id = bucket_id, .more = true};
    int code = 0;
    while (code == 0 && b->more && !s->stop->wanted) {
        code = collect(b, mp, err);
        rank(b);
        if (code == 0 && b->count > 0)
            code = compare_batch(b, err);
        if (code == 0 && s->walk != NULL)
            s->walk->reached(s->ctx, bucket_id, b->last);
        forget(b);
    }
    free(b);
    if (code == 0 && s->stop->wanted)
        return error_set(err, E_ABORTED, "the job was stopped");
    return code;
}
