#include "plog/merge.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "plog/session.h"

enum { TRIES = 32 }; /* of what another client can overtake */

void plog_look_done(struct plog_look *l)
{
    plog_map_free(l->map);
    *l = (struct plog_look){.map = NULL};
}

void plog_watch_done(struct plog_watch *w)
{
    free(w->items);
    *w = (struct plog_watch){.count = 0};
}

/* --- reading ---------------------------------------------------------------------------------- */

static int list(const struct plog_store *st, const char *id, const char *part,
                struct plog_names *out, struct error *err)
{
    char prefix[PLOG_NAME_MAX];
    plog_name(prefix, id, part);
    return st->list(st->ctx, prefix, NULL, out, err);
}

static struct plog_map *new_map(const struct plog_store *st)
{
    struct plog_map *map = plog_map_new();
    plog_map_limit(map, st->map_max, st->map_hint);
    return map;
}

/* What the head's merged index has.  E_NOT_FOUND: there is a later one now. */
static int load_merged(const struct plog_store *st, const struct plog_head *head,
                       struct plog_map *map, struct error *err)
{
    char name[PLOG_NAME_MAX], etag[PLOG_ETAG_MAX];
    _cleanup_buf_ struct buf body = BUF_INIT;
    if (head->merged == 0)
        return 0;
    plog_name_merged(name, head->id, head->merged, head->nonce);
    int code = st->get(st->ctx, name, &body, etag, err);
    if (code == 0)
        code = plog_map_parse(map, (const uint8_t *)buf_str(&body), body.len, err);
    if (code != 0)
        error_wrap(err, "'%s'", name);
    return code;
}

/* Adds the segments of the list that the map lacks. */
static int load_segments(const struct plog_store *st, const struct plog_names *names,
                         struct plog_map *map, struct error *err)
{
    _cleanup_plog_names_ struct plog_names lacking = {.count = 0};
    struct plog_segment_name s;
    for (size_t i = 0; i < names->count; i++) {
        if (!plog_name_parse_segment(names->items[i], &s))
            return error_set(err, E_CORRUPT, "'%s' is no name of a segment", names->items[i]);
        if (!plog_map_has(map, &s))
            plog_names_add(&lacking, names->items[i]);
    }
    return lacking.count > 0 ? st->ends(st->ctx, &lacking, map, err) : 0;
}

/* err says which object was not found.  The head has not changed since, so the object is lost: one
 * that a client removes is removed after the head. */
static int lost(const char *object, struct error *err)
{
    return error_recode(err, E_CORRUPT, "the plog '%s' has lost an object", object);
}

/* E_NOT_FOUND: something has changed, look again.  It is lost if the head still has the version
 * `of`; "": something else. */
static int look_once(const struct plog_store *st, const char *object, struct plog_look *l,
                     char of[static PLOG_ETAG_MAX], struct error *err)
{
    _cleanup_plog_names_ struct plog_names records = {.count = 0}, segments = {.count = 0};
    char id[PLOG_ID_CHARS + 1];
    memcpy(id, l->head.id, sizeof id);
    l->map = new_map(st);
    of[0] = '\0';
    int code = list(st, id, "o/", &records, err);
    if (code == 0 && records.count > 0)
        code = list(st, id, "s/", &segments, err);
    if (code == 0) /* last: so the lists are not those of a plog that is half removed */
        code = plog_head_read(st, object, &l->head, l->etag, err);
    if (code == 0 && strcmp(l->head.id, id) != 0)
        return error_set(err, E_NOT_FOUND, "'%s' was replaced", object);
    if (code != 0)
        return code;
    memcpy(of, l->etag, PLOG_ETAG_MAX);
    l->records = records.count;
    code = load_merged(st, &l->head, l->map, err);
    return code == 0 ? load_segments(st, &segments, l->map, err) : code;
}

int plog_look(const struct plog_store *st, const char *object, struct plog_look *l,
              struct error *err)
{
    char of[PLOG_ETAG_MAX] = "";
    *l = (struct plog_look){.map = NULL};
    int code = 0;
    for (int i = 0; i < TRIES; i++) {
        code = plog_head_read(st, object, &l->head, l->etag, err);
        if (code == 0 && strcmp(of, l->etag) == 0)
            code = lost(object, err);
        if (code != 0)
            break;
        code = look_once(st, object, l, of, err);
        if (code != E_NOT_FOUND)
            break;
        plog_map_free(steal(l->map));
    }
    if (code != 0)
        plog_look_done(l);
    return code;
}

/* --- which sessions are over ------------------------------------------------------------------ */

struct record {
    const char *name;
    char etag[PLOG_ETAG_MAX];
    uint64_t session;
    bool is_closed, is_gone;
    bool is_left; /* it was not removed: it has changed */
};
struct records {
    size_t count;
    struct record *items;
};

static void records_done(struct records *r)
{
    free(r->items);
}

/* Each record in the version that it has now: the segments are listed after that. */
static int read_records(const struct plog_store *st, const struct plog_names *names,
                        struct records *out, struct error *err)
{
    int code = 0;
    out->items = xcalloc(names->count + 1, sizeof *out->items);
    for (size_t i = 0; i < names->count && code == 0; i++) {
        struct record *r = &out->items[out->count++];
        _cleanup_buf_ struct buf body = BUF_INIT;
        r->name = names->items[i];
        if (!plog_name_parse_record(r->name, &r->session, &r->is_closed))
            return error_set(err, E_CORRUPT, "'%s' is no name of a record", r->name);
        code = st->get(st->ctx, r->name, &body, r->etag, err);
        r->is_gone = code == E_NOT_FOUND;
        code = error_forgive(err, code, E_NOT_FOUND);
    }
    return code;
}

/* Since when the watch has seen the record so; from now on, if it is another. */
static uint64_t seen_since(struct plog_watch *w, const struct record *r, uint64_t now_ms)
{
    for (size_t i = 0; i < w->count; i++) {
        struct plog_watched *seen = &w->items[i];
        if (strcmp(seen->name, r->name) != 0)
            continue;
        if (strcmp(seen->etag, r->etag) != 0) {
            memcpy(seen->etag, r->etag, sizeof seen->etag);
            seen->since_ms = now_ms;
        }
        return seen->since_ms;
    }
    w->items = xrealloc(w->items, (w->count + 1) * sizeof *w->items);
    struct plog_watched *seen = &w->items[w->count++];
    snprintf(seen->name, sizeof seen->name, "%s", r->name);
    memcpy(seen->etag, r->etag, sizeof seen->etag);
    seen->since_ms = now_ms;
    return now_ms;
}

static bool has_closed(const struct records *all, uint64_t session)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].is_closed && all->items[i].session == session)
            return true;
    }
    return false;
}

/* Names ascend: the record of a session that is open comes before its record `.c`. */
static bool is_left(const struct records *all, uint64_t session)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].is_left && all->items[i].session == session)
            return true;
    }
    return false;
}

static bool all_are_over(const struct records *all, struct plog_watch *w, uint64_t now_ms,
                         uint64_t lease_ms)
{
    bool is_over = true;
    for (size_t i = 0; i < all->count; i++) {
        const struct record *r = &all->items[i];
        const bool is_dead = r->is_gone || now_ms - seen_since(w, r, now_ms) >= lease_ms;
        is_over = is_over && (is_dead || r->is_closed || has_closed(all, r->session));
    }
    return is_over;
}

/* --- merging ---------------------------------------------------------------------------------- */

struct merge {
    const struct plog_store *st;
    const char *object;
    struct plog_watch *watch;
    uint64_t now_ms, lease_ms;
    struct plog_head head;
    char etag[PLOG_ETAG_MAX];
};

size_t plog_merged_max(const struct plog_store *st)
{
    return st->whole_max > 0 && st->whole_max < PLOG_MERGED_MAX ? st->whole_max : PLOG_MERGED_MAX;
}

static int put_head(struct merge *m, const struct plog_head *next, struct error *err)
{
    char etag[PLOG_ETAG_MAX];
    _cleanup_buf_ struct buf body = BUF_INIT;
    plog_head_print(next, &body);
    const int code = m->st->put(m->st->ctx, m->object, body.data, body.len, m->etag, etag, err);
    if (code == 0)
        m->head = *next;
    return code;
}

/* Stores the merged index, then the head.  The index has no condition: its name is random, and a
 * repeat that finds the name would not show that the first try is durable. */
static int put_merged(struct merge *m, const struct plog_map *map, struct plog_head *next,
                      struct error *err)
{
    char name[PLOG_NAME_MAX], etag[PLOG_ETAG_MAX];
    _cleanup_buf_ struct buf index = BUF_INIT;
    plog_name_merged(name, next->id, next->merged, next->nonce);
    plog_map_print(map, &index);
    if (index.len > plog_merged_max(m->st)) /* no one could read it */
        return error_set(err, E_TOO_LARGE,
                         "the merged index of '%s' has %zu bytes, and %zu are the limit: the file "
                         "stays readable without it; copy it",
                         m->object, index.len, plog_merged_max(m->st));
    const int code = m->st->put(m->st->ctx, name, index.data, index.len, NULL, etag, err);
    return code == 0 ? put_head(m, next, err) : code;
}

/* The head covers all segments that were listed, durably: one that covers them already may be of a
 * merge that ended in doubt, and is stored again.  E_PRECONDITION, E_NOT_FOUND: another merge was
 * faster, or ours ended in doubt; read the head again. */
static int cover(struct merge *m, struct error *err)
{
    _cleanup_plog_names_ struct plog_names segments = {.count = 0};
    _cleanup_plog_map_ struct plog_map *map = new_map(m->st);
    int code = list(m->st, m->head.id, "s/", &segments, err);
    if (code == 0)
        code = load_merged(m->st, &m->head, map, err);
    const size_t covered = plog_map_segments(map);
    if (code == 0)
        code = load_segments(m->st, &segments, map, err);
    if (code != 0)
        return code;
    struct plog_head next = m->head;
    next.mark = 0;
    if (plog_map_segments(map) == covered)
        return put_head(m, &next, err);
    next.epoch = plog_map_epoch(map);
    next.size = plog_map_size(map);
    next.bytes = plog_map_bytes(map);
    next.mtime_ms = m->st->now_ms(m->st->ctx);
    next.merged++;
    next.nonce = m->st->random(m->st->ctx);
    return put_merged(m, map, &next, err);
}

/* The records `.c` come last: one says that its session has closed as long as the other record of
 * the session is left, which a session by token has stored (session.h). */
static int remove_records(const struct plog_store *st, struct records *all, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < all->count && code == 0; i++) {
        struct record *r = &all->items[i];
        if (r->is_gone || (r->is_closed && is_left(all, r->session)))
            continue;
        code = st->remove(st->ctx, r->name, r->etag, err);
        r->is_left = code == E_PRECONDITION; /* the session lives */
        code = error_forgive(err, code, E_NOT_FOUND);
        code = error_forgive(err, code, E_PRECONDITION);
    }
    return code;
}

/* The merged indexes before the head's, and those of merges that lost against it. */
static int remove_merged(const struct merge *m, struct error *err)
{
    _cleanup_plog_names_ struct plog_names names = {.count = 0};
    char mine[PLOG_NAME_MAX];
    uint64_t number;
    int code = list(m->st, m->head.id, "m/", &names, err);
    plog_name_merged(mine, m->head.id, m->head.merged, m->head.nonce);
    for (size_t i = 0; i < names.count && code == 0; i++) {
        if (!plog_name_parse_merged(names.items[i], &number) || number > m->head.merged ||
            strcmp(names.items[i], mine) == 0)
            continue;
        code = m->st->remove(m->st->ctx, names.items[i], NULL, err);
        code = error_forgive(err, code, E_NOT_FOUND);
    }
    return code;
}

/* E_PRECONDITION, E_NOT_FOUND: try again. */
static int merge_once(struct merge *m, enum plog_merge_result *result, struct error *err)
{
    _cleanup_plog_names_ struct plog_names names = {.count = 0};
    _cleanup_(records_done)
    struct records records = {.count = 0};
    int code = list(m->st, m->head.id, "o/", &names, err);
    if (code == 0)
        code = read_records(m->st, &names, &records, err);
    if (code != 0)
        return code;
    if (names.count == 0 || !all_are_over(&records, m->watch, m->now_ms, m->lease_ms)) {
        *result = names.count > 0 ? PLOG_MERGED_BUSY : PLOG_MERGED_NOTHING;
        return 0;
    }
    code = cover(m, err);
    if (code == 0)
        code = remove_records(m->st, &records, err);
    if (code == 0)
        code = remove_merged(m, err);
    if (code == 0)
        *result = PLOG_MERGED_NOW;
    return code;
}

int plog_merge(const struct plog_store *st, const char *object, struct plog_watch *watch,
               uint64_t now_ms, uint64_t lease_ms, enum plog_merge_result *result,
               struct error *err)
{
    struct merge m = {
        .st = st, .object = object, .watch = watch, .now_ms = now_ms, .lease_ms = lease_ms};
    char of[PLOG_ETAG_MAX] = ""; /* the head with which something was not found */
    int code = 0;
    for (int i = 0; i < TRIES; i++) {
        code = plog_head_read(st, object, &m.head, m.etag, err);
        if (code == 0 && strcmp(of, m.etag) == 0)
            code = lost(object, err);
        if (code != 0)
            return code;
        code = merge_once(&m, result, err);
        memcpy(of, code == E_NOT_FOUND ? m.etag : "", code == E_NOT_FOUND ? sizeof of : 1);
        if (code != E_PRECONDITION && code != E_NOT_FOUND)
            return code;
    }
    return code;
}
