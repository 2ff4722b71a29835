/* A writer and its store: segments on their way, a new name, the record. */
#include "plog/file.h"

#include "plog/testing/fixture.h"

/* A store that takes segments, and stores them when it is asked for all of them. */
static struct sent {
    char name[PLOG_NAME_MAX];
    struct buf body;
} sent[8];
static size_t sent_count;

static int send_later(void *ctx, const char *name, struct buf *body, struct error *err)
{
    (void)ctx;
    if (sent_count == 2)
        return error_set(err, E_IO, "there is no room");
    snprintf(sent[sent_count].name, sizeof sent[0].name, "%s", name);
    sent[sent_count].body = *body;
    *body = BUF_INIT;
    sent_count++;
    return 0;
}

static int flush_sent(void *ctx, struct error *err)
{
    char etag[PLOG_ETAG_MAX];
    int code = 0;
    for (; sent_count > 0 && code == 0; sent_count--) {
        struct sent *s = &sent[sent_count - 1];
        const struct plog_store st = memory_store_of(ctx);
        code = st.put(ctx, s->name, s->body.data, s->body.len, NULL, etag, err);
        buf_done(&s->body);
    }
    return code;
}

static void test_segments_on_their_way(void **state)
{
    struct fixture *x = *state;
    struct plog_file_how how = to_write;
    struct plog_file *f;
    how.segment_bytes = 4;
    x->st.send = send_later;
    x->st.flush = flush_sent;
    f = open_file(x, &how);
    write_text(f, "aaaabbbb", 0);
    assert_int_equal(sent_count, 1);
    assert_int_equal(plog_file_held(f), 4);
    assert_int_equal(plog_file_push(f, NULL), 0);
    assert_int_equal(sent_count, 2);
    assert_int_equal(plog_file_held(f), 0);
    need_text(x, "");
    write_text(f, "cccc", 8);
    assert_int_equal(plog_file_push(f, NULL), E_IO); /* and keeps what it has */
    assert_int_equal(plog_file_unsynced(f).end, 12);
    assert_int_equal(flush_sent(&x->memory, NULL), 0);
    assert_int_equal(plog_file_sync(f, NULL), 0);
    assert_int_equal(plog_file_unsynced(f).end, 0);
    need_text(x, "aaaabbbbcccc");
    write_text(f, "d", 1);
    assert_int_equal(plog_file_close(f, NULL), 0);
    need_text(x, "adaabbbbcccc");
}

static void test_a_name_that_changes(void **state)
{
    struct fixture *x = *state;
    struct buf head = BUF_INIT;
    char etag[PLOG_ETAG_MAX];
    struct plog_file *f = open_file(x, &to_write), *g;
    write_text(f, "before", 0);
    assert_int_equal(plog_file_sync(f, NULL), 0);
    assert_int_equal(x->st.get(x->st.ctx, FIXTURE_FILE, &head, etag, NULL), 0);
    assert_int_equal(x->st.put(x->st.ctx, "b", head.data, head.len, NULL, etag, NULL), 0);
    assert_int_equal(x->st.remove(x->st.ctx, FIXTURE_FILE, NULL, NULL), 0);
    buf_done(&head);
    write_text(f, "after ", 0);
    assert_int_equal(plog_file_sync(f, NULL), E_PRECONDITION);
    plog_file_rename(f, "b");
    assert_string_equal(plog_file_object(f), "b");
    assert_int_equal(plog_file_sync(f, NULL), 0);
    struct plog_file_how how = to_write;
    how.open.id = plog_file_id(f); /* the same plog, and no other */
    assert_int_equal(plog_file_open(&x->st, "b", &how, &g, NULL), 0);
    assert_int_equal(plog_file_close(g, NULL), 0);
    how.open.id = "0123456789abcdef0123456789abcdef";
    assert_int_equal(plog_file_open(&x->st, "b", &how, &g, NULL), E_PRECONDITION);
    assert_int_equal(plog_file_close(f, NULL), 0);
}

/* A writer that waits says that it lives, and only when it is time. */
static void test_refresh(void **state)
{
    struct fixture *x = *state;
    struct plog_file_how how = to_write;
    how.refresh_ms = 100;
    struct plog_file *f = open_file(x, &how);
    write_text(f, "a", 0);
    assert_int_equal(plog_file_sync(f, NULL), 0);
    const uint64_t versions = x->memory.versions;
    assert_int_equal(plog_file_refresh(f, NULL), 0);
    assert_int_equal(x->memory.versions, versions);
    x->memory.clock_ms += 100;
    assert_int_equal(plog_file_refresh(f, NULL), 0);
    assert_int_equal(x->memory.versions, versions + 1);
    assert_int_equal(plog_file_close(f, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_segments_on_their_way),
                                       TEST(test_a_name_that_changes), TEST(test_refresh)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
