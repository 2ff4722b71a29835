/* A builder fills one large buffer and writes it when it is full, so that small records become
 * large writes.  Records go window by window (window.h), and are taken in order: own ones by
 * gathering from the shards, others off their target's stream. */
#include "sort/task/create.h"

#include "common/fault.h"
#include "common/mem.h"
#include "io/direct.h"
#include "io/pool.h"
#include "sort/task/create_index.h"
#include "sort/shard/format.h"
#include "sort/shard/gather.h"
#include "sort/task/window.h"

#define WRITE_BYTES (256 * 1024)
#define PLACES_AHEAD 16 /* records whose places are fetched before they are looked for */
#define BEGINS_MAX 1024 /* records that begin in one buffer */

/* One thread's means, kept from shard to shard. */
struct builder {
    struct sort_context *c;
    const struct catalog *catalog;
    const struct book *book;
    struct resume *resume;
    unsigned char *buffer; /* WRITE_BYTES */
    size_t used;
    struct window window;
    struct gather gather;
    struct order_shard shard;
    struct decoder orders;
    const struct shard_format_ops *format;
    void *encoder;    /* of the shard, where its format has one */
    uint32_t *begins; /* BEGINS_MAX: where records begin in the buffer, where the format asks */
    unsigned begin_count;
    struct sort_output *out;
    uint64_t written; /* as a tar */
};

struct create {
    struct sort_context *c;
    const struct catalog *catalog;
    const struct book *book;
    struct resume *resume;
    atomic_size_t next;
};

static void builder_init(struct builder *b, const struct create *x)
{
    *b = (struct builder){
        .c = x->c,
        .catalog = x->catalog,
        .book = x->book,
        .resume = x->resume,
        .buffer = xaligned(DIRECT_BLOCK, WRITE_BYTES),
        .format = x->c->spec->output_shards,
        .begins = xcalloc(BEGINS_MAX, sizeof *b->begins),
    };
    window_init(&b->window, x->c);
    gather_init(&b->gather, x->catalog);
}

static void builder_done(struct builder *b)
{
    gather_done(&b->gather);
    buf_done(&b->shard.name);
    window_done(&b->window);
    free(b->begins);
    free(b->buffer);
}

/* --- output ----------------------------------------------------------------------------------- */

static int output_put(void *ctx, const void *data, size_t len, struct error *err)
{
    struct builder *b = ctx;
    return b->c->env->output_write(b->c->env->ctx, b->out, data, len, err);
}

/* The buffer in pieces, each the beginning of a record but, perhaps, the first. */
static int builder_encode(struct builder *b, struct error *err)
{
    size_t at = 0;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i <= b->begin_count; i++) {
        size_t to = i < b->begin_count ? b->begins[i] : b->used;
        if (to > at)
            rc = b->format->write(b->encoder, b->buffer + at, to - at, err);
        if (rc == 0 && i < b->begin_count)
            rc = b->format->record(b->encoder, err);
        at = to;
    }
    b->begin_count = 0;
    return rc;
}

static int builder_flush(struct builder *b, struct error *err)
{
    int rc = gather_flush(&b->gather, err);
    if (rc == 0)
        rc = links_check(b->c->links, err);
    if (rc == 0 && b->encoder != NULL)
        rc = builder_encode(b, err);
    else if (rc == 0 && b->used > 0)
        rc = output_put(b, b->buffer, b->used, err);
    if (rc != 0)
        return rc;
    b->written += b->used;
    progress_add(&b->c->progress.bytes_done, b->used);
    b->used = 0;
    return 0;
}

static int builder_begin_record(struct builder *b, struct error *err)
{
    if (b->format->record == NULL)
        return 0;
    int rc = b->begin_count == BEGINS_MAX ? builder_flush(b, err) : 0;
    b->begins[b->begin_count++] = (uint32_t)b->used;
    return rc;
}

static int builder_room(struct builder *b, struct error *err)
{
    return b->used < WRITE_BYTES ? 0 : builder_flush(b, err);
}

/* --- records ---------------------------------------------------------------------------------- */

static int add_local(struct builder *b, const struct order_record *r, struct error *err)
{
    struct feed feed;
    int rc = feed_begin(&feed, &b->gather, r->shard, r->position, err);
    if (rc == 0 && feed.place.size != r->size)
        rc = error_set(err, E_CORRUPT, "a record of %llu bytes is ordered as one of %llu",
                       (unsigned long long)feed.place.size, (unsigned long long)r->size);
    while (rc == 0) {
        rc = builder_room(b, err);
        if (rc != 0)
            return rc;
        ssize_t n = feed_fill(&feed, &b->gather, b->buffer + b->used, WRITE_BYTES - b->used, err);
        if (n <= 0)
            return (int)n;
        b->used += (size_t)n;
        progress_add(&b->c->progress.bytes_local, (uint64_t)n);
    }
    return rc;
}

static int add_remote(struct builder *b, const struct order_record *r, struct error *err)
{
    struct source stream = window_stream(&b->window, r->source);
    for (uint64_t left = r->size; left > 0;) {
        int rc = builder_room(b, err);
        if (rc != 0)
            return rc;
        size_t room = WRITE_BYTES - b->used;
        size_t max = left < room ? (size_t)left : room;
        ssize_t n = stream.read(stream.ctx, b->buffer + b->used, max, err);
        if (n == 0)
            return error_set(err, E_LENGTH, "records from target '%s' end early",
                             sort_target_name(b->c, r->source));
        if (n < 0)
            return window_stream_error(&b->window, r->source, err);
        b->used += (size_t)n;
        left -= (uint64_t)n;
        progress_add(&b->c->progress.bytes_remote, (uint64_t)n);
    }
    return 0;
}

/* --- shards ----------------------------------------------------------------------------------- */

/* Of a million records in random order each is looked up in memory that no cache has. */
static void prefetch_place(const struct builder *b, size_t i)
{
    if (i >= b->window.count)
        return;
    const struct order_record *r = &b->window.records[i];
    if (r->source == b->c->self)
        catalog_prefetch(b->catalog, r->shard, r->position);
}

static int window_build(struct builder *b, uint64_t left, struct error *err)
{
    struct window *w = &b->window;
    int rc = window_begin(w, &b->orders, left, RECORDS_WHOLE, err);
    for (size_t i = 0; rc == 0 && i < w->count; i++) {
        const struct order_record *r = &w->records[i];
        prefetch_place(b, i + PLACES_AHEAD);
        rc = builder_begin_record(b, err);
        if (rc == 0)
            rc = r->source == b->c->self ? add_local(b, r, err) : add_remote(b, r, err);
        progress_add(&b->c->progress.records_built, rc == 0);
    }
    return rc != 0 ? rc : window_end(w, err);
}

static int shard_records(struct builder *b, struct error *err)
{
    int rc = 0;
    for (uint64_t left = b->shard.records; rc == 0 && left > 0; left -= b->window.count)
        rc = window_build(b, left, err);
    return rc;
}

static int shard_end_mark(struct builder *b, struct error *err)
{
    size_t end = (size_t)format_tar_end(b->format);
    int rc = WRITE_BYTES - b->used < end ? builder_flush(b, err) : 0;
    if (rc != 0)
        return rc;
    memset(b->buffer + b->used, 0, end);
    b->used += end;
    return builder_flush(b, err);
}

static int shard_fill(struct builder *b, struct error *err)
{
    uint64_t wanted = b->shard.bytes + format_tar_end(b->format);
    int rc = shard_records(b, err);
    if (rc == 0)
        rc = shard_end_mark(b, err);
    if (rc == 0 && b->written != wanted)
        rc = error_set(err, E_INTERNAL, "%llu bytes were written instead of %llu",
                       (unsigned long long)b->written, (unsigned long long)wanted);
    if (rc == 0 && b->encoder != NULL)
        rc = b->format->finish(b->encoder, err);
    int fault = rc == 0 ? fault_errno("sort.finish") : 0;
    return fault != 0 ? error_errno(err, fault, "finish the shard") : rc;
}

static int shard_begin(struct builder *b, struct error *err)
{
    const struct sort_env *env = b->c->env;
    const char *name = buf_str(&b->shard.name);
    b->used = 0;
    b->begin_count = 0;
    b->written = 0;
    int fault = fault_errno("sort.create");
    if (fault != 0)
        return error_errno(err, fault, "create the shard");
    if (b->format->encoder_new == NULL)
        return env->output_begin(env->ctx, name, b->shard.bytes + format_tar_end(b->format),
                                 &b->out, err);
    const struct format_output to = {
        .sink = {.write = output_put, .ctx = b}, .env = env, .rule = b->c->spec->key_rule};
    int rc = b->format->encoder_new(&to, &b->encoder, err);
    return rc != 0 ? rc : env->output_begin(env->ctx, name, SORT_SIZE_UNKNOWN, &b->out, err);
}

static void encoder_drop(struct builder *b)
{
    if (b->encoder != NULL)
        b->format->encoder_free(b->encoder);
    b->encoder = NULL;
}

static int shard_build(struct builder *b, struct error *err)
{
    const struct sort_env *env = b->c->env;
    int rc = shard_begin(b, err);
    if (rc == 0)
        rc = shard_fill(b, err);
    encoder_drop(b);
    struct sort_output *out = steal(b->out);
    if (rc == 0)
        return env->output_finish(env->ctx, out, err);
    gather_done(&b->gather);
    window_drop(&b->window);
    if (out != NULL)
        env->output_discard(env->ctx, out);
    progress_add(&b->c->progress.redone_bytes, b->written);
    return rc;
}

/* --- outputs ---------------------------------------------------------------------------------- */

static int output_build(struct builder *b, struct error *err)
{
    switch (b->shard.kind) {
    case ORDER_SHARD:
        return shard_build(b, err);
    case ORDER_DALI:
        return create_dali(&b->shard, &b->orders, &b->window, &b->gather, err);
    case ORDER_TEXT:
        return create_text(&b->shard, &b->orders, b->c, err);
    }
    return error_set(err, E_INTERNAL, "no such kind of output");
}

/* An earlier attempt has built it. */
static void output_skip(struct builder *b)
{
    struct sort_progress *p = &b->c->progress;
    progress_add(&p->built, 1);
    if (b->shard.kind != ORDER_SHARD)
        return;
    progress_add(&p->records_built, b->shard.records);
    progress_add(&p->bytes_done, b->shard.bytes + format_tar_end(b->format));
}

static int output_note(struct builder *b, size_t i, struct error *err)
{
    struct sort_progress *p = &b->c->progress;
    bool is_shard = b->shard.kind == ORDER_SHARD;
    int rc = resume_built(b->resume, b->c, i, buf_str(&b->shard.name), err);
    if (rc != 0)
        return rc;
    progress_add(&p->built, 1);
    if (is_shard)
        sort_count("create", b->shard.records, b->shard.bytes);
    if (resume_is_again(b->resume, i)) {
        progress_add(&p->redone_shards, 1);
        progress_add(&p->redone_bytes, is_shard ? b->written : 0);
    }
    return 0;
}

static int builder_run(struct builder *b, size_t i, struct error *err)
{
    struct blob_range range = book_range(b->book, i);
    decoder_init(&b->orders, source_blob(&range));
    int rc = order_get_shard(&b->orders, &b->shard, err);
    bool stands = rc == 0 && resume_stands(b->resume, i);
    if (stands)
        output_skip(b);
    else if (rc == 0)
        rc = output_build(b, err);
    if (rc == 0 && !stands)
        rc = output_note(b, i, err);
    if (rc != 0)
        rc = error_wrap(err, "output %s '%s'", b->shard.kind == ORDER_SHARD ? "shard" : "index",
                        buf_str(&b->shard.name));
    decoder_done(&b->orders);
    return rc;
}

/* One thread: shard after shard, until there is none left or something fails anywhere. */
static int worker(void *ctx, size_t number, struct error *err)
{
    (void)number;
    struct create *x = ctx;
    struct builder b;
    builder_init(&b, x);
    int rc = 0;
    for (size_t i; rc == 0 && (i = atomic_fetch_add(&x->next, 1)) < book_count(x->book);)
        rc = builder_run(&b, i, err);
    if (rc != 0)
        links_stop(x->c->links, err);
    builder_done(&b);
    return rc;
}

int create_run(struct sort_context *c, const struct catalog *catalog, const struct book *book,
               struct resume *resume, struct error *err)
{
    struct create x = {.c = c, .catalog = catalog, .book = book, .resume = resume};
    size_t count = book_count(book);
    size_t workers = count < c->create_threads ? count : c->create_threads;
    return parallel_for("sort-create", c->create_threads, workers, worker, &x, err);
}

static int check_name(struct sort_context *c, const struct book *book, size_t i,
                      struct order_shard *s, struct error *err)
{
    struct blob_range range = book_range(book, i);
    struct decoder d;
    decoder_init(&d, source_blob(&range));
    int rc = order_get_shard(&d, s, err);
    decoder_done(&d);
    const char *name = buf_str(&s->name);
    if (rc == 0 && c->env->owner(c->env->ctx, name) == c->self)
        rc = c->env->output_check(c->env->ctx, name, err);
    return rc;
}

int create_check(struct sort_context *c, const struct book *book, struct error *err)
{
    struct order_shard s = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < book_count(book); i++) {
        rc = check_name(c, book, i, &s, err);
        if (rc == 0)
            rc = links_check(c->links, err);
    }
    buf_done(&s.name);
    return rc;
}
