/* Builders and what they are told: orders that do not fit the shards, peers that send too little or
 * too much, outputs that are finished or taken back. */
#include "sort/task/create.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/mem.h"
#include "sort/testing/fixture.h"
#include "sort/shard/format_parts.h"
#include "sort/shard/record.h"
#include "sort/task/records.h"
#include "sort/shard/tar.h"
#include "sort/shard/tar_header.h"

#define RECORD 1024 /* bytes of each record here */
#define PEER 1

/* One builder, number 0, and a peer that is nothing but bytes. */
struct bench {
    struct sort_env env;
    struct sort_spec spec;
    struct sort_context c;
    struct catalog *catalog;
    struct book *book;
    struct buf tar;          /* the one shard: records "a" and "b" */
    struct buf written;      /* the last output */
    struct buf sent;         /* by the peer */
    struct error sent_error; /* after it */
    int begun, finished, discarded;
    const char *existing;
    enum order_kind kind; /* of what is ordered */
};

static int open_shard(void *ctx, const char *name, int *fd, struct error *err)
{
    (void)name;
    (void)err;
    struct bench *b = ctx;
    *fd = fixture_fd(&b->tar);
    return 0;
}

static int fetch(void *ctx, unsigned from, const void *request, size_t len, struct bpipe **pipe,
                 struct error *err)
{
    (void)request;
    (void)len;
    struct bench *b = ctx;
    assert_int_equal(from, PEER);
    *pipe = bpipe_new(b->sent.len + 1);
    if (b->sent.len > 0)
        assert_int_equal(bpipe_write(*pipe, b->sent.data, b->sent.len, err), 0);
    bpipe_finish(*pipe, b->sent_error.code != 0 ? &b->sent_error : NULL);
    return 0;
}

static const char *target_name(void *ctx, unsigned number)
{
    (void)ctx;
    return number == PEER ? "t2" : "t1";
}

static unsigned owner(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return 0;
}

static int output_check(void *ctx, const char *name, struct error *err)
{
    struct bench *b = ctx;
    if (b->existing != NULL && strcmp(b->existing, name) == 0)
        return error_set(err, E_OBJECT_EXISTS, "'%s' exists", name);
    return 0;
}

static int output_begin(void *ctx, const char *name, uint64_t size, struct sort_output **out,
                        struct error *err)
{
    (void)name;
    (void)size;
    (void)err;
    struct bench *b = ctx;
    b->begun++;
    buf_clear(&b->written);
    *out = (struct sort_output *)b;
    return 0;
}

static int output_write(void *ctx, struct sort_output *out, const void *data, size_t len,
                        struct error *err)
{
    (void)out;
    (void)err;
    struct bench *b = ctx;
    buf_append(&b->written, data, len);
    return 0;
}

static int output_finish(void *ctx, struct sort_output *out, struct error *err)
{
    (void)out;
    (void)err;
    struct bench *b = ctx;
    b->finished++;
    return 0;
}

static void output_discard(void *ctx, struct sort_output *out)
{
    (void)out;
    struct bench *b = ctx;
    b->discarded++;
}

static void fill_catalog(struct bench *b)
{
    fixture_file(&b->tar, "a.x", "first");
    fixture_file(&b->tar, "b.x", "second");
    fixture_end(&b->tar);
    catalog_add(b->catalog, "s.tar", 0, b->tar.len);
    catalog_sort(b->catalog, NULL);
    struct record_table *t = record_table_new("s.tar", SORT_KEY_FIRST_DOT, SORT_ABORT, 1 << 20);
    int fd = fixture_fd(&b->tar);
    struct tar_scan *scan = tar_scan_new(fd, b->tar.len, "s.tar");
    struct tar_member m;
    bool replaced;
    while (tar_scan_next(scan, &m, NULL) > 0)
        assert_int_equal(record_table_add(t, &m, &replaced, NULL), 0);
    fixture_catalog(b->catalog, 0, t);
    tar_scan_free(scan);
    record_table_free(t);
    close(fd);
}

static int setup(void **state)
{
    struct bench *b = xcalloc(1, sizeof *b);
    b->env = (struct sort_env){
        .ctx = b,
        .open_shard = open_shard,
        .target_name = target_name,
        .fetch_records = fetch,
        .owner = owner,
        .output_check = output_check,
        .output_begin = output_begin,
        .output_write = output_write,
        .output_finish = output_finish,
        .output_discard = output_discard,
    };
    b->c = (struct sort_context){
        .env = &b->env,
        .spec = &b->spec,
        .participants = 2,
        .create_threads = 1,
        .links = links_new(0),
    };
    b->spec.output_shards = &format_tar;
    b->catalog = catalog_new(&b->env, 1 << 20, 4);
    b->book = book_new(&b->env, 1 << 20);
    fill_catalog(b);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    book_free(b->book);
    catalog_free(b->catalog);
    links_free(b->c.links);
    buf_done(&b->tar);
    buf_done(&b->written);
    buf_done(&b->sent);
    free(b);
    return 0;
}

static void order(struct bench *b, const char *name, const struct order_record *records,
                  size_t count)
{
    struct order_shard s = {.kind = b->kind, .records = count};
    struct buf text = BUF_INIT;
    struct encoder e;
    buf_puts(&s.name, name);
    encoder_init(&e, sink_buf(&text));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(order_put_record(&e, &records[i], NULL), 0);
        s.bytes += records[i].size;
    }
    assert_int_equal(encoder_flush(&e, NULL), 0);
    struct span span = {(unsigned char *)text.data, text.len};
    assert_int_equal(book_add(b->book, &s, source_span(&span), NULL), 0);
    encoder_done(&e);
    buf_done(&text);
    buf_done(&s.name);
}

static void expect(struct bench *b, int code, const char *words)
{
    struct error err = ERROR_INIT;
    _cleanup_(resume_freep)
    struct resume *resume = resume_new();
    int rc = resume_begin(resume, &b->c, b->book, &err);
    if (rc == 0)
        rc = create_run(&b->c, b->catalog, b->book, resume, &err);
    if (rc != code || strstr(err.message, words) == NULL)
        fail_msg("%s: '%s', not '%s'", error_name(rc), err.message, words);
    assert_int_equal(b->begun, 1);
    assert_int_equal(b->finished, code == 0);
    assert_int_equal(b->discarded, code != 0);
}

static void test_records_of_both(void **state)
{
    struct bench *b = *state;
    for (int i = 0; i < RECORD; i++)
        buf_putc(&b->sent, 'p');
    const struct order_record records[] = {
        {.source = 0, .position = 1, .size = RECORD},
        {.source = PEER, .position = 9, .size = RECORD},
        {.source = 0, .position = 0, .size = RECORD},
    };
    order(b, "o.tar", records, 3);
    expect(b, 0, "");
    assert_int_equal(b->written.len, 3 * RECORD + SORT_TAR_END);
    assert_memory_equal(b->written.data, b->tar.data + RECORD, RECORD);
    assert_memory_equal(b->written.data + RECORD, b->sent.data, RECORD);
    assert_memory_equal(b->written.data + 2 * RECORD, b->tar.data, RECORD);
}

static void order_one(struct bench *b, unsigned source, uint32_t position, uint64_t size)
{
    struct order_record r = {.source = source, .position = position, .size = size};
    order(b, "o.tar", &r, 1);
}

static void test_a_size_that_is_not_the_records(void **state)
{
    order_one(*state, 0, 0, RECORD + 512);
    expect(*state, E_CORRUPT,
           "output shard 'o.tar': a record of 1024 bytes is ordered as one of "
           "1536");
}

static void test_a_record_that_is_not_there(void **state)
{
    order_one(*state, 0, 2, RECORD);
    expect(*state, E_INVALID, "no record 2");
}

static void send(struct bench *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        buf_putc(&b->sent, 'p');
    order_one(b, PEER, 0, RECORD);
}

static void test_a_peer_that_sends_too_little(void **state)
{
    send(*state, RECORD - 1);
    expect(*state, E_LENGTH, "records from target 't2' end early");
}

static void test_a_peer_that_sends_too_much(void **state)
{
    send(*state, RECORD + 1);
    expect(*state, E_LENGTH, "target 't2' sends more than it was asked for");
}

static void test_a_peer_that_fails(void **state)
{
    struct bench *b = *state;
    error_set(&b->sent_error, E_NET, "gone");
    send(b, 10);
    expect(b, E_NET, "records from target 't2': gone");
}

static void test_a_peer_that_fails_at_the_very_end(void **state)
{
    struct bench *b = *state;
    error_set(&b->sent_error, E_NET, "gone");
    send(b, RECORD);
    expect(b, E_NET, "records from target 't2': gone");
}

/* The other side: this target's records for a peer, whatever the steps in which they are read. */
static void test_records_for_a_peer(void **state)
{
    struct bench *b = *state;
    const struct record_ref refs[] = {{0, 1}, {0, 0}, {0, 1}};
    static const size_t steps[] = {1 << 20, 1000, 7};
    struct buf request = BUF_INIT;
    records_request(b->c.job, RECORDS_WHOLE, refs, 3, &request);
    for (int i = 0; i < 3; i++) {
        struct sort_records *r = NULL;
        struct error err = ERROR_INIT;
        assert_int_equal(records_open(&b->c, b->catalog, request.data, request.len, &r, &err), 0);
        assert_int_equal(sort_records_length(r), 3 * RECORD);
        static char bytes[(1 << 20) + 3 * RECORD]; /* a read may be larger than what is left */
        size_t at = 0;
        ssize_t n;
        while ((n = sort_records_read(r, bytes + at, steps[i], &err)) > 0)
            at += (size_t)n;
        assert_int_equal(n, 0);
        assert_int_equal(at, 3 * RECORD);
        for (int k = 0; k < 3; k++)
            assert_memory_equal(bytes + k * RECORD, b->tar.data + refs[k].position * RECORD,
                                RECORD);
        sort_records_free(r);
    }
    buf_done(&request);
}

/* --- indexes ---------------------------------------------------------------------------------- */

static void test_an_index_of_the_records_of_both(void **state)
{
    struct bench *b = *state;
    const struct order_record records[] = {
        {.source = 0, .position = 1, .size = RECORD},
        {.source = PEER, .position = 9, .size = RECORD},
        {.source = 0, .position = 0, .size = RECORD},
    };
    b->kind = ORDER_DALI;
    buf_append(&b->sent, b->tar.data, TAR_BLOCK); /* a.x */
    order(b, "o.idx", records, 3);
    expect(b, 0, "");
    assert_string_equal(buf_str(&b->written), "v1.2 2\n"
                                              "x 512 6 b.x\n"
                                              "x 1536 5 a.x x 2560 5 a.x\n");
}

static void order_index_of(struct bench *b, const char *headers, size_t len, uint64_t size)
{
    struct order_record r = {.source = PEER, .size = size};
    b->kind = ORDER_DALI;
    buf_append(&b->sent, headers, len);
    order(b, "o.idx", &r, 1);
}

/* The output is begun when its text is known. */
static void expect_no_index(struct bench *b, int code, const char *words)
{
    b->begun++;
    b->discarded++;
    expect(b, code, words);
}

static void test_an_outline_that_ends_early(void **state)
{
    struct bench *b = *state;
    order_index_of(b, b->tar.data, TAR_BLOCK - 1, RECORD);
    expect_no_index(b, E_LENGTH, "the outline of a record ends early");
}

static void test_an_outline_that_goes_on(void **state)
{
    struct bench *b = *state;
    order_index_of(b, b->tar.data, TAR_BLOCK + 1, RECORD);
    expect_no_index(b, E_LENGTH, "target 't2' sends more than it was asked for");
}

static void test_an_outline_of_another_size(void **state)
{
    struct bench *b = *state;
    order_index_of(b, b->tar.data, TAR_BLOCK, TAR_BLOCK);
    expect_no_index(b, E_CORRUPT, "a record ends within a member");
}

static void test_an_outline_that_is_no_tar(void **state)
{
    struct bench *b = *state;
    char block[TAR_BLOCK];
    memset(block, 'p', sizeof block);
    order_index_of(b, block, sizeof block, RECORD);
    expect_no_index(b, E_CORRUPT, "its checksum is wrong");
}

/* The other side. */
static void test_outlines_for_a_peer(void **state)
{
    struct bench *b = *state;
    const struct record_ref refs[] = {{0, 1}, {0, 0}, {0, 1}};
    struct buf request = BUF_INIT;
    records_request(b->c.job, RECORDS_OUTLINES, refs, 3, &request);
    for (size_t step = 5; step < 100000; step *= 10) {
        struct sort_records *r = NULL;
        struct error err = ERROR_INIT;
        assert_int_equal(records_open(&b->c, b->catalog, request.data, request.len, &r, &err), 0);
        assert_int_equal(sort_records_length(r), -1);
        struct buf got = BUF_INIT;
        ssize_t n;
        do {
            buf_reserve(&got, step);
            n = sort_records_read(r, got.data + got.len, step, &err);
            assert_true(n >= 0);
            got.len += (size_t)n;
        } while (n > 0);
        assert_int_equal(got.len, 3 * TAR_BLOCK);
        for (size_t k = 0; k < 3; k++)
            assert_memory_equal(got.data + k * TAR_BLOCK, b->tar.data + refs[k].position * RECORD,
                                TAR_BLOCK);
        buf_done(&got);
        sort_records_free(r);
    }
    buf_done(&request);
}

static void test_names_that_exist(void **state)
{
    struct bench *b = *state;
    order_one(b, 0, 0, RECORD);
    struct error err = ERROR_INIT;
    b->existing = "another.tar";
    assert_int_equal(create_check(&b->c, b->book, &err), 0);
    b->existing = "o.tar";
    assert_int_equal(create_check(&b->c, b->book, &err), E_OBJECT_EXISTS);
    assert_int_equal(b->begun, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_records_of_both),
        TEST(test_a_size_that_is_not_the_records),
        TEST(test_a_record_that_is_not_there),
        TEST(test_a_peer_that_sends_too_little),
        TEST(test_a_peer_that_sends_too_much),
        TEST(test_a_peer_that_fails),
        TEST(test_a_peer_that_fails_at_the_very_end),
        TEST(test_records_for_a_peer),
        TEST(test_an_index_of_the_records_of_both),
        TEST(test_an_outline_that_ends_early),
        TEST(test_an_outline_that_goes_on),
        TEST(test_an_outline_of_another_size),
        TEST(test_an_outline_that_is_no_tar),
        TEST(test_outlines_for_a_peer),
        TEST(test_names_that_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
