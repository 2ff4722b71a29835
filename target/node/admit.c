#include "target/node/admit.h"

#include "cluster/placement/owners.h"
#include "common/parse.h"

int admit_parse_state_version(const char *text, uint64_t *term, uint64_t *version,
                              struct error *err)
{
    char first[24];
    size_t len = strcspn(text, ".");
    if (len < sizeof first && text[len] == '.') {
        memcpy(first, text, len);
        first[len] = '\0';
        if (parse_u64(first, term, NULL) == 0 && parse_u64(text + len + 1, version, NULL) == 0)
            return 0;
    }
    return error_set(err, E_INVALID, "parameter 'dfcv': '%s' is not term.version", text);
}

static bool is_older(uint64_t term, uint64_t version, uint64_t than_term, uint64_t than_version)
{
    return term != than_term ? term < than_term : version < than_version;
}

bool admit_is_newer(uint64_t term, uint64_t version, const struct cluster_state *s)
{
    return is_older(s->term, s->version, term, version);
}

/* Who knows less, the sender or we?  ADMIT_SERVE: neither, as far as it matters. */
static enum admit_verdict compare_states(const struct admit_question *q, struct error *err)
{
    uint64_t term, version;
    if (q->dfcv == NULL)
        return ADMIT_SERVE;
    if (admit_parse_state_version(q->dfcv, &term, &version, err) != 0)
        return ADMIT_REFUSE;
    if (admit_is_newer(term, version, q->state)) {
        if (!q->refreshed)
            return ADMIT_REFRESH;
        error_set(err, E_NOT_READY, "target '%s' has cluster state %llu.%llu and could not get %s",
                  q->self, (unsigned long long)q->state->term,
                  (unsigned long long)q->state->version, q->dfcv);
        return ADMIT_REFUSE;
    }
    if (q->dfcb == NULL && is_older(term, version, q->placement_term, q->placement_version)) {
        error_set(err, E_STALE_MAP,
                  "the redirect was made from cluster state %s, the map has "
                  "changed since",
                  q->dfcv);
        return ADMIT_REFUSE;
    }
    return ADMIT_SERVE;
}

int admit_find_bucket(const struct cluster_state *s, const char *name, const char *dfcb,
                      const struct bucket **out, struct error *err)
{
    *out = bmd_bucket(&s->bmd, name);
    if (*out == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%s' does not exist", name);
    if (dfcb == NULL)
        return 0;
    uint64_t id;
    if (parse_u64(dfcb, &id, err) != 0)
        return error_recode(err, E_INVALID, "parameter 'dfcb'");
    if (id != (*out)->id)
        return error_set(err, E_STALE_MAP, "bucket '%s' was made anew since the redirect", name);
    return 0;
}

/* Of several: the one that acts, unless the call is for what every owner has. */
static int find_acting(const struct admit_question *q, const struct bucket *bucket,
                       const struct node **owner, bool *beside, struct error *err)
{
    struct owners o;
    owners_of(q->state, bucket, q->object, &o);
    *owner = o.acting;
    *beside = q->reads && owners_reads_beside(q->state, bucket, &o, q->self);
    if (*beside)
        *owner = smap_node(&q->state->smap, q->self);
    if (q->copy && owners_has(&o, q->self))
        *owner = smap_node(&q->state->smap, q->self);
    else if (q->copy)
        return error_set(err, E_STALE_MAP, "target '%s' does not own '%s/%s'", q->self, q->bucket,
                         q->object);
    else if (o.awaited != NULL || o.acting == NULL)
        return error_set(err, E_NODE_UNREACHABLE,
                         "the newest of '%s/%s' may be on target '%s' alone, which is unreachable",
                         q->bucket, q->object, o.awaited != NULL ? o.awaited->id : "?");
    return 0;
}

static int find_owner(const struct admit_question *q, const struct bucket *bucket,
                      struct admit_answer *a, struct error *err)
{
    const struct node **owner = &a->owner;
    if (bucket_has_copies(bucket))
        return find_acting(q, bucket, owner, &a->beside, err);
    if (smap_owners(&q->state->smap, bucket->id, q->object, 1, owner) == 0)
        return error_set(err, E_NO_TARGETS, "the cluster has no target");
    if (strcmp((*owner)->id, q->self) != 0 && (*owner)->state != NODE_ACTIVE)
        return error_set(err, E_NODE_UNREACHABLE, "'%s/%s' is on target '%s', which is %s",
                         q->bucket, q->object, (*owner)->id, node_state_name((*owner)->state));
    return 0;
}

void admit(const struct admit_question *q, struct admit_answer *a, struct error *err)
{
    *a = (struct admit_answer){.verdict = ADMIT_REFUSE};
    if (bucket_name_check(q->bucket, err) != 0 ||
        object_name_check(q->object, strlen(q->object), err) != 0)
        return;
    if (q->state->version == 0 && q->dfcv == NULL) {
        error_set(err, E_NOT_READY, "target '%s' has not joined a cluster yet", q->self);
        return;
    }
    a->verdict = compare_states(q, err);
    if (a->verdict != ADMIT_SERVE)
        return;
    if (admit_find_bucket(q->state, q->bucket, q->dfcb, &a->bucket, err) != 0)
        a->verdict = ADMIT_REFUSE;
    else if (q->holder)
        return;
    else if (find_owner(q, a->bucket, a, err) != 0)
        a->verdict = ADMIT_REFUSE;
    else if (strcmp(a->owner->id, q->self) != 0)
        a->verdict = ADMIT_REDIRECT;
}
