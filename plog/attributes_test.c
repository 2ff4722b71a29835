#include "plog/attributes.h"

#include "plog/testing/fixture.h"

static struct plog_head head_of(struct fixture *x)
{
    struct plog_head h;
    char etag[PLOG_ETAG_MAX];
    assert_int_equal(plog_head_read(&x->st, FIXTURE_FILE, &h, etag, NULL), 0);
    return h;
}

static void test_fields(void **state)
{
    struct fixture *x = *state;
    struct plog_change c = {.sets_mode = true, .mode = 0600};
    assert_int_equal(plog_attributes(&x->st, FIXTURE_FILE, &c, NULL), E_NOT_FOUND);
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "aaaa", 0);
    assert_int_equal(plog_attributes(&x->st, FIXTURE_FILE, &c, NULL), 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    struct plog_head h = head_of(x);
    assert_true(h.mode == 0600 && h.uid == 0 && h.size == 4 && h.merged == 1);
    c = (struct plog_change){.sets_uid = true, .uid = 7, .sets_mtime = true, .mtime_ms = 1000};
    assert_int_equal(plog_attributes(&x->st, FIXTURE_FILE, &c, NULL), 0);
    c = (struct plog_change){.sets_gid = true, .gid = 8};
    assert_int_equal(plog_attributes(&x->st, FIXTURE_FILE, &c, NULL), 0);
    h = head_of(x);
    assert_true(h.mode == 0600 && h.uid == 7 && h.gid == 8 && h.mtime_ms == 1000);
    assert_true(h.size == 4 && h.merged == 1);
}

static const struct plog_store *plain;
static unsigned overtaken;

/* Another client is faster, twice. */
static int put_late(void *ctx, const char *name, const void *body, size_t len, const char *if_match,
                    char etag[static PLOG_ETAG_MAX], struct error *err)
{
    const struct plog_change other = {.sets_uid = true, .uid = 100 + overtaken};
    if (if_match != NULL && overtaken < 2) {
        overtaken++;
        assert_int_equal(plog_attributes(plain, name, &other, NULL), 0);
    }
    return plain->put(ctx, name, body, len, if_match, etag, err);
}

static void test_two_at_once(void **state)
{
    struct fixture *x = *state;
    const struct plog_change c = {.sets_mode = true, .mode = 0600};
    struct plog_store late = x->st;
    late.put = put_late;
    plain = &x->st;
    assert_int_equal(plog_file_close(open_file(x, &to_write), NULL), 0);
    assert_int_equal(plog_attributes(&late, FIXTURE_FILE, &c, NULL), 0);
    assert_int_equal(overtaken, 2);
    const struct plog_head h = head_of(x);
    assert_true(h.mode == 0600 && h.uid == 101);
}

static void test_other_objects_are_replaced(void **state)
{
    struct fixture *x = *state;
    const struct plog_open how = {.mode = 0640, .uid = 5};
    char etag[PLOG_ETAG_MAX];
    assert_int_equal(plog_replace_object(&x->st, FIXTURE_FILE, &how, NULL), 0);
    assert_null(memory_store_find(&x->memory, FIXTURE_FILE));
    assert_int_equal(x->st.put(x->st.ctx, FIXTURE_FILE, "bytes", 5, NULL, etag, NULL), 0);
    assert_int_equal(plog_replace_object(&x->st, FIXTURE_FILE, &how, NULL), 0);
    const struct plog_head before = head_of(x);
    assert_true(before.mode == 0640 && before.uid == 5 && before.size == 0);
    assert_int_equal(plog_replace_object(&x->st, FIXTURE_FILE, &how, NULL), 0);
    assert_string_equal(head_of(x).id, before.id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_fields), TEST(test_two_at_once),
                                       TEST(test_other_objects_are_replaced)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
