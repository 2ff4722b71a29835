#include "api/identity/token_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define SECRET "0123456789012345678901234567890123456789"

static char home[] = "/tmp/dfc-token-cache-XXXXXX";

static struct token_cache cache_of(const char *endpoints, const char *access, const char *secret)
{
    struct token_cache t;
    token_cache_init(&t, endpoints, access, secret);
    return t;
}

static void put(const struct token_cache *t, const char *text, uint64_t expires_ms)
{
    const struct kept_token token = {(char *)text, expires_ms / 2, expires_ms};
    token_cache_put(t, 0, &token);
}

/* "": none. */
static void assert_kept(const struct token_cache *t, uint64_t now_ms, const char *text)
{
    struct kept_token kept = {NULL, 0, 0};
    bool found = token_cache_get(t, now_ms, &kept);
    assert_string_equal(found ? kept.text : "", text);
    if (found)
        secret_free(kept.text);
}

static int setup(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", home, 1);
    token_cache_remove("KEY", SECRET);
    return 0;
}

static void a_token_is_of_its_key_and_endpoints(void **state)
{
    (void)state;
    struct token_cache one = cache_of("http://a:1", "KEY", SECRET);
    struct token_cache other = cache_of("http://b:1", "KEY", SECRET);
    struct token_cache wrong = cache_of("http://a:1", "KEY", "wrong");
    struct token_cache stranger = cache_of("http://a:1", "OTHER", SECRET);
    assert_kept(&one, 0, "");
    put(&one, "t-one", 1000);
    put(&other, "t-other", 2000);
    assert_kept(&one, 0, "t-one");
    assert_kept(&other, 0, "t-other");
    assert_kept(&wrong, 0, "");
    assert_kept(&stranger, 0, "");
    token_cache_drop(&one, "t-another");
    assert_kept(&one, 0, "t-one");
    token_cache_drop(&one, "t-one");
    assert_kept(&one, 0, "");
    assert_kept(&other, 0, "t-other");
    token_cache_remove("KEY", SECRET);
    assert_kept(&other, 0, "");
    struct token_cache *all[] = {&one, &other, &wrong, &stranger};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        token_cache_done(all[i]);
}

static void a_token_ends(void **state)
{
    (void)state;
    struct token_cache one = cache_of("http://a:1", "KEY", SECRET);
    struct token_cache other = cache_of("http://b:1", "KEY", SECRET);
    struct kept_token kept;
    put(&one, "t-one", 1000);
    assert_true(token_cache_get(&one, 999, &kept));
    assert_int_equal(kept.renew_ms, 500);
    assert_int_equal(kept.expires_ms, 1000);
    secret_free(kept.text);
    assert_kept(&one, 1000, "");
    token_cache_put(&other, 1000, &(struct kept_token){(char *)"t", 1, 3000});
    assert_kept(&one, 0, ""); /* what has ended goes with the next write */
    token_cache_done(&one);
    token_cache_done(&other);
}

static void a_file_that_cannot_be_used_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "[]", "{\"http://a:1\": 1}", "{\"http://a:1\": {\"token\": \"t\"}}",
        "{\"http://a:1\": {\"token\": \"a b\", \"renew_ms\": 1, \"expires_ms\": 9}}"};
    struct token_cache one = cache_of("http://a:1", "KEY", SECRET);
    struct stat st;
    put(&one, "t-one", 1000);
    assert_int_equal(stat(one.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(chmod(one.path, 0644), 0);
    assert_kept(&one, 0, ""); /* others may have read it */
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *f = fopen(one.path, "w");
        fputs(texts[i], f);
        fclose(f);
        assert_int_equal(chmod(one.path, 0600), 0);
        assert_kept(&one, 0, "");
    }
    put(&one, "t-one", 1000);
    assert_kept(&one, 0, "t-one");
    token_cache_done(&one);
}

static void without_a_place_nothing_is_kept(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    struct token_cache one = cache_of("http://a:1", "KEY", SECRET);
    put(&one, "t-one", 1000);
    assert_kept(&one, 0, "");
    token_cache_done(&one);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    one = cache_of("http://a:1", "KEY", SECRET);
    assert_null(one.path);
    put(&one, "t-one", 1000);
    assert_kept(&one, 0, "");
    token_cache_drop(&one, "t-one");
    token_cache_done(&one);
}

static int make_home(void **state)
{
    (void)state;
    return mkdtemp(home) != NULL ? 0 : -1;
}

static int remove_home(void **state)
{
    (void)state;
    _cleanup_free_ char *directory = xprintf("%s/dfc", home);
    setenv("XDG_CACHE_HOME", home, 1);
    token_cache_remove("KEY", SECRET);
    rmdir(directory);
    return rmdir(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_token_is_of_its_key_and_endpoints, setup),
        cmocka_unit_test_setup(a_token_ends, setup),
        cmocka_unit_test_setup(a_file_that_cannot_be_used_is_none, setup),
        cmocka_unit_test_setup(without_a_place_nothing_is_kept, setup),
    };
    return cmocka_run_group_tests_name("token_cache", tests, make_home, remove_home);
}
