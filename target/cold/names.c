/* A merge of two ordered rows: pages of the backend push their names through it, pages of this
 * target's own list are pulled as far as these have come. */
#include "target/cold/names.h"

#include <string.h>

#include "common/arena.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "target/backend/backend.h"
#include "target/cold/pages.h"
#include "target/store/list.h"
#include "target/node/target.h"

enum { ARENA_BYTES = 64 << 10, PAGE = 1000 };

struct merge {
    const struct cold_names *n;
    int (*fn)(void *ctx, const char *const *names, size_t count, struct error *err);
    void *ctx;
    /* what goes to fn() */
    struct arena *arena;
    const char *names[COLD_NAMES_BATCH];
    size_t count;
    /* what is here */
    struct list_page page;
    size_t at;
    bool has_page;
};

static int check_stop(const struct merge *m, struct error *err)
{
    return atomic_load(m->n->stop) ? error_set(err, E_ABORTED, "the job was stopped") : 0;
}

static int flush(struct merge *m, struct error *err)
{
    int code = check_stop(m, err);
    if (code == 0 && m->count > 0)
        code = m->fn(m->ctx, m->names, m->count, err);
    m->count = 0;
    arena_reset(m->arena);
    return code;
}

static int emit(struct merge *m, const char *name, struct error *err)
{
    m->names[m->count++] = arena_strdup(m->arena, name);
    return m->count == COLD_NAMES_BATCH ? flush(m, err) : 0;
}

/* --- what is here ----------------------------------------------------------------------------- */

static int turn_page(struct merge *m, struct error *err)
{
    _cleanup_free_ char *after = xstrdup(m->has_page ? m->page.next : "");
    const struct list_request request = {.bucket_id = m->n->bucket_id,
                                         .prefix = m->n->prefix,
                                         .delimiter = "",
                                         .start_after = after,
                                         .skips_internal = m->n->skips_internal,
                                         .limit = PAGE};
    if (m->has_page)
        list_page_done(&m->page);
    m->page = (struct list_page){0};
    m->at = 0;
    int code = list_page(m->n->target->store, &request, &m->page, err);
    m->has_page = code == 0;
    return code;
}

/* The next of those here; NULL: there is none. */
static int peek(struct merge *m, const char **name, struct error *err)
{
    int code = 0;
    *name = NULL;
    if (!m->has_page)
        code = turn_page(m, err);
    while (code == 0 && m->at == m->page.entry_count && *m->page.next != '\0')
        code = turn_page(m, err);
    if (code == 0 && m->at < m->page.entry_count)
        *name = m->page.entries[m->at].name;
    return code;
}

/* Those here that come before `to` (NULL: all), which is passed over itself. */
static int emit_here(struct merge *m, const char *to, struct error *err)
{
    const char *name = NULL;
    int code = m->n->backend_only ? 0 : peek(m, &name, err);
    while (code == 0 && name != NULL && (to == NULL || strcmp(name, to) <= 0)) {
        if (to == NULL || strcmp(name, to) < 0)
            code = emit(m, name, err);
        m->at++;
        if (code == 0)
            code = peek(m, &name, err);
    }
    return code;
}

/* --- what the backend has --------------------------------------------------------------------- */

/* The names of a page behind `after`, which is its last one then; "": there are no more. */
static int emit_page(struct merge *m, struct cold_pages *pages, char **after, struct error *err)
{
    const struct cold_names *n = m->n;
    _cleanup_json_ json_t *page = NULL;
    json_t *entries = NULL;
    const char *next = NULL;
    int code = cold_pages_read(pages, *after, &page, err);
    if (code == 0)
        code = json_get_array(page, "", "entries", &entries, err);
    if (code == 0)
        code = json_need_str(page, "", "next", &next, err);
    for (size_t i = 0; code == 0 && i < json_array_size(entries); i++) {
        const char *name = NULL;
        code = json_need_str(json_array_get(entries, i), "entries", "name", &name, err);
        if (code != 0 || strcmp(name, *after) <= 0 || !n->is_ours(n->ctx, name))
            continue;
        code = emit_here(m, name, err);
        if (code == 0)
            code = emit(m, name, err);
    }
    if (code == 0 && *next != '\0' && strcmp(next, *after) <= 0)
        code = error_set(err, E_BACKEND, "the backend's list does not go on behind '%s'", *after);
    if (code == 0) {
        free(*after);
        *after = xstrdup(next);
    }
    return code;
}

bool cold_names_can(struct target *t, uint64_t bucket_id)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    return b != NULL && b->props.backend != NULL && backend_is_listed(b->props.backend);
}

int cold_names_each(const struct cold_names *n,
                    int (*fn)(void *ctx, const char *const *names, size_t count, struct error *err),
                    void *ctx, struct error *err)
{
    struct merge *m = xcalloc(1, sizeof *m);
    struct cold_pages pages = {.target = n->target,
                               .bucket_id = n->bucket_id,
                               .prefix = n->prefix,
                               .skips_internal = n->skips_internal,
                               .job = n->job,
                               .stop = n->stop,
                               .merged = !n->backend_only};
    char *after = xstrdup("");
    bool more = true;
    int code = 0;
    *m = (struct merge){.n = n, .fn = fn, .ctx = ctx, .arena = arena_new(ARENA_BYTES)};
    /* Pages without a name of ours are never flushed. */
    while (code == 0 && more && (code = check_stop(m, err)) == 0) {
        code = emit_page(m, &pages, &after, err);
        more = *after != '\0';
    }
    if (code == 0)
        code = emit_here(m, NULL, err);
    if (code == 0)
        code = flush(m, err);
    if (m->has_page)
        list_page_done(&m->page);
    arena_free(m->arena);
    cold_pages_done(&pages);
    free(after);
    free(m);
    return code;
}
