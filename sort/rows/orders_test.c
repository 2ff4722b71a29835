#include "sort/rows/orders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"
#include "common/rng.h"
#include "sort/task/context.h"
#include "sort/task/records.h"

#define JOB 77
#define PARTICIPANTS 5

static const struct sort_env env = {0}; /* books that stay in memory need nothing */

static void make_shard(struct rng *rng, unsigned number, struct order_shard *s, struct buf *records)
{
    buf_clear(&s->name);
    buf_clear(records);
    buf_printf(&s->name, "out/%u.tar", number);
    s->kind = (enum order_kind)(number % 3);
    s->records = s->kind == ORDER_TEXT ? 0 : rng_below(rng, 20);
    s->bytes = 0;
    struct encoder e;
    encoder_init(&e, sink_buf(records));
    for (uint64_t i = 0; i < s->records; i++) {
        struct order_record r = {
            .source = (uint32_t)rng_below(rng, PARTICIPANTS),
            .shard = (uint32_t)rng_below(rng, 1000),
            .position = (uint32_t)rng_below(rng, 100000),
            .size = 512 * (1 + rng_below(rng, 1000)),
        };
        s->bytes += r.size;
        assert_int_equal(order_put_record(&e, &r, NULL), 0);
    }
    assert_int_equal(encoder_flush(&e, NULL), 0);
    encoder_done(&e);
    if (s->kind == ORDER_TEXT) {
        s->bytes = number * 157;
        for (uint64_t i = 0; i < s->bytes; i++)
            buf_putc(records, (char)i);
    }
}

static void make_stream(struct buf *out, struct book *book, unsigned shards, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    struct order_shard s = {0};
    struct buf records = BUF_INIT;
    struct encoder e;
    encoder_init(&e, sink_buf(out));
    assert_int_equal(orders_begin(&e, JOB, NULL), 0);
    for (unsigned i = 0; i < shards; i++) {
        make_shard(&rng, i, &s, &records);
        struct span span = {(unsigned char *)records.data, records.len};
        assert_int_equal(orders_add(&e, &s, source_span(&span), NULL), 0);
        span = (struct span){(unsigned char *)records.data, records.len};
        assert_int_equal(book_add(book, &s, source_span(&span), NULL), 0);
    }
    assert_int_equal(orders_end(&e, shards, NULL), 0);
    encoder_done(&e);
    buf_done(&records);
    buf_done(&s.name);
}

static int receive(const void *data, size_t len, struct book *book)
{
    struct span span = {data, len};
    struct error err = ERROR_INIT;
    return orders_receive(source_span(&span), JOB, PARTICIPANTS, book, &err);
}

static void read_range(const struct book *b, size_t i, struct buf *out)
{
    struct blob_range r = book_range(b, i);
    buf_reserve(out, (size_t)(r.end - r.at));
    assert_int_equal(blob_read(r.blob, r.at, out->data, (size_t)(r.end - r.at), NULL), 0);
    out->len = (size_t)(r.end - r.at);
}

/* What a builder receives is what it would have written into its book itself. */
static void test_a_stream_fills_the_book(void **state)
{
    (void)state;
    for (unsigned shards = 0; shards < 60; shards += 29) {
        struct book *sent = book_new(&env, 1 << 20);
        struct book *got = book_new(&env, 1 << 20);
        struct buf stream = BUF_INIT;
        make_stream(&stream, sent, shards, shards);
        assert_int_equal(receive(stream.data, stream.len, got), 0);
        assert_int_equal(book_count(got), shards);
        assert_int_equal(book_shards(got), (shards + 2) / 3);
        assert_int_equal(book_bytes(got), book_bytes(sent));
        for (size_t i = 0; i < shards; i++) {
            struct buf a = BUF_INIT;
            struct buf b = BUF_INIT;
            read_range(sent, i, &a);
            read_range(got, i, &b);
            assert_int_equal(a.len, b.len);
            assert_memory_equal(a.data, b.data, a.len);
            buf_done(&a);
            buf_done(&b);
        }
        buf_done(&stream);
        book_free(sent);
        book_free(got);
    }
}

static void test_damage_is_noticed(void **state)
{
    (void)state;
    struct book *sent = book_new(&env, 1 << 20);
    struct buf stream = BUF_INIT;
    make_stream(&stream, sent, 6, 3);
    for (size_t len = 0; len < stream.len; len++) {
        struct book *b = book_new(&env, 1 << 20);
        assert_int_equal(receive(stream.data, len, b), E_LENGTH);
        book_free(b);
    }
    for (size_t i = 0; i < stream.len; i++) {
        stream.data[i] ^= 4;
        struct book *b = book_new(&env, 1 << 20);
        assert_true(receive(stream.data, stream.len, b) < 0);
        book_free(b);
        stream.data[i] ^= 4;
    }
    buf_done(&stream);
    book_free(sent);
}

/* Rightly sent, and still not what it says: a shard's size is that of its records. */
static void test_sizes_that_do_not_add_up(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {512, 1536, 2048 + 512, UINT64_C(1) << 60};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct order_shard s = {.bytes = sizes[i], .records = 2};
        struct order_record r = {.size = 1024};
        struct buf records = BUF_INIT;
        struct buf stream = BUF_INIT;
        struct encoder e;
        buf_puts(&s.name, "o.tar");
        encoder_init(&e, sink_buf(&records));
        for (int n = 0; n < 2; n++)
            assert_int_equal(order_put_record(&e, &r, NULL), 0);
        assert_int_equal(encoder_flush(&e, NULL), 0);
        encoder_done(&e);
        struct span span = {(unsigned char *)records.data, records.len};
        encoder_init(&e, sink_buf(&stream));
        assert_int_equal(orders_begin(&e, JOB, NULL), 0);
        assert_int_equal(orders_add(&e, &s, source_span(&span), NULL), 0);
        assert_int_equal(orders_end(&e, 1, NULL), 0);
        encoder_done(&e);
        struct book *b = book_new(&env, 1 << 20);
        assert_int_equal(receive(stream.data, stream.len, b), E_CORRUPT);
        book_free(b);
        buf_done(&records);
        buf_done(&stream);
        buf_done(&s.name);
    }
}

/* --- requests for records --------------------------------------------------------------------- */

static int open_request(const void *data, size_t len)
{
    struct sort_context c = {.job = JOB};
    struct catalog *catalog = catalog_new(&env, 0, 1);
    catalog_sort(catalog, NULL);
    struct sort_records *r = NULL;
    struct error err = ERROR_INIT;
    int rc = records_open(&c, catalog, data, len, &r, &err);
    if (rc == 0)
        assert_int_equal(sort_records_length(r), 0);
    sort_records_free(r);
    catalog_free(catalog);
    return rc;
}

static void test_requests(void **state)
{
    (void)state;
    struct buf request = BUF_INIT;
    records_request(JOB, RECORDS_WHOLE, NULL, 0, &request);
    assert_int_equal(open_request(request.data, request.len), 0);
    assert_int_equal(open_request(request.data, request.len - 1), E_LENGTH);
    request.data[0] ^= 1;
    assert_int_equal(open_request(request.data, request.len), E_INVALID);
    request.data[0] ^= 1;
    buf_putc(&request, 'x');
    assert_int_equal(open_request(request.data, request.len), E_CORRUPT);
    buf_clear(&request);
    struct record_ref ref = {.shard = 0, .position = 0};
    records_request(JOB, RECORDS_WHOLE, &ref, 1, &request); /* of a target without any shard */
    assert_int_equal(open_request(request.data, request.len), E_INVALID);
    buf_clear(&request);
    records_request(JOB, RECORDS_WHOLE, NULL, 0, &request);
    request.len = 9;
    unsigned char many[VARINT_MAX];
    buf_append(&request, many, varint_put(many, RECORDS_MAX + 1));
    assert_int_equal(open_request(request.data, request.len), E_CORRUPT);
    buf_done(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_fills_the_book),
        cmocka_unit_test(test_damage_is_noticed),
        cmocka_unit_test(test_sizes_that_do_not_add_up),
        cmocka_unit_test(test_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
