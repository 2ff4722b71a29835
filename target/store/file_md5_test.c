/* Puts whose MD5 threads compute while the file grows: object_put_spec.md5. */
#include "target/store/file_md5.h"

#include "common/md5.h"
#include "common/semaphores.h"
#include "io/file.h"
#include "io/pool.h"
#include "target/testing/store_fixture.h"

enum { BYTES = 5 << 20 };

static void woken(void *arg)
{
    sem_post(arg);
}

static char *bytes_of(size_t len)
{
    char *data = xmalloc(len + 1);
    for (size_t i = 0; i < len; i++)
        data[i] = (char)(i * 31 + i / 4093);
    return data;
}

static struct object_put *put_with(struct hashers *hashers, const char *name, uint64_t size)
{
    struct object_put_spec spec = spec_of(name, DURABILITY_ASYNC);
    struct object_put *p;
    spec.size = size;
    spec.md5 = hashers;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
    return p;
}

static int await_and_commit(struct object_put *p, struct error *err)
{
    sem_t known;
    sem_init(&known, 0, 0);
    object_put_await_md5(p, woken, &known);
    semaphore_wait(&known);
    sem_destroy(&known);
    return object_put_commit_wait(p, err);
}

static void md5_of(const char *data, size_t len, char hex[static 2 * CHECKSUM_MAX + 1])
{
    struct checksum *md5 = checksum_new(CHECKSUM_MD5);
    struct checksum_value value;
    checksum_update(md5, data, len);
    checksum_final(md5, &value);
    checksum_free(md5);
    checksum_hex(&value, hex);
}

static void assert_md5(const char *name, const char *data, size_t len)
{
    struct object o;
    char hex[2 * CHECKSUM_MAX + 1];
    md5_of(data, len, hex);
    assert_int_equal(object_head(fx.store, BUCKET, name, &o, NULL), 0);
    assert_string_equal(attr_meta_find(&o.attr, ATTR_MD5), hex);
}

static struct hashers *new_hashers(size_t queue, struct pool **threads)
{
    assert_int_equal(pool_new("hasher", 2, queue, threads, NULL), 0);
    return hashers_new(*threads);
}

/* On both sides of what the writer computes itself, gathered and not, announced and not. */
static void it_is_the_md5_of_all_bytes(void **unused)
{
    (void)unused;
    static const size_t sizes[] = {
        0, 1, FILE_MD5_SMALL - 1, FILE_MD5_SMALL, FILE_MD5_SMALL + 1, (1 << 20) + 7, BYTES};
    struct pool *threads;
    struct hashers *hashers = new_hashers(64, &threads);
    _cleanup_free_ char *data = bytes_of(BYTES);
    for (size_t i = 0; i < 4 * (sizeof sizes / sizeof *sizes); i++) {
        size_t len = sizes[i / 4], piece = i % 2 == 0 ? 300 * 1000 : 1000, n;
        struct object_put *p = put_with(hashers, "a", i % 4 < 2 ? len : OBJECT_SIZE_UNKNOWN);
        for (size_t at = 0; at < len; at += n) {
            n = len - at < piece ? len - at : piece;
            assert_int_equal(object_put_write(p, data + at, n, NULL), 0);
        }
        assert_int_equal(await_and_commit(p, NULL), 0);
        assert_md5("a", data, len);
    }
    hashers_free(hashers);
}

/* More files than two threads have lanes for.  They grow in turns, and end at different lengths. */
static void many_files_grow_at_once(void **unused)
{
    (void)unused;
    enum { FILES = 3 * MD5_LANES, ROUND = BYTES / 8 };
    struct pool *threads;
    struct hashers *hashers = new_hashers(64, &threads);
    _cleanup_free_ char *data = bytes_of(BYTES + FILES);
    struct object_put *puts[FILES];
    char name[16];
    for (size_t i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "many%zu", i);
        puts[i] = put_with(hashers, name, OBJECT_SIZE_UNKNOWN);
    }
    for (size_t round = 0; round < 8; round++)
        for (size_t i = 0; i < FILES; i++)
            if (i % 8 >= round)
                assert_int_equal(object_put_write(puts[i], data + i + round * ROUND, ROUND, NULL),
                                 0);
    for (size_t i = 0; i < FILES; i++) {
        assert_int_equal(await_and_commit(puts[i], NULL), 0);
        snprintf(name, sizeof name, "many%zu", i);
        assert_md5(name, data + i, (i % 8 + 1) * ROUND);
    }
    hashers_free(hashers);
}

/* Threads that still read a file leave it. */
static void a_put_may_be_aborted_at_any_time(void **unused)
{
    (void)unused;
    struct pool *threads;
    struct hashers *hashers = new_hashers(64, &threads);
    _cleanup_free_ char *data = bytes_of(BYTES);
    for (size_t i = 0; i < 20; i++) {
        struct object_put *p = put_with(hashers, "a", BYTES);
        assert_int_equal(object_put_write(p, data, BYTES / 20 * (i + 1), NULL), 0);
        object_put_abort(p);
    }
    hashers_free(hashers);
    assert_no_leftovers();
}

/* Of files side by side one is shorter than its writer says, one is left, and one ends with an
 * error. */
enum { FAILING = MD5_LANES + 1, SHORT = 2, LEFT = 3, WRONG = 4 };

struct hashed {
    FILE *file;
    struct file_md5 *md5;
    sem_t known;
};

static void begin_hashed(struct hashers *hashers, struct hashed *h)
{
    h->file = tmpfile();
    assert_non_null(h->file);
    sem_init(&h->known, 0, 0);
    assert_int_equal(file_md5_new(hashers, fileno(h->file), 0, UINT64_MAX, &h->md5, NULL), 0);
}

static void write_hashed(struct hashed *h, const char *data, size_t len)
{
    assert_int_equal(file_pwrite_all(fileno(h->file), data, len, 0, NULL), 0);
    file_md5_wrote(h->md5, data, BYTES);
}

static void end_hashed(struct hashed *h, const char *data, const struct error *why, int code)
{
    char hex[2 * CHECKSUM_MAX + 1], want[2 * CHECKSUM_MAX + 1];
    file_md5_end(h->md5, why, woken, &h->known);
    semaphore_wait(&h->known);
    assert_int_equal(file_md5_result(h->md5, hex, NULL), code);
    md5_of(data, BYTES, want);
    if (code == 0)
        assert_string_equal(hex, want);
}

static void a_file_that_fails_leaves_the_others(void **unused)
{
    (void)unused;
    const struct error why = {.code = E_CANCELLED};
    struct pool *threads;
    struct hashers *hashers = new_hashers(64, &threads);
    _cleanup_free_ char *data = bytes_of(BYTES + FAILING);
    for (int round = 0; round < 20; round++) {
        struct hashed h[FAILING];
        for (size_t i = 0; i < FAILING; i++)
            begin_hashed(hashers, &h[i]);
        for (size_t i = 0; i < FAILING; i++)
            write_hashed(&h[i], data + i, i == SHORT ? BYTES - 1 : BYTES);
        for (size_t i = 0; i < FAILING; i++) {
            if (i != LEFT)
                end_hashed(&h[i], data + i, i == WRONG ? &why : NULL,
                           i == SHORT   ? E_LENGTH
                           : i == WRONG ? E_CANCELLED
                                        : 0);
            file_md5_unref(h[i].md5);
            sem_destroy(&h[i].known);
            fclose(h[i].file);
        }
    }
    hashers_free(hashers);
}

struct holding {
    sem_t entered, open;
};

static void hold(void *arg)
{
    struct holding *h = arg;
    sem_post(&h->entered);
    semaphore_wait(&h->open);
}

/* Two threads are busy and one job waits: the put fails, and nothing is stored. */
static void a_pool_that_is_full_refuses_it(void **unused)
{
    (void)unused;
    enum { THREADS = 2 };
    struct holding h;
    sem_init(&h.entered, 0, 0);
    sem_init(&h.open, 0, 0);
    struct pool *threads;
    struct hashers *hashers = new_hashers(1, &threads);
    _cleanup_free_ char *data = bytes_of(BYTES);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pool_submit(threads, hold, &h, NULL), 0);
        semaphore_wait(&h.entered);
    }
    assert_int_equal(pool_submit(threads, hold, &h, NULL), 0);
    struct object_put *p = put_with(hashers, "full", BYTES);
    assert_int_equal(object_put_write(p, data, BYTES, NULL), 0);
    assert_int_equal(await_and_commit(p, NULL), E_OVERLOAD);
    for (unsigned i = 0; i < THREADS + 1; i++)
        sem_post(&h.open);
    hashers_free(hashers);
    sem_destroy(&h.open);
    sem_destroy(&h.entered);
    assert_text("full", NULL);
    assert_no_leftovers();
}

/* The bytes that were gathered cannot be written. */
static void a_failing_disk_leaves_nothing(void **unused)
{
    (void)unused;
    struct pool *threads;
    struct hashers *hashers = new_hashers(64, &threads);
    struct object_put *p = put_with(hashers, "a", OBJECT_SIZE_UNKNOWN);
    assert_int_equal(object_put_write(p, "some", 4, NULL), 0);
    assert_int_equal(fault_configure("disk.write=EIO", NULL), 0);
    assert_int_equal(await_and_commit(p, NULL), E_IO);
    fault_configure(NULL, NULL);
    hashers_free(hashers);
    assert_text("a", NULL);
    assert_no_leftovers();
}

/* Metadata of a client is kept, and the tag left out. */
static void metadata_may_leave_it_no_room(void **unused)
{
    (void)unused;
    struct pool *threads;
    struct hashers *hashers = new_hashers(64, &threads);
    char meta[ATTR_META_MAX] = "m";
    memset(meta + 2, 'v', sizeof meta - 3);
    struct object_put_spec spec = spec_of("long", DURABILITY_ASYNC);
    struct object_put *p;
    struct object o;
    spec.size = 0;
    spec.md5 = hashers;
    spec.meta = meta;
    spec.meta_len = sizeof meta;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
    assert_int_equal(await_and_commit(p, NULL), 0);
    assert_int_equal(object_head(fx.store, BUCKET, "long", &o, NULL), 0);
    assert_null(attr_meta_find(&o.attr, ATTR_MD5));
    assert_int_equal(o.attr.meta_len, sizeof meta);
    hashers_free(hashers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(it_is_the_md5_of_all_bytes),
        store_test(a_put_may_be_aborted_at_any_time),
        store_test(many_files_grow_at_once),
        store_test(a_pool_that_is_full_refuses_it),
        store_test(a_failing_disk_leaves_nothing),
        store_test(metadata_may_leave_it_no_room),
        store_test(a_file_that_fails_leaves_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
