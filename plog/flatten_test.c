/* Flattening over a store in memory.  plog_sim_test.c has its races. */
#include "plog/flatten.h"

#include <string.h>

#include "plog/session.h"
#include "plog/testing/fixture.h"

enum { FILE_MAX = 500 };

/* What begin shows becomes the object.  The result is that of its PUT. */
static int store_flat(struct fixture *x, struct plog_look *look)
{
    char bytes[FILE_MAX], etag[PLOG_ETAG_MAX], if_match[PLOG_ETAG_MAX];
    size_t got;
    memcpy(if_match, look->etag, sizeof if_match);
    struct plog_file *f = plog_file_of_look(&x->st, FIXTURE_FILE, &to_write, look);
    assert_int_equal(plog_file_write(f, "x", 1, 0, NULL), E_INVALID);
    plog_file_renew(f);
    assert_int_equal(plog_file_read(f, bytes, sizeof bytes, 0, &got, NULL), 0);
    plog_file_drop(f);
    return x->st.put(x->st.ctx, FIXTURE_FILE, bytes, got, if_match, etag, NULL);
}

static void need_flat(struct fixture *x, const char *bytes, size_t len)
{
    const struct memory_object *o = memory_store_find(&x->memory, FIXTURE_FILE);
    assert_non_null(o);
    assert_int_equal(o->body.len, len);
    if (len > 0)
        assert_memory_equal(o->body.data, bytes, len);
}

static void flatten(struct fixture *x)
{
    struct plog_look look;
    char id[PLOG_ID_CHARS + 1];
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, NULL), 0);
    memcpy(id, look.head.id, sizeof id);
    assert_int_equal(store_flat(x, &look), 0);
    assert_int_equal(plog_flatten_end(&x->st, id, NULL), 0);
    assert_int_equal(memory_store_count(&x->memory, PLOG_ROOT), 0);
}

static void test_bytes(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "hello", 0);
    write_text(f, "world", 8);
    assert_int_equal(plog_file_cut(f, 20, NULL), 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    flatten(x);
    need_flat(x, "hello\0\0\0world\0\0\0\0\0\0\0", 20);
    struct plog_look look;
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, NULL), E_INVALID);
    assert_int_equal(plog_flatten_begin(&x->st, "b", true, &look, NULL), E_NOT_FOUND);
}

static void test_empty(void **state)
{
    struct fixture *x = *state;
    assert_int_equal(plog_file_close(open_file(x, &to_write), NULL), 0);
    flatten(x);
    need_flat(x, "", 0);
}

static void test_busy(void **state)
{
    struct fixture *x = *state;
    struct plog_look look;
    struct error err = ERROR_INIT;
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "text", 0);
    assert_int_equal(plog_file_sync(f, NULL), 0);
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, &err), E_PLOG_BUSY);
    assert_non_null(strstr(err.message, "'" FIXTURE_FILE "' is open for writing"));
    assert_int_equal(plog_file_close(f, NULL), 0);
    flatten(x);
    need_flat(x, "text", 4);
}

/* A writer that begins and syncs while the bytes are sent: it wins, whatever it does then. */
static void test_overtaken(void **state)
{
    struct fixture *x = *state;
    for (int i = 0; i < 2; i++) {
        struct plog_look look;
        struct plog_file *f = open_file(x, &to_write);
        write_text(f, "old", 0);
        assert_int_equal(plog_file_close(f, NULL), 0);
        f = open_file(x, &to_write);
        assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, NULL), 0);
        assert_true(look.head.mark != 0);
        write_text(f, "new", 0);
        if (i == 0)
            assert_int_equal(plog_file_sync(f, NULL), 0);
        else
            assert_int_equal(plog_file_close(f, NULL), 0);
        assert_int_equal(store_flat(x, &look), E_PRECONDITION);
        if (i == 0)
            assert_int_equal(plog_file_close(f, NULL), 0);
        flatten(x);
        need_flat(x, "new", 3);
        assert_int_equal(x->st.remove(x->st.ctx, FIXTURE_FILE, NULL, NULL), 0);
    }
}

/* Of two flattenings one stores its bytes; the other one meets segments that are gone, or another
 * version. */
static void test_two_at_once(void **state)
{
    struct fixture *x = *state;
    struct plog_look look;
    char bytes[FILE_MAX], etag[PLOG_ETAG_MAX], if_match[PLOG_ETAG_MAX];
    size_t got;
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "text", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, NULL), 0);
    memcpy(if_match, look.etag, sizeof if_match);
    flatten(x);
    f = plog_file_of_look(&x->st, FIXTURE_FILE, &to_write, &look);
    assert_int_equal(plog_file_read(f, bytes, sizeof bytes, 0, &got, NULL), E_NOT_FOUND);
    plog_file_drop(f);
    assert_int_equal(x->st.put(x->st.ctx, FIXTURE_FILE, "text", 4, if_match, etag, NULL),
                     E_PRECONDITION);
    need_flat(x, "text", 4);
}

/* One that has not stored anything loses, and is told. */
static void test_writer_is_late(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "text", 0);
    flatten(x);
    assert_int_equal(plog_file_sync(f, NULL), E_PRECONDITION);
    assert_int_equal(plog_file_close(f, NULL), E_PRECONDITION);
    plog_file_drop(f);
    need_flat(x, "", 0);
}

/* A crash after begin: the plog is as it was, with a mark that the next write takes off. */
static void test_crash(void **state)
{
    struct fixture *x = *state;
    struct plog_look look;
    struct plog_head head;
    char etag[PLOG_ETAG_MAX];
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "text", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, NULL), 0);
    plog_look_done(&look);
    f = open_file(x, &to_write);
    write_text(f, "T", 0);
    assert_int_equal(plog_file_sync(f, NULL), 0);
    assert_int_equal(plog_head_read(&x->st, FIXTURE_FILE, &head, etag, NULL), 0);
    assert_int_equal(head.mark, 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    flatten(x);
    need_flat(x, "Text", 4);
}

/* The head as it is now, under another name. */
static void copy_head(struct fixture *x, const char *to)
{
    char etag[PLOG_ETAG_MAX];
    const struct memory_object *o = memory_store_find(&x->memory, FIXTURE_FILE);
    assert_int_equal(x->st.put(x->st.ctx, to, o->body.data, o->body.len, NULL, etag, NULL), 0);
}

/* A head that was copied before a merge shows nothing of what the merge has. */
static void test_stale_copy(void **state)
{
    struct fixture *x = *state;
    struct plog_look look;
    struct plog_file *f = open_file(x, &to_write);
    copy_head(x, "new");
    write_text(f, "text", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    copy_head(x, "old");
    f = open_file(x, &to_write);
    write_text(f, "T", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    for (int is_typed = 0; is_typed < 2; is_typed++) {
        struct error err = ERROR_INIT;
        assert_int_equal(plog_flatten_begin(&x->st, "new", is_typed, &look, &err), E_CORRUPT);
        assert_non_null(strstr(err.message, "'new' is an old copy of a head"));
        assert_int_not_equal(plog_flatten_begin(&x->st, "old", is_typed, &look, NULL), 0);
    }
    need_text(x, "Text");
    flatten(x);
    need_flat(x, "Text", 4);
}

/* A head without the content type takes no record from the head that was written. */
static void test_copy_is_not_merged(void **state)
{
    struct fixture *x = *state;
    struct plog_look look;
    struct plog_session s;
    const struct plog_open how = {.create = true};
    struct plog_segment_name name;
    assert_int_equal(plog_session_open(&x->st, FIXTURE_FILE, &how, &s, NULL), 0);
    copy_head(x, "copy");
    assert_int_equal(plog_session_begin(&x->st, &s, &name, NULL), 0);
    assert_int_equal(plog_session_close(&x->st, &s, NULL), 0);
    assert_int_equal(plog_flatten_begin(&x->st, "copy", false, &look, NULL), E_PLOG_BUSY);
    assert_true(memory_store_count(&x->memory, PLOG_ROOT) > 0);
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, NULL), 0);
    plog_look_done(&look);
}

/* The objects of the plog whose names have this part. */
static void lose(struct fixture *x, const char *part)
{
    for (size_t i = 0; i < x->memory.count; i++) {
        struct memory_object *o = x->memory.objects[i];
        o->is_there = o->is_there && strstr(o->name, part) == NULL;
    }
}

static int fail_read(struct fixture *x, struct plog_look *look, struct error *err)
{
    char bytes[FILE_MAX], etag[PLOG_ETAG_MAX];
    size_t got;
    memcpy(etag, look->etag, sizeof etag);
    struct plog_file *f = plog_file_of_look(&x->st, FIXTURE_FILE, &to_write, look);
    const int code = plog_file_read(f, bytes, sizeof bytes, 0, &got, err);
    plog_file_drop(f);
    assert_int_equal(code, E_NOT_FOUND);
    return plog_flatten_failed(&x->st, FIXTURE_FILE, etag, code, err);
}

/* An object that is gone is no plog that is gone, and no client that was faster. */
static void test_lost_segment(void **state)
{
    struct fixture *x = *state;
    struct plog_look look;
    struct error err = ERROR_INIT;
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "text", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, NULL), 0);
    lose(x, "/s/");
    assert_int_equal(fail_read(x, &look, &err), E_CORRUPT);
    assert_non_null(strstr(err.message, "the plog has lost a segment: "));
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, NULL), 0);
    assert_int_equal(x->st.remove(x->st.ctx, FIXTURE_FILE, NULL, NULL), 0);
    assert_int_equal(fail_read(x, &look, &err), E_PRECONDITION);
    assert_int_equal(plog_flatten_failed(&x->st, FIXTURE_FILE, "", E_IO, &err), E_IO);
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, NULL), E_NOT_FOUND);
}

static void test_lost_index(void **state)
{
    struct fixture *x = *state;
    struct plog_look look;
    struct error err = ERROR_INIT;
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "text", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    lose(x, "/m/");
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, &err), E_CORRUPT);
    assert_non_null(strstr(err.message, "the plog '" FIXTURE_FILE "' has lost an object: "));
    f = open_file(x, &to_write);
    write_text(f, "T", 0);
    assert_int_equal(plog_file_close(f, NULL), 0); /* its merge fails, and the record stays */
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, NULL), E_CORRUPT);
}

/* No merge stores an index that a client cannot read. */
static void test_merged_max(void **state)
{
    struct fixture *x = *state;
    x->st.whole_max = 4096;
    assert_int_equal(plog_merged_max(&x->st), 4096);
    x->st.whole_max = (size_t)4 << 30;
    assert_int_equal(plog_merged_max(&x->st), PLOG_MERGED_MAX);
    x->st.whole_max = 0;
    assert_int_equal(plog_merged_max(&x->st), PLOG_MERGED_MAX);
}

/* The limit holds for what is merged, and for what is read. */
static void test_memory(void **state)
{
    struct fixture *x = *state;
    struct plog_look look;
    struct error err = ERROR_INIT;
    struct plog_file *f = open_file(x, &to_write);
    for (uint64_t i = 0; i < 100; i++)
        write_text(f, "x", i * i);
    assert_int_equal(plog_file_close(f, NULL), 0);
    x->st.map_max = 1000;
    x->st.map_hint = "raise it";
    assert_int_equal(plog_flatten_begin(&x->st, FIXTURE_FILE, true, &look, &err), E_TOO_LARGE);
    assert_non_null(strstr(err.message, "more than 1000 bytes of memory: raise it"));
    x->st.map_max = 100000;
    flatten(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bytes),        TEST(test_empty),       TEST(test_busy),
        TEST(test_overtaken),    TEST(test_two_at_once), TEST(test_writer_is_late),
        TEST(test_crash),        TEST(test_stale_copy),  TEST(test_copy_is_not_merged),
        TEST(test_lost_segment), TEST(test_lost_index),  TEST(test_merged_max),
        TEST(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
