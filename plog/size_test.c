#include "plog/size.h"

#include "plog/testing/fixture.h"

static struct plog_size size_of(struct fixture *x)
{
    struct plog_size s;
    assert_int_equal(plog_size(&x->st, FIXTURE_FILE, &s, NULL), 0);
    return s;
}

static void test_sizes(void **state)
{
    struct fixture *x = *state;
    struct plog_size s;
    assert_int_equal(plog_size(&x->st, FIXTURE_FILE, &s, NULL), E_NOT_FOUND);
    struct plog_file *a = open_file(x, &to_write), *b = open_file(x, &to_write);
    assert_int_equal(size_of(x).size, 0);
    write_text(a, "aaaa", 100);
    assert_int_equal(plog_file_sync(a, NULL), 0);
    write_text(b, "bb", 0);
    assert_int_equal(plog_file_sync(b, NULL), 0);
    s = size_of(x);
    assert_true(s.size == 104 && s.bytes == 6 && s.records == 2);
    assert_int_equal(plog_file_close(a, NULL), 0);
    assert_int_equal(plog_file_close(b, NULL), 0);
    s = size_of(x);
    assert_true(s.size == 104 && s.bytes == 6 && s.records == 0 && s.head.merged == 1);
}

/* The name of a segment with a cut does not say what it leaves. */
static void test_cuts(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "aaaaaaaa", 0);
    assert_int_equal(plog_file_sync(f, NULL), 0);
    assert_int_equal(plog_file_cut(f, 3, NULL), 0);
    assert_int_equal(plog_file_sync(f, NULL), 0);
    assert_int_equal(size_of(x).size, 3);
    assert_int_equal(size_of(x).records, 1);
    assert_int_equal(plog_file_close(f, NULL), 0);
    assert_int_equal(size_of(x).size, 3);
}

static void test_other_objects(void **state)
{
    struct fixture *x = *state;
    struct plog_size s;
    char etag[PLOG_ETAG_MAX];
    assert_int_equal(x->st.put(x->st.ctx, FIXTURE_FILE, "bytes", 5, NULL, etag, NULL), 0);
    assert_int_equal(plog_size(&x->st, FIXTURE_FILE, &s, NULL), E_INVALID);
    assert_string_equal(s.etag, etag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_sizes), TEST(test_cuts), TEST(test_other_objects)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
