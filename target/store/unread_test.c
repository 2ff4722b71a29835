/* Objects whose bytes go past the page cache: object_put_spec.unread. */
#include "target/testing/store_fixture.h"

#include <fcntl.h>

#include "io/direct.h"
#include "io/reader.h"

#define BYTES ((size_t)64 * DIRECT_BLOCK) /* a piece of that size is written as it is */

static char *aligned_text(void)
{
    char *text = xaligned(DIRECT_BLOCK, BYTES + DIRECT_BLOCK);
    for (size_t i = 0; i < BYTES; i++)
        text[i] = (char)('a' + (i + i / DIRECT_BLOCK) % 26);
    text[BYTES] = '\0';
    return text;
}

/* Descriptors of this process that are for such writes. */
static unsigned direct_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFL);
        count += flags >= 0 && (flags & O_DIRECT) != 0;
    }
    return count;
}

static void it_has_all_its_bytes(void **unused)
{
    (void)unused;
    static const size_t ends[] = {0, 1, 512, DIRECT_BLOCK, DIRECT_BLOCK + 512};
    _cleanup_free_ char *text = aligned_text();
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
        struct object_put *p;
        size_t len = BYTES - ends[i];
        spec.unread = true;
        spec.size = i % 2 == 0 ? len : OBJECT_SIZE_UNKNOWN;
        assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
        assert_int_equal(object_put_write(p, text, BYTES / 2, NULL), 0);
        assert_int_equal(object_put_write(p, text + BYTES / 2, len - BYTES / 2, NULL), 0);
        assert_int_equal(object_put_commit_wait(p, NULL), 0);
        _cleanup_free_ char *got = get_text("a");
        assert_int_equal(strlen(got), len);
        assert_memory_equal(got, text, len);
    }
    assert_no_leftovers();
}

static bool has_such_writes(void)
{
    int fd = open(fx.dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    bool can = fd >= 0 && fcntl(fd, F_SETFL, O_DIRECT) == 0;
    if (fd >= 0)
        close(fd);
    return can;
}

static void only_it_goes_past_the_page_cache(void **unused)
{
    (void)unused;
    _cleanup_free_ char *text = aligned_text();
    if (!has_such_writes())
        skip();
    for (unsigned unread = 0; unread < 2; unread++) {
        struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
        struct object_put *p;
        spec.unread = unread == 1;
        assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
        assert_int_equal(object_put_write(p, text, BYTES, NULL), 0);
        assert_int_equal(direct_descriptors(), unread);
        assert_int_equal(object_put_commit_wait(p, NULL), 0);
        assert_int_equal(direct_descriptors(), 0);
        assert_text("a", text);
    }
}

/* One who reads the growing file may ask for any bytes. */
static void a_shared_file_is_an_ordinary_one(void **unused)
{
    (void)unused;
    _cleanup_free_ char *text = aligned_text();
    struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
    struct object_put *p;
    struct reader *reader;
    int fd;
    char got[100];
    spec.unread = true;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
    assert_int_equal(object_put_write(p, text, BYTES, NULL), 0);
    assert_int_equal(object_put_share(p, &fd, &reader, NULL), 0);
    assert_int_equal(direct_descriptors(), 0);
    assert_int_equal(file_pread_full(fd, got, sizeof got, 7, NULL), 0);
    assert_memory_equal(got, text + 7, sizeof got);
    close(fd);
    reader_unref(reader);
    assert_int_equal(object_put_commit_wait(p, NULL), 0);
    assert_text("a", text);
}

static void a_failing_disk_leaves_nothing(void **unused)
{
    (void)unused;
    _cleanup_free_ char *text = aligned_text();
    struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
    spec.unread = true;
    assert_int_equal(fault_configure("disk.write=EIO", NULL), 0);
    assert_int_equal(put_bytes(&spec, text, BYTES, NULL), E_IO);
    fault_configure(NULL, NULL);
    assert_text("a", NULL);
    assert_no_leftovers();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(it_has_all_its_bytes),
        store_test(only_it_goes_past_the_page_cache),
        store_test(a_shared_file_is_an_ordinary_one),
        store_test(a_failing_disk_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
