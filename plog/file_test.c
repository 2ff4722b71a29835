/* Files over a store in memory, against a plain array. */
#include "plog/file.h"

#include <endian.h>
#include <string.h>
#include <xxhash.h>

#include "plog/merge.h"
#include "plog/testing/fixture.h"

enum { FILE_MAX = 500, HANDLES = 4 };

static void test_write_and_read(void **state)
{
    struct fixture *x = *state;
    struct plog_file *a = open_file(x, &to_write), *b = open_file(x, &to_write);
    need_text(x, "");
    write_text(a, "hello", 0);
    write_text(b, "world", 6);
    need_text(x, "");
    assert_int_equal(plog_file_sync(a, NULL), 0);
    need_text(x, "hello");
    assert_int_equal(plog_file_sync(b, NULL), 0);
    write_text(a, " ", 5);
    assert_int_equal(plog_file_close(a, NULL), 0);
    need_text(x, "hello world");
    assert_int_equal(plog_file_close(b, NULL), 0);
    need_text(x, "hello world");
    struct plog_head head;
    char etag[PLOG_ETAG_MAX], prefix[PLOG_NAME_MAX];
    assert_int_equal(plog_head_read(&x->st, FIXTURE_FILE, &head, etag, NULL), 0);
    assert_true(head.size == 11 && head.merged == 1);
    plog_name(prefix, head.id, "o/");
    assert_int_equal(memory_store_count(&x->memory, prefix), 0);
    plog_name(prefix, head.id, "m/");
    assert_int_equal(memory_store_count(&x->memory, prefix), 1);
}

/* Later phases win, also against a writer whose random number is greater. */
static void test_phases_are_ordered(void **state)
{
    struct fixture *x = *state;
    for (int round = 0; round < 20; round++) {
        struct plog_file *a = open_file(x, &to_write), *b = open_file(x, &to_write);
        for (int i = 0; i < 4; i++) {
            write_text(a, "aaaa", 0);
            assert_int_equal(plog_file_sync(a, NULL), 0);
            write_text(b, "bbbb", 0);
            assert_int_equal(plog_file_sync(b, NULL), 0);
            need_text(x, "bbbb");
        }
        write_text(a, "AA", 1);
        assert_int_equal(plog_file_close(b, NULL), 0);
        assert_int_equal(plog_file_close(a, NULL), 0);
        need_text(x, "bAAb");
    }
}

/* What PLFS got wrong: each is what an application sees with a plain file. */
static void test_known_defects(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "aaaaaaaaaa", 0); /* a truncate leaves no byte behind it */
    assert_int_equal(plog_file_cut(f, 5, NULL), 0);
    write_text(f, "E", 8);
    char bytes[FILE_MAX] = {0};
    size_t got;
    assert_int_equal(plog_file_read(f, bytes, sizeof bytes, 0, &got, NULL), 0);
    assert_int_equal(got, 9);
    assert_memory_equal(bytes, "aaaaa\0\0\0E", 9);
    assert_int_equal(plog_file_cut(f, 0, NULL), 0); /* an overwrite, then a truncate */
    write_text(f, "aaaaaaaaaa", 0);
    write_text(f, "XX", 4);
    assert_int_equal(plog_file_cut(f, 9, NULL), 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    need_text(x, "aaaaXXaaa");
    f = open_file(x, &to_write); /* an append after the index was merged */
    write_text(f, "tail", 9);
    assert_int_equal(plog_file_close(f, NULL), 0);
    need_text(x, "aaaaXXaaatail");
    f = open_file(x, &to_write); /* a truncate after the index was merged */
    assert_int_equal(plog_file_cut(f, 5, NULL), 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    need_text(x, "aaaaX");
    struct plog_file *a = open_file(x, &to_write), *b = open_file(x, &to_write);
    assert_int_equal(plog_file_cut(a, 0, NULL), 0); /* contiguous writes around another's */
    write_text(a, "aaaa", 0);
    assert_int_equal(plog_file_sync(a, NULL), 0);
    write_text(b, "XX", 0);
    assert_int_equal(plog_file_sync(b, NULL), 0);
    write_text(a, "bbbb", 4);
    assert_int_equal(plog_file_close(a, NULL), 0);
    assert_int_equal(plog_file_close(b, NULL), 0);
    need_text(x, "XXaabbbb");
}

static void test_opening(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f;
    char etag[PLOG_ETAG_MAX];
    assert_int_equal(plog_file_open(&x->st, FIXTURE_FILE, &to_read, &f, NULL), E_NOT_FOUND);
    struct plog_file_how how = to_write;
    how.open.create = false;
    assert_int_equal(plog_file_open(&x->st, FIXTURE_FILE, &how, &f, NULL), E_NOT_FOUND);
    how.open.create = how.open.exclusive = true;
    f = open_file(x, &how);
    write_text(f, "text", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    assert_int_equal(plog_file_open(&x->st, FIXTURE_FILE, &how, &f, NULL), E_EXISTS);
    f = open_file(x, &to_read);
    assert_int_equal(plog_file_write(f, "a", 1, 0, NULL), E_INVALID);
    assert_int_equal(plog_file_close(f, NULL), 0);
    f = open_file(x, &to_write);
    assert_int_equal(plog_file_write(f, "a", 1, PLOG_OFFSET_MAX, NULL), E_TOO_LARGE);
    assert_int_equal(plog_file_write(f, NULL, 0, 5, NULL), 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    need_text(x, "text");
    assert_int_equal(x->st.put(x->st.ctx, "plain", "bytes", 5, NULL, etag, NULL), 0);
    assert_int_equal(plog_file_open(&x->st, "plain", &to_read, &f, NULL), E_INVALID);
    assert_int_equal(plog_file_open(&x->st, "plain", &to_write, &f, NULL), E_INVALID);
}

static void test_truncate_and_unlink(void **state)
{
    struct fixture *x = *state;
    struct plog_file_how how = to_write;
    struct plog_file *a = open_file(x, &to_write);
    write_text(a, "old bytes", 0);
    assert_int_equal(plog_file_sync(a, NULL), 0);
    how.truncate = true;
    struct plog_file *b = open_file(x, &how); /* a cut, since a has it open */
    write_text(b, "new", 0);
    assert_int_equal(plog_file_close(b, NULL), 0);
    need_text(x, "new");
    assert_int_equal(plog_file_close(a, NULL), 0);
    need_text(x, "new");
    b = open_file(x, &how); /* a new head: the old container goes */
    assert_int_equal(plog_file_close(b, NULL), 0);
    need_text(x, "");
    assert_int_equal(memory_store_count(&x->memory, PLOG_ROOT), 0);
    a = open_file(x, &to_write);
    write_text(a, "lost", 0);
    assert_int_equal(plog_unlink(&x->st, FIXTURE_FILE, NULL), 0);
    assert_int_equal(plog_file_sync(a, NULL), E_PRECONDITION);
    b = open_file(x, &to_write);
    write_text(b, "other", 0);
    assert_int_equal(plog_file_close(b, NULL), 0);
    assert_int_equal(plog_file_close(a, NULL), E_PRECONDITION);
    plog_file_drop(a);
    need_text(x, "other");
}

/* The cut of an open is stored before the open ends, so it hides no later write. */
static void test_truncate_while_others_write(void **state)
{
    struct fixture *x = *state;
    struct plog_file_how how = to_write;
    struct plog_file *a = open_file(x, &to_write);
    write_text(a, "old", 0);
    assert_int_equal(plog_file_sync(a, NULL), 0);
    how.truncate = true;
    struct plog_file *b = open_file(x, &how);
    need_text(x, "");
    write_text(a, "new", 0);
    assert_int_equal(plog_file_sync(a, NULL), 0);
    assert_int_equal(plog_file_close(b, NULL), 0);
    need_text(x, "new");
    assert_int_equal(plog_file_close(a, NULL), 0);
    need_text(x, "new");
}

/* All processes of a job open the new file so: none ends the session of another. */
static void test_truncate_of_an_empty_file(void **state)
{
    struct fixture *x = *state;
    struct plog_file_how how = to_write;
    how.truncate = true;
    struct plog_file *a = open_file(x, &how), *b = open_file(x, &how);
    write_text(a, "aaaa", 0);
    write_text(b, "bbbb", 4);
    assert_int_equal(plog_file_close(a, NULL), 0);
    assert_int_equal(plog_file_close(b, NULL), 0);
    need_text(x, "aaaabbbb");
}

/* One that knows the plog does not empty another one of its name. */
static void test_truncate_of_another_file(void **state)
{
    struct fixture *x = *state;
    struct plog_file_how how = to_write;
    char old[PLOG_ID_CHARS + 1];
    struct plog_file *f = open_file(x, &to_write);
    snprintf(old, sizeof old, "%s", plog_file_id(f));
    write_text(f, "old", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    how.truncate = true;
    how.open.create = false;
    how.open.id = old;
    f = open_file(x, &how); /* a new head, of another id */
    assert_string_not_equal(plog_file_id(f), old);
    write_text(f, "new", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    assert_int_equal(plog_file_open(&x->st, FIXTURE_FILE, &how, &f, NULL), E_PRECONDITION);
    need_text(x, "new");
}

static int (*memory_remove)(void *, const char *, const char *, struct error *);

static int remove_no_index(void *ctx, const char *name, const char *if_match, struct error *err)
{
    if (strstr(name, "/m/") != NULL)
        return error_set(err, E_IO, "the index stays");
    return memory_remove(ctx, name, if_match, err);
}

/* What can be removed of a container is, and the rest is named. */
static void test_container_is_left(void **state)
{
    struct fixture *x = *state;
    struct error err = ERROR_INIT;
    struct plog_file_how how = to_write;
    for (int i = 0; i < 2; i++) {
        struct plog_file *f = open_file(x, &to_write);
        write_text(f, "text", 0);
        assert_int_equal(plog_file_close(f, NULL), 0);
        memory_remove = x->st.remove;
        x->st.remove = remove_no_index;
        how.truncate = i == 0;
        if (i == 0)
            assert_int_equal(plog_file_close(open_file(x, &how), NULL), 0);
        else
            assert_int_equal(plog_unlink(&x->st, FIXTURE_FILE, &err), E_IO);
        x->st.remove = memory_remove;
        assert_int_equal(memory_store_count(&x->memory, PLOG_ROOT), i + 1);
    }
    assert_non_null(strstr(err.message, "the index stays"));
    assert_non_null(strstr(err.message, "plog gc BUCKET"));
}

static int remove_no_head(void *ctx, const char *name, const char *if_match, struct error *err)
{
    return strcmp(name, FIXTURE_FILE) != 0 ? memory_remove(ctx, name, if_match, err)
                                           : error_set(err, E_NOT_FOUND, "it has moved");
}

/* The head has moved before it was removed: the container is that of its new name. */
static void test_unlink_of_a_head_that_moves(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "text", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    memory_remove = x->st.remove;
    x->st.remove = remove_no_head;
    assert_int_equal(plog_unlink(&x->st, FIXTURE_FILE, NULL), 0);
    x->st.remove = memory_remove;
    need_text(x, "text");
}

/* A merged index that could not be read is not stored: the records stay, and the file is read. */
static void test_index_too_large(void **state)
{
    struct fixture *x = *state;
    _cleanup_plog_watch_ struct plog_watch watch = {.count = 0};
    enum plog_merge_result result;
    x->st.whole_max = PLOG_MERGED;
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "text", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    need_text(x, "text");
    assert_int_equal(plog_merge(&x->st, FIXTURE_FILE, &watch, 0, 0, &result, NULL), E_TOO_LARGE);
    x->st.whole_max = 0;
    need_text(x, "text");
    assert_int_equal(plog_merge(&x->st, FIXTURE_FILE, &watch, 0, 0, &result, NULL), 0);
    assert_int_equal(result, PLOG_MERGED_NOW);
    need_text(x, "text");
}

/* A writer that dies leaves a record; a recovery waits for the lease. */
static void test_recovery(void **state)
{
    struct fixture *x = *state;
    struct plog_file *f = open_file(x, &to_write);
    _cleanup_plog_watch_ struct plog_watch watch = {.count = 0};
    enum plog_merge_result result;
    write_text(f, "synced", 0);
    assert_int_equal(plog_file_sync(f, NULL), 0);
    write_text(f, "lost", 0);
    plog_file_drop(f);
    assert_int_equal(plog_merge(&x->st, FIXTURE_FILE, &watch, 100, 50, &result, NULL), 0);
    assert_int_equal(result, PLOG_MERGED_BUSY);
    assert_int_equal(plog_merge(&x->st, FIXTURE_FILE, &watch, 149, 50, &result, NULL), 0);
    assert_int_equal(result, PLOG_MERGED_BUSY);
    assert_int_equal(plog_merge(&x->st, FIXTURE_FILE, &watch, 150, 50, &result, NULL), 0);
    assert_int_equal(result, PLOG_MERGED_NOW);
    assert_int_equal(plog_merge(&x->st, FIXTURE_FILE, &watch, 150, 50, &result, NULL), 0);
    assert_int_equal(result, PLOG_MERGED_NOTHING);
    need_text(x, "synced");
}

/* found: extents, and those with damage. */
static int count_extents(void *ctx, const struct plog_extent *e, const char *segment,
                         const char *why)
{
    size_t *found = ctx;
    assert_true(e->length > 0 && strstr(segment, "/s/") != NULL);
    found[0]++;
    found[1] += why != NULL;
    return 0;
}

static void test_damage(void **state)
{
    struct fixture *x = *state;
    struct error err = ERROR_INIT;
    char bytes[FILE_MAX];
    size_t got;
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, "bytes", 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
    for (size_t i = 0; i < x->memory.count; i++) {
        if (strstr(x->memory.objects[i]->name, "/s/") != NULL)
            x->memory.objects[i]->body.data[0] ^= 1;
    }
    f = open_file(x, &to_read);
    assert_int_equal(plog_file_read(f, bytes, sizeof bytes, 0, &got, &err), E_CORRUPT);
    assert_non_null(strstr(err.message, "/s/"));
    assert_non_null(strstr(err.message, FIXTURE_FILE));
    assert_int_equal(got, 0);
    size_t found[2] = {0, 0};
    assert_int_equal(plog_file_walk(f, false, count_extents, found, NULL), 0);
    assert_true(found[0] == 1 && found[1] == 0);
    assert_int_equal(plog_file_walk(f, true, count_extents, found, NULL), 0);
    assert_true(found[0] == 2 && found[1] == 1);
    plog_file_drop(f);
}

/* The memory store, with a count of the calls, as one that keeps data. */
static struct {
    struct plog_store memory;
    unsigned calls;
    size_t largest;
    bool differs;
} kept;

static int kept_data(void *ctx, const struct plog_data *data, void *out, size_t len,
                     uint64_t offset, struct error *err)
{
    uint64_t sum;
    (void)ctx;
    kept.calls++;
    kept.largest = len > kept.largest ? len : kept.largest;
    assert_true(offset + len <= data->bytes && data->bytes <= FILE_MAX);
    const int code = kept.memory.read(kept.memory.ctx, data->segment, out, len, offset, err);
    memcpy(&sum, data->sums, sizeof sum);
    if (code == 0 && len == data->bytes)
        assert_int_equal(XXH3_64bits(out, len), le64toh(sum));
    return kept.differs ? error_set(err, E_CORRUPT, "it differs") : code;
}

/* Extents are asked for as they are: the file keeps no blocks. */
static void test_a_store_that_keeps_data(void **state)
{
    struct fixture *x = *state;
    struct error err = ERROR_INIT;
    char bytes[FILE_MAX], want[FILE_MAX];
    size_t got;
    kept.memory = x->st;
    struct plog_file *f = open_file(x, &to_write);
    for (size_t i = 0; i < FILE_MAX / 4; i++) {
        const char text[] = {(char)('a' + i % 26), 0};
        write_text(f, text, FILE_MAX - 2 - 4 * i);
        want[FILE_MAX - 2 - 4 * i] = text[0];
    }
    assert_int_equal(plog_file_close(f, NULL), 0);
    x->st.data = kept_data;
    f = open_file(x, &to_read);
    assert_int_equal(plog_file_read(f, bytes, 9, 2, &got, NULL), 0);
    assert_true(got == 9 && kept.calls == 3 && kept.largest == 1);
    assert_true(bytes[0] == want[2] && bytes[1] == 0 && bytes[4] == want[6]);
    assert_int_equal(plog_file_read(f, bytes, FILE_MAX, 0, &got, NULL), 0);
    assert_true(got == FILE_MAX - 1 && kept.calls == 3 + FILE_MAX / 4 && kept.largest == 1);
    for (size_t i = 2; i < got; i += 4)
        assert_int_equal(bytes[i], want[i]);
    kept.differs = true;
    assert_int_equal(plog_file_read(f, bytes, 1, 2, &got, &err), E_CORRUPT);
    assert_non_null(strstr(err.message, "/s/"));
    plog_file_drop(f);
}

/* A walk shows what is seen, and takes no time for holes. */
static void test_walk(void **state)
{
    struct fixture *x = *state;
    size_t found[2] = {0, 0};
    struct plog_file *f = open_file(x, &to_write);
    assert_int_equal(plog_file_walk(f, true, count_extents, found, NULL), 0);
    assert_int_equal(found[0], 0);
    write_text(f, "aaaa", 0);
    write_text(f, "bb", 1);
    write_text(f, "end", PLOG_OFFSET_MAX - 10);
    assert_int_equal(plog_file_walk(f, true, count_extents, found, NULL), 0);
    assert_true(found[0] == 4 && found[1] == 0);
    assert_int_equal(plog_file_cut(f, 2, NULL), 0);
    assert_int_equal(plog_file_walk(f, true, count_extents, found, NULL), 0);
    assert_int_equal(found[0], 4 + 2);
    assert_int_equal(plog_file_close(f, NULL), 0);
}

/* --- random ----------------------------------------------------------------------------------- */

struct random_run {
    struct fixture *x;
    struct rng rng;
    struct plog_file *files[HANDLES];
    char plain[FILE_MAX];
    uint64_t size;
};

#define AGAIN(call)                        \
    do {                                   \
        while ((call) != 0)                \
            assert_true(++tries < 100000); \
    } while (0)

static void check_all(struct random_run *r)
{
    char bytes[FILE_MAX + 10];
    size_t got;
    int tries = 0;
    struct plog_file *f;
    AGAIN(plog_file_open(&r->x->st, FIXTURE_FILE, &to_read, &f, NULL));
    AGAIN(plog_file_read(f, bytes, sizeof bytes, 0, &got, NULL));
    assert_int_equal(got, r->size);
    assert_memory_equal(bytes, r->plain, got);
    const uint64_t from = rng_below(&r->rng, FILE_MAX), len = rng_below(&r->rng, FILE_MAX);
    AGAIN(plog_file_read(f, bytes, len, from, &got, NULL));
    if (got > 0)
        assert_memory_equal(bytes, r->plain + from, got);
    assert_int_equal(plog_file_close(f, NULL), 0);
}

static void change(struct random_run *r, struct plog_file *f)
{
    char bytes[60];
    int tries = 0;
    const uint64_t offset = rng_below(&r->rng, FILE_MAX - sizeof bytes);
    const uint64_t len = 1 + rng_below(&r->rng, sizeof bytes);
    if (rng_below(&r->rng, 6) == 0) {
        AGAIN(plog_file_cut(f, offset, NULL));
        memset(r->plain + offset, 0, FILE_MAX - offset);
        r->size = offset;
        return;
    }
    for (uint64_t i = 0; i < len; i++)
        bytes[i] = (char)(1 + rng_below(&r->rng, 127));
    AGAIN(plog_file_write(f, bytes, len, offset, NULL));
    memcpy(r->plain + offset, bytes, len);
    r->size = offset + len > r->size ? offset + len : r->size;
}

/* One handle at a time changes the file, and syncs; the store fails now and then.  Some handles are
 * closed and opened again, some die, some are taken for dead and go on. */
static void test_random(void **state)
{
    struct random_run r = {.x = *state};
    struct plog_file_how how = to_write;
    int tries = 0;
    how.segment_bytes = 100;
    how.refresh_ms = 5;
    for (uint64_t round = 0; round < 1000; round++) {
        rng_seed(&r.rng, round);
        r.x->memory.fails_one_in = round % 3 == 0 ? 0 : 3 + rng_below(&r.rng, 20);
        struct plog_file **f = &r.files[rng_below(&r.rng, HANDLES)];
        if (*f == NULL)
            AGAIN(plog_file_open(&r.x->st, FIXTURE_FILE, &how, f, NULL));
        for (uint64_t i = rng_below(&r.rng, 8); i > 0; i--)
            change(&r, *f);
        if (rng_below(&r.rng, 4) == 0) {
            if (rng_below(&r.rng, 2) == 0)
                (void)plog_file_sync(*f, NULL); /* where it fails, the close does its work */
            AGAIN(plog_file_close(*f, NULL));
            *f = NULL;
        } else {
            AGAIN(plog_file_sync(*f, NULL));
        }
        if (*f != NULL && rng_below(&r.rng, 10) == 0) {
            plog_file_drop(*f); /* it dies; all of it is synced */
            *f = NULL;
        }
        if (rng_below(&r.rng, 10) == 0) {
            struct plog_watch watch = {.count = 0};
            enum plog_merge_result result;
            AGAIN(plog_merge(&r.x->st, FIXTURE_FILE, &watch, 0, 0, &result, NULL));
            plog_watch_done(&watch);
        }
        check_all(&r);
        if (round % 100 == 99) { /* the container does not grow for ever */
            for (size_t i = 0; i < HANDLES; i++) {
                plog_file_drop(r.files[i]);
                r.files[i] = NULL;
            }
            r.x->memory.fails_one_in = 0;
            assert_int_equal(plog_unlink(&r.x->st, FIXTURE_FILE, NULL), 0);
            memory_store_done(&r.x->memory);
            memset(r.plain, 0, sizeof r.plain);
            r.size = 0;
        }
    }
    for (size_t i = 0; i < HANDLES; i++)
        plog_file_drop(r.files[i]);
}

/* A reader is of the plog that it has opened, whatever has the name later. */
static void test_a_read_after_a_replacement(void **state)
{
    struct fixture *x = *state;
    char bytes[FILE_MAX];
    size_t got;
    struct plog_file *w = open_file(x, &to_write), *f = open_file(x, &to_read);
    write_text(w, "old", 0);
    assert_int_equal(plog_file_sync(w, NULL), 0);
    struct plog_file_how of_it = to_read;
    char id[PLOG_ID_CHARS + 1];
    snprintf(id, sizeof id, "%s", plog_file_id(w));
    of_it.open.id = id;
    assert_int_equal(plog_unlink(&x->st, FIXTURE_FILE, NULL), 0);
    struct plog_file *other = open_file(x, &to_write), *named;
    write_text(other, "new", 0);
    assert_int_equal(plog_file_close(other, NULL), 0);
    plog_file_renew(f);
    plog_file_renew(w);
    assert_int_equal(plog_file_read(f, bytes, sizeof bytes, 0, &got, NULL), E_PRECONDITION);
    assert_int_equal(plog_file_read(w, bytes, sizeof bytes, 0, &got, NULL), E_PRECONDITION);
    assert_int_equal(plog_file_open(&x->st, FIXTURE_FILE, &of_it, &named, NULL), E_PRECONDITION);
    plog_file_drop(f);
    plog_file_drop(w);
    need_text(x, "new");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_write_and_read),
        TEST(test_phases_are_ordered),
        TEST(test_known_defects),
        TEST(test_opening),
        TEST(test_truncate_and_unlink),
        TEST(test_truncate_while_others_write),
        TEST(test_truncate_of_an_empty_file),
        TEST(test_truncate_of_another_file),
        TEST(test_container_is_left),
        TEST(test_unlink_of_a_head_that_moves),
        TEST(test_index_too_large),
        TEST(test_recovery),
        TEST(test_damage),
        TEST(test_a_store_that_keeps_data),
        TEST(test_walk),
        TEST(test_a_read_after_a_replacement),
        TEST(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
