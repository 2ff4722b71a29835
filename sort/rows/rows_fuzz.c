/* Any bytes as a table from a peer: refused, or read to their end with every row within bounds. The
 * first byte chooses the order.  The checksum at the end is made right, so that what comes before
 * it is looked at. */
#include "sort/rows/table.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define JOB 0x0706050403020100U

static void append_checksum(struct buf *b)
{
    struct checksum *c = checksum_new(CHECKSUM_XXH3);
    struct checksum_value v;
    checksum_update(c, b->data, b->len);
    checksum_final(c, &v);
    checksum_free(c);
    buf_append(b, v.bytes, checksum_size(CHECKSUM_XXH3));
}

static void read_rows(struct table_reader *t)
{
    struct row_source rows = table_reader_rows(t);
    struct sort_row row;
    uint64_t count = 0;
    uint64_t bytes = 0;
    int rc;
    while ((rc = rows.next(rows.ctx, &row, NULL)) > 0) {
        assert(row.shard < dict_count(table_reader_dict(t)));
        assert(row.name_len <= ROW_NAME_MAX && row.size > 0);
        count++;
        bytes += row.size;
    }
    if (rc == 0)
        assert(count == table_reader_head(t)->rows && bytes == table_reader_head(t)->bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct table_head expected = {
        .job = JOB,
        .order = {.algorithm = (enum sort_algorithm)(data[0] % 3), .decreasing = data[0] >= 128},
    };
    _cleanup_(buf_done)
    struct buf bytes = BUF_INIT;
    buf_append(&bytes, "DFCTABL2\0\1\2\3\4\5\6\7", 16);
    buf_putc(&bytes, (char)expected.order.algorithm);
    buf_putc(&bytes, expected.order.decreasing);
    static const char inputs[8];
    buf_append(&bytes, inputs, sizeof inputs);
    buf_append(&bytes, data + 1, size - 1);
    append_checksum(&bytes);
    struct span span = {.data = (unsigned char *)bytes.data, .len = bytes.len};
    _cleanup_(table_reader_freep)
    struct table_reader *t = NULL;
    if (table_reader_open(source_span(&span), &expected, 4, &t, NULL) == 0)
        read_rows(t);
    return 0;
}
