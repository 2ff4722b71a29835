/* The list of pinned shards: as it was written, or refused, whatever has become of its bytes. */
#include "target/sort/pinned.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sort/base/codec.h"

enum { SHARDS = 2, FAR = 1 << 20 };

static const struct pinned_shard shards[SHARDS] = {
    {.info = {.name = "a.tar",
              .place = 7,
              .size = 1024,
              .without = 1,
              .modified_s = 1700000000,
              .checksum = {.type = CHECKSUM_SHA256, .bytes = {1, 2, 3, [31] = 4}}},
     .stamp = 99},
    {.info = {.name = "b.tar", .place = 8, .missing = true}},
};

static void write_list(struct buf *text)
{
    const struct pinned_head head = {.series = 5, .left = 1};
    struct encoder e;
    encoder_init(&e, sink_buf(text));
    assert_int_equal(pinned_put_head(&e, &head, NULL), 0);
    for (size_t i = 0; i < SHARDS; i++)
        assert_int_equal(pinned_put_shard(&e, &shards[i], NULL), 0);
    assert_int_equal(pinned_put_end(&e, NULL), 0);
    encoder_done(&e);
}

static int assert_next(void *arg, const struct pinned_shard *shard, struct error *err)
{
    size_t *count = arg;
    const struct sort_shard_info *want = &shards[*count].info;
    (void)err;
    assert_true(*count < SHARDS);
    assert_string_equal(shard->info.name, want->name);
    assert_true(shard->info.place == want->place && shard->info.size == want->size);
    assert_true(shard->info.missing == want->missing && shard->info.without == want->without);
    assert_true(shard->info.modified_s == want->modified_s);
    assert_int_equal(shard->info.checksum.type, want->checksum.type);
    assert_true(want->missing || checksum_equal(&shard->info.checksum, &want->checksum));
    assert_true(shard->stamp == shards[*count].stamp);
    (*count)++;
    return 0;
}

static int pass(void *arg, const struct pinned_shard *shard, struct error *err)
{
    (void)arg;
    (void)shard;
    (void)err;
    return 0;
}

static void a_list_is_read_as_it_was_written(void **state)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct pinned_head head;
    size_t count = 0;
    (void)state;
    write_list(&text);
    assert_int_equal(pinned_each(&text, &head, assert_next, &count, NULL), 0);
    assert_int_equal(count, SHARDS);
    assert_true(head.series == 5 && head.left == 1);
}

static void what_is_cut_short_or_changed_is_refused(void **state)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct pinned_head head;
    (void)state;
    write_list(&text);
    size_t whole = text.len;
    for (text.len = 0; text.len < whole; text.len++)
        assert_int_not_equal(pinned_each(&text, &head, pass, NULL, NULL), 0);
    for (size_t bit = 0; bit < 8 * whole; bit++) {
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ (1 << bit % 8));
        assert_int_not_equal(pinned_each(&text, &head, pass, NULL, NULL), 0);
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ (1 << bit % 8));
    }
}

/* The checksum comes last: until then a length is only what the bytes say. */
static void a_name_of_any_length_writes_nowhere(void **state)
{
    const uint64_t lengths[] = {1025, FAR, UINT64_MAX / 2, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        _cleanup_(buf_done)
        struct buf text = BUF_INIT;
        const struct pinned_head written = {.series = 5};
        struct pinned_head head;
        struct error err = ERROR_INIT;
        struct encoder e;
        encoder_init(&e, sink_buf(&text));
        assert_int_equal(pinned_put_head(&e, &written, NULL), 0);
        assert_int_equal(encoder_put_varint(&e, 1, NULL), 0);
        for (int n = 0; n < 4; n++) /* place, size, missing, without */
            assert_int_equal(encoder_put_varint(&e, 0, NULL), 0);
        assert_int_equal(encoder_put_u64(&e, 0, NULL), 0);
        assert_int_equal(encoder_put_varint(&e, lengths[i], NULL), 0);
        assert_int_equal(encoder_flush(&e, NULL), 0);
        encoder_done(&e);
        assert_int_equal(pinned_each(&text, &head, pass, NULL, &err), E_CORRUPT);
        assert_non_null(strstr(err.message, "the length of a name"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_read_as_it_was_written),
        cmocka_unit_test(what_is_cut_short_or_changed_is_refused),
        cmocka_unit_test(a_name_of_any_length_writes_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
