#include "sort/rows/rows.h"

void row_writer_init(struct row_writer *w, struct encoder *e, const struct sort_order *order)
{
    *w = (struct row_writer){.encoder = e, .order = order, .last = BUF_INIT};
}

void row_writer_done(struct row_writer *w)
{
    buf_done(&w->last);
}

static size_t shared_length(const struct buf *last, const char *name, size_t len)
{
    size_t max = last->len < len ? last->len : len;
    size_t n = 0;
    while (n < max && last->data[n] == name[n])
        n++;
    return n;
}

int row_writer_put(struct row_writer *w, const struct sort_row *row, struct error *err)
{
    size_t shared = shared_length(&w->last, row->name, row->name_len);
    const char *rest = row->name + shared;
    size_t rest_len = row->name_len - shared;
    struct encoder *e = w->encoder;
    int rc = encoder_put_varint(e, shared, err);
    if (rc == 0)
        rc = encoder_put_varint(e, rest_len, err);
    if (rc == 0)
        rc = encoder_put(e, rest, rest_len, err);
    if (rc == 0)
        rc = encoder_put_varint(e, row->shard, err);
    if (rc == 0)
        rc = encoder_put_varint(e, row->position, err);
    if (rc == 0)
        rc = encoder_put_varint(e, row->size / SORT_BLOCK, err);
    if (rc == 0 && order_has_key(w->order))
        rc = encoder_put_u64(e, row->key, err);
    if (rc == 0 && w->order->grouped)
        rc = encoder_put_varint(e, row->group, err);
    w->last.len = shared;
    buf_append(&w->last, rest, rest_len);
    return rc;
}

void row_reader_init(struct row_reader *r, struct decoder *d, const struct sort_order *order,
                     uint32_t shards, uint64_t rows)
{
    *r = (struct row_reader){.decoder = d, .order = order, .shards = shards, .left = rows};
}

void row_reader_done(struct row_reader *r)
{
    buf_done(&r->names[0]);
    buf_done(&r->names[1]);
}

static int reader_name(struct row_reader *r, const struct buf *last, struct buf *name,
                       struct error *err)
{
    uint64_t shared = 0;
    uint64_t rest = 0;
    int rc = decoder_get_bounded(r->decoder, last->len, "a shared prefix of", &shared, err);
    if (rc == 0)
        rc = decoder_get_bounded(r->decoder, ROW_NAME_MAX - shared, "a name's rest of", &rest, err);
    if (rc != 0)
        return rc;
    buf_clear(name);
    buf_reserve(name, (size_t)(shared + rest));
    buf_append(name, buf_str((struct buf *)last), (size_t)shared);
    rc = decoder_get(r->decoder, name->data + shared, (size_t)rest, err);
    name->len = (size_t)(shared + rest);
    return rc;
}

static int reader_numbers(struct row_reader *r, struct sort_row *row, struct error *err)
{
    uint64_t shard = 0;
    uint64_t position = 0;
    uint64_t blocks = 0;
    uint64_t group = 0;
    uint64_t most = (UINT64_MAX - r->bytes) / SORT_BLOCK;
    if (r->shards == 0)
        return error_set(err, E_CORRUPT, "a row without any shard");
    int rc = decoder_get_bounded(r->decoder, r->shards - 1, "a shard's number", &shard, err);
    if (rc == 0)
        rc = decoder_get_bounded(r->decoder, SORT_POSITION_MAX, "a position", &position, err);
    if (rc == 0)
        rc = decoder_get_bounded(r->decoder, most, "a size in blocks", &blocks, err);
    if (rc == 0 && order_has_key(r->order))
        rc = decoder_get_u64(r->decoder, &row->key, err);
    if (rc == 0 && r->order->grouped)
        rc = decoder_get_bounded(r->decoder, UINT32_MAX, "a group", &group, err);
    row->group = (uint32_t)group;
    row->shard = (uint32_t)shard;
    row->position = (uint32_t)position;
    row->size = blocks * SORT_BLOCK;
    return rc;
}

int row_reader_next(struct row_reader *r, struct sort_row *row, struct error *err)
{
    if (r->left == 0)
        return 0;
    struct buf *name = &r->names[1];
    *row = (struct sort_row){0};
    int rc = reader_name(r, &r->names[0], name, err);
    if (rc == 0)
        rc = reader_numbers(r, row, err);
    if (rc != 0)
        return rc;
    row->name = buf_str(name);
    row->name_len = (uint32_t)name->len;
    if (row->size == 0)
        return error_set(err, E_CORRUPT, "a row of no bytes");
    if (r->any && order_compare(r->order, &r->last, row) >= 0)
        return error_set(err, E_CORRUPT, "byte %llu of the stream: a row out of order",
                         (unsigned long long)decoder_offset(r->decoder));
    struct buf spare = r->names[0];
    r->names[0] = *name;
    r->names[1] = spare;
    r->last = *row;
    r->any = true;
    r->bytes += row->size;
    r->left--;
    return 1;
}
