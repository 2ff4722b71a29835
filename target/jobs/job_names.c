#include "target/jobs/job_names.h"

#include <string.h>

#include "cluster/documents/state_holder.h"
#include "common/arena.h"
#include "common/mem.h"
#include "target/store/list.h"

enum { ARENA_BYTES = 64 * 1024 };

static int check_stop(const struct job_names *n, struct error *err)
{
    return *n->stop ? error_set(err, E_ABORTED, "job '%s' was stopped", n->job_id) : 0;
}

/* --- a list or template ----------------------------------------------------------------------- */

struct batch {
    struct arena *arena;
    const char *names[JOB_NAMES_BATCH];
    size_t count;
};

bool job_names_is_ours(const struct job_names *n, const struct cluster_state *s, const char *name)
{
    const struct node *owner;
    return smap_owners(&s->smap, n->bucket_id, name, 1, &owner) == 1 &&
           strcmp(owner->id, n->self) == 0;
}

/* The next names of ours from *at on; a batch that is not full is the last. */
static int fill_named(const struct job_names *n, uint64_t *at, struct batch *b, struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    _cleanup_state_ const struct cluster_state *s = state_current(n->state);
    uint64_t count = objects_spec_count(n->spec);
    b->count = 0;
    arena_reset(b->arena);
    for (; *at < count && b->count < JOB_NAMES_BATCH && !*n->stop; ++*at) {
        const char *name = objects_spec_name(n->spec, *at, &text);
        if (job_names_is_ours(n, s, name))
            b->names[b->count++] = arena_strdup(b->arena, name);
    }
    return check_stop(n, err);
}

static int each_named(const struct job_names *n, job_names_fn *fn, void *ctx, struct error *err)
{
    struct batch *b = xcalloc(1, sizeof *b);
    b->arena = arena_new(ARENA_BYTES);
    uint64_t at = 0;
    int code;
    do {
        code = fill_named(n, &at, b, err);
        if (code == 0 && b->count > 0)
            code = fn(ctx, b->names, b->count, err);
    } while (code == 0 && b->count == JOB_NAMES_BATCH);
    arena_free(b->arena);
    free(b);
    return code;
}

/* --- a prefix --------------------------------------------------------------------------------- */

static int each_on_page(const struct job_names *n, const struct list_page *page, job_names_fn *fn,
                        void *ctx, struct error *err)
{
    _cleanup_free_ const char **names = xcalloc(page->entry_count + 1, sizeof *names);
    _cleanup_state_ const struct cluster_state *s = state_current(n->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, n->bucket_id);
    bool all = b == NULL || !bucket_has_copies(b);
    size_t count = 0;
    for (size_t i = 0; i < page->entry_count; i++) {
        if (all || job_names_is_ours(n, s, page->entries[i].name))
            names[count++] = page->entries[i].name;
    }
    return count > 0 ? fn(ctx, names, count, err) : 0;
}

static int each_with_prefix(const struct job_names *n, job_names_fn *fn, void *ctx,
                            struct error *err)
{
    _cleanup_free_ char *after = xstrdup("");
    bool more = true;
    int code = 0;
    while (code == 0 && more && (code = check_stop(n, err)) == 0) {
        struct list_page page = {0};
        const struct list_request request = {.bucket_id = n->bucket_id,
                                             .prefix = n->spec->prefix,
                                             .delimiter = "",
                                             .start_after = after,
                                             .skips_internal = objects_spec_skips_internal(n->spec),
                                             .limit = JOB_NAMES_BATCH};
        code = list_page(n->store, &request, &page, err);
        if (code != 0)
            break;
        code = each_on_page(n, &page, fn, ctx, err);
        more = page.next[0] != '\0';
        free(after);
        after = xstrdup(page.next);
        list_page_done(&page);
    }
    return code;
}

int job_names_each(const struct job_names *n, job_names_fn *fn, void *ctx, struct error *err)
{
    return n->spec->which == OBJECTS_PREFIX ? each_with_prefix(n, fn, ctx, err)
                                            : each_named(n, fn, ctx, err);
}

static int count_batch(void *ctx, const char *const *names, size_t count, struct error *err)
{
    (void)names;
    (void)err;
    *(uint64_t *)ctx += count;
    return 0;
}

int job_names_count(const struct job_names *n, uint64_t *count, struct error *err)
{
    *count = 0;
    return job_names_each(n, count_batch, count, err);
}
