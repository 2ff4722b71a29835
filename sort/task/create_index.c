#include "sort/task/create_index.h"

#include "common/fault.h"
#include "sort/index/dali.h"
#include "sort/shard/outline.h"

/* --- any text --------------------------------------------------------------------------------- */

/* From wherever, into a new output. */
static int put_text(struct sort_context *c, struct sort_output *out, struct source text,
                    struct error *err)
{
    char chunk[4096];
    ssize_t n;
    while ((n = text.read(text.ctx, chunk, sizeof chunk, err)) > 0) {
        int rc = links_check(c->links, err);
        if (rc == 0)
            rc = c->env->output_write(c->env->ctx, out, chunk, (size_t)n, err);
        if (rc != 0)
            return rc;
    }
    int fault = n == 0 ? fault_errno("sort.finish") : 0;
    return fault != 0 ? error_errno(err, fault, "finish the index") : (int)n;
}

static int store(struct sort_context *c, const char *name, uint64_t size, struct source text,
                 struct error *err)
{
    const struct sort_env *env = c->env;
    struct sort_output *out = NULL;
    int rc = env->output_begin(env->ctx, name, size, &out, err);
    if (rc == 0)
        rc = put_text(c, out, text, err);
    if (rc == 0)
        return env->output_finish(env->ctx, out, err);
    if (out != NULL)
        env->output_discard(env->ctx, out);
    return rc;
}

/* What is left of an order. */
struct rest {
    struct decoder *order;
    uint64_t left;
};

static ssize_t rest_read(void *ctx, void *out, size_t max, struct error *err)
{
    struct rest *r = ctx;
    size_t n = r->left < max ? (size_t)r->left : max;
    int rc = decoder_get(r->order, out, n, err);
    r->left -= n;
    return rc != 0 ? rc : (ssize_t)n;
}

int create_text(struct order_shard *s, struct decoder *order, struct sort_context *c,
                struct error *err)
{
    struct rest rest = {.order = order, .left = s->bytes};
    return store(c, buf_str(&s->name), s->bytes, (struct source){rest_read, &rest}, err);
}

/* --- DALI ------------------------------------------------------------------------------------- */

/* The walk over the outlines of a shard's records. */
struct walk {
    struct sort_context *c;
    struct window *window;
    struct outline own; /* of records that lie here */
    struct untar untar;
    struct dali index;
    uint64_t at; /* of the block that is being read, in the shard */
};

static int on_begin(void *ctx, const struct untar_member *m, struct error *err)
{
    struct walk *w = ctx;
    if (m->type != '0')
        return 0;
    return dali_add(&w->index, m->path, m->path_len, w->at + TAR_BLOCK, m->size, err);
}

static int on_data(void *ctx, const void *data, size_t len, struct error *err)
{
    (void)ctx;
    (void)data;
    (void)len;
    return error_set(err, E_CORRUPT, "the outline of a record has contents in it");
}

static int on_end(void *ctx, struct error *err)
{
    (void)ctx;
    (void)err;
    return 0;
}

static const struct untar_events events = {.begin = on_begin, .data = on_data, .end = on_end};

static int read_block(struct source from, unsigned char *block, struct error *err)
{
    for (size_t have = 0; have < TAR_BLOCK;) {
        ssize_t n = from.read(from.ctx, block + have, TAR_BLOCK - have, err);
        if (n == 0)
            return error_set(err, E_LENGTH, "the outline of a record ends early");
        if (n < 0)
            return (int)n;
        have += (size_t)n;
    }
    return 0;
}

static int walk_blocks(struct walk *w, struct source from, uint64_t size, struct error *err)
{
    unsigned char block[TAR_BLOCK];
    int rc = 0;
    for (uint64_t end = w->at + size; rc == 0 && w->at < end;) {
        uint64_t skipped = untar_skip(&w->untar, end - w->at);
        w->at += skipped;
        if (skipped > 0)
            continue;
        rc = read_block(from, block, err);
        if (rc == 0)
            rc = untar_write(&w->untar, block, sizeof block, err);
        w->at += sizeof block;
    }
    if (rc == 0 && !untar_between(&w->untar))
        rc = error_set(err, E_CORRUPT, "a record ends within a member");
    return rc;
}

static ssize_t own_read(void *ctx, void *out, size_t max, struct error *err)
{
    return outline_read(ctx, out, max, err);
}

static int walk_own(struct walk *w, const struct order_record *r, struct error *err)
{
    int rc = outline_begin(&w->own, r->shard, r->position, err);
    if (rc == 0 && w->own.left != r->size)
        return error_set(err, E_CORRUPT, "a record of %llu bytes is ordered as one of %llu",
                         (unsigned long long)w->own.left, (unsigned long long)r->size);
    return rc != 0 ? rc : walk_blocks(w, (struct source){own_read, &w->own}, r->size, err);
}

static int walk_record(struct walk *w, const struct order_record *r, struct error *err)
{
    int rc = links_check(w->c->links, err);
    if (rc != 0)
        return rc;
    if (r->source == w->c->self)
        return walk_own(w, r, err);
    rc = walk_blocks(w, window_stream(w->window, r->source), r->size, err);
    return rc != 0 ? window_stream_error(w->window, r->source, err) : 0;
}

static int walk_all(struct walk *w, struct decoder *order, uint64_t records, struct error *err)
{
    int rc = 0;
    for (uint64_t left = records; rc == 0 && left > 0; left -= w->window->count) {
        rc = window_begin(w->window, order, left, RECORDS_OUTLINES, err);
        for (size_t i = 0; rc == 0 && i < w->window->count; i++)
            rc = walk_record(w, &w->window->records[i], err);
        if (rc == 0)
            rc = window_end(w->window, err);
    }
    return rc;
}

static int finish_index(struct walk *w, struct order_shard *s, struct error *err)
{
    uint64_t size = 0;
    int rc = dali_finish(&w->index, &size, err);
    return rc != 0 ? rc : store(w->c, buf_str(&s->name), size, dali_source(&w->index), err);
}

int create_dali(struct order_shard *s, struct decoder *order, struct window *window,
                struct gather *g, struct error *err)
{
    struct walk w = {.c = window->c, .window = window};
    int fault = fault_errno("sort.create");
    if (fault != 0)
        return error_errno(err, fault, "create the index");
    dali_init(&w.index, window->c->env);
    outline_init(&w.own, g);
    untar_init(&w.untar, &events, &w);
    int rc = walk_all(&w, order, s->records, err);
    if (rc == 0)
        rc = finish_index(&w, s, err);
    gather_done(g);
    window_drop(window);
    untar_done(&w.untar);
    outline_done(&w.own);
    dali_done(&w.index);
    return rc;
}
