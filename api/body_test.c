#include "api/body.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/types.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/mem.h"

static unsigned char pattern_at(size_t i)
{
    return (unsigned char)(i * 31 + i / 251);
}

/* A source of `size` bytes, `step` at most at once, that breaks at `broken`. */
struct fake {
    size_t size, at, step, broken;
    unsigned rewinds;
};

static ptrdiff_t fake_read(void *context, void *to, size_t room)
{
    struct fake *f = context;
    size_t n = f->size - f->at;
    n = n < f->step ? n : f->step;
    n = n < room ? n : room;
    if (f->broken > 0 && f->at + n >= f->broken)
        return -1;
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)to)[i] = pattern_at(f->at + i);
    f->at += n;
    return (ptrdiff_t)n;
}

static int fake_rewind(void *context)
{
    struct fake *f = context;
    f->at = 0;
    f->rewinds++;
    return 0;
}

static struct body *fake_body(struct fake *f, bool rewinds, int64_t size)
{
    const struct dfc_source source = {fake_read, rewinds ? fake_rewind : NULL, f, size};
    return body_from_source(&source);
}

/* Reads all, or `most` bytes; checks them; gives their number or the failure. */
static ptrdiff_t drain(struct body *b, size_t room, size_t most)
{
    struct dfc_error err;
    unsigned char *chunk = xmalloc(room);
    size_t got = 0;
    ptrdiff_t n = 0;
    while (got < most && (n = body_read(b, chunk, room, &err)) > 0) {
        for (ptrdiff_t i = 0; i < n; i++)
            assert_int_equal(chunk[i], pattern_at(got + (size_t)i));
        got += (size_t)n;
    }
    free(chunk);
    return n < 0 ? n : (ptrdiff_t)got;
}

static void a_short_source_is_as_good_as_memory(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 1000, BODY_KEPT_BYTES - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct fake f = {.size = sizes[i], .step = 777};
        struct body *b = fake_body(&f, false, -1);
        assert_int_equal(body_prime(b, NULL), DFC_OK);
        assert_int_equal(body_size(b), sizes[i]);
        for (int again = 0; again < 3; again++) {
            assert_int_equal(body_begin(b, NULL), DFC_OK);
            assert_int_equal(drain(b, 1000, SIZE_MAX), sizes[i]);
            assert_true(body_repeatable(b));
        }
        body_free(b);
    }
}

static void a_long_source_is_read_once(void **state)
{
    (void)state;
    struct dfc_error err;
    struct fake f = {.size = BODY_KEPT_BYTES * 3, .step = 5000};
    struct body *b = fake_body(&f, false, -1);
    assert_int_equal(body_prime(b, NULL), DFC_OK);
    assert_int_equal(body_size(b), -1);
    assert_int_equal(body_begin(b, NULL), DFC_OK);
    assert_int_equal(drain(b, 1024, BODY_KEPT_BYTES), BODY_KEPT_BYTES);
    assert_true(body_repeatable(b)); /* only kept bytes went out */
    assert_int_equal(body_begin(b, NULL), DFC_OK);
    assert_int_equal(drain(b, 1024, SIZE_MAX), f.size);
    assert_false(body_repeatable(b));
    assert_int_equal(body_begin(b, &err), DFC_LOCAL);
    body_free(b);
}

static void a_source_that_rewinds(void **state)
{
    (void)state;
    struct fake f = {.size = BODY_KEPT_BYTES * 2, .step = 5000};
    struct body *b = fake_body(&f, true, -1);
    assert_int_equal(body_prime(b, NULL), DFC_OK);
    for (unsigned again = 1; again <= 3; again++) {
        assert_int_equal(body_begin(b, NULL), DFC_OK);
        assert_int_equal(f.rewinds, again);
        assert_int_equal(drain(b, 1024, SIZE_MAX), f.size);
        assert_true(body_repeatable(b));
    }
    body_free(b);
}

static void sizes_are_kept(void **state)
{
    (void)state;
    struct fake f = {.size = 100, .step = 7};
    struct body *b = fake_body(&f, true, 90); /* the source has more */
    body_begin(b, NULL);
    assert_int_equal(drain(b, 64, SIZE_MAX), 90);
    body_free(b);
    f.at = 0;
    b = fake_body(&f, false, 110); /* the source has less */
    body_prime(b, NULL);
    body_begin(b, NULL);
    assert_int_equal(drain(b, 64, SIZE_MAX), DFC_LOCAL);
    body_free(b);
}

static void a_broken_source(void **state)
{
    (void)state;
    struct dfc_error err;
    struct fake f = {.size = 100, .step = 10, .broken = 50};
    struct body *b = fake_body(&f, false, -1);
    assert_int_equal(body_prime(b, &err), DFC_LOCAL);
    assert_string_equal(err.code, "io_error");
    body_free(b);
}

static int file_of(size_t size)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    for (size_t i = 0; i < size; i++)
        fputc(pattern_at(i), f);
    fflush(f);
    int fd = dup(fileno(f));
    fclose(f);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void files(void **state)
{
    (void)state;
    struct dfc_error err;
    struct body *b;
    int fd = file_of(5000);
    assert_int_equal(body_from_fd(fd, &b, &err), DFC_OK);
    assert_int_equal(body_size(b), 5000);
    for (int again = 0; again < 2; again++) {
        body_begin(b, NULL);
        assert_int_equal(drain(b, 999, SIZE_MAX), 5000);
    }
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    assert_int_equal(ftruncate(fd, 4000), 0); /* under our hands */
    body_begin(b, NULL);
    assert_int_equal(drain(b, 999, SIZE_MAX), DFC_LOCAL);
    body_free(b);
    lseek(fd, 3990, SEEK_SET);
    assert_int_equal(body_from_fd(fd, &b, &err), DFC_OK);
    assert_int_equal(body_size(b), 10);
    body_free(b);
    close(fd);
    fd = open("/", O_RDONLY);
    assert_int_equal(body_from_fd(fd, &b, &err), DFC_LOCAL);
    close(fd);
}

static void checksums(void **state)
{
    (void)state;
    struct checksum_value whole, seen;
    struct body *b;
    int fd = file_of(100000);
    assert_int_equal(body_from_fd(fd, &b, NULL), DFC_OK);
    assert_int_equal(body_checksum(b, CHECKSUM_XXH3, &whole, NULL), DFC_OK);
    assert_false(body_seen(b, &seen));
    body_free(b);
    close(fd);
    struct fake f = {.size = 100000, .step = 4096};
    b = fake_body(&f, true, -1);
    body_watch(b, CHECKSUM_XXH3);
    body_begin(b, NULL);
    drain(b, 512, 10000);
    body_begin(b, NULL); /* what a given up try sent does not count */
    drain(b, 512, SIZE_MAX);
    assert_true(body_seen(b, &seen));
    assert_true(checksum_equal(&whole, &seen));
    body_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_source_is_as_good_as_memory),
        cmocka_unit_test(a_long_source_is_read_once),
        cmocka_unit_test(a_source_that_rewinds),
        cmocka_unit_test(sizes_are_kept),
        cmocka_unit_test(a_broken_source),
        cmocka_unit_test(files),
        cmocka_unit_test(checksums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
