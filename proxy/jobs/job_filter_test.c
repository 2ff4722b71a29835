#include "proxy/jobs/job_filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"

/* Does the filter take a sort that is described so? */
static bool takes(const struct job_filter *f, const char *description)
{
    struct job *job = job_new("srt-1", "sort");
    job->description = description != NULL ? xstrdup(description) : NULL;
    bool yes = job_filter_takes(f, job, "queued");
    job_unref(job);
    return yes;
}

static void test_kind_and_state(void **state)
{
    (void)state;
    assert_true(takes(&(struct job_filter){0}, NULL));
    assert_true(takes(&(struct job_filter){.kind = "sort", .state = "queued"}, ""));
    assert_false(takes(&(struct job_filter){.kind = "copy"}, ""));
    assert_false(takes(&(struct job_filter){.kind = "sort", .state = "failed"}, ""));
}

static void test_a_kind_has_two_names_at_most(void **state)
{
    (void)state;
    struct job_filter f = {0};
    assert_int_equal(job_filter_kind(&f, "sort", NULL), 0);
    assert_string_equal(f.kind, "sort");
    assert_int_equal(job_filter_kind(&f, "trim_copies", NULL), 0);
    assert_string_equal(f.kind, "mirror");
    assert_int_equal(job_filter_kind(&f, "mirror", NULL), 0);
    assert_string_equal(f.kind, "mirror");
}

static void test_an_unknown_kind_is_refused_with_the_kinds(void **state)
{
    (void)state;
    static const char *const bad[] = {"sorts", "", "Sort"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct job_filter f = {0};
        struct error err = ERROR_INIT;
        assert_int_equal(job_filter_kind(&f, bad[i], &err), E_INVALID);
        assert_non_null(strstr(err.message, "'kind'"));
        assert_non_null(strstr(err.message, "sort, delete, copy"));
        assert_non_null(strstr(err.message, "trim_copies"));
    }
}

static void test_descriptions(void **state)
{
    (void)state;
    static const struct {
        const char *regex, *description;
        bool takes;
    } rows[] = {
        {"find.*42", "please find me 42", true},
        {"find.*42", "find me 4", false},
        {"^nightly( [0-9]+)?$", "nightly 7", true},
        {"^nightly( [0-9]+)?$", "not nightly", false},
        {"a|b", NULL, false},
        {"", NULL, true},
        {"caf\xc3\xa9", "the caf\xc3\xa9", true},
        {"\\{x\\}", "{x}", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job_filter f = {0};
        assert_int_equal(job_filter_regex(&f, rows[i].regex, NULL), 0);
        if (takes(&f, rows[i].description) != rows[i].takes)
            fail_msg("'%s': not %d", rows[i].regex, rows[i].takes);
        job_filter_done(&f);
    }
}

static void test_what_is_refused(void **state)
{
    (void)state;
    char longer[JOB_FILTER_REGEX_MAX + 2];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    const char *const bad[] = {"[",       "(", "a{2}", "((a{1,255}){1,255}){1,255}",
                               "(.)x\\1", "*", longer};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct job_filter f = {0};
        struct error err = ERROR_INIT;
        assert_int_equal(job_filter_regex(&f, bad[i], &err), E_INVALID);
        assert_non_null(strstr(err.message, "'regex'"));
        job_filter_done(&f);
    }
}

/* As a regex_t these take gigabytes. */
static void test_nested_repetitions_are_small(void **state)
{
    (void)state;
    char text[JOB_FILTER_REGEX_MAX];
    struct job_filter f = {0};
    size_t n = 50;
    memset(text, '(', n);
    text[n] = 'a';
    for (size_t i = 0; i < n; i++)
        memcpy(text + n + 1 + 2 * i, "+)", 3);
    assert_int_equal(job_filter_regex(&f, text, NULL), 0);
    assert_in_range(patterns_bytes(f.patterns), 1, 16384);
    assert_true(takes(&f, "bbaaab"));
    assert_false(takes(&f, "bbb"));
    job_filter_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kind_and_state),
        cmocka_unit_test(test_a_kind_has_two_names_at_most),
        cmocka_unit_test(test_an_unknown_kind_is_refused_with_the_kinds),
        cmocka_unit_test(test_descriptions),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_nested_repetitions_are_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
