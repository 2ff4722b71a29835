#include "target/sort/slices.h"

#include <unistd.h>

#include "common/backoff.h"
#include "common/clock.h"
#include "common/mem.h"
#include "io/reader.h"
#include "target/copies/copies.h"
#include "target/slices/find.h"
#include "target/slices/plan.h"
#include "target/slices/store.h"
#include "target/copies/object_copy.h"
#include "target/node/target.h"

enum { PAUSE_MS = 100 };

static bool are_wanted(const struct sort_part *p, uint64_t size)
{
    return p->output_props.ec_data > 0 && size > p->output_props.ec_min_size;
}

/* Somebody who takes part may be back, and have room for a slice: the job waits for him. */
static bool awaits_somebody(const struct sort_part *p, const struct cluster_state *s)
{
    for (size_t i = 0; i < p->plan->count; i++) {
        const struct node *n = smap_node(&s->smap, p->plan->ids[i]);
        if (n != NULL && n->state == NODE_UNREACHABLE && !job_leaves_out(p->job, n->id))
            return true;
    }
    return false;
}

/* Those that the job has gone on without take none: it does not wait for them. */
static size_t find_takers(const struct sort_part *p, const struct cluster_state *s,
                          const char *name, const struct node **out)
{
    size_t count = smap_owners(&s->smap, p->plan->output_bucket_id, name, s->smap.count, out);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!job_leaves_out(p->job, out[i]->id))
            out[kept++] = out[i];
    }
    return kept;
}

static int store_once(const struct sort_part *p, const char *name, int fd, struct ec_manifest *m,
                      struct sort_slices *out, struct error *err)
{
    struct target *t = p->target;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    _cleanup_free_ const struct node **ranked = xcalloc(s->smap.count + 1, sizeof *ranked);
    const struct ec_storing what = {.target = t,
                                    .bucket_id = p->plan->output_bucket_id,
                                    .name = name,
                                    .fd = fd,
                                    .ranked = ranked,
                                    .count = find_takers(p, s, name, ranked),
                                    .all = awaits_somebody(p, s),
                                    .stopped = &p->stopped};
    uint64_t since_ms = 0;
    int code = ec_store(&what, m, &since_ms, err);
    out->until_ms = since_ms + t->params.slices_grace / 2;
    if (code == E_NO_TARGETS && what.all)
        code = error_recode(err, E_NODE_UNREACHABLE, "slices of '%s'", name);
    return code;
}

/* As a copy for another owner is (hidden.c): tried again for a while, then a target counts as lost.
 * Each time leaves slices that nobody knows: less and less often. */
static int store(const struct sort_part *p, const char *name, int fd, struct ec_manifest *m,
                 struct sort_slices *out, struct error *err)
{
    const uint64_t most_ms = p->target->params.call_timeout, until_ms = clock_ms() + most_ms;
    const struct backoff rule = {.first_ms = PAUSE_MS, .max_ms = most_ms};
    for (unsigned failures = 1;; failures++) {
        int code = store_once(p, name, fd, m, out, err);
        if (code == E_NO_TARGETS || !object_copy_may_pass(code))
            return code;
        if (atomic_load(&p->stopped))
            return error_set(err, E_ABORTED, "job '%s' was stopped", p->job->id);
        if (clock_ms() >= until_ms ||
            !job_stop_pause(&p->target->copies->stop, backoff_ms(&rule, failures)))
            return error_recode(err, E_NET, "slices of '%s'", name);
        *err = ERROR_INIT;
    }
}

/* Asked right before the manifest gets its name. */
static int check_time(void *ctx, const struct attr *current, struct error *err)
{
    const struct sort_slices *s = ctx;
    (void)current;
    return clock_ms() < s->until_ms
               ? 0
               : error_set(err, E_NET, "the slices of the output were stored too long ago");
}

static int begin_manifest(const struct sort_part *p, const struct object_put_spec *spec,
                          const struct ec_manifest *m, struct sort_slices *s,
                          struct object_put **out, struct error *err)
{
    char text[EC_MANIFEST_TEXT_MAX];
    struct object_put_spec of = *spec;
    of.size = OBJECT_SIZE_UNKNOWN;
    of.slices = ec_manifest_text(m, text);
    of.condition = (struct object_condition){.check = check_time, .ctx = s};
    return object_put_begin(p->target->store, &of, out, err);
}

int sort_slices_make(const struct sort_part *p, const struct object_put_spec *spec,
                     struct object_put **put, struct sort_slices *s, struct error *err)
{
    struct object_put *manifest = NULL;
    struct reader *reader = NULL;
    int fd = -1;
    int code = object_put_finish(*put, err);
    const struct attr *a = object_put_attr(*put);
    if (code != 0 || !are_wanted(p, a->size))
        return code;
    struct ec_manifest m = {.layout = {.k = p->output_props.ec_data,
                                       .m = p->output_props.ec_parity,
                                       .unit = EC_UNIT_DEFAULT,
                                       .length = a->size},
                            .checksum = a->checksum};
    if ((code = object_put_share(*put, &fd, &reader, err)) != 0)
        return code;
    code = store(p, a->name, fd, &m, s, err);
    if (code == 0)
        code = begin_manifest(p, spec, &m, s, &manifest, err);
    close(fd);
    reader_unref(reader);
    if (code == E_NO_TARGETS)
        return error_forgive(err, code, E_NO_TARGETS);
    if (code != 0)
        return code;
    object_put_abort(*put);
    *put = manifest;
    return 0;
}

/* --- a further attempt ------------------------------------------------------------------------ */

static bool are_left(const struct sort_part *p, const char *name, const struct ec_manifest *m)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->target->state);
    const unsigned slices = m->layout.k + m->layout.m;
    const struct ec_find what = {
        .bucket_id = p->plan->output_bucket_id, .name = name, .tag = m->tag, .slices = slices};
    _cleanup_free_ struct ec_found *found = NULL;
    size_t count = ec_slices_find(p->target, s, &what, &found);
    for (size_t i = 0; i < count; i++)
        found[i].answered = found[i].answered && !job_leaves_out(p->job, found[i].node->id);
    return ec_plan_stands(found, count, m->layout.k, slices, (unsigned)p->job->without_count);
}

bool sort_slices_stand(const struct sort_part *p, const char *name)
{
    struct object here;
    struct ec_manifest m;
    if (object_open_marked(p->target->store, p->plan->output_bucket_id, name, p->job->id, &here,
                           NULL) != 0)
        return false;
    bool whole = here.attr.slices == NULL;
    bool readable = whole || ec_manifest_parse(here.attr.slices, &m, NULL) == 0;
    close(here.fd);
    return whole || (readable && are_left(p, name, &m));
}
