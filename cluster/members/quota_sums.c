#include "cluster/members/quota_sums.h"

#include <string.h>

#include "common/id_rows.h"
#include "common/jsonx.h"
#include "common/mem.h"

struct row {
    uint64_t bucket_id;
    struct quota_amount amount;
};

struct table {
    size_t count;
    struct row *rows; /* by bucket id */
};

struct sums_of_node {
    char *id;
    struct table table;
    size_t next; /* of the rows of all: the first of its next reply */
};

struct quota_sums {
    uint64_t version; /* of the state that the tables are adjusted to */
    struct table all; /* the sums of the nodes' tables */
    size_t count;
    struct sums_of_node *nodes; /* that were heard */
};

/* --- tables ----------------------------------------------------------------------------------- */

static const struct row *find_row(const struct table *t, uint64_t bucket_id)
{
    bool found;
    size_t at = id_rows_place(t->rows, t->count, sizeof *t->rows, bucket_id, &found);
    return found ? &t->rows[at] : NULL;
}

static struct quota_amount amount_in(const struct table *t, uint64_t bucket_id)
{
    const struct row *row = find_row(t, bucket_id);
    return row != NULL ? row->amount : (struct quota_amount){0};
}

static void set_amount(struct table *t, uint64_t bucket_id, struct quota_amount amount)
{
    bool found;
    size_t at = id_rows_place(t->rows, t->count, sizeof *t->rows, bucket_id, &found);
    if (!found)
        t->rows = id_rows_insert(t->rows, &t->count, sizeof *t->rows, at, bucket_id);
    t->rows[at].amount = amount;
}

static void drop_others(struct table *t, const struct cluster_state *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (bmd_has_quota(&s->bmd, t->rows[i].bucket_id))
            t->rows[kept++] = t->rows[i];
    }
    t->count = kept;
}

/* --- nodes ------------------------------------------------------------------------------------ */

struct quota_sums *quota_sums_new(void)
{
    return xcalloc(1, sizeof(struct quota_sums));
}

void quota_sums_free(struct quota_sums *q)
{
    if (q == NULL)
        return;
    for (size_t i = 0; i < q->count; i++) {
        free(q->nodes[i].id);
        free(q->nodes[i].table.rows);
    }
    free(q->nodes);
    free(q->all.rows);
    free(q);
}

static struct sums_of_node *find(const struct quota_sums *q, const char *node)
{
    for (size_t i = 0; i < q->count; i++) {
        if (strcmp(q->nodes[i].id, node) == 0)
            return &q->nodes[i];
    }
    return NULL;
}

static struct sums_of_node *make(struct quota_sums *q, const char *node)
{
    struct sums_of_node *n = find(q, node);
    if (n != NULL)
        return n;
    q->nodes = xrealloc(q->nodes, (q->count + 1) * sizeof *q->nodes);
    n = &q->nodes[q->count++];
    *n = (struct sums_of_node){.id = xstrdup(node)};
    return n;
}

static void replace(struct quota_sums *q, struct sums_of_node *n, uint64_t bucket_id,
                    struct quota_amount now)
{
    struct quota_amount others =
        quota_minus(amount_in(&q->all, bucket_id), amount_in(&n->table, bucket_id));
    set_amount(&q->all, bucket_id, quota_plus(others, now));
    set_amount(&n->table, bucket_id, now);
}

/* Nodes that have left the map, and buckets that have no quota any more. */
static void drop_left(struct quota_sums *q, const struct cluster_state *s)
{
    size_t kept = 0;
    if (q->version == s->version)
        return;
    q->version = s->version;
    for (size_t i = 0; i < q->count; i++) {
        struct sums_of_node *n = &q->nodes[i];
        if (smap_node(&s->smap, n->id) != NULL) {
            drop_others(&n->table, s);
            q->nodes[kept++] = *n;
            continue;
        }
        for (size_t k = 0; k < n->table.count; k++)
            replace(q, n, n->table.rows[k].bucket_id, (struct quota_amount){0});
        free(n->table.rows);
        free(n->id);
    }
    q->count = kept;
    drop_others(&q->all, s);
}

static int take_row(struct quota_sums *q, const struct cluster_state *s, struct sums_of_node *n,
                    json_t *doc, struct error *err)
{
    uint64_t bucket_id;
    struct quota_amount now;
    int r = json_need_u64(doc, "quotas", "bucket", &bucket_id, err);
    if (r == 0)
        r = json_need_u64(doc, "quotas", "objects", &now.objects, err);
    if (r == 0)
        r = json_need_u64(doc, "quotas", "bytes", &now.bytes, err);
    if (r == 0 && (find_row(&q->all, bucket_id) != NULL || bmd_has_quota(&s->bmd, bucket_id)))
        replace(q, n, bucket_id, now);
    return r;
}

int quota_sums_take(struct quota_sums *q, const struct cluster_state *s, const char *node,
                    json_t *list, struct error *err)
{
    int r = 0;
    drop_left(q, s);
    if (smap_node(&s->smap, node) == NULL)
        return 0;
    struct sums_of_node *n = make(q, node);
    for (size_t i = 0; i < json_array_size(list) && r == 0; i++)
        r = take_row(q, s, n, json_array_get(list, i), err);
    return r;
}

static bool all_are_heard(const struct quota_sums *q, const struct smap *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct node *n = &m->nodes[i];
        if (n->role == NODE_TARGET && n->state == NODE_ACTIVE && find(q, n->id) == NULL)
            return false;
    }
    return true;
}

static json_t *reply_row(const struct row *row, const struct sums_of_node *n)
{
    struct quota_amount yours = amount_in(&n->table, row->bucket_id);
    struct quota_amount others = quota_minus(row->amount, yours);
    return json_pack("{s:I, s:I, s:I, s:{s:I, s:I}}", "bucket", (json_int_t)row->bucket_id,
                     "objects", (json_int_t)others.objects, "bytes", (json_int_t)others.bytes,
                     "yours", "objects", (json_int_t)yours.objects, "bytes",
                     (json_int_t)yours.bytes);
}

json_t *quota_sums_reply(struct quota_sums *q, const struct cluster_state *s, const char *node)
{
    struct sums_of_node *n = find(q, node);
    if (n == NULL || !all_are_heard(q, &s->smap))
        return NULL;
    json_t *list = json_array();
    for (size_t i = 0; i < q->all.count && i < QUOTAS_AT_ONCE; i++)
        json_array_append_new(list, reply_row(&q->all.rows[n->next++ % q->all.count], n));
    return list;
}

struct quota_amount quota_sums_of(const struct quota_sums *q, uint64_t bucket_id)
{
    return amount_in(&q->all, bucket_id);
}
