#include "target/slices/store.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"
#include "common/semaphores.h"
#include "ec/encode.h"
#include "io/bpipe.h"
#include "io/file.h"
#include "target/slices/ec.h"
#include "target/slices/find.h"
#include "target/slices/plan.h"
#include "target/node/target.h"

enum { PIPE_BYTES = 256 << 10, PIECE = 256 << 10 };

/* One slice on its way. */
struct branch {
    const struct node *node; /* NULL: no target was left for it */
    char *url;
    struct bpipe *pipe;
    sem_t *over;
    bool failed; /* it takes no more; the call says why */
    struct error err;
};

struct store {
    const struct ec_storing *what;
    struct ec_manifest *manifest;
    sem_t over;
    unsigned count, calls;
    uint64_t stripe_ms; /* when the last stripe began: no slice was whole before */
    struct branch branches[EC_SLICES_MAX];
};

/* In the data loop's thread. */
static void slice_stored(void *arg, struct http_result *r)
{
    struct branch *b = arg;
    http_result_error(r, b->url, &b->err);
    sem_post(b->over);
}

static void start(struct store *s, unsigned i, const struct node *n)
{
    const struct ec_storing *w = s->what;
    struct branch *b = &s->branches[i];
    b->node = n;
    b->over = &s->over;
    b->url = ec_slice_put_url(n, w->bucket_id, s->manifest->tag, i, w->name, true);
    b->pipe = bpipe_new(PIPE_BYTES);
    const struct http_call put = {
        .method = HTTP_PUT,
        .url = b->url,
        .node = n->id,
        .upload = b->pipe,
        .upload_length = (int64_t)ec_layout_slice_bytes(&s->manifest->layout),
    };
    s->calls++;
    http_call_start(w->target->data_client, &put, slice_stored, b);
}

/* One that failed is the end of all: they are stored together, or anew. */
static int take_stripe(void *ctx, unsigned char *const *blocks, size_t len, struct error *err)
{
    struct store *s = ctx;
    s->stripe_ms = clock_ms();
    for (unsigned i = 0; i < s->count; i++) {
        struct branch *b = &s->branches[i];
        if (b->node == NULL)
            continue;
        b->failed = bpipe_write(b->pipe, blocks[i], len, NULL) != 0;
        if (b->failed)
            return error_set(err, E_CANCELLED, "target '%s' takes no more of it", b->node->id);
    }
    return 0;
}

static int encode_file(struct store *s, struct ec_encoder *e, struct checksum *sum,
                       struct error *err)
{
    const struct ec_storing *w = s->what;
    _cleanup_free_ char *piece = xmalloc(PIECE);
    uint64_t length = s->manifest->layout.length;
    int code = 0;
    for (uint64_t at = 0; at < length && code == 0;) {
        size_t len = length - at < PIECE ? (size_t)(length - at) : PIECE;
        if (atomic_load(w->stopped))
            return error_set(err, E_ABORTED, "slices of '%s': stopped", w->name);
        code = file_pread_full(w->fd, piece, len, at, err);
        checksum_update(sum, piece, len);
        if (code == 0)
            code = ec_encoder_write(e, piece, len, err);
        at += len;
    }
    return code;
}

static int send_file(struct store *s, struct error *err)
{
    const struct ec_sink sink = {.ctx = s, .stripe = take_stripe};
    const struct checksum_value *want = &s->manifest->checksum;
    struct checksum_value got = {.type = CHECKSUM_NONE};
    _cleanup_(ec_encoder_freep)
    struct ec_encoder *e = NULL;
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(want->type);
    int code = ec_encoder_new(&s->manifest->layout, s->manifest->tag, &sink, &e, err);
    if (code == 0)
        code = encode_file(s, e, sum, err);
    if (code != 0)
        return code;
    checksum_final(sum, &got);
    return checksum_equal(&got, want)
               ? 0
               : error_set(err, E_CORRUPT, "the bytes of '%s' are others", s->what->name);
}

static void await_calls(struct store *s)
{
    for (; s->calls > 0; s->calls--)
        semaphore_wait(&s->over);
}

/* Where the sending was given up all calls have failed: the one that began it says why. */
static int check_branches(const struct store *s, bool cut, struct error *err)
{
    for (unsigned i = 0; i < s->count; i++) {
        const struct branch *b = &s->branches[i];
        if (b->node != NULL && b->err.code != 0 && (b->failed || !cut))
            return error_set(err, b->err.code, "target '%s' could not take slice %u of '%s': %s",
                             b->node->id, i, s->what->name, b->err.message);
    }
    return 0;
}

static int send_all(struct store *s, const struct ec_homes *homes, struct error *err)
{
    struct error why = ERROR_INIT;
    sem_init(&s->over, 0, 0);
    for (unsigned i = 0; i < s->count; i++) {
        if (homes->all[i] != NULL)
            start(s, i, homes->all[i]);
    }
    int code = send_file(s, &why);
    for (unsigned i = 0; i < s->count; i++) {
        if (s->branches[i].pipe != NULL)
            bpipe_finish(s->branches[i].pipe, code != 0 ? &why : NULL);
    }
    await_calls(s);
    int theirs = check_branches(s, code != 0, err);
    if (theirs == 0 && code != 0)
        return error_set(err, code, "%s", why.message);
    return theirs;
}

static void store_done(struct store *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        bpipe_unref(s->branches[i].pipe);
        free(s->branches[i].url);
    }
    sem_destroy(&s->over);
    free(s);
}

int ec_store(const struct ec_storing *what, struct ec_manifest *m, uint64_t *since_ms,
             struct error *err)
{
    struct ec_homes homes;
    m->tag = ec_new_tag(what->target->ec);
    int code = ec_plan_write(what->ranked, what->count, m->layout.k, m->layout.m, &homes, err);
    if (code != 0)
        return code;
    if (what->all && homes.all[homes.count - 1] == NULL)
        return error_set(err, E_NO_TARGETS,
                         "'%s' needs %u targets for its slices, and fewer can take one", what->name,
                         homes.count);
    struct store *s = xcalloc(1, sizeof *s);
    s->what = what;
    s->manifest = m;
    s->count = homes.count;
    code = send_all(s, &homes, err);
    *since_ms = s->stripe_ms;
    store_done(s);
    int errnum = code == 0 ? fault_errno("ec.stored") : 0;
    return errnum != 0 ? error_errno(err, errnum, "store '%s'", what->name) : code;
}
