#include "mount/group/map.h"

#include <stdlib.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "hrw/hrw.h"

struct group_map *group_map_ref(struct group_map *m)
{
    __atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
    return m;
}

void group_map_unref(struct group_map *m)
{
    if (m == NULL || __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; i < m->count; i++) {
        free(m->members[i].id);
        free(m->members[i].url);
    }
    free(m->now);
    free(m->earlier);
    free(m);
}

/* ---- the document ---- */

static int member_parse(json_t *doc, struct group_member *m, struct error *err)
{
    const char *id, *url, *state;
    uint64_t weight, earlier;
    int rc;
    if ((rc = json_need_str(doc, "members", "id", &id, err)) != 0 ||
        (rc = json_need_str(doc, "members", "url", &url, err)) != 0 ||
        (rc = json_need_str(doc, "members", "state", &state, err)) != 0 ||
        (rc = json_need_u64(doc, "members", "weight", &weight, err)) != 0 ||
        (rc = json_need_u64(doc, "members", "earlier_weight", &earlier, err)) != 0 ||
        (rc = json_need_u64(doc, "members", "present_ms", &m->present_ms, err)) != 0)
        return rc;
    if (weight > UINT32_MAX || earlier > UINT32_MAX)
        return error_set(err, E_JSON, "field 'weight' of member '%.64s': too large", id);
    m->away = strcmp(state, "present") != 0;
    m->weight = (uint32_t)weight;
    m->earlier_weight = (uint32_t)earlier;
    m->id = xstrdup(id);
    m->url = xstrdup(url);
    return 0;
}

static bool has(const struct group_member *members, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(members[i].id, id) == 0)
            return true;
    }
    return false;
}

/* What the primary may not have heard of yet. */
static void keep(struct group_map *m, const struct group_map *before)
{
    const size_t heard = m->count;
    for (size_t i = 0; i < before->count && m->count < GROUP_MEMBERS_MAX; i++) {
        const struct group_member *old = &before->members[i];
        if (has(m->members, heard, old->id))
            continue;
        struct group_member *kept = &m->members[m->count++];
        *kept = *old;
        kept->id = xstrdup(old->id);
        kept->url = xstrdup(old->url);
    }
}

static int members_parse(json_t *members, struct group_map *m, struct error *err)
{
    size_t i;
    json_t *member;
    if (json_array_size(members) > GROUP_MEMBERS_MAX)
        return error_set(err, E_JSON, "field 'members': more than %d", GROUP_MEMBERS_MAX);
    json_array_foreach(members, i, member)
    {
        int rc = member_parse(member, &m->members[i], err);
        if (rc != 0)
            return rc;
        m->count++;
    }
    return 0;
}

static void weigh(struct group_map *m, uint64_t settle_ms)
{
    m->now = xcalloc(m->count + 1, sizeof *m->now);
    m->earlier = xcalloc(m->count + 1, sizeof *m->earlier);
    for (size_t i = 0; i < m->count; i++) {
        const struct group_member *at = &m->members[i];
        m->now[i].seed = m->earlier[i].seed = hrw_seed(at->id);
        m->now[i].weight = at->away ? 0 : at->weight;
        bool is_new =
            at->present_ms <= settle_ms && at->weight > 0; /* one that drains has pieces */
        m->earlier[i].weight = at->away || is_new ? 0 : at->earlier_weight;
    }
}

int group_map_parse(const char *text, const struct group_map *before, struct group_map **out,
                    struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    json_t *members = NULL;
    uint64_t age_ms, away_ms, settle_ms;
    int rc;
    struct group_map *m = xcalloc(1, sizeof *m);
    m->refs = 1;
    if ((rc = json_parse(text, strlen(text), &doc, err)) == 0 &&
        (rc = json_need_u64(doc, "", "age_ms", &age_ms, err)) == 0 &&
        (rc = json_need_u64(doc, "", "away_ms", &away_ms, err)) == 0 &&
        (rc = json_need_u64(doc, "", "settle_ms", &settle_ms, err)) == 0 &&
        (rc = json_get_array(doc, "", "members", &members, err)) == 0 &&
        (rc = members_parse(members, m, err)) == 0) {
        if (before != NULL && age_ms <= away_ms)
            keep(m, before);
        weigh(m, settle_ms);
        *out = m;
        return 0;
    }
    group_map_unref(m);
    return rc;
}

/* ---- owners ---- */

static const struct group_member *best(const struct group_map *m, const struct hrw_node *nodes,
                                       const struct piece_id *id)
{
    size_t i = m->count > 0 ? hrw_best(piece_id_hash(id), nodes, m->count) : SIZE_MAX;
    return i != SIZE_MAX ? &m->members[i] : NULL;
}

const struct group_member *group_map_owner(const struct group_map *m, const struct piece_id *id)
{
    return m != NULL ? best(m, m->now, id) : NULL;
}

const struct group_member *group_map_earlier(const struct group_map *m, const struct piece_id *id,
                                             const char *self)
{
    const struct group_member *had = m != NULL ? best(m, m->earlier, id) : NULL;
    return had != NULL && strcmp(had->id, self) != 0 ? had : NULL;
}
