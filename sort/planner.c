#include "sort/planner.h"

#include "common/fault.h"
#include "common/mem.h"
#include "sort/cut.h"
#include "sort/format.h"
#include "sort/place.h"
#include "sort/repeats.h"

#define REPEATS_BYTES 48 /* of memory for each name, as the set grows */

/* The stream of orders to one other target. */
struct channel {
    struct link *link;
    void *handle;
    struct encoder encoder;
    uint64_t shards;
};

struct planner {
    struct sort_context *c;
    const struct dict *dict;
    uint64_t inputs; /* the sum of all targets' stamps */
    struct cut cut;
    struct order_shard shard; /* that is being cut */
    XXH3_state_t *digest;     /* of what is in it so far */
    struct blob *records;     /* its records, encoded */
    struct encoder encoder;   /* into `records` */
    uint64_t *held;           /* its bytes, by target */
    struct repeats *repeats;
    struct buf last_name;
    bool repeats_full;
    uint32_t group;           /* of the shard that is being cut */
    struct repeats *names;    /* of output shards: two formats may make the same */
    struct channel *channels; /* by target; this one's is not used */
    struct book *own;
    struct sort_figures *figures;
};

/* --- repeated names --------------------------------------------------------------------------- */

static enum repeats_answer name_seen(struct planner *p, const struct sort_row *row)
{
    size_t len = 0;
    const char *name = order_name(&p->c->order, row, &len);
    if (p->c->order.algorithm != SORT_ALPHANUMERIC)
        return repeats_add(p->repeats, name, len);
    /* Equal names stand side by side. */
    bool same = p->shard.records > 0 && order_compare_names(p->last_name.data, p->last_name.len,
                                                            row->name, row->name_len) == 0;
    buf_clear(&p->last_name);
    buf_append(&p->last_name, row->name, row->name_len);
    return same ? REPEATS_SEEN : REPEATS_NEW;
}

static int note_repeat(struct planner *p, const struct sort_row *row, struct error *err)
{
    size_t len = 0;
    const char *name = order_name(&p->c->order, row, &len);
    int shown = (int)(len < 256 ? len : 256);
    const char *shard = buf_str(&p->shard.name);
    if (p->c->spec->duplicated_output_records == SORT_ABORT)
        return error_set(err, E_DUPLICATE_RECORD, "record '%.*s' comes twice in output shard '%s'",
                         shown, name, shard);
    notes_add(&p->c->notes, "record '%.*s' comes twice in output shard '%s'", shown, name, shard);
    return 0;
}

static int note_full(struct planner *p, struct error *err)
{
    const char *shard = buf_str(&p->shard.name);
    if (p->c->spec->duplicated_output_records == SORT_ABORT)
        return error_set(err, E_NOMEM,
                         "output shard '%s' has more records than max_mem_usage lets be compared "
                         "(duplicated_output_records)",
                         shard);
    if (!p->repeats_full)
        notes_add(&p->c->notes,
                  "output shard '%s' has more records than max_mem_usage lets be compared: "
                  "repeated names in it may go unnoticed",
                  shard);
    p->repeats_full = true;
    return 0;
}

static int check_repeat(struct planner *p, const struct sort_row *row, struct error *err)
{
    if (p->c->spec->duplicated_output_records == SORT_IGNORE)
        return 0;
    switch (name_seen(p, row)) {
    case REPEATS_SEEN:
        return note_repeat(p, row, err);
    case REPEATS_FULL:
        return note_full(p, err);
    case REPEATS_NEW:
        break;
    }
    return 0;
}

/* --- shards ----------------------------------------------------------------------------------- */

/* Formats of an external key map may make each other's names. */
static int check_name(struct planner *p, struct error *err)
{
    const char *name = buf_str(&p->shard.name);
    switch (repeats_add(p->names, name, p->shard.name.len)) {
    case REPEATS_SEEN:
        return error_set(err, E_SPEC, "two formats of the external key map make the name '%s'",
                         name);
    case REPEATS_FULL:
        return error_set(err, E_NOMEM,
                         "there are more output shards than max_mem_usage lets be compared "
                         "(ekm_file)");
    case REPEATS_NEW:
        break;
    }
    return 0;
}

static int shard_begin(struct planner *p, struct error *err)
{
    buf_clear(&p->shard.name);
    p->shard.bytes = 0;
    p->shard.records = 0;
    memset(p->held, 0, p->c->participants * sizeof *p->held);
    blob_reset(p->records);
    repeats_clear(p->repeats);
    p->repeats_full = false;
    int rc = cut_begin(&p->cut, &p->shard.name, err);
    XXH3_128bits_reset_withSeed(p->digest, p->inputs);
    XXH3_128bits_update(p->digest, p->shard.name.data, p->shard.name.len);
    return rc != 0 || p->c->map == NULL ? rc : check_name(p, err);
}

/* The merged dictionary numbers the shards by their places among all, so that the same records of
 * the same inputs come to the same digest whichever targets have them. */
static void digest_record(struct planner *p, const struct sort_row *row)
{
    const uint64_t place[] = {row->shard, row->position, row->size};
    XXH3_128bits_update(p->digest, place, sizeof place);
}

static int shard_send(struct planner *p, unsigned builder, struct error *err)
{
    struct blob_range range = {.blob = p->records, .at = 0, .end = blob_size(p->records)};
    if (builder == p->c->self)
        return book_add(p->own, &p->shard, source_blob(&range), err);
    struct channel *ch = &p->channels[builder];
    ch->shards++;
    return orders_add(&ch->encoder, &p->shard, source_blob(&range), err);
}

static int shard_end(struct planner *p, struct error *err)
{
    int rc = encoder_flush(&p->encoder, err);
    if (rc != 0)
        return rc;
    p->shard.digest = XXH3_128bits_digest(p->digest);
    unsigned owner = p->c->env->owner(p->c->env->ctx, buf_str(&p->shard.name));
    if (owner >= p->c->participants)
        return error_set(err, E_INTERNAL, "no participant owns output shard '%s'",
                         buf_str(&p->shard.name));
    struct placement where =
        place_shard(p->held, p->c->participants, owner,
                    p->shard.bytes + format_tar_end(p->c->spec->output_shards));
    p->figures->shards++;
    p->figures->records += p->shard.records;
    p->figures->bytes += p->shard.bytes;
    p->figures->moved += where.moved;
    p->figures->moved_hrw += where.moved_hrw;
    p->figures->moved_locality += where.moved_locality;
    return shard_send(p, where.builder, err);
}

/* The row belongs to another format than the one before: shards of that one begin. */
static int group_begin(struct planner *p, uint32_t group, struct error *err)
{
    if (group >= keymap_formats(p->c->map))
        return error_set(err, E_CORRUPT, "a row of format %u, which there is not", group);
    int rc = p->cut.open ? shard_end(p, err) : 0;
    p->group = group;
    cut_init(&p->cut, keymap_template(p->c->map, group), p->c->spec->output_shard_size, 0);
    return rc;
}

static int show_row(struct planner *p, const struct sort_row *row, const struct dict_entry *from,
                    struct error *err)
{
    const struct sort_watch *watch = p->c->watch;
    size_t len = 0;
    const char *name = order_name(&p->c->order, row, &len);
    return watch == NULL ? 0
                         : watch->ordered(watch->ctx, buf_str(&p->shard.name), name, len,
                                          from->local, row->position, err);
}

static int add_row(struct planner *p, const struct sort_row *row, struct error *err)
{
    int rc = 0;
    if (p->c->map != NULL && row->group != p->group)
        rc = group_begin(p, row->group, err);
    if (rc == 0 && !p->cut.open)
        rc = shard_begin(p, err);
    if (rc == 0)
        rc = check_repeat(p, row, err);
    if (rc != 0)
        return rc;
    const struct dict_entry *from = dict_entry(p->dict, row->shard);
    rc = show_row(p, row, from, err);
    if (rc != 0)
        return rc;
    struct order_record r = {
        .source = from->owner,
        .shard = from->local,
        .position = row->position,
        .size = row->size,
    };
    digest_record(p, row);
    p->held[r.source] += r.size;
    p->shard.bytes += r.size;
    p->shard.records++;
    rc = order_put_record(&p->encoder, &r, err);
    if (rc == 0 && cut_add(&p->cut, r.size))
        rc = shard_end(p, err);
    return rc;
}

static int add_rows(struct planner *p, struct row_source rows, struct error *err)
{
    struct sort_row row;
    int rc;
    while ((rc = rows.next(rows.ctx, &row, err)) > 0) {
        rc = add_row(p, &row, err);
        if (rc == 0)
            rc = links_check(p->c->links, err);
        if (rc != 0)
            return rc;
    }
    if (rc == 0 && p->cut.open)
        rc = shard_end(p, err);
    return rc;
}

/* --- channels --------------------------------------------------------------------------------- */

static int channel_open(struct planner *p, unsigned to, struct error *err)
{
    struct channel *ch = &p->channels[to];
    struct bpipe *pipe = NULL;
    int rc =
        p->c->env->send_begin(p->c->env->ctx, to, SORT_CHANNEL_ORDERS, &pipe, &ch->handle, err);
    if (rc != 0)
        return error_wrap(err, "orders to target '%s'", sort_target_name(p->c, to));
    ch->link = link_writer(p->c->links, pipe);
    encoder_init(&ch->encoder, sink_link(ch->link));
    return orders_begin(&ch->encoder, p->c->job, err);
}

static int channels_open(struct planner *p, struct error *err)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < p->c->participants; i++) {
        if (i != p->c->self && arrangement_has(p->c->arrangement, i))
            rc = channel_open(p, i, err);
    }
    return rc;
}

static int channels_end(struct planner *p, struct error *err)
{
    for (unsigned i = 0; i < p->c->participants; i++) {
        struct channel *ch = &p->channels[i];
        if (ch->link == NULL)
            continue;
        int rc = orders_end(&ch->encoder, ch->shards, err);
        if (rc != 0)
            return error_wrap(err, "orders to target '%s'", sort_target_name(p->c, i));
        link_finish(ch->link, NULL);
    }
    return 0;
}

/* Every stream that was begun is ended: in order, when all has gone well; with the error, if not.
 */
static int channels_close(struct planner *p, int rc, struct error *err)
{
    if (rc != 0)
        links_stop(p->c->links, err);
    for (unsigned i = 0; i < p->c->participants; i++) {
        struct channel *ch = &p->channels[i];
        if (ch->link == NULL)
            continue;
        link_free(ch->link);
        encoder_done(&ch->encoder);
        int ended = p->c->env->send_end(p->c->env->ctx, ch->handle, rc == 0 ? err : NULL);
        if (rc == 0 && ended != 0)
            rc = error_wrap(err, "orders to target '%s'", sort_target_name(p->c, i));
    }
    return rc;
}

static int planner_work(struct planner *p, struct row_source rows, struct error *err)
{
    int fault = fault_errno("sort.plan");
    if (fault != 0)
        return error_errno(err, fault, "plan the output shards");
    int rc = channels_open(p, err);
    if (rc == 0)
        rc = add_rows(p, rows, err);
    return rc != 0 ? rc : channels_end(p, err);
}

int planner_run(struct sort_context *c, struct row_source rows, const struct dict *dict,
                const struct table_head *whole, struct book *own, struct sort_figures *figures,
                struct error *err)
{
    struct planner p = {
        .c = c,
        .dict = dict,
        .inputs = whole->inputs,
        .digest = XXH3_createState(),
        .records = blob_new(c->env, c->memory.cutting),
        .held = xcalloc(c->participants, sizeof *p.held),
        .repeats = repeats_new((size_t)(c->memory.repeats / REPEATS_BYTES)),
        .names = repeats_new((size_t)(c->memory.repeats / REPEATS_BYTES)),
        .group = UINT32_MAX,
        .channels = xcalloc(c->participants, sizeof *p.channels),
        .own = own,
        .figures = figures,
    };
    if (c->map == NULL)
        cut_init(&p.cut, c->spec->output_template, c->spec->output_shard_size, whole->bytes);
    encoder_init(&p.encoder, sink_blob(p.records));
    int rc = channels_close(&p, planner_work(&p, rows, err), err);
    encoder_done(&p.encoder);
    buf_done(&p.shard.name);
    buf_done(&p.last_name);
    repeats_free(p.repeats);
    repeats_free(p.names);
    blob_free(p.records);
    XXH3_freeState(p.digest);
    free(p.channels);
    free(p.held);
    return rc;
}
