#include "target/jobs/repair_walk.h"

#include <stdlib.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"

enum { FORMAT = 1 };

static void peer_done(struct repair_peer *p)
{
    free(p->id);
    free(p->boot);
}

void repair_need_done(struct repair_need *n)
{
    for (size_t i = 0; i < n->count; i++)
        peer_done(&n->peers[i]);
    free(n->peers);
    *n = (struct repair_need){0};
}

void repair_walk_done(struct repair_walk *w)
{
    repair_need_done(&w->need);
    free(w->job);
    *w = (struct repair_walk){0};
}

/* --- does it go on? --------------------------------------------------------------------------- */

void repair_walk_begin(struct repair_walk *w, uint64_t watch, struct repair_need *need)
{
    repair_walk_done(w);
    w->watch = watch;
    w->need = *need;
    *need = (struct repair_need){0};
}

/* Has it all that it had when it was asked, or knows what it lacks? */
static bool peer_holds(const struct repair_peer *then, const struct repair_peer *now)
{
    bool same_run = strcmp(then->boot, now->boot) == 0;
    return then->steps == now->steps && now->steps != REPAIR_UNKNOWN &&
           (same_run || (then->quarantine == now->quarantine && now->quarantine != 0));
}

static bool holds(const struct repair_need *then, const struct repair_need *now)
{
    if (then->placed != now->placed || then->raised != now->raised || then->count != now->count)
        return false;
    bool moved = then->lagged != now->lagged; /* else nobody has gone or come, or lost a disk */
    for (size_t i = 0; i < now->count; i++) {
        if (strcmp(then->peers[i].id, now->peers[i].id) != 0 ||
            (moved && !peer_holds(&then->peers[i], &now->peers[i])))
            return false;
    }
    return true;
}

bool repair_walk_go_on(struct repair_walk *w, const struct repair_need *now)
{
    if (w->watch == 0 || !holds(&w->need, now))
        return false;
    if (w->need.lagged != now->lagged)
        w->slices = 0;
    w->need.lagged = now->lagged;
    for (size_t i = 0; i < now->count; i++) { /* the present run knows what it has moved aside */
        free(w->need.peers[i].boot);
        w->need.peers[i].boot = xstrdup(now->peers[i].boot);
    }
    return true;
}

/* --- where it is ------------------------------------------------------------------------------ */

bool repair_walk_passed(const struct repair_walk *w, uint64_t bucket_id, const char *name)
{
    return bucket_id < w->bucket_id || (bucket_id == w->bucket_id && strcmp(name, w->name) <= 0);
}

void repair_walk_reach(struct repair_walk *w, uint64_t bucket_id, const char *name)
{
    if (repair_walk_passed(w, bucket_id, name))
        return;
    w->bucket_id = bucket_id;
    snprintf(w->name, sizeof w->name, "%s", name);
}

void repair_walk_turn(struct repair_walk *w)
{
    w->second = true;
    w->bucket_id = w->slices = 0;
    *w->name = '\0';
}

/* --- as it is saved --------------------------------------------------------------------------- */

static json_t *peers_to_json(const struct repair_need *n)
{
    json_t *all = json_array();
    for (size_t i = 0; i < n->count; i++) {
        const struct repair_peer *p = &n->peers[i];
        json_array_append_new(all, json_pack("{s:s, s:s, s:I, s:I}", "id", p->id, "boot", p->boot,
                                             "steps", (json_int_t)p->steps, "quarantine",
                                             (json_int_t)p->quarantine));
    }
    return all;
}

json_t *repair_walk_to_json(const struct repair_walk *w)
{
    const struct repair_need *n = &w->need;
    return json_pack("{s:i, s:I, s:s, s:I, s:I, s:I, s:o, s:b, s:b, s:I, s:s, s:I}", "format",
                     FORMAT, "watch", (json_int_t)w->watch, "job", w->job != NULL ? w->job : "",
                     "placed", (json_int_t)n->placed, "lagged", (json_int_t)n->lagged, "raised",
                     (json_int_t)n->raised, "peers", peers_to_json(n), "second", w->second,
                     "put_off", w->put_off, "bucket_id", (json_int_t)w->bucket_id, "name", w->name,
                     "slices", (json_int_t)w->slices);
}

static int get_peer(struct repair_peer *p, json_t *one, struct error *err)
{
    const char *id, *boot;
    int code;
    if ((code = json_need_str(one, "peers", "id", &id, err)) != 0 ||
        (code = json_need_str(one, "peers", "boot", &boot, err)) != 0 ||
        (code = json_need_u64(one, "peers", "steps", &p->steps, err)) != 0 ||
        (code = json_need_u64(one, "peers", "quarantine", &p->quarantine, err)) != 0)
        return code;
    p->id = xstrdup(id);
    p->boot = xstrdup(boot);
    return 0;
}

static int get_need(struct repair_need *n, json_t *doc, struct error *err)
{
    json_t *all = NULL;
    int code;
    if ((code = json_need_u64(doc, "", "placed", &n->placed, err)) != 0 ||
        (code = json_need_u64(doc, "", "lagged", &n->lagged, err)) != 0 ||
        (code = json_need_u64(doc, "", "raised", &n->raised, err)) != 0 ||
        (code = json_get_array(doc, "", "peers", &all, err)) != 0)
        return code;
    n->peers = xcalloc(json_array_size(all) + 1, sizeof *n->peers);
    for (size_t i = 0; i < json_array_size(all) && code == 0; i++) {
        code = get_peer(&n->peers[i], json_array_get(all, i), err);
        n->count += code == 0;
    }
    return code;
}

static int get_place(struct repair_walk *w, json_t *doc, struct error *err)
{
    const char *name;
    int code;
    if ((code = json_get_bool(doc, "", "second", &w->second, err)) != 0 ||
        (code = json_get_bool(doc, "", "put_off", &w->put_off, err)) != 0 ||
        (code = json_need_u64(doc, "", "bucket_id", &w->bucket_id, err)) != 0 ||
        (code = json_need_u64(doc, "", "slices", &w->slices, err)) != 0 ||
        (code = json_need_str(doc, "", "name", &name, err)) != 0)
        return code;
    if (strlen(name) > ATTR_NAME_MAX)
        return error_set(err, E_JSON, "field 'name' is too long");
    snprintf(w->name, sizeof w->name, "%s", name);
    return 0;
}

int repair_walk_from_json(struct repair_walk *w, json_t *doc, struct error *err)
{
    uint64_t format;
    const char *job;
    int code;
    if ((code = json_need_u64(doc, "", "format", &format, err)) != 0 ||
        (code = json_need_u64(doc, "", "watch", &w->watch, err)) != 0 ||
        (code = json_need_str(doc, "", "job", &job, err)) != 0)
        return code;
    if (format != FORMAT)
        return error_set(err, E_UNSUPPORTED, "format %llu", (unsigned long long)format);
    w->job = xstrdup(job);
    code = get_need(&w->need, doc, err);
    return code != 0 ? code : get_place(w, doc, err);
}
