#include "api/ctl/upload/upload_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "api/ctl/upload/upload_parts.h"
#include "common/mem.h"

static char directory[64], source[96];

static int setup(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/upload-state-XXXXXX");
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(source, sizeof source, "%s/file", directory);
    FILE *file = fopen(source, "w");
    setenv("XDG_CACHE_HOME", directory, 1);
    return file == NULL ? -1 : fclose(file);
}

static int teardown(void **state)
{
    (void)state;
    char path[128];
    unlink(source);
    snprintf(path, sizeof path, "%s/dfc/uploads", directory);
    rmdir(path);
    snprintf(path, sizeof path, "%s/dfc", directory);
    rmdir(path);
    return rmdir(directory);
}

static struct upload_state opened(const char *key, uint64_t size, const char *about)
{
    struct upload_state s = {.bucket = "b",
                             .key = key,
                             .size = size,
                             .part_size = 10,
                             .modified_ns = INT64_MAX,
                             .about = xstrdup(about)};
    upload_state_open(&s, source);
    return s;
}

static void keep(struct upload_state *s, const char *upload)
{
    s->upload = xstrdup(upload);
    upload_state_keep(s);
}

static void an_upload_is_found_again(void **state)
{
    (void)state;
    struct upload_state s = opened("k", UINT32_MAX, "type\n");
    assert_non_null(s.path);
    assert_null(s.upload);
    keep(&s, "U1");
    upload_state_done(&s);

    s = opened("k", UINT32_MAX, "type\n");
    assert_string_equal(s.upload, "U1");
    assert_null(s.stale);
    struct upload_state other = opened("k2", UINT32_MAX, "type\n"); /* another object */
    assert_null(other.upload);
    assert_null(other.stale);
    upload_state_drop(&other);
    upload_state_done(&other);
    upload_state_drop(&s);
    upload_state_done(&s);

    s = opened("k", UINT32_MAX, "type\n");
    assert_null(s.upload);
    upload_state_drop(&s);
    upload_state_done(&s);
}

static void another_version_is_stale(void **state)
{
    (void)state;
    struct upload_state s = opened("k", 100, "type\n");
    keep(&s, "U1 with a name that is longer than the next one");
    upload_state_done(&s);
    s = opened("k", 101, "type\n");
    assert_null(s.upload);
    assert_string_equal(s.stale, "U1 with a name that is longer than the next one");
    keep(&s, "U2");
    upload_state_done(&s);
    s = opened("k", 101, "other\n");
    assert_string_equal(s.stale, "U2");
    upload_state_drop(&s);
    upload_state_done(&s);
}

static void one_program_has_it(void **state)
{
    (void)state;
    struct upload_state s = opened("k", 100, "");
    keep(&s, "U1");
    struct upload_state second = opened("k", 100, "");
    assert_null(second.path);
    assert_null(second.upload);
    keep(&second, "U2"); /* which is nothing */
    upload_state_drop(&second);
    upload_state_done(&second);
    upload_state_done(&s);
    s = opened("k", 100, "");
    assert_string_equal(s.upload, "U1");
    upload_state_drop(&s);
    upload_state_done(&s);
}

static void garbage_is_no_state(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "{\"upload\": \"\"}",
                                        "{\"upload\": 7}",
                                        "{\"upload\": \"u\", \"bucket\": \"b\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct upload_state s = opened("k", 100, "");
        assert_int_equal(ftruncate(s.fd, 0), 0);
        assert_int_equal(pwrite(s.fd, texts[i], strlen(texts[i]), 0), strlen(texts[i]));
        upload_state_done(&s);
        s = opened("k", 100, "");
        assert_null(s.upload);
        assert_null(s.stale);
        upload_state_drop(&s);
        upload_state_done(&s);
    }
}

static void without_a_directory_there_is_no_state(void **state)
{
    (void)state;
    static const char *const caches[] = {"", "relative", "/dev/null"};
    setenv("HOME", "relative", 1);
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        setenv("XDG_CACHE_HOME", caches[i], 1);
        struct upload_state s = opened("k", 100, "");
        assert_null(s.path);
        keep(&s, "U1");
        upload_state_drop(&s);
        upload_state_done(&s);
    }
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    struct upload_state s = opened("k", 100, "");
    assert_null(s.path);
    upload_state_done(&s);
}

static void there_are_at_most_10000_parts(void **state)
{
    (void)state;
    assert_int_equal(upload_part_size(1, 5), 5);
    assert_int_equal(upload_part_size(50000, 5), 5);
    assert_int_equal(upload_part_size(50001, 5), 6);
    assert_int_equal(upload_part_size(UINT64_MAX, 5), UINT64_MAX / 10000 + 1);
}

int main(void)
{
#define EACH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        EACH(an_upload_is_found_again),
        EACH(another_version_is_stale),
        EACH(one_program_has_it),
        EACH(garbage_is_no_state),
        EACH(without_a_directory_there_is_no_state),
        cmocka_unit_test(there_are_at_most_10000_parts),
    };
    return cmocka_run_group_tests_name("upload_state", tests, NULL, NULL);
}
