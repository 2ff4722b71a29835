/* Puts whose MD5 threads compute while the file grows: object_put_spec.md5. */
#include "target/store/file_md5.h"

#include "common/semaphores.h"
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

static struct object_put *put_with(struct pool *threads, const char *name, uint64_t size)
{
    struct object_put_spec spec = spec_of(name, DURABILITY_ASYNC);
    struct object_put *p;
    spec.size = size;
    spec.md5 = threads;
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

static void assert_md5(const char *name, const char *data, size_t len)
{
    struct object o;
    struct checksum *md5 = checksum_new(CHECKSUM_MD5);
    struct checksum_value value;
    char hex[2 * CHECKSUM_MAX + 1];
    checksum_update(md5, data, len);
    checksum_final(md5, &value);
    checksum_free(md5);
    checksum_hex(&value, hex);
    assert_int_equal(object_head(fx.store, BUCKET, name, &o, NULL), 0);
    assert_string_equal(attr_meta_find(&o.attr, ATTR_MD5), hex);
}

static struct pool *new_pool(size_t queue)
{
    struct pool *threads;
    assert_int_equal(pool_new("hasher", 2, queue, &threads, NULL), 0);
    return threads;
}

/* On both sides of what the writer computes itself, gathered and not, announced and not. */
static void it_is_the_md5_of_all_bytes(void **unused)
{
    (void)unused;
    static const size_t sizes[] = {
        0, 1, FILE_MD5_SMALL - 1, FILE_MD5_SMALL, FILE_MD5_SMALL + 1, (1 << 20) + 7, BYTES};
    struct pool *threads = new_pool(64);
    _cleanup_free_ char *data = bytes_of(BYTES);
    for (size_t i = 0; i < 4 * (sizeof sizes / sizeof *sizes); i++) {
        size_t len = sizes[i / 4], piece = i % 2 == 0 ? 300 * 1000 : 1000, n;
        struct object_put *p = put_with(threads, "a", i % 4 < 2 ? len : OBJECT_SIZE_UNKNOWN);
        for (size_t at = 0; at < len; at += n) {
            n = len - at < piece ? len - at : piece;
            assert_int_equal(object_put_write(p, data + at, n, NULL), 0);
        }
        assert_int_equal(await_and_commit(p, NULL), 0);
        assert_md5("a", data, len);
    }
    pool_free(threads);
}

/* Threads that still read a file leave it. */
static void a_put_may_be_aborted_at_any_time(void **unused)
{
    (void)unused;
    struct pool *threads = new_pool(64);
    _cleanup_free_ char *data = bytes_of(BYTES);
    for (size_t i = 0; i < 20; i++) {
        struct object_put *p = put_with(threads, "a", BYTES);
        assert_int_equal(object_put_write(p, data, BYTES / 20 * (i + 1), NULL), 0);
        object_put_abort(p);
    }
    pool_free(threads);
    assert_no_leftovers();
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
    struct pool *threads = new_pool(1);
    _cleanup_free_ char *data = bytes_of(BYTES);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pool_submit(threads, hold, &h, NULL), 0);
        semaphore_wait(&h.entered);
    }
    assert_int_equal(pool_submit(threads, hold, &h, NULL), 0);
    struct object_put *p = put_with(threads, "full", BYTES);
    assert_int_equal(object_put_write(p, data, BYTES, NULL), 0);
    assert_int_equal(await_and_commit(p, NULL), E_OVERLOAD);
    for (unsigned i = 0; i < THREADS + 1; i++)
        sem_post(&h.open);
    pool_free(threads);
    sem_destroy(&h.open);
    sem_destroy(&h.entered);
    assert_text("full", NULL);
    assert_no_leftovers();
}

/* The bytes that were gathered cannot be written. */
static void a_failing_disk_leaves_nothing(void **unused)
{
    (void)unused;
    struct pool *threads = new_pool(64);
    struct object_put *p = put_with(threads, "a", OBJECT_SIZE_UNKNOWN);
    assert_int_equal(object_put_write(p, "some", 4, NULL), 0);
    assert_int_equal(fault_configure("disk.write=EIO", NULL), 0);
    assert_int_equal(await_and_commit(p, NULL), E_IO);
    fault_configure(NULL, NULL);
    pool_free(threads);
    assert_text("a", NULL);
    assert_no_leftovers();
}

/* Metadata of a client is kept, and the tag left out. */
static void metadata_may_leave_it_no_room(void **unused)
{
    (void)unused;
    struct pool *threads = new_pool(64);
    char meta[ATTR_META_MAX] = "m";
    memset(meta + 2, 'v', sizeof meta - 3);
    struct object_put_spec spec = spec_of("long", DURABILITY_ASYNC);
    struct object_put *p;
    struct object o;
    spec.size = 0;
    spec.md5 = threads;
    spec.meta = meta;
    spec.meta_len = sizeof meta;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
    assert_int_equal(await_and_commit(p, NULL), 0);
    assert_int_equal(object_head(fx.store, BUCKET, "long", &o, NULL), 0);
    assert_null(attr_meta_find(&o.attr, ATTR_MD5));
    assert_int_equal(o.attr.meta_len, sizeof meta);
    pool_free(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(it_is_the_md5_of_all_bytes),     store_test(a_put_may_be_aborted_at_any_time),
        store_test(a_pool_that_is_full_refuses_it), store_test(a_failing_disk_leaves_nothing),
        store_test(metadata_may_leave_it_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
