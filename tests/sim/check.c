/* What must hold after every step.  The checker sees what no node does: each state as it becomes
 * durable, and each that a node puts in force. */
#include "tests/sim/sim.h"

#include <string.h>

#include "cluster/documents/layout.h"

enum { TERMS_MAX = 4096, DIGESTS_KEPT = 256 };

/* One durable state. */
struct durable {
    uint64_t term;
    uint64_t digest;
};

struct term_owner {
    uint64_t term;
    int place;
    uint64_t life;
};

struct checker {
    const struct cluster_state *head;
    struct durable *versions; /* by version */
    size_t count, room;
    struct term_owner terms[TERMS_MAX];
    size_t term_count;
    struct {
        const struct cluster_state *state;
        uint64_t digest;
    } digests[DIGESTS_KEPT];               /* of states that many nodes hold */
    uint64_t heard_at[PROXIES_MAX][STORE]; /* by the primary's clock; 0: not by its present life */
};

/* --- digests --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t mix_text(uint64_t h, const char *text)
{
    for (; *text != '\0'; text++)
        h = mix(h, (unsigned char)*text);
    return mix(h, 0x100);
}

/* Of all that commands change. */
static uint64_t digest_made(const struct cluster_state *s)
{
    uint64_t h = mix(mix(mix(s->term, s->version), s->term_version), s->next_bucket_id);
    h = mix_text(mix_text(h, s->cluster_id), s->primary);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        h = mix(mix_text(mix_text(h, n->id), n->boot), n->state);
        h = mix(mix(h, n->lag), n->missed_since);
    }
    for (size_t i = 0; i < s->bmd.count; i++)
        h = mix(mix_text(h, s->bmd.buckets[i].name), s->bmd.buckets[i].id);
    for (size_t i = 0; i < s->config.count; i++)
        h = mix_text(mix_text(h, s->config.values[i].name), s->config.values[i].text);
    for (size_t i = 0; i < s->jobs.count; i++)
        h = mix(mix_text(h, s->jobs.jobs[i]->id), s->jobs.jobs[i]->state);
    return mix(mix(mix(h, s->smap.version), s->bmd.version), s->jobs.version);
}

static uint64_t digest_of(struct checker *c, const struct cluster_state *s)
{
    size_t at = ((uintptr_t)s >> 5) % DIGESTS_KEPT;
    if (c->digests[at].state != s) {
        state_unref(c->digests[at].state);
        c->digests[at].state = state_ref(s);
        c->digests[at].digest = digest_made(s);
    }
    return c->digests[at].digest;
}

bool check_same(struct world *w, const struct cluster_state *a, const struct cluster_state *b)
{
    return digest_of(w->checker, a) == digest_of(w->checker, b);
}

#define VERSION(s) (unsigned long long)(s)->term, (unsigned long long)(s)->version

/* --- what is durable ------------------------------------------------------------------------- */

static void note_term(struct world *w, int place, uint64_t life, const struct cluster_state *s)
{
    struct checker *c = w->checker;
    struct term_owner *last = c->term_count > 0 ? &c->terms[c->term_count - 1] : NULL;
    if (last != NULL && last->term == s->term) {
        if (last->place != place || last->life != life)
            world_fail(w, "one primary per term: %s has committed %llu.%llu in the term of %s",
                       w->places[place].name, VERSION(s), w->places[last->place].name);
        return;
    }
    if (c->term_count == TERMS_MAX)
        return world_fail(w, "more than %d terms", TERMS_MAX);
    c->terms[c->term_count++] = (struct term_owner){s->term, place, life};
    run_tally_now->terms++;
}

static void versions_put(struct checker *c, const struct cluster_state *s)
{
    while (c->room <= s->version) {
        c->room = c->room == 0 ? 256 : 2 * c->room;
        c->versions = xrealloc(c->versions, c->room * sizeof c->versions[0]);
    }
    while (c->count <= s->version)
        c->versions[c->count++] = (struct durable){0};
    c->versions[s->version] = (struct durable){s->term, digest_of(c, s)};
}

static bool is_durable(struct checker *c, const struct cluster_state *s)
{
    return s->version < c->count && c->versions[s->version].term == s->term &&
           c->versions[s->version].digest == digest_of(c, s);
}

/* What a change is about, for the trace. */
static const char *changed_part(const struct cluster_state *from, const struct cluster_state *to)
{
    if (from == NULL || from->term != to->term)
        return "a term begins";
    return from->smap.version != to->smap.version   ? "nodes"
           : from->bmd.version != to->bmd.version   ? "buckets"
           : from->jobs.version != to->jobs.version ? "jobs"
                                                    : "settings";
}

/* A primary whose lease was ended by hand grants leases until its next renewal; and clocks may be a
 * quarter apart, no more (cluster/members/lease.h). */
static bool leases_count(const struct world *w)
{
    if (w->mutant == MUTANT_wild_clocks)
        return false;
    return w->leases_ended_ms == 0 || w->now >= w->leases_ended_ms + 2 * KEEPALIVE_TIMEOUT;
}

static void check_leases(struct world *w, const struct cluster_state *s)
{
    for (unsigned i = 0; i < w->targets && leases_count(w); i++) {
        const struct place *place = &w->places[target_place(i)];
        const struct node *n = smap_node(&s->smap, place->name);
        if (n != NULL && n->state == NODE_UNREACHABLE && strcmp(n->boot, place->boot) == 0 &&
            target_sim_has_lease(w, i))
            world_fail(w, "who has a lease is not passed over: %s, by %llu.%llu", n->id,
                       VERSION(s));
    }
}

void check_durable(struct world *w, int place, uint64_t life, const struct cluster_state *from,
                   const struct cluster_state *to)
{
    struct checker *c = w->checker;
    const struct cluster_state *head = c->head;
    world_note(w, place, "durable: %llu.%llu, %s", VERSION(to), changed_part(from, to));
    run_tally_now->changes++;
    if (head != NULL && from == NULL)
        return world_fail(w, "no change is lost: %s begins anew, and %llu.%llu was there",
                          w->places[place].name, VERSION(head));
    if (head != NULL && digest_of(c, from) != digest_of(c, head))
        return world_fail(
            w, "no change is lost: %s makes %llu.%llu upon %llu.%llu, not upon %llu.%llu",
            w->places[place].name, VERSION(to), VERSION(from), VERSION(head));
    if (head != NULL && (to->version != head->version + 1 || to->term < head->term))
        return world_fail(w, "versions grow by one: after %llu.%llu comes %llu.%llu", VERSION(head),
                          VERSION(to));
    note_term(w, place, life, to);
    objects_check(w, to);
    check_leases(w, to);
    versions_put(c, to);
    client_note_made(w, head, to);
    state_unref(c->head);
    c->head = state_ref(to);
}

/* Every acknowledged change is in the head; and who is elected begins upon it. */
void check_loaded(struct world *w, int place, const struct cluster_state *s)
{
    const struct cluster_state *head = w->checker->head;
    if (head != NULL && (s == NULL || digest_of(w->checker, s) != digest_of(w->checker, head)))
        world_fail(w, "no change is lost: %s loads %llu.%llu, and %llu.%llu is durable",
                   w->places[place].name, (unsigned long long)(s != NULL ? s->term : 0),
                   (unsigned long long)(s != NULL ? s->version : 0), VERSION(head));
}

const struct cluster_state *check_head(const struct world *w)
{
    return w->checker->head;
}

/* --- what is in force ------------------------------------------------------------------------ */

void check_in_force(struct world *w, int place, const struct cluster_state *before,
                    const struct cluster_state *s)
{
    if (s->version == 0)
        return;
    if (!is_durable(w->checker, s))
        world_fail(w, "only what is durable is in force: %s holds %llu.%llu", w->places[place].name,
                   VERSION(s));
    else if (before != NULL && state_compare(s, before) < 0)
        world_fail(w, "versions never go back: %s holds %llu.%llu after %llu.%llu",
                   w->places[place].name, VERSION(s), VERSION(before));
}

/* --- verdicts -------------------------------------------------------------------------------- */

void check_heard(struct world *w, int primary, int place)
{
    w->checker->heard_at[primary][place] = place_ms(w, primary);
}

void check_verdict(struct world *w, int primary, const char *id, bool reachable)
{
    int place = place_of_name(w, id);
    uint64_t heard = w->checker->heard_at[primary][place];
    uint64_t silent = place_ms(w, primary) - heard;
    world_note(w, primary, "verdict: %s is %s", id, reachable ? "back" : "unreachable");
    run_tally_now->verdicts++;
    if (!reachable && heard != 0 && silent <= KEEPALIVE_TIMEOUT)
        world_fail(w, "who answers is not given up: %s calls %s unreachable, heard %llu ms ago",
                   w->places[primary].name, id, (unsigned long long)silent);
}

/* --- jobs ------------------------------------------------------------------------------------ */

static const struct job *decided(const struct world *w, const char *job_id)
{
    const struct cluster_state *head = w->checker->head;
    return head != NULL ? jobs_find(&head->jobs, job_id) : NULL;
}

uint64_t decided_attempt(const struct world *w, const char *job_id)
{
    const struct job *job = decided(w, job_id);
    return job != NULL ? job->attempt : 0;
}

static bool is_decided(const struct job *job)
{
    return job != NULL && (job->state == JOB_COMMITTING || job->state == JOB_FINISHED);
}

void check_commits(struct world *w, int place, const char *job_id, bool made)
{
    const struct job *job = decided(w, job_id);
    world_note(w, place, "job %s: its part is visible", job_id);
    if (!is_decided(job))
        world_fail(w, "a job has one outcome: %s makes its part of %s visible, which is %s",
                   w->places[place].name, job_id,
                   job != NULL ? job_state_name(job->state) : "not known");
    else if (!made)
        world_fail(w, "a job has one outcome: %s has nothing of %s to make visible",
                   w->places[place].name, job_id);
}

void check_undoes(struct world *w, int place, const char *job_id, bool visible)
{
    const struct job *job = decided(w, job_id);
    world_note(w, place, "job %s: its part is undone", job_id);
    if (is_decided(job) || visible)
        world_fail(w, "a job has one outcome: %s undoes its part of %s, which is %s",
                   w->places[place].name, job_id, visible ? "visible" : job_state_name(job->state));
}

static const char *outcome_text(struct target_outcome o)
{
    return o.visible ? "visible" : o.made || o.begun ? "left over" : "not there";
}

static void check_outcome(struct world *w, const struct job *job)
{
    bool finished = job->state == JOB_FINISHED;
    bool hides = strcmp(job->kind, "sort") == 0; /* what it makes, until it is decided */
    for (size_t i = 0; i < job->participant_count; i++) {
        int place = place_of_name(w, job->participants[i]);
        struct target_outcome o = target_sim_outcome(w, target_index(place), job->id);
        if (o.begun || (hides && (o.visible != finished || o.made != finished)))
            world_fail(w, "a job has one outcome: %s is %s, and its part on %s is %s", job->id,
                       job_state_name(job->state), job->participants[i], outcome_text(o));
    }
    run_tally_now->finished += finished;
    run_tally_now->undone += !finished;
}

void check_end(struct world *w)
{
    const struct cluster_state *head = w->checker->head;
    for (size_t i = 0; i < head->jobs.count; i++)
        check_outcome(w, head->jobs.jobs[i]);
    client_check_end(w);
}

/* --- the end --------------------------------------------------------------------------------- */

static bool place_converged(struct world *w, int place, const struct cluster_state *held,
                            char why[static 160])
{
    const struct cluster_state *head = w->checker->head;
    const struct node *n = smap_node(&head->smap, w->places[place].name);
    if (n == NULL || n->state != NODE_ACTIVE || strcmp(n->boot, w->places[place].boot) != 0)
        snprintf(why, 160, "the map says of %s: %s", w->places[place].name,
                 n != NULL ? node_state_name(n->state) : "nothing");
    else if (digest_of(w->checker, held) != digest_of(w->checker, head))
        snprintf(why, 160, "%s holds %llu.%llu, and %llu.%llu is durable", w->places[place].name,
                 VERSION(held), VERSION(head));
    else
        return true;
    return false;
}

bool check_converged(struct world *w, char why[static 160])
{
    unsigned primaries = 0;
    if (w->checker->head == NULL) {
        snprintf(why, 160, "nothing is durable");
        return false;
    }
    for (unsigned i = 0; i < w->proxies; i++) {
        primaries += proxy_sim_is_primary(w, i);
        if (!place_converged(w, (int)i, proxy_sim_state(w, i), why))
            return false;
    }
    for (unsigned i = 0; i < w->targets; i++) {
        if (!place_converged(w, target_place(i), target_sim_state(w, i), why))
            return false;
    }
    if (primaries != 1)
        snprintf(why, 160, "there are %u primaries", primaries);
    else if (client_waits(w))
        snprintf(why, 160, "the client waits for answers, or jobs have not ended");
    else if (!layout_is_settled(&w->checker->head->smap))
        snprintf(why, 160, "objects are still to be moved");
    else
        return true;
    return false;
}

void checker_new(struct world *w)
{
    w->checker = xcalloc(1, sizeof *w->checker);
}

void checker_free(struct world *w)
{
    state_unref(w->checker->head);
    for (size_t i = 0; i < DIGESTS_KEPT; i++)
        state_unref(w->checker->digests[i].state);
    free(w->checker->versions);
    free(w->checker);
}
