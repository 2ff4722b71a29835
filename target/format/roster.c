#include "target/format/roster.h"

#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"

enum { WEIGHT_UNIT_SHIFT = 26 }; /* 64 MiB */

struct roster *roster_new(void)
{
    struct roster *r = xcalloc(1, sizeof *r);
    r->settled = true;
    return r;
}

static void member_clear(struct roster_member *m)
{
    free(m->id);
    free(m->path);
    free(m->why);
}

static void placement_clear(struct roster_placement *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->shares[i].id);
    free(p->shares);
}

static void forget_earlier(struct roster *r)
{
    for (size_t i = 0; i < r->earlier_count; i++)
        placement_clear(&r->earlier[i]);
    free(r->earlier);
    r->earlier = NULL;
    r->earlier_count = 0;
}

void roster_free(struct roster *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->count; i++)
        member_clear(&r->members[i]);
    free(r->members);
    forget_earlier(r);
    for (size_t i = 0; i < r->detached_count; i++)
        free(r->detached[i]);
    free(r->detached);
    free(r);
}

static void member_add(struct roster *r, const struct roster_member *m)
{
    r->members = xrealloc(r->members, (r->count + 1) * sizeof *r->members);
    struct roster_member *copy = &r->members[r->count++];
    *copy = *m;
    copy->id = xstrdup(m->id);
    copy->path = xstrdup(m->path);
    copy->why = m->why != NULL ? xstrdup(m->why) : NULL;
}

static struct roster_placement *earlier_add(struct roster *r)
{
    r->earlier = xrealloc(r->earlier, (r->earlier_count + 1) * sizeof *r->earlier);
    r->earlier[r->earlier_count] = (struct roster_placement){0};
    return &r->earlier[r->earlier_count++];
}

static void share_add(struct roster_placement *p, const char *id, uint32_t weight)
{
    p->shares = xrealloc(p->shares, (p->count + 1) * sizeof *p->shares);
    p->shares[p->count++] = (struct roster_share){.id = xstrdup(id), .weight = weight};
}

static void detached_add(struct roster *r, const char *path)
{
    if (roster_is_detached(r, path))
        return;
    r->detached = xrealloc(r->detached, (r->detached_count + 1) * sizeof *r->detached);
    r->detached[r->detached_count++] = xstrdup(path);
}

struct roster *roster_copy(const struct roster *r)
{
    struct roster *copy = roster_new();
    copy->generation = r->generation;
    copy->settled = r->settled;
    copy->anywhere = r->anywhere;
    for (size_t i = 0; i < r->count; i++)
        member_add(copy, &r->members[i]);
    for (size_t i = 0; i < r->earlier_count; i++) {
        struct roster_placement *p = earlier_add(copy);
        for (size_t k = 0; k < r->earlier[i].count; k++)
            share_add(p, r->earlier[i].shares[k].id, r->earlier[i].shares[k].weight);
    }
    for (size_t i = 0; i < r->detached_count; i++)
        detached_add(copy, r->detached[i]);
    return copy;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *member_to_json(const struct roster_member *m)
{
    json_t *doc =
        json_pack("{ss ss sI}", "id", m->id, "path", m->path, "weight", (json_int_t)m->weight);
    if (m->leaving)
        json_object_set_new(doc, "leaving", json_true());
    if (m->disabled)
        json_object_set_new(doc, "disabled", json_true());
    if (m->missing)
        json_object_set_new(doc, "missing", json_true());
    if (m->why != NULL)
        json_object_set_new(doc, "why", json_string_escaped(m->why));
    if (m->since_ms != 0)
        json_object_set_new(doc, "since_ms", json_integer(m->since_ms));
    if (m->counted) {
        json_object_set_new(doc, "objects", json_integer((json_int_t)m->objects));
        json_object_set_new(doc, "bytes", json_integer((json_int_t)m->bytes));
    }
    return doc;
}

static json_t *placement_to_json(const struct roster_placement *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->count; i++)
        json_array_append_new(list, json_pack("{ss sI}", "id", p->shares[i].id, "weight",
                                              (json_int_t)p->shares[i].weight));
    return list;
}

void roster_to_json(const struct roster *r, json_t *doc)
{
    json_t *set = json_array(), *earlier = json_array(), *detached = json_array();
    for (size_t i = 0; i < r->count; i++)
        json_array_append_new(set, member_to_json(&r->members[i]));
    for (size_t i = 0; i < r->earlier_count; i++)
        json_array_append_new(earlier, placement_to_json(&r->earlier[i]));
    for (size_t i = 0; i < r->detached_count; i++)
        json_array_append_new(detached, json_string(r->detached[i]));
    json_object_set_new(doc, "generation", json_integer((json_int_t)r->generation));
    json_object_set_new(doc, "set", set);
    json_object_set_new(doc, "settled", json_boolean(r->settled));
    json_object_set_new(doc, "anywhere", json_boolean(r->anywhere));
    json_object_set_new(doc, "earlier", earlier);
    json_object_set_new(doc, "detached", detached);
}

/* 1..UINT32_MAX; absent: what a release without weights gave to all. */
static int weight_from_json(json_t *doc, uint32_t *out, struct error *err)
{
    uint64_t weight = ROSTER_WEIGHT_DEFAULT;
    int code = json_get_u64(doc, "set", "weight", &weight, err);
    if (code == 0 && (weight == 0 || weight > UINT32_MAX))
        code = error_set(err, E_JSON, "field 'set.weight' is out of bounds");
    *out = (uint32_t)weight;
    return code;
}

static int member_from_json(json_t *doc, struct roster *r, struct error *err)
{
    struct roster_member m = {0};
    const char *id = NULL, *path = NULL, *why = NULL;
    int code;
    if ((code = json_need_str(doc, "set", "id", &id, err)) != 0 ||
        (code = json_need_str(doc, "set", "path", &path, err)) != 0 ||
        (code = weight_from_json(doc, &m.weight, err)) != 0 ||
        (code = json_get_bool(doc, "set", "leaving", &m.leaving, err)) != 0 ||
        (code = json_get_bool(doc, "set", "disabled", &m.disabled, err)) != 0 ||
        (code = json_get_bool(doc, "set", "missing", &m.missing, err)) != 0 ||
        (code = json_get_str(doc, "set", "why", &why, err)) != 0 ||
        (code = json_get_i64(doc, "set", "since_ms", &m.since_ms, err)) != 0 ||
        (code = json_get_u64(doc, "set", "objects", &m.objects, err)) != 0 ||
        (code = json_get_u64(doc, "set", "bytes", &m.bytes, err)) != 0)
        return code;
    m.counted = json_object_get(doc, "objects") != NULL;
    m.id = (char *)id; /* member_add() copies the texts */
    m.path = (char *)path;
    m.why = (char *)why;
    if (r->count == ROSTER_MEMBERS_MAX)
        return error_set(err, E_JSON, "field 'set' has more than %d members", ROSTER_MEMBERS_MAX);
    if (roster_find_id(r, id) != SIZE_MAX || roster_find_path(r, path) != SIZE_MAX)
        return error_set(err, E_JSON, "field 'set' has '%.40s' or '%.200s' twice", id, path);
    member_add(r, &m);
    return 0;
}

static int placement_from_json(json_t *list, struct roster *r, struct error *err)
{
    size_t i;
    json_t *share;
    if (!json_is_array(list))
        return error_set(err, E_JSON, "field 'earlier' must be an array of arrays");
    if (r->earlier_count == ROSTER_EARLIER_MAX)
        return error_set(err, E_JSON, "field 'earlier' has more than %d arrays",
                         ROSTER_EARLIER_MAX);
    struct roster_placement *p = earlier_add(r);
    json_array_foreach(list, i, share)
    {
        const char *id;
        uint32_t weight;
        int code = json_need_str(share, "earlier", "id", &id, err);
        if (code == 0)
            code = weight_from_json(share, &weight, err);
        if (code != 0)
            return code;
        share_add(p, id, weight);
    }
    return 0;
}

static int detached_from_json(json_t *path, struct roster *r, struct error *err)
{
    if (!json_is_string(path))
        return error_set(err, E_JSON, "field 'detached' must be an array of strings");
    detached_add(r, json_string_value(path));
    return 0;
}

static int each_from_json(json_t *doc, const char *field,
                          int (*fn)(json_t *item, struct roster *r, struct error *err),
                          struct roster *r, struct error *err)
{
    json_t *list = NULL, *item;
    int code = json_get_array(doc, "", field, &list, err);
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (code == 0)
            code = fn(item, r, err);
    }
    return code;
}

int roster_from_json(json_t *doc, struct roster **out, struct error *err)
{
    _cleanup_(roster_freep)
    struct roster *r = roster_new();
    int code;
    if ((code = json_get_u64(doc, "", "generation", &r->generation, err)) != 0 ||
        (code = json_get_bool(doc, "", "settled", &r->settled, err)) != 0 ||
        (code = json_get_bool(doc, "", "anywhere", &r->anywhere, err)) != 0 ||
        (code = each_from_json(doc, "set", member_from_json, r, err)) != 0 ||
        (code = each_from_json(doc, "earlier", placement_from_json, r, err)) != 0 ||
        (code = each_from_json(doc, "detached", detached_from_json, r, err)) != 0)
        return code;
    *out = steal(r);
    return 0;
}

/* --- looking ---------------------------------------------------------------------------------- */

size_t roster_find_id(const struct roster *r, const char *id)
{
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->members[i].id, id) == 0)
            return i;
    }
    return SIZE_MAX;
}

size_t roster_find_path(const struct roster *r, const char *path)
{
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->members[i].path, path) == 0)
            return i;
    }
    return SIZE_MAX;
}

bool roster_is_detached(const struct roster *r, const char *path)
{
    for (size_t i = 0; i < r->detached_count; i++) {
        if (strcmp(r->detached[i], path) == 0)
            return true;
    }
    return false;
}

bool roster_has_place(const struct roster *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (!r->members[i].leaving)
            return true;
    }
    return false;
}

bool roster_has_disabled(const struct roster *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->members[i].disabled)
            return true;
    }
    return false;
}

const char *roster_state_name(const struct roster_member *m)
{
    if (m->disabled)
        return "disabled";
    return m->leaving ? "leaving" : "enabled";
}

uint32_t roster_weight(uint64_t bytes, uint64_t other_weight, uint64_t other_bytes)
{
    double weight = other_bytes > 0 ? (double)bytes / (double)other_bytes * (double)other_weight
                                    : (double)(bytes >> WEIGHT_UNIT_SHIFT);
    if (weight < 1)
        return 1;
    return weight > INT32_MAX ? INT32_MAX : (uint32_t)(weight + 0.5);
}

/* --- changes ---------------------------------------------------------------------------------- */

static int too_many_earlier(const struct roster *r, struct error *err)
{
    if (r->settled || r->anywhere || r->earlier_count < ROSTER_EARLIER_MAX)
        return 0;
    return error_set(err, E_MOUNTPATH,
                     "the mountpaths were changed %d times since objects last lay where they "
                     "belong: let the resilver end first",
                     ROSTER_EARLIER_MAX);
}

/* The present placement is about to be an earlier one. */
static void keep_placement(struct roster *r)
{
    r->settled = false;
    if (r->earlier_count == ROSTER_EARLIER_MAX)
        r->anywhere = true;
    if (r->anywhere) {
        forget_earlier(r);
        return;
    }
    struct roster_placement *p = earlier_add(r);
    for (size_t i = 0; i < r->count; i++) {
        if (!r->members[i].leaving)
            share_add(p, r->members[i].id, r->members[i].weight);
    }
}

static void detached_remove(struct roster *r, const char *path)
{
    for (size_t i = 0; i < r->detached_count; i++) {
        if (strcmp(r->detached[i], path) != 0)
            continue;
        free(r->detached[i]);
        r->detached[i] = r->detached[--r->detached_count];
        return;
    }
}

int roster_attach(struct roster *r, const char *id, const char *path, uint32_t weight, bool empty,
                  int64_t now_ms, struct error *err)
{
    int code = too_many_earlier(r, err);
    if (code != 0)
        return code;
    if (r->count == ROSTER_MEMBERS_MAX)
        return error_set(err, E_MOUNTPATH, "more than %d mountpaths", ROSTER_MEMBERS_MAX);
    if (!empty && r->count > 0)
        keep_placement(r);
    const struct roster_member m = {
        .id = (char *)id, .path = (char *)path, .weight = weight, .since_ms = now_ms};
    member_add(r, &m);
    detached_remove(r, path);
    r->generation++;
    return 0;
}

static bool is_placed_on(const struct roster *r, size_t i)
{
    return !r->members[i].leaving && !r->members[i].disabled;
}

int roster_leave(struct roster *r, size_t i, int64_t now_ms, struct error *err)
{
    size_t others = 0;
    int code = too_many_earlier(r, err);
    if (code != 0)
        return code;
    for (size_t k = 0; k < r->count; k++)
        others += k != i && is_placed_on(r, k);
    if (others == 0)
        return error_set(err, E_MOUNTPATH,
                         "'%s' is the last mountpath that objects can be placed on",
                         r->members[i].path);
    keep_placement(r);
    r->members[i].leaving = true;
    r->members[i].since_ms = now_ms;
    r->generation++;
    return 0;
}

int roster_stay(struct roster *r, size_t i, int64_t now_ms, struct error *err)
{
    int code = too_many_earlier(r, err);
    if (code != 0)
        return code;
    keep_placement(r);
    r->members[i].leaving = false;
    r->members[i].since_ms = now_ms;
    r->generation++;
    return 0;
}

void roster_disable(struct roster *r, size_t i, const char *why, int64_t now_ms)
{
    struct roster_member *m = &r->members[i];
    free(m->why);
    m->why = xstrdup(why);
    m->disabled = true;
    m->missing = false;
    m->since_ms = now_ms;
    m->counted = false;
    r->generation++;
}

void roster_miss(struct roster *r, size_t i, const char *why, int64_t now_ms)
{
    roster_disable(r, i, why, now_ms);
    r->members[i].missing = true;
}

void roster_enable(struct roster *r, size_t i, int64_t now_ms)
{
    struct roster_member *m = &r->members[i];
    free(m->why);
    m->why = NULL;
    m->disabled = false;
    m->missing = false;
    m->counted = false;
    m->since_ms = now_ms;
    r->generation++;
}

static void member_remove(struct roster *r, size_t i)
{
    detached_add(r, r->members[i].path);
    member_clear(&r->members[i]);
    memmove(&r->members[i], &r->members[i + 1], (r->count - i - 1) * sizeof *r->members);
    r->count--;
}

void roster_give_up(struct roster *r, size_t i)
{
    /* Its names now belong to the others, and nothing of the others moves: a settled set stays so.
     */
    if (!r->settled && !r->members[i].leaving)
        keep_placement(r);
    member_remove(r, i);
    r->generation++;
}

void roster_scatter(struct roster *r)
{
    r->settled = false;
    r->anywhere = true;
    forget_earlier(r);
    r->generation++;
}

void roster_settle(struct roster *r)
{
    bool left = false;
    if (!roster_has_place(r))
        return;
    for (size_t i = r->count; i-- > 0;) {
        const struct roster_member *m = &r->members[i];
        if (m->leaving && !m->disabled)
            member_remove(r, i);
        else
            left = left || m->disabled;
    }
    /* What a disabled one holds is not known to lie where it belongs. */
    r->settled = !left;
    if (r->settled) {
        r->anywhere = false;
        forget_earlier(r);
    }
    r->generation++;
}
