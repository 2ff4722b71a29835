#include "proxy/metastore/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/cleanup.h"

static enum frame_status get(const struct buf *file, size_t offset, struct frame *out)
{
    const char *why = NULL;
    enum frame_status status = frame_get(file->data, file->len, offset, out, &why);
    assert_true(status == FRAME_OK || status == FRAME_END || why != NULL);
    return status;
}

static void records_follow_each_other(void **unused)
{
    (void)unused;
    _cleanup_(buf_done)
    struct buf file = BUF_INIT;
    frame_put(&file, 7, "abc", 3);
    frame_put(&file, 8, "", 0);
    struct frame r;
    assert_int_equal(get(&file, 0, &r), FRAME_OK);
    assert_int_equal(r.sequence, 7);
    assert_int_equal(r.len, 3);
    assert_memory_equal(r.data, "abc", 3);
    assert_int_equal(get(&file, r.end, &r), FRAME_OK);
    assert_int_equal(r.sequence, 8);
    assert_int_equal(get(&file, r.end, &r), FRAME_END);
}

/* The bytes are part of the format: a node of another byte order must read them. */
static void the_bytes_are_fixed(void **unused)
{
    (void)unused;
    static const unsigned char expected[] = {
        0x02, 0x00, 0x00, 0x00, 0x36, 0xab, 0x19, 0x7b, 0x08, 0x07, 0x06, 0x05, 0x04,
        0x03, 0x02, 0x01, 0xaa, 0xd0, 0x7b, 0x29, 0x00, 0x00, 0x00, 0x00, 0x7b, 0x7d,
    };
    _cleanup_(buf_done)
    struct buf file = BUF_INIT;
    frame_put(&file, 0x0102030405060708, "{}", 2);
    assert_int_equal(file.len, sizeof expected);
    assert_memory_equal(file.data, expected, sizeof expected);
}

static void a_cut_record_is_torn_wherever_it_is_cut(void **unused)
{
    (void)unused;
    _cleanup_(buf_done)
    struct buf file = BUF_INIT;
    frame_put(&file, 1, "first", 5);
    size_t whole = file.len;
    frame_put(&file, 2, "the second record", 17);
    size_t full = file.len;
    for (file.len = whole + 1; file.len < full; file.len++) {
        struct frame r;
        assert_int_equal(get(&file, whole, &r), FRAME_TORN);
    }
}

/* The file has its length, but a sector of it never reached the disk. */
static void a_record_with_an_unwritten_sector_is_torn(void **unused)
{
    (void)unused;
    char data[3000];
    memset(data, 'x', sizeof data);
    for (size_t sector = 0; sector < 6; sector++) {
        _cleanup_(buf_done)
        struct buf file = BUF_INIT;
        frame_put(&file, 1, "first", 5);
        size_t first = file.len;
        frame_put(&file, 2, data, sizeof data);
        size_t from = sector * 512 > first ? sector * 512 : first;
        size_t to = (sector + 1) * 512 < file.len ? (sector + 1) * 512 : file.len;
        memset(file.data + from, 0, to - from);
        struct frame r;
        assert_int_equal(get(&file, first, &r), FRAME_TORN);
    }
}

static void a_changed_byte_is_damage(void **unused)
{
    (void)unused;
    _cleanup_(buf_done)
    struct buf file = BUF_INIT;
    frame_put(&file, 1, "0123456789", 10);
    for (size_t i = 0; i < file.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct frame r;
            file.data[i] = (char)(file.data[i] ^ (1 << bit));
            assert_int_equal(get(&file, 0, &r), FRAME_DAMAGED);
            file.data[i] = (char)(file.data[i] ^ (1 << bit));
        }
    }
}

static void what_has_a_successor_was_whole(void **unused)
{
    (void)unused;
    char data[2000];
    memset(data, 'x', sizeof data);
    _cleanup_(buf_done)
    struct buf file = BUF_INIT;
    frame_put(&file, 1, data, sizeof data);
    frame_put(&file, 2, "next", 4);
    memset(file.data + 512, 0, 512);
    struct frame r;
    assert_int_equal(get(&file, 0, &r), FRAME_DAMAGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_follow_each_other),
        cmocka_unit_test(the_bytes_are_fixed),
        cmocka_unit_test(a_cut_record_is_torn_wherever_it_is_cut),
        cmocka_unit_test(a_record_with_an_unwritten_sector_is_torn),
        cmocka_unit_test(a_changed_byte_is_damage),
        cmocka_unit_test(what_has_a_successor_was_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
