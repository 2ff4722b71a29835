#include "plog/testing/sim_store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "plog/head.h"

/* --- objects ---------------------------------------------------------------------------------- */

void sim_store_done(struct sim_store *s)
{
    for (size_t i = 0; i < s->count; i++)
        buf_done(&s->objects[i].body);
    free(s->objects);
}

/* Sorted by name; one that was removed stays as a place. */
static struct sim_object *place(struct sim_store *s, const char *name)
{
    size_t at = 0;
    while (at < s->count && strcmp(s->objects[at].name, name) < 0)
        at++;
    if (at < s->count && strcmp(s->objects[at].name, name) == 0)
        return &s->objects[at];
    if (s->count == s->room) {
        s->room = s->room * 2 + 16;
        s->objects = xrealloc(s->objects, s->room * sizeof *s->objects);
    }
    memmove(&s->objects[at + 1], &s->objects[at], (s->count - at) * sizeof *s->objects);
    s->count++;
    s->objects[at] = (struct sim_object){.is_there = false};
    snprintf(s->objects[at].name, sizeof s->objects[at].name, "%s", name);
    return &s->objects[at];
}

const struct sim_object *sim_store_find(const struct sim_store *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->objects[i].is_there && strcmp(s->objects[i].name, name) == 0)
            return &s->objects[i];
    }
    return NULL;
}

bool sim_store_any(const struct sim_store *s, const char *prefix)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->objects[i].is_there && strncmp(s->objects[i].name, prefix, strlen(prefix)) == 0)
            return true;
    }
    return false;
}

static void etag_of(const struct sim_object *o, char etag[static PLOG_ETAG_MAX])
{
    snprintf(etag, PLOG_ETAG_MAX, "v%llu", (unsigned long long)o->version);
}

static int check_condition(const struct sim_object *o, const char *if_match)
{
    char etag[PLOG_ETAG_MAX];
    if (if_match[0] == '\0')
        return 0;
    if (strcmp(if_match, PLOG_ABSENT) == 0)
        return o->is_there ? E_PRECONDITION : 0;
    if (!o->is_there)
        return E_NOT_FOUND;
    etag_of(o, etag);
    return strcmp(etag, if_match) == 0 ? 0 : E_PRECONDITION;
}

static void store(struct sim_store *s, struct sim_object *o, const struct buf *body)
{
    buf_clear(&o->body);
    if (body != NULL && body->len > 0)
        buf_append(&o->body, body->data, body->len);
    o->version = ++s->versions;
    o->made = s->now;
    o->is_there = true;
}

/* --- what a name is --------------------------------------------------------------------------- */

static bool has_part(const char *name, const char *part)
{
    return strncmp(name, PLOG_ROOT, strlen(PLOG_ROOT)) == 0 && strstr(name, part) != NULL;
}

static bool is_closed_record(const char *name)
{
    return has_part(name, "/o/") && strstr(name, ".c") != NULL;
}

static bool is_open_record(const char *name)
{
    return has_part(name, "/o/") && !is_closed_record(name);
}

static bool is_writer(const struct sim_program *p)
{
    return p->role == SIM_WRITE || p->role == SIM_CLOSE || p->role == SIM_SHARE;
}

/* --- calls take place ------------------------------------------------------------------------- */

static void land_list(struct sim_program *p, struct sim_call *c)
{
    struct sim_store *s = p->sim;
    const bool is_late = s->lie == LIE_SEGMENTS_FIRST && p->role == SIM_MERGE;
    c->code = 0;
    if (s->lie == LIE_FLAT_BLIND && p->role == SIM_FLATTEN && has_part(c->name, "/o/"))
        return;
    for (size_t i = 0; i < s->count; i++) {
        const struct sim_object *o = &s->objects[i];
        if (!o->is_there || strncmp(o->name, c->name, strlen(c->name)) != 0 ||
            strcmp(o->name, c->after) <= 0)
            continue;
        if (is_late && has_part(o->name, "/s/") && o->made > p->begun)
            continue;
        if (s->lie == LIE_NO_EPOCH && c->after[0] != '\0')
            continue;
        plog_names_add(&c->names, o->name);
    }
}

/* A writer that does not look: the head is as it was, or has no mark. */
static void hide_head(const struct sim_program *p, struct sim_call *c)
{
    struct plog_head head = {.merged = 0};
    const bool is_there =
        c->code == 0 && plog_head_parse(buf_str(&c->body), c->body.len, &head, NULL) == 0;
    if (p->sim->lie == LIE_NO_HEAD_CHECK && p->id[0] != '\0') {
        head = (struct plog_head){.merged = 0};
        memcpy(head.id, p->id, sizeof head.id);
    } else if (p->sim->lie != LIE_NO_MARK || !is_there) {
        return;
    }
    head.mark = 0;
    buf_clear(&c->body);
    plog_head_print(&head, &c->body);
    c->code = 0;
}

/* A reader that reads the head once: it is as it was at first. */
static void repeat_head(const struct sim_program *p, struct sim_call *c)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct sim_call *first = &p->calls[i];
        if (first->kind == SIM_GET && strcmp(first->name, SIM_OBJECT) == 0 && first->code == 0) {
            buf_clear(&c->body);
            buf_append(&c->body, first->body.data, first->body.len);
            c->code = 0;
            return;
        }
    }
}

/* A session by token that looks at nothing. */
static bool get_lies(struct sim_program *p, struct sim_call *c, const struct sim_object *o)
{
    if (p->sim->lie == LIE_TOKEN_LEAVES && p->by_token && is_closed_record(c->name)) {
        c->code = E_NOT_FOUND;
        return true;
    }
    if (p->sim->lie == LIE_TOKEN_STAYS && p->by_token && is_open_record(c->name) && !o->is_there) {
        snprintf(c->etag, sizeof c->etag, "lie%llu", (unsigned long long)p->sim->versions++);
        return true;
    }
    return false;
}

static void land_get(struct sim_program *p, struct sim_call *c)
{
    struct sim_object *o = place(p->sim, c->name);
    c->code = 0;
    if (get_lies(p, c, o))
        return;
    c->code = o->is_there ? 0 : E_NOT_FOUND;
    if (o->is_there) {
        buf_append(&c->body, buf_str(&o->body), o->body.len);
        etag_of(o, c->etag);
    }
    if (strcmp(c->name, SIM_OBJECT) != 0)
        return;
    if (is_writer(p))
        hide_head(p, c);
    else if (p->sim->lie == LIE_HEAD_FIRST && p->role == SIM_READ)
        repeat_head(p, c);
}

/* The records of the program's last list of them. */
static void remove_listed(struct sim_program *p)
{
    for (size_t i = p->count; i-- > 0;) {
        const struct sim_call *c = &p->calls[i];
        if (c->kind != SIM_LIST || !has_part(c->name, "/o/"))
            continue;
        for (size_t k = 0; k < c->names.count; k++)
            place(p->sim, c->names.items[k])->is_there = false;
        return;
    }
}

/* A record that the program does not store.  etag: of the one that is there. */
static bool record_lies(const struct sim_program *p, struct sim_call *c)
{
    const bool is_absent = strcmp(c->if_match, PLOG_ABSENT) == 0;
    const struct sim_object *o = sim_store_find(p->sim, c->name);
    if (p->sim->lie == LIE_SHARE_LATE && p->role == SIM_SHARE && is_absent)
        snprintf(c->etag, sizeof c->etag, "lie");
    else if (p->sim->lie == LIE_TOKEN_READS && p->by_token && !is_absent)
        snprintf(c->etag, sizeof c->etag, "%s", c->if_match);
    else if (p->sim->lie == LIE_LOST_RACE && !is_absent && o != NULL)
        etag_of(o, c->etag);
    else
        return false;
    return p->sim->lie != LIE_LOST_RACE || strcmp(c->etag, c->if_match) != 0;
}

/* True: that is all that happens. */
static bool put_lies(struct sim_program *p, struct sim_call *c)
{
    const enum sim_lie lie = p->sim->lie;
    const bool is_absent = strcmp(c->if_match, PLOG_ABSENT) == 0;
    if ((lie == LIE_LATE_RECORD && is_open_record(c->name) && is_absent && !p->has_put) ||
        (lie == LIE_EARLY_CLOSED && is_closed_record(c->name) && p->has_lied)) {
        snprintf(c->etag, sizeof c->etag, "lie");
        return true;
    }
    if (is_open_record(c->name) && record_lies(p, c))
        return true;
    if (lie == LIE_NO_REFRESH && is_open_record(c->name) && !is_absent) {
        snprintf(c->etag, sizeof c->etag, "%s", c->if_match);
        return true;
    }
    if (lie == LIE_EARLY_REMOVE && has_part(c->name, "/m/"))
        remove_listed(p);
    if (lie == LIE_BLIND_HEAD && strcmp(c->name, SIM_OBJECT) == 0 && p->role == SIM_MERGE)
        c->if_match[0] = '\0';
    if (lie == LIE_FLAT_OVER && strcmp(c->name, SIM_OBJECT) == 0 && p->role == SIM_FLATTEN)
        c->if_match[0] = '\0';
    return false;
}

static void land_put(struct sim_program *p, struct sim_call *c)
{
    c->code = 0;
    if (put_lies(p, c))
        return;
    struct sim_object *o = place(p->sim, c->name);
    /* One whose reply is lost is repeated below the program. */
    const int times = rng_below(&p->sim->rng, 8) == 0 ? 2 : 1;
    for (int i = 0; i < times; i++) {
        c->code = check_condition(o, c->if_match);
        if (c->code == 0) {
            store(p->sim, o, &c->body);
            etag_of(o, c->etag);
        }
    }
    p->has_put = p->has_put || has_part(c->name, "/s/");
}

static void land_remove(struct sim_program *p, struct sim_call *c)
{
    struct sim_object *o = place(p->sim, c->name);
    const bool is_blind = p->sim->lie == LIE_BLIND_REMOVE && has_part(c->name, "/o/");
    c->code = check_condition(o, is_blind ? "" : c->if_match);
    if (c->code == 0 && !o->is_there)
        c->code = E_NOT_FOUND;
    if (c->code == 0)
        o->is_there = false;
    if (c->code == E_PRECONDITION && p->sim->lie == LIE_REMOVE_CLOSED && is_open_record(c->name)) {
        char name[PLOG_NAME_MAX];
        snprintf(name, sizeof name, "%.*s.c", PLOG_NAME_MAX - 3, c->name);
        place(p->sim, name)->is_there = false;
    }
}

/* The record .c comes first; then the segment, at the next call. */
static bool close_early(struct sim_program *p, const struct sim_call *c)
{
    char name[PLOG_NAME_MAX] = "";
    if (p->sim->lie != LIE_EARLY_CLOSED || p->role != SIM_CLOSE || p->has_lied || p->by_token ||
        c->kind != SIM_PUT || !has_part(c->name, "/s/"))
        return false;
    for (size_t i = 0; i < p->sim->count; i++) {
        const struct sim_object *o = &p->sim->objects[i];
        if (o->is_there && is_open_record(o->name) && strstr(o->name, p->id) != NULL)
            snprintf(name, sizeof name, "%.*s.c", PLOG_NAME_MAX - 3, o->name);
    }
    p->has_lied = true;
    if (name[0] != '\0')
        store(p->sim, place(p->sim, name), NULL);
    return true;
}

void sim_land(struct sim_program *p)
{
    struct sim_call *c = &p->calls[p->count];
    assert(p->is_waiting && !p->has_landed);
    if (close_early(p, c))
        return;
    if (p->sim->lie == LIE_ONE_INDEX && has_part(c->name, "/m/") && strchr(c->name + 48, '-'))
        *strchr(c->name + 48, '-') = '\0';
    switch (c->kind) {
    case SIM_LIST:
        land_list(p, c);
        break;
    case SIM_GET:
        land_get(p, c);
        break;
    case SIM_PUT:
        land_put(p, c);
        break;
    case SIM_REMOVE:
        land_remove(p, c);
        break;
    }
    p->has_landed = true;
}

void sim_deliver(struct sim_program *p)
{
    assert(p->has_landed);
    p->count++;
    p->is_waiting = p->has_landed = false;
}

/* --- programs --------------------------------------------------------------------------------- */

static void drop_calls(struct sim_program *p)
{
    for (size_t i = 0; i < p->count + (p->is_waiting ? 1 : 0); i++) {
        buf_done(&p->calls[i].body);
        plog_names_done(&p->calls[i].names);
    }
    p->count = 0;
    p->is_waiting = p->has_landed = false;
}

void sim_begin(struct sim_program *p, enum sim_role role)
{
    drop_calls(p);
    p->role = role;
    p->begun = p->sim->now;
    p->has_put = p->has_lied = false;
    rng_seed(&p->rng_begin, rng_next(&p->sim->rng));
}

void sim_rerun(struct sim_program *p)
{
    p->at = 0;
    p->rng = p->rng_begin;
}

void sim_program_done(struct sim_program *p)
{
    drop_calls(p);
    free(p->calls);
}

/* The result of this call, or NULL: it is pending. */
static const struct sim_call *ask(struct sim_program *p, enum sim_kind kind, const char *name,
                                  const char *detail)
{
    if (p->at < p->count) {
        const struct sim_call *c = &p->calls[p->at++];
        assert(c->kind == kind);
        return c;
    }
    assert(!p->is_waiting); /* who is ended calls no more */
    if (p->count == p->room) {
        p->room = p->room * 2 + 16;
        p->calls = xrealloc(p->calls, p->room * sizeof *p->calls);
    }
    struct sim_call *c = &p->calls[p->count];
    *c = (struct sim_call){.kind = kind};
    snprintf(c->name, sizeof c->name, "%s", name);
    if (kind == SIM_LIST)
        snprintf(c->after, sizeof c->after, "%s", detail != NULL ? detail : "");
    else
        snprintf(c->if_match, sizeof c->if_match, "%s", detail != NULL ? detail : "");
    p->is_waiting = true;
    return NULL;
}

static int result(const struct sim_call *c, const char *name, struct error *err)
{
    if (c == NULL)
        return error_set(err, E_CANCELLED, "pending");
    return c->code == 0 ? 0 : error_set(err, c->code, "'%s'", name);
}

static int sim_list(void *ctx, const char *prefix, const char *after, struct plog_names *out,
                    struct error *err)
{
    const struct sim_call *c = ask(ctx, SIM_LIST, prefix, after);
    for (size_t i = 0; c != NULL && i < c->names.count; i++)
        plog_names_add(out, c->names.items[i]);
    return result(c, prefix, err);
}

static int sim_get(void *ctx, const char *name, struct buf *body, char etag[static PLOG_ETAG_MAX],
                   struct error *err)
{
    const struct sim_call *c = ask(ctx, SIM_GET, name, NULL);
    if (c != NULL && c->code == 0) {
        buf_append(body, c->body.data, c->body.len);
        memcpy(etag, c->etag, sizeof c->etag);
    }
    return result(c, name, err);
}

static int sim_put(void *ctx, const char *name, const void *body, size_t len, const char *if_match,
                   char etag[static PLOG_ETAG_MAX], struct error *err)
{
    struct sim_program *p = ctx;
    const struct sim_call *c = ask(p, SIM_PUT, name, if_match);
    if (c == NULL)
        buf_append(&p->calls[p->count].body, body, len);
    else if (c->code == 0)
        memcpy(etag, c->etag, sizeof c->etag);
    return result(c, name, err);
}

static int sim_remove(void *ctx, const char *name, const char *if_match, struct error *err)
{
    return result(ask(ctx, SIM_REMOVE, name, if_match), name, err);
}

static int sim_ends(void *ctx, const struct plog_names *segments, struct plog_map *map,
                    struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < segments->count && code == 0; i++) {
        _cleanup_buf_ struct buf body = BUF_INIT;
        char etag[PLOG_ETAG_MAX];
        struct plog_footer f;
        code = sim_get(ctx, segments->items[i], &body, etag, err);
        const uint8_t *bytes = (const uint8_t *)body.data;
        if (code == 0)
            code = plog_footer_parse(bytes + body.len - PLOG_FOOTER, &f, err);
        if (code == 0)
            code = plog_map_add(map, &f, bytes + f.name.bytes, err);
    }
    return code;
}

static uint64_t sim_now(void *ctx)
{
    const struct sim_program *p = ctx;
    return p->begun;
}

static uint64_t sim_random(void *ctx)
{
    struct sim_program *p = ctx;
    return rng_next(&p->rng);
}

struct plog_store sim_store_of(struct sim_program *p)
{
    return (struct plog_store){.ctx = p,
                               .list = sim_list,
                               .get = sim_get,
                               .put = sim_put,
                               .remove = sim_remove,
                               .ends = sim_ends,
                               .now_ms = sim_now,
                               .random = sim_random};
}
