#include "sort/shard/group.h"

#include "common/mem.h"
#include "sort/shard/regroup.h"

struct group {
    struct group_config config;
    struct record_table *table; /* one of these two */
    struct regroup *outside;
    size_t cursor;
    struct buf pieces; /* of the record that is out */
};

struct group *group_new(const struct group_config *config)
{
    struct group *g = xcalloc(1, sizeof *g);
    g->config = *config;
    if (g->config.memory < GROUP_MEMORY_MIN)
        g->config.memory = GROUP_MEMORY_MIN;
    g->table = record_table_new(config->shard, config->rule, config->duplicates,
                                (size_t)g->config.memory / 2);
    return g;
}

void group_free(struct group *g)
{
    if (g == NULL)
        return;
    record_table_free(g->table);
    regroup_free(g->outside);
    buf_done(&g->pieces);
    free(g);
}

/* The table is full: its members go first. */
static int leave_memory(struct group *g, struct error *err)
{
    int rc = regroup_new(&g->config, &g->outside, err);
    size_t count = record_table_members(g->table);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct tar_member m;
        bool dropped = record_table_member(g->table, i, &m);
        rc = regroup_add(g->outside, &m, dropped, err);
    }
    record_table_free(steal(g->table));
    return rc;
}

int group_add(struct group *g, const struct tar_member *m, struct error *err)
{
    int rc = 0;
    if (g->table != NULL && record_table_full(g->table))
        rc = leave_memory(g, err);
    if (rc == 0 && g->table == NULL)
        return regroup_add(g->outside, m, false, err);
    bool replaced = false;
    if (rc == 0)
        rc = record_table_add(g->table, m, &replaced, err);
    if (rc == 0 && replaced)
        g->config.replaced(g->config.ctx, m->path, m->path_len);
    return rc;
}

int group_finish(struct group *g, struct error *err)
{
    return g->table != NULL ? record_table_finish(g->table, err) : regroup_finish(g->outside, err);
}

uint64_t group_count(const struct group *g)
{
    return g->table != NULL ? record_table_count(g->table) : regroup_count(g->outside);
}

uint64_t group_spilled(const struct group *g)
{
    return g->outside != NULL ? regroup_spilled(g->outside) : 0;
}

static int table_next(struct group *g, struct group_record *out)
{
    if (g->cursor == record_table_count(g->table))
        return 0;
    *out = (struct group_record){.inlines = record_table_inline(g->table)->data};
    out->name = record_table_name(g->table, g->cursor, &out->name_len);
    buf_clear(&g->pieces);
    record_table_pieces(g->table, g->cursor, &g->pieces);
    out->pieces = (const void *)g->pieces.data;
    out->piece_count = g->pieces.len / sizeof *out->pieces;
    for (size_t i = 0; i < out->piece_count; i++)
        out->size += out->pieces[i].length;
    g->cursor++;
    return 1;
}

int group_next(struct group *g, struct group_record *out, struct error *err)
{
    return g->table != NULL ? table_next(g, out) : regroup_next(g->outside, out, err);
}
