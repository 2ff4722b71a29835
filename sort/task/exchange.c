#include "sort/task/exchange.h"

#include "common/fault.h"
#include "common/mem.h"
#include "sort/rows/ahead.h"
#include "sort/rows/merge.h"
#include "sort/task/planner.h"
#include "sort/rows/table.h"

#define ROUNDS_MAX 16 /* of an arrangement */

/* Everything that flows together here: this target's own table is number 0.  Each table that comes,
 * and the merge, has a thread that reads it ahead. */
struct exchange {
    struct sort_context *c;
    unsigned count;
    const struct dict *dicts[ROUNDS_MAX + 1];
    uint32_t *maps[ROUNDS_MAX + 1];
    struct dict *own_dict;
    struct link *links[ROUNDS_MAX + 1];
    struct table_reader *readers[ROUNDS_MAX + 1];
    struct ahead *tables[ROUNDS_MAX + 1];
    struct table_head head; /* of the whole */
    struct dict *dict;
    struct merge *merge;
    struct ahead *merged;
    bool sends;
    unsigned next; /* target that it sends to */
};

static const char *peer_name(const struct exchange *x, unsigned peer)
{
    return sort_target_name(x->c, peer);
}

static int exchange_fault(const struct exchange *x, const char *what, unsigned peer,
                          struct error *err)
{
    int fault = fault_errno("sort.merge");
    return fault == 0 ? 0 : error_errno(err, fault, "%s target '%s'", what, peer_name(x, peer));
}

static int exchange_own(struct exchange *x, const struct catalog *catalog,
                        const struct rowset *rows, struct error *err)
{
    x->head = (struct table_head){
        .job = x->c->job,
        .order = x->c->order,
        .map = x->c->map != NULL ? keymap_checksum(x->c->map) : 0,
        .inputs = x->c->inputs,
        .rows = rowset_count(rows),
        .bytes = rowset_bytes(rows),
    };
    int rc = catalog_dict(catalog, x->c->self, &x->own_dict, err);
    x->dicts[0] = x->own_dict;
    x->count = 1;
    return rc;
}

static int exchange_receive(struct exchange *x, unsigned round, unsigned from, struct error *err)
{
    unsigned n = x->count++;
    int rc = links_take(x->c->links, round, &x->links[n], err);
    if (rc == 0)
        rc = exchange_fault(x, "merge the table of", from, err);
    if (rc == 0)
        rc = table_reader_open(source_link(x->links[n]), &x->head, x->c->participants,
                               &x->readers[n], err);
    if (rc != 0)
        return error_wrap(err, "table from target '%s'", peer_name(x, from));
    const struct table_head *head = table_reader_head(x->readers[n]);
    if (head->rows > UINT64_MAX - x->head.rows || head->bytes > UINT64_MAX - x->head.bytes)
        return error_set(err, E_CORRUPT, "table from target '%s': its counts overflow",
                         peer_name(x, from));
    x->dicts[n] = table_reader_dict(x->readers[n]);
    x->head.inputs += head->inputs;
    x->head.rows += head->rows;
    x->head.bytes += head->bytes;
    progress_add(&x->c->progress.rows_in, head->rows);
    return 0;
}

/* Up to the rows of every table that this target receives, and to whom it sends. */
static int exchange_rounds(struct exchange *x, struct error *err)
{
    for (unsigned round = 0; round < x->c->arrangement->rounds; round++) {
        struct arrangement_step step = arrangement_step(x->c->arrangement, x->c->self, round);
        if (step.move == ARRANGEMENT_SEND) {
            x->sends = true;
            x->next = step.peer;
            return 0;
        }
        if (step.move == ARRANGEMENT_RECEIVE) {
            int rc = exchange_receive(x, round, step.peer, err);
            if (rc != 0)
                return rc;
        }
    }
    return 0;
}

static int exchange_next(void *ctx, struct sort_row *row, struct error *err)
{
    struct exchange *x = ctx;
    int rc = merge_next(x->merge, row, err);
    if (rc > 0)
        progress_add(&x->c->progress.rows_out, 1);
    return rc;
}

static int exchange_merge(struct exchange *x, struct rowset *rows, struct error *err)
{
    int rc = dict_merge(x->dicts, x->count, &x->dict, x->maps, err);
    struct row_source own;
    if (rc == 0)
        rc = rowset_open(rows, &own, err);
    if (rc != 0)
        return rc;
    x->merge = merge_new(&x->c->order);
    merge_add(x->merge, own, x->maps[0]);
    for (unsigned i = 1; i < x->count; i++) {
        rc = ahead_new("sort-table", table_reader_rows(x->readers[i]), &x->tables[i], err);
        if (rc != 0)
            return rc;
        merge_add(x->merge, ahead_rows(x->tables[i]), x->maps[i]);
    }
    const struct row_source merged = {.next = exchange_next, .ctx = x};
    return ahead_new("sort-merge", merged, &x->merged, err);
}

static int exchange_send(struct exchange *x, struct error *err)
{
    struct sort_context *c = x->c;
    struct bpipe *pipe = NULL;
    void *handle = NULL;
    int rc = exchange_fault(x, "send the table to", x->next, err);
    if (rc == 0)
        rc = c->env->send_begin(c->env->ctx, x->next, SORT_CHANNEL_MERGE, &pipe, &handle, err);
    if (rc != 0)
        return error_wrap(err, "table to target '%s'", peer_name(x, x->next));
    struct link *link = link_writer(c->links, pipe);
    rc = table_write(sink_link(link), &x->head, x->dict, ahead_rows(x->merged), err);
    if (rc == 0)
        link_finish(link, NULL);
    else
        links_stop(c->links, err); /* which is then what the receiver is told */
    link_free(link);
    int ended = c->env->send_end(c->env->ctx, handle, rc == 0 ? err : NULL);
    if (rc == 0)
        rc = ended;
    return rc != 0 ? error_wrap(err, "table to target '%s'", peer_name(x, x->next)) : 0;
}

static int exchange_work(struct exchange *x, const struct catalog *catalog, struct rowset *rows,
                         struct book *own, struct sort_figures *figures, struct error *err)
{
    int rc = exchange_own(x, catalog, rows, err);
    if (rc == 0)
        rc = exchange_rounds(x, err);
    if (rc == 0)
        rc = exchange_merge(x, rows, err);
    if (rc != 0)
        return rc;
    if (x->sends)
        return exchange_send(x, err);
    if (x->head.rows == 0)
        notes_add(&x->c->notes, "the input has no records: there will be no output");
    return planner_run(x->c, ahead_rows(x->merged), x->dict, &x->head, own, figures, err);
}

int exchange_tables(struct sort_context *c, const struct catalog *catalog, struct rowset *rows,
                    struct book *own, struct sort_figures *figures, struct error *err)
{
    struct exchange x = {.c = c};
    int rc = exchange_work(&x, catalog, rows, own, figures, err);
    if (rc == 0)
        sort_count("merge", x.head.rows, x.head.bytes);
    else
        links_stop(c->links, err); /* which ends the waits of the threads that read ahead */
    ahead_free(x.merged);
    merge_free(x.merge);
    for (unsigned i = 0; i < x.count; i++) {
        ahead_free(x.tables[i]);
        table_reader_free(x.readers[i]);
        link_free(x.links[i]);
        free(x.maps[i]);
    }
    dict_free(x.own_dict);
    dict_free(x.dict);
    return rc;
}
