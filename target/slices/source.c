#include "target/slices/source.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "common/semaphores.h"
#include "target/slices/find.h"
#include "target/slices/ec.h"
#include "target/slices/plan.h"
#include "target/node/target.h"

enum {
    AHEAD_BYTES = 1 << 20, /* a call brings so much of a slice where so much is wanted of it */
    FINDS_MAX = 3,         /* slices may go elsewhere while they are read */
};

/* What was read of one slice. */
struct window {
    unsigned char *bytes;
    size_t size;
    uint64_t at;
    size_t len;
};

struct source {
    const struct ec_reading *reading;
    struct ec_homes homes;
    uint64_t end; /* of what is wanted, in each slice's file */
    struct window windows[EC_SLICES_MAX];
};

/* One call for a piece of a slice. */
struct fetch {
    struct window *window;
    char *url;
    size_t want;
    int code;
    sem_t *over;
};

static void fetched(void *arg, struct http_result *r)
{
    struct fetch *f = arg;
    f->code = http_result_error(r, f->url, NULL);
    if (f->code == E_RANGE) /* it ends before */
        f->code = E_CORRUPT;
    if (f->code == 0 && r->body.len != f->want)
        f->code = E_LENGTH;
    if (f->code == 0) {
        memcpy(f->window->bytes, r->body.data, f->want);
        f->window->len = f->want;
    }
    sem_post(f->over);
}

static bool has(const struct window *w, const struct ec_want *want)
{
    return want->offset >= w->at && want->offset + want->len <= w->at + w->len;
}

static void fetch_start(struct source *s, const struct ec_want *want, struct fetch *f, sem_t *over)
{
    const struct ec_reading *r = s->reading;
    struct window *w = &s->windows[want->slice];
    uint64_t left = s->end > want->offset ? s->end - want->offset : 0;
    const bool whole = (s->homes.left >> want->slice & 1) == 0; /* a cut one gives what there is */
    size_t len = !whole ? 0 : left < AHEAD_BYTES ? (size_t)left : AHEAD_BYTES;
    len = len > want->len ? len : want->len;
    if (w->size < len) {
        free(w->bytes);
        w->bytes = xmalloc(len);
        w->size = len;
    }
    w->at = want->offset;
    w->len = 0;
    _cleanup_free_ char *slice =
        ec_slice_url(s->homes.all[want->slice], r->bucket_id, r->manifest.tag, want->slice);
    *f = (struct fetch){.window = w, .want = len, .over = over};
    f->url = xprintf("%soffset=%llu&length=%zu%s", slice, (unsigned long long)want->offset, len,
                     whole ? "" : "&left=true");
    const struct http_call call = {.method = HTTP_GET,
                                   .url = f->url,
                                   .node = s->homes.all[want->slice]->id,
                                   .reply_max = len,
                                   .total_timeout_ms = r->target->params.call_timeout};
    http_call_start(r->target->data_client, &call, fetched, f);
}

/* Those that are not in their windows, side by side. */
static void source_read(void *ctx, struct ec_want *wants, size_t count)
{
    struct source *s = ctx;
    struct fetch fetches[EC_SLICES_MAX];
    size_t of[EC_SLICES_MAX], started = 0;
    sem_t over;
    sem_init(&over, 0, 0);
    for (size_t i = 0; i < count; i++) {
        if (!has(&s->windows[wants[i].slice], &wants[i])) {
            of[started] = i;
            fetch_start(s, &wants[i], &fetches[started++], &over);
        }
    }
    for (size_t i = 0; i < started; i++)
        semaphore_wait(&over);
    for (size_t i = 0; i < started; i++) {
        wants[of[i]].code = fetches[i].code;
        free(fetches[i].url);
    }
    for (size_t i = 0; i < count; i++) {
        const struct window *w = &s->windows[wants[i].slice];
        if (has(w, &wants[i])) {
            memcpy(wants[i].out, w->bytes + (wants[i].offset - w->at), wants[i].len);
            wants[i].code = 0;
        }
    }
    sem_destroy(&over);
}

static void source_done(struct source *s)
{
    for (unsigned i = 0; i < EC_SLICES_MAX; i++)
        free(s->windows[i].bytes);
    free(s);
}

static int source_open(const struct ec_reading *r, const struct ec_homes *homes,
                       struct source **out, struct ec_reader **reader, struct error *err)
{
    struct source *s = xcalloc(1, sizeof *s);
    const struct ec_source source = {.ctx = s, .read = source_read};
    *s = (struct source){.reading = r, .homes = *homes};
    s->end = ec_layout_slice_bytes(&r->manifest.layout);
    *out = s;
    return ec_reader_new(&r->manifest.layout, r->manifest.tag, ec_homes_mask(homes), homes->doubted,
                         &source, reader, err);
}

/* --- a range ---------------------------------------------------------------------------------- */

/* How far it has come: a second attempt goes on there. */
struct progress {
    ec_take_fn *take;
    void *ctx;
    uint64_t taken;
    bool refused; /* by who takes it */
};

static int take_on(void *ctx, const void *data, size_t len, struct error *err)
{
    struct progress *p = ctx;
    int code = p->take(p->ctx, data, len, err);
    p->refused = code != 0;
    p->taken += len;
    return code;
}

/* Behind the last block of the range nothing is read ahead. */
static uint64_t end_of(const struct ec_layout *l, uint64_t end)
{
    struct ec_piece last = ec_layout_piece(l, end - 1, end);
    return ec_layout_block_at(l, last.stripe) + ec_layout_block(l, last.stripe) + EC_CHECK_BYTES;
}

/* What was read in vain: from whom, and which of their slices. */
struct tries {
    size_t count;
    struct {
        struct ec_homes homes;
        ec_mask failed;
    } all[FINDS_MAX + 1];
};

static int try_range(const struct ec_reading *r, const struct ec_homes *homes, uint64_t offset,
                     uint64_t end, struct progress *p, struct tries *tries, struct ec_bad *bad,
                     struct error *err)
{
    _cleanup_(ec_reader_freep)
    struct ec_reader *reader = NULL;
    struct source *s;
    int code = source_open(r, homes, &s, &reader, err);
    s->end = end_of(&r->manifest.layout, end);
    if (code == 0)
        code = ec_reader_range(reader, offset + p->taken, end - offset - p->taken, take_on, p, err);
    if (reader != NULL) {
        bad->failed = ec_reader_failed(reader);
        bad->damaged |= ec_reader_damaged(reader);
        tries->all[tries->count].homes = *homes;
        tries->all[tries->count++].failed = bad->failed;
    }
    source_done(s);
    return code;
}

static void guess(const struct ec_reading *r, struct ec_homes *out)
{
    const struct cluster_state *s = r->state;
    unsigned slices = r->manifest.layout.k + r->manifest.layout.m;
    const struct node *ranked[EC_SLICES_MAX];
    size_t count = smap_owners(&s->smap, r->bucket_id, r->name, slices, ranked);
    ec_plan_guess(ranked, count, slices, out);
}

static int find(const struct ec_reading *r, const struct tries *tries, ec_mask damaged,
                struct ec_homes *out, struct error *err)
{
    const struct ec_layout *l = &r->manifest.layout;
    _cleanup_free_ struct ec_found *found = NULL;
    const struct ec_find what = {
        .bucket_id = r->bucket_id, .name = r->name, .tag = r->manifest.tag, .slices = l->k + l->m};
    size_t count = ec_slices_find(r->target, r->state, &what, &found);
    for (size_t i = 0; i < tries->count; i++)
        ec_plan_pass_over(found, count, &tries->all[i].homes, tries->all[i].failed);
    ec_plan_read(found, count, l->k + l->m, out);
    out->doubted |= damaged;
    return ec_plan_check(found, count, l->k, l->k + l->m, err);
}

static bool enough(const struct ec_reading *r, const struct ec_homes *h)
{
    return (unsigned)__builtin_popcountll(ec_homes_mask(h)) >= r->manifest.layout.k;
}

int ec_source_range(const struct ec_reading *r, uint64_t offset, uint64_t len, ec_take_fn *take,
                    void *ctx, struct ec_bad *bad, struct error *err)
{
    struct progress p = {.take = take, .ctx = ctx};
    struct tries tries = {.count = 0};
    struct ec_homes homes;
    struct error why = ERROR_INIT;
    int code = E_NOT_FOUND;
    *bad = (struct ec_bad){0};
    guess(r, &homes);
    if (enough(r, &homes))
        code = try_range(r, &homes, offset, offset + len, &p, &tries, bad, &why);
    for (int i = 0; i < FINDS_MAX && code != 0 && !p.refused; i++) {
        why = ERROR_INIT;
        if ((code = find(r, &tries, bad->damaged, &homes, &why)) != 0)
            break;
        code = try_range(r, &homes, offset, offset + len, &p, &tries, bad, &why);
    }
    if (code != 0 && err != NULL)
        *err = why;
    return code;
}

void ec_source_report(const struct ec_reading *r, const struct ec_bad *bad)
{
    if (bad->damaged != 0) {
        metric_add(metric_get(M_repairs_wanted_total, NULL), 1);
        log_warn("slices are damaged", lu64("bucket_id", r->bucket_id), lstr("name", r->name),
                 lu64("slices", bad->damaged));
    }
    if (bad->failed != 0 || bad->damaged != 0)
        r->target->ec->damaged(r->target, r->bucket_id, r->name, bad->damaged);
}

int ec_source_rebuild(const struct ec_reading *r, const struct ec_homes *homes, unsigned slice,
                      ec_take_fn *take, void *ctx, ec_mask *damaged, struct error *err)
{
    _cleanup_(ec_reader_freep)
    struct ec_reader *reader = NULL;
    struct source *s;
    uint64_t sum;
    int code = source_open(r, homes, &s, &reader, err);
    if (code == 0)
        code = ec_reader_rebuild(reader, slice, take, ctx, &sum, err);
    if (reader != NULL)
        *damaged |= ec_reader_damaged(reader);
    source_done(s);
    return code;
}

int ec_source_each(struct target *t, uint64_t bucket_id, const struct object *o, ec_take_fn *take,
                   void *ctx, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    struct ec_reading r = {.target = t, .state = s, .bucket_id = bucket_id, .name = o->attr.name};
    struct ec_bad bad;
    int code = ec_manifest_parse(o->attr.slices, &r.manifest, err);
    if (code != 0)
        return code;
    code = ec_source_range(&r, 0, r.manifest.layout.length, take, ctx, &bad, err);
    ec_source_report(&r, &bad);
    return code;
}
