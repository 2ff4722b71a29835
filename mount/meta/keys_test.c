#include "mount/meta/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct meta_key in_order[] = {
    {.kind = META_ATTR, .id = 1},
    {.kind = META_ATTR, .id = 2},
    {.kind = META_ATTR, .id = UINT64_MAX},
    {.kind = META_CHUNK, .id = 1, .sub = 0},
    {.kind = META_CHUNK, .id = 1, .sub = 255},
    {.kind = META_CHUNK, .id = 1, .sub = 256},
    {.kind = META_CHUNK, .id = 256, .sub = 0},
    {.kind = META_ENTRY, .id = 1, .name = "a", .name_size = 1},
    {.kind = META_ENTRY, .id = 1, .name = "a\xff", .name_size = 2},
    {.kind = META_ENTRY, .id = 1, .name = "b", .name_size = 1},
    {.kind = META_ENTRY, .id = 2, .name = "a", .name_size = 1},
    {.kind = META_GARBAGE, .id = 7, .sub = 3},
};
enum { COUNT = sizeof in_order / sizeof *in_order };

static void a_key_is_read_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        uint8_t bytes[META_KEY_MAX];
        struct meta_key back;
        size_t size = meta_key_encode(&in_order[i], bytes);
        assert_true(meta_key_decode(bytes, size, &back));
        assert_true(meta_key_is(&in_order[i], &back));
        assert_int_equal(i > 0 && meta_key_is(&in_order[i - 1], &back), 0);
    }
}

static void encoded_keys_have_the_order_of_their_parts(void **state)
{
    (void)state;
    uint8_t before[META_KEY_MAX], bytes[META_KEY_MAX];
    size_t before_size = 0;
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = meta_key_encode(&in_order[i], bytes);
        size_t common = size < before_size ? size : before_size;
        int order = memcmp(before, bytes, common);
        assert_true(order < 0 || (order == 0 && before_size < size));
        memcpy(before, bytes, size);
        before_size = size;
    }
}

static void children_begin_with_their_id(void **state)
{
    (void)state;
    uint8_t prefix[META_KEY_MAX], bytes[META_KEY_MAX];
    size_t prefix_size = meta_key_children(META_ENTRY, 1, prefix);
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = meta_key_encode(&in_order[i], bytes);
        bool below = size > prefix_size && memcmp(bytes, prefix, prefix_size) == 0;
        assert_int_equal(below, in_order[i].kind == META_ENTRY && in_order[i].id == 1);
    }
}

static void what_is_no_key_is_refused(void **state)
{
    (void)state;
    struct meta_key out;
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        {"", 0},
        {"A", 1},
        {"A\0\0\0\0\0\0\0", 8},
        {"A\0\0\0\0\0\0\0\1\1", 10},
        {"?\0\0\0\0\0\0\0\1", 9},
        {"C\0\0\0\0\0\0\0\1", 9},
        {"D\0\0\0\0\0\0\0\1", 9},
        {"G\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(meta_key_decode((const uint8_t *)bad[i].bytes, bad[i].size, &out));
}

static void the_longest_name_has_room(void **state)
{
    (void)state;
    char name[META_NAME_MAX];
    uint8_t bytes[META_KEY_MAX];
    struct meta_key back;
    memset(name, 'x', sizeof name);
    struct meta_key key = meta_key_named(META_XATTR, 1, name, sizeof name);
    assert_int_equal(meta_key_encode(&key, bytes), META_KEY_MAX);
    assert_true(meta_key_decode(bytes, META_KEY_MAX, &back));
    assert_int_equal(back.name_size, META_NAME_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_read_back),
        cmocka_unit_test(encoded_keys_have_the_order_of_their_parts),
        cmocka_unit_test(children_begin_with_their_id),
        cmocka_unit_test(what_is_no_key_is_refused),
        cmocka_unit_test(the_longest_name_has_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
