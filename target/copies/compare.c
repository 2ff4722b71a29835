#include "target/copies/compare.h"

#include <string.h>
#include <unistd.h>

#include "cluster/documents/bucket_refuse.h"
#include "cluster/placement/owners.h"
#include "cluster/placement/quorum.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/copies/copies.h"
#include "target/copies/acting.h"
#include "target/copies/commit.h"
#include "target/copies/plan.h"
#include "target/copies/earlier_owners.h"
#include "target/copies/ask_peers.h"
#include "target/copies/hollow.h"
#include "target/copies/unrecoverable.h"
#include "target/copies/object_copy.h"
#include "target/copies/fetch_copy.h"
#include "target/copies/repair_wanted.h"
#include "target/copies/dirty_worker.h"
#include "target/node/target.h"
#include "target/copies/dirty.h"

enum {
    ANSWER_GRACE_MS = 100, /* for those who are heard after a majority … */
    ALL_GRACE_MS = 1000,   /* … where nobody waits for the answer */
};

struct comparison {
    struct target *target;
    const struct cluster_state *state;
    const struct bucket *bucket;
    const char *name;
    enum compare_mode mode;
    size_t count; /* of those who were heard */
    const struct node *nodes[OWNERS_ASKED_MAX];
    struct object_held held[OWNERS_ASKED_MAX];
    bool lacks[OWNERS_ASKED_MAX], spared[OWNERS_ASKED_MAX];
    bool knows[OWNERS_ASKED_MAX]; /* of those that lack it: what it stands for (hollow.h) */
    struct object_held self;
    struct owners owners;
    struct copies_verdict verdict;
    bool guessed;         /* no majority is heard that can read what it has: there may be more */
    struct error missing; /* why not all owners are known to have it in the end, if so */
    struct error refused; /* why one that knows of it has not got its bytes, if so */
    bool self_hollow;     /* this target is one of these */
    bool lost;            /* nobody who may be asked has its bytes */
};

/* Do these, and this target, know of all that was acknowledged?  Who cannot read what it has is
 * none of them: it may be the last write. */
static bool is_known_to(void *ctx, const bool *knows)
{
    const struct comparison *c = ctx;
    const struct node *nodes[OWNERS_ASKED_MAX + 1];
    size_t count = 0;
    bool (*all)(const struct cluster_state *, const struct bucket *, const char *,
                const struct node *const *, size_t) =
        quorum_is_wanted(c->bucket) ? quorum_knows : owners_know;
    for (size_t i = 0; i < c->count; i++) {
        if (knows[i])
            nodes[count++] = c->nodes[i];
    }
    if (!c->self.unreadable)
        nodes[count++] = smap_node(&c->state->smap, c->target->id);
    return all(c->state, c->bucket, c->name, nodes, count);
}

static void keep_heard(struct comparison *c, const bool *heard)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (!heard[i])
            continue;
        c->nodes[kept] = c->nodes[i];
        c->held[kept++] = c->held[i];
    }
    c->count = kept;
}

/* A majority, and who else is quick; where they are not there for an answer it is an error. */
static int hear_majority(struct comparison *c, struct error *err)
{
    bool heard[OWNERS_ASKED_MAX], knows[OWNERS_ASKED_MAX];
    bool answers = c->mode == COMPARE_FOR_ANSWER;
    const struct ask_peers_spec spec = {.target = c->target,
                                        .state = c->state,
                                        .nodes = c->nodes,
                                        .count = c->count,
                                        .bucket_id = c->bucket->id,
                                        .name = c->name,
                                        .these_owners = true,
                                        .enough = is_known_to,
                                        .ctx = c,
                                        .grace_ms = answers ? ANSWER_GRACE_MS : ALL_GRACE_MS};
    int code = ask_peers(&spec, c->held, heard, &c->missing);
    if (code == E_STALE_MAP)
        copies_refresh(c->target);
    for (size_t i = 0; i < c->count; i++)
        knows[i] = heard[i] && !c->held[i].unreadable;
    c->guessed = !is_known_to(c, knows);
    if (answers && c->guessed && !fault_skips("copies.quorum"))
        return error_set(err, code == E_STALE_MAP ? code : E_NODE_UNREACHABLE,
                         "a majority of the owners of '%s' is not there: %s", c->name,
                         code != 0 ? c->missing.message : "the map calls them unreachable");
    keep_heard(c, heard);
    return 0;
}

/* It does not know that what it has is damaged. */
static void tell_of_doubt(const struct comparison *c, size_t i)
{
    bool yes;
    struct error err = ERROR_INIT;
    struct dirty_name name = {.bucket_id = c->bucket->id, .name = (char *)c->name};
    const struct dirty_name *names[] = {&name};
    if (dirty_ask(c->target, c->state, c->nodes[i], DIRTY_DOUBTED, names, 1, &yes, &err) != 0)
        log_warn("target not told of a damaged copy", lstr("target", c->nodes[i]->id),
                 lstr("name", c->name), lerr(&err));
}

/* Where each owner has each write: what one cannot read may be one that all others were away for.
 * It is told to look: damaged, it goes aside, and its index knows the version. */
static int hear_all(struct comparison *c, struct error *err)
{
    struct target *t = c->target;
    bool heard[OWNERS_ASKED_MAX], knows[OWNERS_ASKED_MAX];
    const char *unreadable = c->self.unreadable ? t->id : NULL;
    const struct ask_peers_spec spec = {.target = t,
                                        .state = c->state,
                                        .nodes = c->nodes,
                                        .count = c->count,
                                        .bucket_id = c->bucket->id,
                                        .name = c->name,
                                        .these_owners = true};
    int code = ask_peers(&spec, c->held, heard, err);
    if (code == E_STALE_MAP)
        copies_refresh(t);
    for (size_t i = 0; i < c->count && code == 0; i++) {
        knows[i] = !c->held[i].unreadable;
        if (!knows[i])
            unreadable = c->nodes[i]->id;
    }
    if (code != 0 || unreadable == NULL || is_known_to(c, knows))
        return code;
    if (c->self.unreadable)
        repair_wanted(t, c->bucket->id, c->name);
    for (size_t i = 0; i < c->count; i++) {
        if (!knows[i])
            tell_of_doubt(c, i);
    }
    return error_set(
        err, E_NODE_UNREACHABLE,
        "target '%s' cannot read its copy of '%s', and the other owners are unreachable",
        unreadable, c->name);
}

static int ask_all(struct comparison *c, struct error *err)
{
    struct target *t = c->target;
    c->count = owners_asked(c->state, c->bucket, c->name, t->id, c->nodes);
    int code = object_look(t->store, c->bucket->id, c->name, &c->self, err);
    if (code != 0)
        return code;
    if (quorum_is_wanted(c->bucket))
        return hear_majority(c, err);
    return hear_all(c, err);
}

static int bring_from(const struct comparison *c, size_t i, struct error *err)
{
    const struct fetch_copy spec = {.target = c->target,
                                    .state = c->state,
                                    .bucket = c->bucket,
                                    .name = c->name,
                                    .from = c->nodes[i],
                                    .held = &c->held[i]};
    return fetch_copy(&spec, err);
}

/* Lost for good it is only where nobody is away who may have it whole. */
static int nobody_has_bytes(struct comparison *c, struct error *err)
{
    const struct node *away = owners_not_asked(c->state, c->bucket, c->name);
    if (c->missing.code != 0)
        return error_set(err, E_NODE_UNREACHABLE,
                         "the owners that may have '%s' whole are unreachable: %s", c->name,
                         c->missing.message);
    c->lost = true;
    if (away != NULL)
        return error_set(err, E_NODE_UNREACHABLE,
                         "target '%s', which may have '%s' whole, is not there", away->id, c->name);
    unrecoverable_note(c->target->unrecoverable, c->bucket->id, c->name, 0);
    return error_set(err, E_CORRUPT, "no owner of '%s' has its bytes any more", c->name);
}

/* From any of those who have it with this rank, or another one, until one gives it as it should be.
 */
static int bring_ranked(struct comparison *c, bool greatest, struct error *err)
{
    int code = E_CORRUPT;
    for (size_t i = 0; i < c->count && code == E_CORRUPT; i++) {
        const struct object_held *h = &c->held[i];
        if (!h->found || h->damaged || version_compare(&h->version, &c->verdict.version) != 0 ||
            (h->rank == c->verdict.rank) != greatest)
            continue;
        code = bring_from(c, i, err);
        if (code == E_CORRUPT)
            tell_of_doubt(c, i);
    }
    return code;
}

/* Perhaps with less rank than others have. */
static bool is_whole_here(const struct comparison *c)
{
    return c->self.found && !c->self.damaged &&
           version_compare(&c->self.version, &c->verdict.version) == 0;
}

static int bring(struct comparison *c, struct error *err)
{
    int code = bring_ranked(c, true, err);
    if (code == E_CORRUPT)
        code = bring_ranked(c, false, err);
    if (code == E_CORRUPT &&
        is_whole_here(c)) /* what is here has less rank, but it is all there is */
        return 0;
    return code == E_CORRUPT ? nobody_has_bytes(c, err) : code;
}

/* What cannot be read may be the last write: nothing that may be less takes its place. */
static int spare_unreadable(struct comparison *c, struct error *err)
{
    for (size_t i = 0; i < c->count && c->guessed; i++) {
        if (!c->held[i].unreadable || !c->lacks[i])
            continue;
        error_set(&c->missing, E_NODE_UNREACHABLE, "target '%s' cannot read its copy of '%s'",
                  c->nodes[i]->id, c->name);
        c->spared[i] = true;
    }
    if (!c->guessed || !c->self.unreadable)
        return 0;
    return error_set(
        err, E_NODE_UNREACHABLE,
        "this target cannot read its copy of '%s', and no majority of the owners has a newer one",
        c->name);
}

/* --- giving ----------------------------------------------------------------------------------- */

static int send_one(const struct comparison *c, const struct object *o, const struct node *to,
                    struct error *err)
{
    const struct object_copy copy = {
        .from = o, .bucket_id = c->bucket->id, .name = c->name, .moves = true, .to = to->id};
    int code = object_copy(c->target->copier, &copy, err);
    code = error_forgive(err, code, E_NOT_MODIFIED); /* it has got it meanwhile */
    if (code == E_CHECKSUM)                          /* what is here is damaged */
        repair_wanted(c->target, c->bucket->id, c->name);
    return code;
}

static const struct object_held *best_of(const struct comparison *c)
{
    return c->verdict.best == COPIES_SELF ? &c->self : &c->held[c->verdict.best];
}

/* Has it all of the version but its bytes? */
static bool has_hollow(const struct comparison *c, const struct object_held *h)
{
    return h->found && h->damaged && version_compare(&h->version, &c->verdict.version) == 0;
}

/* It has, or is given, the knowledge of what it has no room for. */
static void let_know(struct comparison *c, size_t i, const struct error *why)
{
    struct error err = *why;
    const struct node *to = c->nodes[i];
    c->lacks[i] = true;
    c->knows[i] = has_hollow(c, &c->held[i]);
    if (!c->knows[i] && hollow_is_for_good(why->code) && hollow_is_possible(best_of(c)))
        c->knows[i] =
            hollow_send(c->target, c->state, c->bucket, c->name, best_of(c), to, &err) == 0;
    if (c->knows[i])
        error_set(&c->refused, why->code, "send '%s' to target '%s': %s", c->name, to->id,
                  why->message);
    else
        error_set(&c->missing, E_NODE_UNREACHABLE, "send '%s' to target '%s': %s", c->name, to->id,
                  err.message);
}

/* There are no bytes here to offer it.  What it has of an earlier version stays: it may have room,
 * and then nothing would be gained.  One that has refused bytes before has none to lose. */
static bool keeps_earlier(const struct comparison *c, size_t i)
{
    const struct object_held *h = &c->held[i];
    return h->found && !h->no_room && version_compare(&h->version, &c->verdict.version) < 0;
}

/* `o` is NULL where its bytes are not here. */
static void give(struct comparison *c, size_t i, const struct object *o)
{
    struct error why = c->refused;
    c->lacks[i] = o == NULL || send_one(c, o, c->nodes[i], &why) != 0;
    if (c->lacks[i] && o == NULL && keeps_earlier(c, i))
        error_set(&c->missing, E_NODE_UNREACHABLE,
                  "target '%s' has an earlier '%s', and this one has no bytes to send: %s",
                  c->nodes[i]->id, c->name, why.message);
    else if (c->lacks[i])
        let_know(c, i, &why);
}

/* Does it have to have more?  For an answer it is enough that it knows. */
static bool is_short(const struct comparison *c, size_t i)
{
    return c->lacks[i] && owners_has(&c->owners, c->nodes[i]->id) &&
           !(c->knows[i] && c->mode == COMPARE_FOR_ANSWER);
}

/* To those who own it now: who did before loses it anyway.  One who cannot take it keeps nobody
 * else from it. */
static int send_to_lacking(struct comparison *c, struct error *err)
{
    struct object o = {.fd = -1};
    int errnum = fault_errno("copies.send");
    if (errnum != 0)
        return error_errno(err, errnum, "send '%s'", c->name);
    bool bytes = !c->self_hollow || is_whole_here(c);
    int code = bytes ? object_open_held(c->target->store, c->bucket->id, c->name, &o, err) : 0;
    if (code != 0)
        return code;
    for (size_t i = 0; i < c->count; i++) {
        if (is_short(c, i) && !c->spared[i])
            give(c, i, bytes ? &o : NULL);
    }
    if (o.fd >= 0)
        close(o.fd);
    return 0;
}

/* How many of those who own it now and were heard, this target left out, have to have more? */
static size_t lacking(const struct comparison *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++)
        count += is_short(c, i);
    return count;
}

/* How many have it, or know of it?  This target among them. */
static size_t having(const struct comparison *c)
{
    size_t count = 1;
    for (size_t i = 0; i < c->count; i++)
        count += (!c->lacks[i] || c->knows[i]) && owners_has(&c->owners, c->nodes[i]->id);
    return count;
}

/* The others are brought up to it later (dirty_worker.h). */
static bool is_enough(const struct comparison *c)
{
    return quorum_is_wanted(c->bucket) && c->mode == COMPARE_FOR_ANSWER &&
           (having(c) >= quorum_of(&c->owners) || fault_skips("copies.quorum"));
}

/* What found no room is not sent again for an answer; what was damaged is: it may be mended. */
static void note_who_knows(struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++)
        c->knows[i] = c->lacks[i] && c->held[i].no_room && has_hollow(c, &c->held[i]);
}

/* Where there is no room the others have it still, and this target knows. */
static int bring_or_know(struct comparison *c, struct error *err)
{
    const struct object_held *best = best_of(c);
    struct error why = ERROR_INIT;
    int code = 0;
    if (has_hollow(c, &c->self) && c->self.no_room)
        code = object_check_room(c->target->store, c->bucket->id, c->name, best->size,
                                 bucket_makes_room(c->bucket), &why);
    if (code == 0)
        code = bring(c, &why);
    if (code != 0 && hollow_is_for_good(code) && hollow_is_possible(best)) {
        c->self_hollow = true;
        error_set(&c->refused, why.code, "%s", why.message);
        return hollow_keep(c->target, c->bucket, c->name, best, err);
    }
    return code != 0 ? error_set(err, code, "%s", why.message) : 0;
}

/* --- two contents of one version -------------------------------------------------------------- */

static bool note_contradictions(const struct comparison *c)
{
    bool any = false;
    for (size_t i = 0; i < c->count; i++) {
        if (!copies_contradict(best_of(c), &c->held[i]) &&
            !copies_contradict(&c->self, &c->held[i]))
            continue;
        log_warn("copies of one version differ", lstr("name", c->name),
                 lstr("bucket", c->bucket->name), lstr("target", c->nodes[i]->id),
                 lu64("bytes", c->held[i].size),
                 lstr("checksum", checksum_name(c->held[i].checksum.type)),
                 lu64("bytes_here", c->self.size),
                 lstr("checksum_here", checksum_name(c->self.checksum.type)));
        any = true;
    }
    return any;
}

/* One of them is damaged.  What is here is read now, and set aside where it is that one; of another
 * owner what stays is read when it is sent.  Where no checksum tells, the plan's order decides. */
static int judge_contents(struct comparison *c, struct error *err)
{
    bool lacking = false;
    int code = 0;
    copies_compare(&c->self, c->held, c->count, &c->verdict, c->lacks);
    if (!c->verdict.found || !note_contradictions(c) || !is_whole_here(c))
        return 0;
    if ((code = object_check(c->target->store, c->bucket->id, c->name, &lacking, err)) == 0 &&
        lacking)
        code = object_look(c->target->store, c->bucket->id, c->name, &c->self, err);
    if (code == 0 && lacking)
        copies_compare(&c->self, c->held, c->count, &c->verdict, c->lacks);
    return code;
}

static int even_out(struct comparison *c, struct error *err)
{
    struct dirty *u = c->target->copies->dirty;
    int code = 0;
    if (c->verdict.damaged)
        return nobody_has_bytes(c, err);
    if ((code = spare_unreadable(c, err)) != 0)
        return code;
    note_who_knows(c);
    if (c->verdict.self_lacks || lacking(c) > 0)
        dirty_mark(u, c->bucket->id, c->name, &c->verdict.version, clock_ms());
    if (c->verdict.self_lacks)
        code = bring_or_know(c, err);
    if (code == 0 && lacking(c) > 0 && !is_enough(c))
        code = send_to_lacking(c, err);
    return code;
}

/* --- the end ---------------------------------------------------------------------------------- */

static bool is_brought_later(const struct comparison *c, const char *node_id)
{
    return !layout_is_settled(&c->state->smap) ||
           owners_lag(c->bucket, &c->owners, node_id) != LAG_NONE;
}

/* Do all owners know of it, and has each its bytes, or gets them by a repair or rebalance, which
 * does not end before?  Else it is for the mark to see to it. */
static bool may_settle(const struct comparison *c)
{
    bool may = c->missing.code == 0 && (!c->self_hollow || is_brought_later(c, c->target->id));
    for (size_t i = 0; i < c->count && may; i++)
        may = !c->lacks[i] || !owners_has(&c->owners, c->nodes[i]->id) ||
              (c->knows[i] && is_brought_later(c, c->nodes[i]->id));
    return may;
}

/* All owners have what there is.  A mark of more than that, which was here before anybody was
 * asked, is of a commit that failed: what is marked is seen, or is not, before the name's lock is
 * given back, and nobody else commits by the map by which this target acts. */
static void settle(const struct comparison *c, const struct version *marked)
{
    struct dirty *u = c->target->copies->dirty;
    const struct version *v = &c->verdict.version;
    bool more = !c->verdict.found || version_compare(marked, v) > 0;
    dirty_clear(u, c->bucket->id, c->name, more ? marked : v);
}

static void tell(const struct comparison *c, struct compared *out)
{
    *out = (struct compared){.upto = c->verdict.version};
    if (c->lost)
        out->lost = *best_of(c);
    if (c->self_hollow)
        snprintf(out->holder, sizeof out->holder, "%s", c->nodes[c->verdict.best]->id);
}

static int judge(const struct comparison *c, struct error *err)
{
    if (c->missing.code != 0 && !is_enough(c))
        return error_set(err, c->missing.code, "%s", c->missing.message);
    if (c->refused.code != 0 && c->mode == COMPARE_FOR_ALL)
        return error_set(err, c->refused.code, "%s", c->refused.message);
    return 0;
}

int copies_compare_all(struct target *t, const struct cluster_state *s, const struct bucket *b,
                       const char *name, enum compare_mode mode, struct compared *out,
                       struct error *err)
{
    if (fault_skips("copies.compare")) {
        if (out != NULL)
            out->upto = (struct version){.term = UINT64_MAX};
        return 0;
    }
    struct comparison *c = xcalloc(1, sizeof *c);
    c->target = t;
    c->state = s;
    c->bucket = b;
    c->name = name;
    c->mode = mode;
    owners_of(s, b, name, &c->owners);
    struct version marked;
    (void)dirty_upto(t->copies->dirty, b->id, name, &marked);
    int code = ask_all(c, err);
    if (code == 0) /* before anybody shows what the others are sent */
        code = earlier_tell_former(t, s, b, name, err);
    if (code == 0 && (code = judge_contents(c, err)) == 0) {
        if (c->verdict.found)
            code = even_out(c, err);
        if (code == 0 && may_settle(c))
            settle(c, &marked);
        if (code == 0)
            code = judge(c, err);
        if (out != NULL)
            tell(c, out);
    }
    if (code == 0)
        unrecoverable_forget(t->unrecoverable, b->id, name, 0);
    free(c);
    return code;
}

static int try_compare(struct target *t, uint64_t bucket_id, const char *name,
                       enum compare_mode mode, struct compared *out, struct error *err)
{
    const struct cluster_state *s;
    const struct bucket *b;
    struct owners o;
    int code = copies_take_state(t, bucket_id, name, &s, &b, &o, err);
    if (code == 0)
        code = copies_compare_all(t, s, b, name, mode, out, err);
    state_unref(s);
    return code;
}

int copies_compare_now(struct target *t, uint64_t bucket_id, const char *name,
                       enum compare_mode mode, struct compared *out, struct error *err)
{
    int code = try_compare(t, bucket_id, name, mode, out, err);
    return code == E_STALE_MAP ? try_compare(t, bucket_id, name, mode, out, err) : code;
}
