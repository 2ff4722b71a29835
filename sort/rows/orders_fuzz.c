/* Any bytes as orders, or as a request for records: refused, or a book whose shards decode again.
 */
#include "sort/rows/orders.h"

#include <assert.h>

#include "sort/task/context.h"
#include "sort/task/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define JOB 0x0706050403020100U
#define PARTICIPANTS 4

static const struct sort_env env = {0}; /* everything stays in memory */

static void append_checksum(struct buf *b)
{
    struct checksum *c = checksum_new(CHECKSUM_XXH3);
    struct checksum_value v;
    checksum_update(c, b->data, b->len);
    checksum_final(c, &v);
    checksum_free(c);
    buf_append(b, v.bytes, checksum_size(CHECKSUM_XXH3));
}

static void check_shard(const struct book *b, size_t i)
{
    struct blob_range range = book_range(b, i);
    struct order_shard s = {0};
    struct decoder d;
    decoder_init(&d, source_blob(&range));
    int rc = order_get_shard(&d, &s, NULL);
    uint64_t bytes = 0;
    for (char c; rc == 0 && s.kind == ORDER_TEXT && bytes < s.bytes; bytes++)
        rc = decoder_get(&d, &c, 1, NULL);
    for (uint64_t n = 0; rc == 0 && s.kind != ORDER_TEXT && n < s.records; n++) {
        struct order_record r;
        rc = order_get_record(&d, PARTICIPANTS, &r, NULL);
        bytes += r.size;
    }
    if (rc == 0)
        rc = decoder_expect_end(&d, NULL);
    assert(rc == 0 && bytes == s.bytes && s.name.len > 0);
    decoder_done(&d);
    buf_done(&s.name);
}

static void try_orders(const uint8_t *data, size_t size)
{
    _cleanup_(buf_done)
    struct buf bytes = BUF_INIT;
    buf_append(&bytes, "DFCORDR4\0\1\2\3\4\5\6\7", 16);
    buf_append(&bytes, data, size);
    append_checksum(&bytes);
    struct span span = {.data = (unsigned char *)bytes.data, .len = bytes.len};
    _cleanup_(book_freep)
    struct book *b = book_new(&env, 1 << 26);
    if (orders_receive(source_span(&span), JOB, PARTICIPANTS, b, NULL) != 0)
        return;
    for (size_t i = 0; i < book_count(b); i++)
        check_shard(b, i);
}

static void try_request(const uint8_t *data, size_t size)
{
    struct sort_context c = {.job = JOB};
    struct catalog *catalog = catalog_new(&env, 0, 1);
    catalog_sort(catalog, NULL);
    struct sort_records *r = NULL;
    if (records_open(&c, catalog, data, size, &r, NULL) == 0)
        assert(sort_records_length(r) <= 0); /* there is nothing that could be asked for */
    sort_records_free(r);
    catalog_free(catalog);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] % 2 == 0)
        try_orders(data + 1, size - 1);
    else if (size > 0)
        try_request(data + 1, size - 1);
    return 0;
}
