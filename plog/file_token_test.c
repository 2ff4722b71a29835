/* Files that are opened by token: calls, records, and who merges. */
#include "plog/file.h"

#include "plog/testing/fixture.h"

static struct plog_token token;

static struct plog_file *open_first(struct fixture *x)
{
    struct plog_file *f = open_file(x, &to_write);
    assert_int_equal(plog_file_share(f, &token, NULL), 0);
    return f;
}

static struct plog_file *open_rank(struct fixture *x)
{
    struct plog_file_how how = to_write;
    how.token = &token;
    return open_file(x, &how);
}

static size_t records(struct fixture *x)
{
    char prefix[PLOG_NAME_MAX];
    plog_name(prefix, token.id, "o/");
    return memory_store_count(&x->memory, prefix);
}

static uint64_t version_of_record(struct fixture *x)
{
    char name[PLOG_NAME_MAX];
    plog_name_record(name, token.id, token.session, false);
    const struct memory_object *o = memory_store_find(&x->memory, name);
    return o != NULL ? o->version : 0;
}

static void write_and_sync(struct plog_file *f, const char *text, uint64_t offset)
{
    write_text(f, text, offset);
    assert_int_equal(plog_file_sync(f, NULL), 0);
}

static void test_one_record(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_first(x);
    assert_int_equal(records(x), 1);
    uint64_t calls = x->memory.calls;
    struct plog_file *g = open_rank(x), *h = open_rank(x);
    assert_int_equal(x->memory.calls, calls);
    write_text(g, "gg", 0);
    write_text(h, "hh", 2);
    assert_int_equal(plog_file_push(g, NULL), 0);
    assert_int_equal(x->memory.calls, calls + 2); /* a list, and the segment */
    assert_int_equal(plog_file_sync(h, NULL), 0);
    calls = x->memory.calls;
    assert_int_equal(plog_file_close(g, NULL), 0);
    assert_int_equal(x->memory.calls, calls + 4); /* the record twice, the head, the record .c */
    assert_int_equal(plog_file_close(h, NULL), 0);
    assert_int_equal(records(x), 1);
    need_text(x, "gghh");
    assert_int_equal(plog_file_close(f, NULL), 0); /* it has written nothing, and merges */
    assert_int_equal(records(x), 0);
    need_text(x, "gghh");
}

static void test_a_rank_that_wrote_nothing(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_first(x), *g = open_rank(x);
    const uint64_t calls = x->memory.calls;
    assert_int_equal(plog_file_sync(g, NULL), 0);
    assert_int_equal(plog_file_close(g, NULL), 0);
    assert_int_equal(x->memory.calls, calls);
    assert_int_equal(plog_file_close(f, NULL), 0);
    assert_int_equal(records(x), 0);
}

static void test_the_owner_closes_first(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_first(x), *g = open_rank(x), *h = open_rank(x);
    write_and_sync(g, "gg", 0);
    write_text(h, "hh", 1);
    assert_int_equal(plog_file_close(f, NULL), 0);
    assert_int_equal(records(x), 0);
    write_and_sync(g, "g", 0);
    assert_int_equal(records(x), 1); /* of its own */
    assert_int_equal(plog_file_refresh(g, NULL), 0);
    assert_int_equal(plog_file_close(h, NULL), 0);
    need_text(x, "ghh");
    assert_int_equal(plog_file_close(g, NULL), 0);
    assert_int_equal(records(x), 0);
    need_text(x, "ghh");
}

/* Each sync leaves a version that no merge has read before its segments were stored. */
static void test_each_sync_stores_the_record(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_first(x), *g = open_rank(x);
    struct plog_file *all[] = {f, g, g, f, f, g, f};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        write_text(all[i], "x", i);
        assert_int_equal(plog_file_push(all[i], NULL), 0);
        const uint64_t before = version_of_record(x);
        assert_int_equal(plog_file_sync(all[i], NULL), 0);
        assert_true(version_of_record(x) > before);
    }
    assert_int_equal(plog_file_close(g, NULL), 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    need_text(x, "xxxxxxx");
}

static struct plog_file *other; /* syncs before each PUT of a record */

static int put_late(void *ctx, const char *name, const void *body, size_t len, const char *if_match,
                    char etag[static PLOG_ETAG_MAX], struct error *err)
{
    const struct plog_store st = memory_store_of(ctx);
    struct plog_file *f = other;
    if (f != NULL && strstr(name, "/o/") != NULL) {
        other = NULL;
        write_and_sync(f, "o", 9);
        other = f;
    }
    return st.put(ctx, name, body, len, if_match, etag, err);
}

/* Others are faster, whenever it tries: their record is as good as its own. */
static void test_ranks_that_sync_at_once(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_first(x), *h = open_rank(x);
    x->st.put = put_late;
    struct plog_file *g = open_rank(x);
    x->st = memory_store_of(&x->memory);
    other = h;
    write_and_sync(g, "123456789", 0);
    other = NULL;
    assert_int_equal(records(x), 1);
    assert_int_equal(plog_file_close(g, NULL), 0);
    assert_int_equal(plog_file_close(h, NULL), 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    need_text(x, "123456789o");
}

static void test_a_token_of_a_rank(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_first(x), *g = open_rank(x);
    struct plog_token again;
    const uint64_t calls = x->memory.calls;
    assert_int_equal(plog_file_share(g, &again, NULL), 0);
    assert_int_equal(x->memory.calls, calls);
    assert_true(again.session == token.session);
    plog_file_drop(g);
    assert_int_equal(plog_file_close(f, NULL), 0);
    f = open_file(x, &to_read);
    assert_int_equal(plog_file_share(f, &again, NULL), E_INVALID);
    plog_file_drop(f);
}

static void test_a_plog_that_is_gone(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_first(x), *g = open_rank(x);
    write_text(g, "gone", 0);
    assert_int_equal(plog_unlink(&x->st, FIXTURE_FILE, NULL), 0);
    assert_int_equal(plog_file_sync(g, NULL), E_PRECONDITION);
    plog_file_drop(g);
    plog_file_drop(f);
    f = open_file(x, &to_write); /* another plog */
    g = open_rank(x);
    write_text(g, "gone", 0);
    assert_int_equal(plog_file_close(g, NULL), E_PRECONDITION);
    plog_file_drop(g);
    assert_int_equal(plog_file_close(f, NULL), 0);
    need_text(x, "");
}

/* A later phase of a rank hides what another one has synced since the token was given. */
static void test_epochs(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_first(x), *g = open_rank(x), *h = open_rank(x);
    for (int i = 0; i < 3; i++)
        write_and_sync(g, "g", 0);
    write_and_sync(h, "h", 0);
    need_text(x, "h");
    write_and_sync(f, "f", 0);
    need_text(x, "f");
    assert_int_equal(plog_file_close(h, NULL), 0);
    assert_int_equal(plog_file_close(g, NULL), 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    need_text(x, "f");
}

enum { FILES = 4, PART = 20, TURNS = 300, SEEDS = 40, TRIES = 1000 };

/* The call, until the store lets it pass. */
static void insist(int (*call)(struct plog_file *f, struct error *err), struct plog_file *f)
{
    int code = E_IO;
    for (int i = 0; i < TRIES && code == E_IO; i++)
        code = call(f, NULL);
    assert_int_equal(code, 0);
}

/* All sessions are taken for dead. */
static void merge_all(struct fixture *x)
{
    _cleanup_plog_watch_ struct plog_watch watch = {.count = 0};
    enum plog_merge_result merged;
    (void)plog_merge(&x->st, FIXTURE_FILE, &watch, memory_store_clock(&x->memory), 0, &merged,
                     NULL);
}

/* The token is given at last. */
static struct plog_file *open_failing(struct fixture *x)
{
    int code = E_IO;
    struct plog_file *f = open_file(x, &to_write);
    x->memory.fails_one_in = 6;
    for (int i = 0; i < TRIES && code == E_IO; i++)
        code = plog_file_share(f, &token, NULL);
    assert_int_equal(code, 0);
    return f;
}

static void run_failing(struct fixture *x, struct rng *rng)
{
    char plain[FILES * PART] = {0}, seen[FILES * PART] = {0};
    size_t got;
    struct plog_file *files[FILES] = {open_failing(x)};
    for (int turn = 0; turn < TURNS; turn++) {
        const size_t i = rng_below(rng, FILES), at = i * PART + rng_below(rng, PART);
        const char byte = (char)('a' + rng_below(rng, 26));
        files[i] = files[i] != NULL ? files[i] : open_rank(x); /* again, by the old token */
        plain[at] = byte;
        assert_int_equal(plog_file_write(files[i], &byte, 1, at, NULL), 0);
        if (rng_below(rng, 3) == 0)
            insist(plog_file_sync, files[i]);
        if (rng_below(rng, 20) == 0) {
            insist(plog_file_close, files[i]);
            files[i] = NULL;
        }
        if (rng_below(rng, 10) == 0)
            merge_all(x);
    }
    for (size_t i = 0; i < FILES; i++) {
        if (files[i] != NULL)
            insist(plog_file_close, files[i]);
    }
    x->memory.fails_one_in = 0;
    merge_all(x);
    assert_int_equal(records(x), 0);
    struct plog_file *f = open_file(x, &to_read);
    assert_int_equal(plog_file_read(f, seen, sizeof seen, 0, &got, NULL), 0);
    assert_memory_equal(seen, plain, sizeof plain); /* behind its end there are zeros */
    plog_file_drop(f);
}

static void test_a_store_that_fails(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct rng rng;
        void *fresh;
        rng_seed(&rng, seed);
        set_up(&fresh);
        rng_seed(&((struct fixture *)fresh)->memory.rng, seed);
        run_failing(fresh, &rng);
        tear_down(&fresh);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_record),
        TEST(test_a_rank_that_wrote_nothing),
        TEST(test_the_owner_closes_first),
        TEST(test_each_sync_stores_the_record),
        TEST(test_ranks_that_sync_at_once),
        TEST(test_a_token_of_a_rank),
        TEST(test_a_plog_that_is_gone),
        TEST(test_epochs),
        TEST(test_a_store_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
