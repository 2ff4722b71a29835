#include "sort/task/planner.h"

#include "common/fault.h"
#include "common/mem.h"
#include "sort/rows/cut.h"
#include "sort/shard/format.h"
#include "sort/shard/output_names.h"
#include "sort/rows/place.h"
#include "sort/shard/record.h"
#include "sort/rows/repeats.h"
#include "sort/index/wids.h"

#define REPEATS_BYTES 48 /* of memory for each name, as the set grows */
#define WIDS_MEMORY (256 * 1024)

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
    uint64_t samples;         /* of the shard that is being cut, as wids counts them */
    struct buf sample;        /* its last one's name */
    struct blob *wids;        /* the index of all shards so far */
    XXH3_state_t *all;        /* of their digests */
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
    p->samples = 0;
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

static int output_send(struct planner *p, const struct order_shard *s, const struct blob *body,
                       unsigned builder, struct error *err)
{
    struct blob_range range = {.blob = body, .at = 0, .end = blob_size(body)};
    if (builder == p->c->self)
        return book_add(p->own, s, source_blob(&range), err);
    struct channel *ch = &p->channels[builder];
    ch->shards++;
    return orders_add(&ch->encoder, s, source_blob(&range), err);
}

static int find_owner(const struct planner *p, struct buf *name, unsigned *owner, struct error *err)
{
    *owner = p->c->env->owner(p->c->env->ctx, buf_str(name));
    return *owner < p->c->participants
               ? 0
               : error_set(err, E_INTERNAL, "no participant owns output '%s'", buf_str(name));
}

/* --- indexes ---------------------------------------------------------------------------------- */

/* It is as its owner would have it, whose own it is to make (create_index.h). */
static int index_send(struct planner *p, struct order_shard *s, const struct blob *body,
                      struct error *err)
{
    unsigned owner = 0;
    int rc = find_owner(p, &s->name, &owner, err);
    s->digest = XXH3_128bits_withSeed(s->name.data, s->name.len, s->digest.low64);
    if (rc == 0)
        rc = output_send(p, s, body, owner, err);
    buf_done(&s->name);
    return rc;
}

static int add_dali(struct planner *p, struct error *err)
{
    struct order_shard s = p->shard;
    s.kind = ORDER_DALI;
    s.name = (struct buf)BUF_INIT;
    output_dali_name(buf_str(&p->shard.name), &s.name);
    return index_send(p, &s, p->records, err);
}

static int add_to_wids(struct planner *p, struct error *err)
{
    const struct shard_format_ops *format = p->c->spec->output_shards;
    const struct wids_shard s = {
        .name = buf_str(&p->shard.name),
        .samples = p->samples,
        .bytes = format->encoder_new == NULL ? p->shard.bytes + format_tar_end(format)
                                             : SORT_SIZE_UNKNOWN,
    };
    bool first = p->figures->shards == 0;
    int rc = first ? wids_begin(p->wids, err) : 0;
    XXH3_128bits_update(p->all, &p->shard.digest, sizeof p->shard.digest);
    return rc != 0 ? rc : wids_add(p->wids, p->c->spec->wids_index, &s, first, err);
}

static int send_wids(struct planner *p, struct error *err)
{
    int rc = wids_end(p->wids, err);
    struct order_shard s = {
        .kind = ORDER_TEXT, .bytes = blob_size(p->wids), .digest = XXH3_128bits_digest(p->all)};
    if (rc != 0)
        return rc;
    buf_puts(&s.name, p->c->spec->wids_index);
    return index_send(p, &s, p->wids, err);
}

static int add_to_indexes(struct planner *p, struct error *err)
{
    int rc = p->c->spec->dali_indexes ? add_dali(p, err) : 0;
    return rc == 0 && p->c->spec->wids_index != NULL ? add_to_wids(p, err) : rc;
}

/* Neighbours of one name up to the first dot are one sample for who reads the shard. */
static void count_sample(struct planner *p, const struct sort_row *row)
{
    size_t len = 0;
    const char *name = order_name(&p->c->order, row, &len);
    len = record_key_len(name, len, SORT_KEY_FIRST_DOT);
    if (p->samples > 0 && order_compare_names(p->sample.data, p->sample.len, name, len) == 0)
        return;
    p->samples++;
    buf_clear(&p->sample);
    buf_append(&p->sample, name, len);
}

/* --- shards, again --------------------------------------------------------------------------- */

static int shard_end(struct planner *p, struct error *err)
{
    int rc = encoder_flush(&p->encoder, err);
    if (rc != 0)
        return rc;
    p->shard.digest = XXH3_128bits_digest(p->digest);
    unsigned owner = 0;
    rc = find_owner(p, &p->shard.name, &owner, err);
    if (rc == 0)
        rc = add_to_indexes(p, err);
    if (rc != 0)
        return rc;
    struct placement where =
        place_shard(p->held, p->c->participants, owner,
                    p->shard.bytes + format_tar_end(p->c->spec->output_shards));
    p->figures->shards++;
    p->figures->records += p->shard.records;
    p->figures->bytes += p->shard.bytes;
    p->figures->moved += where.moved;
    p->figures->moved_hrw += where.moved_hrw;
    p->figures->moved_locality += where.moved_locality;
    return output_send(p, &p->shard, p->records, where.builder, err);
}

/* No more shards of this template follow. */
static int show_template(const struct planner *p, struct error *err)
{
    const struct sort_watch *watch = p->c->watch;
    if (watch == NULL || p->cut.names == NULL)
        return 0;
    return watch->used(watch->ctx, p->cut.names, p->cut.shards, err);
}

/* The row belongs to another format than the one before: shards of that one begin. */
static int group_begin(struct planner *p, uint32_t group, struct error *err)
{
    if (group >= keymap_formats(p->c->map))
        return error_set(err, E_CORRUPT, "a row of format %u, which there is not", group);
    int rc = p->cut.open ? shard_end(p, err) : 0;
    if (rc == 0)
        rc = show_template(p, err);
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
    if (p->wids != NULL)
        count_sample(p, row);
    p->held[r.source] += r.size;
    p->shard.bytes += r.size;
    p->shard.records++;
    rc = order_put_record(&p->encoder, &r, err);
    if (rc == 0 && cut_add(&p->cut, r.size))
        rc = shard_end(p, err);
    return rc;
}

/* The template has too few names: how many would be needed?  `row` is the first without a shard. */
static int count_names(const struct planner *p, struct sort_row row, struct row_source rows,
                       struct error *err)
{
    const struct name_template *names = p->cut.names;
    uint64_t needed = template_count(names), bytes = 0;
    const uint32_t group = row.group;
    bool open = false;
    int rc = 1;
    for (; rc > 0 && (p->c->map == NULL || row.group == group);
         rc = rows.next(rows.ctx, &row, err)) {
        needed += !open;
        bytes = (open ? bytes : 0) + row.size;
        open = bytes < p->cut.limit;
    }
    if (rc < 0)
        return rc;
    return error_set(
        err, E_TEMPLATE_TOO_SMALL,
        "output template '%s' has %llu names; %llu are needed for shards of %llu bytes",
        template_text(names), (unsigned long long)template_count(names), (unsigned long long)needed,
        (unsigned long long)p->cut.limit);
}

static int add_rows(struct planner *p, struct row_source rows, struct error *err)
{
    struct sort_row row;
    int rc;
    while ((rc = rows.next(rows.ctx, &row, err)) > 0) {
        rc = add_row(p, &row, err);
        if (rc == E_TEMPLATE_TOO_SMALL)
            return count_names(p, row, rows, err);
        if (rc == 0)
            rc = links_check(p->c->links, err);
        if (rc != 0)
            return rc;
    }
    bool empty = p->c->spec->makes_empty && p->cut.shards == 0;
    if (rc == 0 && empty)
        rc = shard_begin(p, err);
    if (rc == 0 && p->cut.open)
        rc = shard_end(p, err);
    if (rc == 0)
        rc = show_template(p, err);
    if (rc == 0 && p->wids != NULL && p->figures->shards > 0)
        rc = send_wids(p, err);
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
        .wids = c->spec->wids_index != NULL ? blob_new(c->env, WIDS_MEMORY) : NULL,
        .all = XXH3_createState(),
        .channels = xcalloc(c->participants, sizeof *p.channels),
        .own = own,
        .figures = figures,
    };
    if (c->map == NULL)
        cut_init(&p.cut, c->spec->output_template, c->spec->output_shard_size, whole->bytes);
    encoder_init(&p.encoder, sink_blob(p.records));
    XXH3_128bits_reset(p.all);
    int rc = channels_close(&p, planner_work(&p, rows, err), err);
    encoder_done(&p.encoder);
    buf_done(&p.shard.name);
    buf_done(&p.last_name);
    buf_done(&p.sample);
    repeats_free(p.repeats);
    repeats_free(p.names);
    blob_free(p.records);
    blob_free(p.wids);
    XXH3_freeState(p.digest);
    XXH3_freeState(p.all);
    free(p.channels);
    free(p.held);
    return rc;
}
