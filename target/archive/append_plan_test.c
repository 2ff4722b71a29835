/* Which names and formats are taken; that a plan is what it should be, tests/blackbox/append.py and
 * the fuzzer say. */
#include "target/archive/append_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/mem.h"
#include "sort/shard/tar_make.h"

static void names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool taken;
    } rows[] = {
        {"a", true},      {"a/b", true},   {"..a", true},      {"a..", true},     {"a/..b/c", true},
        {"./a", true},    {"...", true},   {"", false},        {"/", false},      {"/a", false},
        {"..", false},    {"../a", false}, {"a/..", false},    {"a/../b", false}, {"a//..", false},
        {"\xff/b", true}, {"a b", true},   {"a/..//b", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        const char *name = rows[i].name;
        if ((append_name_check(name, strlen(name), &err) == 0) != rows[i].taken)
            fail_msg("'%s': %s", name, err.message);
    }
    struct error err = ERROR_INIT;
    assert_int_equal(append_name_check("a\0b", 3, &err), E_INVALID);
    char *longest = xmalloc(TAR_PATH_MAX + 1);
    memset(longest, 'a', TAR_PATH_MAX + 1);
    assert_int_equal(append_name_check(longest, TAR_PATH_MAX, &err), 0);
    assert_int_equal(append_name_check(longest, TAR_PATH_MAX + 1, &err), E_INVALID);
    free(longest);
}

static void formats(void **state)
{
    (void)state;
    enum append_format f;
    unsigned char head[512] = {0};
    struct error err = ERROR_INIT;
    assert_true(append_format_of(head, 0, &f) && f == APPEND_TAR);
    assert_true(append_format_of(head, 512, &f) && f == APPEND_TAR);
    assert_false(append_format_of(head, 511, &f));
    head[511] = 1;
    assert_false(append_format_of(head, 512, &f));
    assert_true(append_format_of((const unsigned char *)"PK\3\4", 4, &f) && f == APPEND_ZIP);
    assert_true(append_format_of((const unsigned char *)"PK\5\6", 4, &f) && f == APPEND_ZIP);
    assert_false(append_format_of((const unsigned char *)"PK\3", 3, &f));
    assert_true(append_format_of_name("d/a.tar", &f, &err) == 0 && f == APPEND_TAR);
    assert_true(append_format_of_name("d/a.zip", &f, &err) == 0 && f == APPEND_ZIP);
    assert_int_equal(append_format_of_name("d/a.tar.gz", &f, &err), E_NOT_ARCHIVE);
    assert_int_equal(append_format_of_name(".tar", &f, &err), E_NOT_ARCHIVE);
}

/* --- one that must stop ----------------------------------------------------------------------- */

static int stop(void *ctx, struct error *err)
{
    (void)ctx;
    return error_set(err, E_NOT_READY, "the target stops");
}

static void a_stop(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct append_plan p;
    int fd = memfd_create("body", MFD_CLOEXEC);
    assert_int_equal(write(fd, "body", 4), 4);
    struct append_input in = {.format = APPEND_ZIP,
                              .old = {.shard = "o"},
                              .body = {.fd = fd, .size = 4, .member = "m", .go_on = stop}};
    assert_int_equal(append_plan_make(&in, &p, &err), E_NOT_READY);
    in.body.member = NULL;
    assert_int_equal(append_plan_make(&in, &p, &err), E_NOT_READY);
    close(fd);
}

static int go_on(void *ctx, struct error *err)
{
    (void)ctx;
    (void)err;
    return 0;
}

/* A tar of empty files. */
static int body_of(unsigned members, uint64_t *size)
{
    struct buf tar = BUF_INIT;
    static const char end[1024];
    for (unsigned i = 0; i < members; i++) {
        char name[32];
        const int len = snprintf(name, sizeof name, "member-%06u", i);
        const struct tar_made made = {.path = name, .path_len = (size_t)len, .type = '0'};
        tar_make_headers(&tar, &made);
    }
    buf_append(&tar, end, sizeof end);
    int fd = memfd_create("body", MFD_CLOEXEC);
    assert_int_equal(write(fd, tar.data, tar.len), tar.len);
    *size = tar.len;
    buf_done(&tar);
    return fd;
}

static void memory_is_bounded(void **state)
{
    (void)state;
    enum { MEMBERS = 1000, LEAST = 100 }; /* bytes that a member takes */
    static const enum append_format formats_of[] = {APPEND_TAR, APPEND_ZIP};
    for (size_t i = 0; i < 2; i++) {
        struct append_plan p;
        struct error err = ERROR_INIT;
        struct append_input in = {.format = formats_of[i],
                                  .old = {.shard = "o"},
                                  .body = {.go_on = go_on, .memory_max = (uint64_t)1 << 20}};
        in.body.fd = body_of(MEMBERS, &in.body.size);
        assert_int_equal(append_plan_make(&in, &p, &err), 0);
        append_plan_done(&p);
        in.body.memory_max = (uint64_t)LEAST * MEMBERS;
        assert_int_equal(append_plan_make(&in, &p, &err), E_ARCHIVE_LIMIT);
        assert_non_null(strstr(err.message, "archive_append_memory"));
        append_plan_done(&p);
        close(in.body.fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(formats),
        cmocka_unit_test(a_stop),
        cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
