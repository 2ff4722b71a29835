#include "sort/shard/tar_pax.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/buf.h"
#include "sort/shard/tar.h"

static void add(struct buf *out, const char *key, const char *value)
{
    size_t body = strlen(key) + strlen(value) + 3; /* a space, "=" and the newline */
    size_t len = body + 1;
    while (len != body + (size_t)snprintf(NULL, 0, "%zu", len))
        len++;
    buf_printf(out, "%zu %s=%s\n", len, key, value);
}

static void expect(const struct buf *got, const char *want)
{
    assert_int_equal(got->len, strlen(want));
    assert_memory_equal(got->data, want, got->len);
}

static void test_globals_in_force(void **state)
{
    (void)state;
    struct buf globals = BUF_INIT;
    struct buf text = BUF_INIT;
    add(&text, "a", "1");
    add(&text, "b", "1");
    add(&text, "a", "2"); /* the last one of a key counts */
    add(&text, "c", "");  /* is in force for nobody */
    pax_globals_update(&globals, text.data, text.len);
    expect(&globals, "6 b=1\n6 a=2\n");
    buf_clear(&text);
    add(&text, "b", "");
    add(&text, "c", "3");
    pax_globals_update(&globals, text.data, text.len);
    expect(&globals, "6 a=2\n6 c=3\n");
    pax_globals_update(&globals, text.data, 0);
    expect(&globals, "6 a=2\n6 c=3\n");
    buf_done(&globals);
    buf_done(&text);
}

static void test_fold(void **state)
{
    (void)state;
    struct buf globals = BUF_INIT;
    struct buf own = BUF_INIT;
    struct buf out = BUF_INIT;
    pax_fold(&globals, "", 0, &out);
    assert_int_equal(out.len, 0);
    add(&own, "b", "9");
    add(&own, "b", "8");
    pax_fold(&globals, own.data, own.len, &out);
    expect(&out, "6 b=9\n6 b=8\n");
    buf_clear(&out);
    add(&globals, "a", "1");
    add(&globals, "b", "1");
    add(&globals, "ab", "1");
    pax_fold(&globals, own.data, own.len, &out);
    expect(&out, "6 a=1\n7 ab=1\n6 b=9\n6 b=8\n");
    buf_done(&globals);
    buf_done(&own);
    buf_done(&out);
}

/* As many global and own records as fit.  Comparing each with each takes minutes: the test would
 * run out of its time. */
static void test_hostile_headers(void **state)
{
    (void)state;
    enum { MEMBERS = 20 };
    struct buf globals = BUF_INIT;
    struct buf own = BUF_INIT;
    char key[16];
    for (unsigned i = 0; globals.len + 16 < TAR_GLOBAL_MAX; i++) {
        snprintf(key, sizeof key, "g%x", i);
        add(&globals, key, "");
    }
    for (unsigned i = 0; own.len + 16 < TAR_META_MAX; i++) {
        snprintf(key, sizeof key, "%x", i);
        add(&own, key, "1");
    }
    for (int i = 0; i < MEMBERS; i++) {
        struct buf out = BUF_INIT;
        pax_fold(&globals, own.data, own.len, &out);
        assert_int_equal(out.len, globals.len + own.len);
        buf_done(&out);
    }
    struct buf many = BUF_INIT;
    for (int i = 0; i < MEMBERS; i++)
        pax_globals_update(&many, own.data, own.len);
    assert_int_equal(many.len, own.len);
    buf_done(&many);
    buf_done(&globals);
    buf_done(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_globals_in_force),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_hostile_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
