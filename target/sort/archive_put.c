#include "target/sort/archive_put.h"

#include <pthread.h>

#include "common/mem.h"
#include "io/bpipe.h"
#include "io/thread.h"
#include "sort/shard/output_names.h"
#include "target/jobs/made_here.h"
#include "target/jobs/object_make.h"
#include "target/node/target.h"

enum { PIPE_BYTES = 1 << 20, PIECE_BYTES = 256 << 10 };

struct archive_puts {
    const struct sort_part *part;
    struct object_copier *copier;
};

struct archive_put {
    struct archive_puts *puts;
    struct made_here *here; /* NULL: by HTTP, with all that follows */
    char *name;
    struct bpipe *pipe;
    pthread_t thread;
    int code; /* of the PUT, once the thread has ended */
    struct error err;
};

struct archive_puts *archive_puts_new(const struct sort_part *part)
{
    struct archive_puts *a = xcalloc(1, sizeof *a);
    a->part = part;
    a->copier = object_copier_new(part->target);
    return a;
}

void archive_puts_stop(struct archive_puts *a)
{
    object_copier_stop(a->copier);
}

void archive_puts_free(struct archive_puts *a)
{
    if (a == NULL)
        return;
    object_copier_free(a->copier);
    free(a);
}

/* --- the thread ------------------------------------------------------------------------------- */

static int feed(void *ctx, ec_take_fn *take, void *take_ctx, struct error *err)
{
    const struct archive_put *p = ctx;
    _cleanup_free_ char *piece = xmalloc(PIECE_BYTES);
    for (;;) {
        ssize_t n = bpipe_read(p->pipe, piece, PIECE_BYTES, err);
        int code = n > 0 ? take(take_ctx, piece, (size_t)n, err) : (int)n;
        if (n <= 0 || code != 0)
            return code;
    }
}

/* What may pass counts as a target that was lost. */
static int put_code(int code, const char *name, struct error *err)
{
    return object_copy_may_pass(code) ? error_recode(err, E_NET, "store '%s'", name) : code;
}

static void *put(void *arg)
{
    struct archive_put *p = arg;
    const struct sort_part *part = p->puts->part;
    const struct object_make make = {.bucket_id = part->plan->output_bucket_id,
                                     .name = p->name,
                                     .content_type = output_content_type(part->spec, p->name),
                                     .feed = feed,
                                     .ctx = p};
    p->code =
        put_code(object_make(p->puts->copier, part->target, &make, &p->err), p->name, &p->err);
    if (p->code != 0)
        bpipe_cancel(p->pipe, &p->err);
    return NULL;
}

/* --- the builder's side ----------------------------------------------------------------------- */

static void put_free(struct archive_put *p)
{
    bpipe_unref(p->pipe);
    free(p->name);
    free(p);
}

static int begin_by_http(struct archive_put *p, struct error *err)
{
    p->pipe = bpipe_new(PIPE_BYTES);
    return thread_start("archive-put", put, p, &p->thread, err);
}

int archive_put_begin(struct archive_puts *a, const char *name, struct sort_output **out,
                      struct error *err)
{
    const struct sort_part *part = a->part;
    struct archive_put *p = xcalloc(1, sizeof *p);
    p->puts = a;
    p->name = xstrdup(name);
    int code = put_code(made_here_begin(part->target, part->plan->output_bucket_id, name,
                                        output_content_type(part->spec, name), &p->here, err),
                        name, err);
    if (code == 0 && p->here == NULL)
        code = begin_by_http(p, err);
    if (code == 0)
        *out = (struct sort_output *)p;
    else
        put_free(p);
    return code;
}

int archive_put_write(struct sort_output *out, const void *data, size_t len, struct error *err)
{
    const struct archive_put *p = (struct archive_put *)out;
    return p->here != NULL ? made_here_write(p->here, data, len, err)
                           : bpipe_write(p->pipe, data, len, err);
}

/* why: NULL, or nothing of it may appear. */
static int end(struct archive_put *p, const struct error *why, struct error *err)
{
    bpipe_finish(p->pipe, why);
    pthread_join(p->thread, NULL);
    int code = p->code != 0 ? error_set(err, p->code, "%s", p->err.message) : 0;
    put_free(p);
    return code;
}

int archive_put_finish(struct sort_output *out, struct error *err)
{
    struct archive_put *p = (struct archive_put *)out;
    if (p->here == NULL)
        return end(p, NULL, err);
    int code = put_code(made_here_finish(p->here, err), p->name, err);
    put_free(p);
    return code;
}

void archive_put_discard(struct sort_output *out)
{
    struct archive_put *p = (struct archive_put *)out;
    struct error why = ERROR_INIT;
    if (p->here != NULL) {
        made_here_discard(p->here);
        put_free(p);
        return;
    }
    error_set(&why, E_CANCELLED, "the archive is not made");
    end(p, &why, NULL);
}
