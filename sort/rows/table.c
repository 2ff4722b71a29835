#include "sort/rows/table.h"

#include "common/mem.h"

static const char magic[8] = "DFCTABL2";

struct table_reader {
    struct decoder decoder;
    struct row_reader rows;
    struct table_head head;
    struct dict *dict;
    bool ended;
};

static void order_bytes(const struct sort_order *o, unsigned char out[2])
{
    out[0] = (unsigned char)o->algorithm;
    out[1] = (unsigned char)(o->decreasing | o->grouped << 1);
}

static int head_write(struct encoder *e, const struct table_head *head, struct error *err)
{
    unsigned char order[2];
    order_bytes(&head->order, order);
    int rc = encoder_put(e, magic, sizeof magic, err);
    if (rc == 0)
        rc = encoder_put_u64(e, head->job, err);
    if (rc == 0)
        rc = encoder_put(e, order, sizeof order, err);
    if (rc == 0 && head->order.grouped)
        rc = encoder_put_u64(e, head->map, err);
    if (rc == 0)
        rc = encoder_put_u64(e, head->inputs, err);
    if (rc == 0)
        rc = encoder_put_varint(e, head->rows, err);
    if (rc == 0)
        rc = encoder_put_varint(e, head->bytes / SORT_BLOCK, err);
    return rc;
}

static int rows_write(struct encoder *e, const struct table_head *head, struct row_source rows,
                      struct error *err)
{
    struct row_writer w;
    struct sort_row row;
    int rc;
    row_writer_init(&w, e, &head->order);
    while ((rc = rows.next(rows.ctx, &row, err)) > 0) {
        rc = row_writer_put(&w, &row, err);
        if (rc != 0)
            break;
    }
    row_writer_done(&w);
    return rc;
}

int table_write(struct sink sink, const struct table_head *head, const struct dict *dict,
                struct row_source rows, struct error *err)
{
    struct encoder e;
    encoder_init(&e, sink);
    int rc = head_write(&e, head, err);
    if (rc == 0)
        rc = dict_write(dict, &e, err);
    if (rc == 0)
        rc = rows_write(&e, head, rows, err);
    if (rc == 0)
        rc = encoder_put_checksum(&e, err);
    encoder_done(&e);
    return rc;
}

/* Whose table it is, and how it is sorted. */
static int identity_read(struct decoder *d, const struct table_head *expected, struct error *err)
{
    unsigned char order[2] = {0};
    unsigned char wanted[2];
    uint64_t job = 0;
    uint64_t map = expected->map;
    order_bytes(&expected->order, wanted);
    int rc = decoder_get_u64(d, &job, err);
    if (rc == 0)
        rc = decoder_get(d, order, sizeof order, err);
    if (rc != 0)
        return rc;
    if (job != expected->job || memcmp(order, wanted, sizeof order) != 0)
        return error_set(err, E_CORRUPT, "the sorted table belongs to another job");
    if (expected->order.grouped)
        rc = decoder_get_u64(d, &map, err);
    if (rc == 0 && map != expected->map)
        return error_set(err, E_SPEC,
                         "the external key map changed while the job began: not every target read "
                         "the same");
    return rc;
}

static int head_read(struct table_reader *t, const struct table_head *expected, struct error *err)
{
    struct decoder *d = &t->decoder;
    char found[sizeof magic] = {0};
    uint64_t blocks = 0;
    int rc = decoder_get(d, found, sizeof found, err);
    if (rc == 0 && memcmp(found, magic, sizeof magic) != 0)
        return error_set(err, E_CORRUPT, "the stream is not a sorted table");
    t->head = *expected;
    if (rc == 0)
        rc = identity_read(d, expected, err);
    if (rc == 0)
        rc = decoder_get_u64(d, &t->head.inputs, err);
    if (rc == 0)
        rc = decoder_get_varint(d, &t->head.rows, err);
    if (rc == 0)
        rc = decoder_get_bounded(d, UINT64_MAX / SORT_BLOCK, "the sum of sizes", &blocks, err);
    t->head.bytes = blocks * SORT_BLOCK;
    return rc;
}

int table_reader_open(struct source source, const struct table_head *expected,
                      unsigned participants, struct table_reader **out, struct error *err)
{
    _cleanup_(table_reader_freep)
    struct table_reader *t = xcalloc(1, sizeof *t);
    decoder_init(&t->decoder, source);
    int rc = head_read(t, expected, err);
    if (rc == 0)
        rc = dict_read(&t->decoder, participants, &t->dict, err);
    if (rc != 0)
        return rc;
    row_reader_init(&t->rows, &t->decoder, &t->head.order, dict_count(t->dict), t->head.rows);
    *out = steal(t);
    return 0;
}

void table_reader_free(struct table_reader *t)
{
    if (t == NULL)
        return;
    row_reader_done(&t->rows);
    dict_free(t->dict);
    decoder_done(&t->decoder);
    free(t);
}

const struct table_head *table_reader_head(const struct table_reader *t)
{
    return &t->head;
}

const struct dict *table_reader_dict(const struct table_reader *t)
{
    return t->dict;
}

static int table_end(struct table_reader *t, struct error *err)
{
    if (t->ended)
        return 0;
    if (t->rows.bytes != t->head.bytes)
        return error_set(err, E_CORRUPT, "a sorted table of %llu bytes has rows of %llu",
                         (unsigned long long)t->head.bytes, (unsigned long long)t->rows.bytes);
    int rc = decoder_get_checksum(&t->decoder, err);
    if (rc == 0)
        rc = decoder_expect_end(&t->decoder, err);
    t->ended = rc == 0;
    return rc;
}

static int table_next(void *ctx, struct sort_row *row, struct error *err)
{
    struct table_reader *t = ctx;
    int rc = row_reader_next(&t->rows, row, err);
    return rc != 0 ? rc : table_end(t, err);
}

struct row_source table_reader_rows(struct table_reader *t)
{
    return (struct row_source){.next = table_next, .ctx = t};
}
