/* Grouping within a small memory against the record table, on random shards: the same records, in
 * the same order, with the same bytes; the same refusals. */
#include "sort/shard/group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/tsan.h"

static int open_memory_file(void *ctx, int *fd, struct error *err)
{
    (void)ctx;
    (void)err;
    *fd = memfd_create("work", MFD_CLOEXEC);
    return *fd < 0 ? E_IO : 0;
}

static const struct sort_env env = {.open_work_file = open_memory_file};
static unsigned replaced_count;

static void replaced(void *ctx, const char *path, size_t len)
{
    (void)ctx;
    assert_true(len > 0 && path[0] != '\0');
    replaced_count++;
}

static int checks_left;

static int check(void *ctx, struct error *err)
{
    (void)ctx;
    return checks_left-- > 0 ? 0 : error_set(err, E_ABORTED, "stopped");
}

static struct group *new_group(enum sort_policy duplicates, uint64_t memory)
{
    const struct group_config config = {
        .env = &env,
        .shard = "s.tar",
        .duplicates = duplicates,
        .memory = memory,
        .record_memory = 64 << 20,
        .replaced = replaced,
        .check = check,
    };
    replaced_count = 0;
    checks_left = 1000;
    return group_new(&config);
}

/* A shard of `count` members, the n-th one being this. */
struct shard {
    unsigned count;
    unsigned keys;  /* how many records there are, about */
    unsigned paths; /* how many members a record may have: fewer make duplicates */
    bool long_keys;
};

struct sample {
    char path[70000];
    char text[9000];
    struct tar_member m;
};

static void make_member(const struct shard *s, unsigned n, struct sample *out)
{
    struct rng rng;
    rng_seed(&rng, 1000 + n);
    unsigned key = (unsigned)rng_below(&rng, s->keys);
    unsigned member = (unsigned)rng_below(&rng, s->paths);
    size_t len = s->long_keys ? 65500 - key % 50 : 0; /* up to the longest that a path may be */
    memset(out->path, 'd', len);
    len += (size_t)snprintf(out->path + len, sizeof out->path - len, "k%u.%u", key, member);
    out->m = (struct tar_member){
        .path = out->path,
        .path_len = len,
        .link = "",
        .type = '0',
        .offset = (uint64_t)n * 1536,
        .piece_count = 1,
    };
    out->m.pieces[0] = (struct tar_piece){.offset = (uint64_t)n * 1536, .length = 1024};
    if (n % 7 == 0) { /* as global headers make them, some too long for a row */
        size_t size = n % 3 == 0 ? sizeof out->text : 512;
        memset(out->text, (int)('a' + n % 26), size);
        out->m.pieces[1] = out->m.pieces[0];
        out->m.pieces[0] = (struct tar_piece){.inline_data = out->text, .length = size};
        out->m.piece_count = 2;
    }
}

/* One after the other as a text: name, and each piece. */
static void describe(const char *name, size_t len, const struct record_piece *pieces, size_t count,
                     const char *inlines, struct buf *out)
{
    buf_append(out, name, len);
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, " %llu", (unsigned long long)pieces[i].length);
        if (pieces[i].is_inline)
            buf_append(out, inlines + pieces[i].offset, pieces[i].length);
        else
            buf_printf(out, "@%llu", (unsigned long long)pieces[i].offset);
    }
    buf_putc(out, '\n');
}

static void by_table(const struct shard *s, enum sort_policy duplicates, struct buf *out)
{
    struct record_table *t = record_table_new("s.tar", SORT_KEY_FIRST_DOT, duplicates, SIZE_MAX);
    _cleanup_free_ struct sample *sample = xmalloc(sizeof *sample);
    for (unsigned n = 0; n < s->count; n++) {
        bool was_there;
        make_member(s, n, sample);
        assert_int_equal(record_table_add(t, &sample->m, &was_there, NULL), 0);
    }
    struct buf pieces = BUF_INIT;
    for (size_t i = 0; i < record_table_count(t); i++) {
        size_t len;
        const char *name = record_table_name(t, i, &len);
        buf_clear(&pieces);
        record_table_pieces(t, i, &pieces);
        describe(name, len, (const void *)pieces.data, pieces.len / sizeof(struct record_piece),
                 record_table_inline(t)->data, out);
    }
    buf_done(&pieces);
    record_table_free(t);
}

static int fill(struct group *g, const struct shard *s, struct error *err)
{
    _cleanup_free_ struct sample *sample = xmalloc(sizeof *sample);
    int rc = 0;
    for (unsigned n = 0; rc == 0 && n < s->count; n++) {
        make_member(s, n, sample);
        rc = group_add(g, &sample->m, err);
    }
    return rc != 0 ? rc : group_finish(g, err);
}

static void by_group(struct group *g, const struct shard *s, struct buf *out)
{
    struct error err = ERROR_INIT;
    if (fill(g, s, &err) != 0)
        fail_msg("%s", err.message);
    struct group_record r;
    uint64_t count = 0;
    int rc;
    while ((rc = group_next(g, &r, &err)) > 0) {
        uint64_t size = 0;
        for (size_t i = 0; i < r.piece_count; i++)
            size += r.pieces[i].length;
        assert_int_equal(size, r.size);
        describe(r.name, r.name_len, r.pieces, r.piece_count, r.inlines, out);
        count++;
    }
    assert_int_equal(rc, 0);
    assert_int_equal(count, group_count(g));
}

static void expect_equal(const struct shard *s, uint64_t memory, bool spills)
{
    struct buf wanted = BUF_INIT;
    struct buf got = BUF_INIT;
    by_table(s, SORT_WARN, &wanted);
    struct group *g = new_group(SORT_WARN, memory);
    by_group(g, s, &got);
    assert_int_equal(group_spilled(g) > 0, spills);
    assert_int_equal(got.len, wanted.len);
    assert_memory_equal(got.data, wanted.data, got.len);
    group_free(g);
    buf_done(&wanted);
    buf_done(&got);
}

static void test_the_same_with_little_memory(void **state)
{
    (void)state;
    static const struct shard shards[] = {
        {.count = 40000, .keys = 15000, .paths = 1000000}, /* members far apart */
        {.count = 20000, .keys = 20, .paths = 1000000},    /* large records */
        {.count = 30000, .keys = 3000, .paths = 3},        /* nearly all of them duplicates */
        {.count = 60, .keys = 20, .paths = 9, .long_keys = true},
    };
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i += TSAN_STRIDE) {
        expect_equal(&shards[i], 64 << 20, false);
        expect_equal(&shards[i], 0, true);
    }
}

static unsigned count_replaced(const struct shard *s, uint64_t memory)
{
    struct group *g = new_group(SORT_WARN, memory);
    assert_int_equal(fill(g, s, NULL), 0);
    group_free(g);
    return replaced_count;
}

static void test_duplicates(void **state)
{
    (void)state;
    const struct shard s = {.count = 30000, .keys = 8000, .paths = 9};
    unsigned wanted = count_replaced(&s, 64 << 20);
    assert_true(wanted > 1000);
    assert_int_equal(count_replaced(&s, 0), wanted);
    struct error err = ERROR_INIT;
    struct group *g = new_group(SORT_ABORT, 0);
    assert_int_equal(fill(g, &s, &err), E_DUPLICATE_RECORD);
    group_free(g);
}

/* The last member links to the first one, which has long been in a work file; `again` comes after
 * it. */
static int fill_and_link(struct group *g, const char *path, const char *target, const char *again,
                         struct error *err)
{
    const struct shard s = {.count = 20000, .keys = 1000000, .paths = 1};
    _cleanup_free_ struct sample *sample = xmalloc(sizeof *sample);
    struct tar_member m = {.path = "a.first", .path_len = 7, .link = "", .type = '0'};
    int rc = group_add(g, &m, err);
    for (unsigned n = 0; rc == 0 && n < s.count; n++) {
        make_member(&s, n, sample);
        rc = group_add(g, &sample->m, err);
    }
    m = (struct tar_member){.path = path,
                            .path_len = strlen(path),
                            .link = target,
                            .link_len = strlen(target),
                            .type = '1'};
    if (rc == 0)
        rc = group_add(g, &m, err);
    m = (struct tar_member){.path = again, .path_len = strlen(again), .link = "", .type = '0'};
    if (rc == 0 && m.path_len > 0)
        rc = group_add(g, &m, err);
    return rc != 0 ? rc : group_finish(g, err);
}

static void test_links(void **state)
{
    (void)state;
    static const struct {
        const char *path, *target, *again;
        int code;
    } rows[] = {
        {"a.last", "a.first", "", 0},
        {"b.last", "a.first", "", E_SHARD_UNSUPPORTED},
        {"a.last", "a.none", "", E_SHARD_UNSUPPORTED},
        {"a.last", "a.last", "", E_SHARD_UNSUPPORTED},
        {"a.last", "", "", E_SHARD_UNSUPPORTED},
        {"a.last", "a.first", "a.first",
         E_SHARD_UNSUPPORTED},             /* its target is dropped for a later one */
        {"a.last", "a.none", "a.last", 0}, /* it is dropped itself */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        struct group *g = new_group(SORT_WARN, 0);
        assert_int_equal(fill_and_link(g, rows[i].path, rows[i].target, rows[i].again, &err),
                         rows[i].code);
        assert_true(group_spilled(g) > 0);
        group_free(g);
    }
}

static struct group *new_small_group(uint64_t record_memory)
{
    const struct group_config config = {.env = &env,
                                        .shard = "s.tar",
                                        .duplicates = SORT_WARN,
                                        .record_memory = record_memory,
                                        .replaced = replaced,
                                        .check = check};
    checks_left = 1000;
    return group_new(&config);
}

/* All members are one record's, and none stands next to another: their pieces are in memory. */
static void test_one_record_of_everything(void **state)
{
    (void)state;
    const struct shard s = {.count = 30000, .keys = 1, .paths = 1 << 30};
    struct error err = ERROR_INIT;
    struct group *g = new_small_group(512 * 1024);
    assert_int_equal(fill(g, &s, &err), E_NOMEM);
    assert_non_null(strstr(err.message, "shard 's.tar': the members of record 'k0'"));
    group_free(g);
}

/* Those of members that stand next to each other are one: any number of them fits. */
static void test_one_record_in_a_row(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct group *g = new_small_group(4096);
    struct group_record r;
    enum { COUNT = 30000 };
    for (unsigned n = 0; n < COUNT; n++) {
        char path[32];
        struct tar_member m = {.path = path, .link = "a.0", .link_len = 3, .offset = n * 1024};
        m.path_len = (size_t)snprintf(path, sizeof path, "a.%u", n);
        m.type = n % 3 == 1 ? '1' : '0';
        m.pieces[m.piece_count++] = (struct tar_piece){.offset = n * 1024, .length = 1024};
        assert_int_equal(group_add(g, &m, &err), 0);
    }
    if (group_finish(g, &err) != 0)
        fail_msg("%s", err.message);
    assert_true(group_spilled(g) > 0);
    assert_int_equal(group_count(g), 1);
    assert_int_equal(group_next(g, &r, &err), 1);
    assert_int_equal(r.piece_count, 1);
    assert_int_equal(r.size, COUNT * 1024);
    assert_int_equal(group_next(g, &r, &err), 0);
    group_free(g);
}

static void test_stopped(void **state)
{
    (void)state;
    const struct shard s = {.count = 30000, .keys = 8000, .paths = 1 << 30};
    struct error err = ERROR_INIT;
    struct group *g = new_group(SORT_WARN, 0);
    checks_left = 3;
    assert_int_equal(fill(g, &s, &err), E_ABORTED);
    group_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_with_little_memory),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_one_record_of_everything),
        cmocka_unit_test(test_one_record_in_a_row),
        cmocka_unit_test(test_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
