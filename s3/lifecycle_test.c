#include "s3/lifecycle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define LIFECYCLE(rules) "<LifecycleConfiguration>" rules "</LifecycleConfiguration>"
#define RULE(inside) "<Rule>" inside "</Rule>"
#define ON "<Status>Enabled</Status>"
#define OFF "<Status>Disabled</Status>"
#define FILTER(inside) "<Filter>" inside "</Filter>"
#define PREFIX(text) "<Prefix>" text "</Prefix>"
#define TAG(key, value) "<Tag><Key>" key "</Key><Value>" value "</Value></Tag>"
#define DAYS(n) "<Expiration><Days>" n "</Days></Expiration>"
#define FROM(date) "<Expiration><Date>" date "</Date></Expiration>"
#define MARKER(text) \
    "<Expiration><ExpiredObjectDeleteMarker>" text "</ExpiredObjectDeleteMarker></Expiration>"
#define ABORT(n)                                              \
    "<AbortIncompleteMultipartUpload><DaysAfterInitiation>" n \
    "</DaysAfterInitiation></AbortIncompleteMultipartUpload>"

enum { DAY = 86400, NOON = DAY / 2 };

static enum s3_error parse(struct arena *a, const char *body, struct s3_lifecycle *l)
{
    return s3_lifecycle_parse(body, strlen(body), a, l, NULL);
}

static const struct s3_tags red = {.tags = (struct s3_tag[]){{"colour", "red"}, {"x", "y"}},
                                   .count = 2};
static const struct s3_tags blue = {.tags = (struct s3_tag[]){{"colour", "blue"}}, .count = 1};

/* An object "logs/a" of 1000 bytes that was written on day 10 at noon. */
static const struct row {
    const char *rule;
    int64_t now_s;
    const struct s3_tags *tags;
    enum s3_lifecycle_verdict verdict;
} rows[] = {
    {ON FILTER("") DAYS("3"), 14 * DAY, NULL, S3_LIFECYCLE_EXPIRE},
    {ON FILTER("") DAYS("3"), 14 * DAY - 1, NULL, S3_LIFECYCLE_KEEP},
    {OFF FILTER("") DAYS("3"), 90 * DAY, NULL, S3_LIFECYCLE_KEEP},
    {ON PREFIX("logs/") DAYS("1"), 20 * DAY, NULL, S3_LIFECYCLE_EXPIRE},
    {ON FILTER(PREFIX("log/")) DAYS("1"), 20 * DAY, NULL, S3_LIFECYCLE_KEEP},
    {ON FILTER(PREFIX("logs/abc")) DAYS("1"), 20 * DAY, NULL, S3_LIFECYCLE_KEEP},
    {ON FILTER("<ObjectSizeGreaterThan>999</ObjectSizeGreaterThan>") DAYS("1"), 20 * DAY, NULL,
     S3_LIFECYCLE_EXPIRE},
    {ON FILTER("<ObjectSizeGreaterThan>1000</ObjectSizeGreaterThan>") DAYS("1"), 20 * DAY, NULL,
     S3_LIFECYCLE_KEEP},
    {ON FILTER("<ObjectSizeLessThan>1001</ObjectSizeLessThan>") DAYS("1"), 20 * DAY, NULL,
     S3_LIFECYCLE_EXPIRE},
    {ON FILTER("<ObjectSizeLessThan>1000</ObjectSizeLessThan>") DAYS("1"), 20 * DAY, NULL,
     S3_LIFECYCLE_KEEP},
    {ON FILTER(TAG("colour", "red")) DAYS("1"), 20 * DAY, NULL, S3_LIFECYCLE_NEEDS_TAGS},
    {ON FILTER(TAG("colour", "red")) DAYS("1"), 11 * DAY, NULL, S3_LIFECYCLE_KEEP},
    {ON FILTER(TAG("colour", "red")) DAYS("1"), 20 * DAY, &red, S3_LIFECYCLE_EXPIRE},
    {ON FILTER(TAG("colour", "red")) DAYS("1"), 20 * DAY, &blue, S3_LIFECYCLE_KEEP},
    {ON FILTER("<And>" PREFIX("logs/") TAG("colour", "red") TAG("x", "z") "</And>") DAYS("1"),
     20 * DAY, &red, S3_LIFECYCLE_KEEP},
    {ON FILTER("") FROM("1970-01-21"), 20 * DAY, NULL, S3_LIFECYCLE_EXPIRE},
    {ON FILTER("") FROM("1970-01-21T00:00:00Z"), 20 * DAY - 1, NULL, S3_LIFECYCLE_KEEP},
    {ON FILTER("") ABORT("1"), 90 * DAY, NULL, S3_LIFECYCLE_KEEP},
    {ON FILTER("") MARKER("true"), 90 * DAY, NULL, S3_LIFECYCLE_KEEP},
};

static void what_becomes_of_an_object(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_lifecycle l;
        const struct s3_lifecycle_rule *rule = NULL;
        const struct s3_lifecycle_now now = {.now_s = rows[i].now_s, .day_s = DAY};
        const struct s3_lifecycle_object object = {
            .key = "logs/a", .size = 1000, .modified_s = 10 * DAY + NOON, .tags = rows[i].tags};
        assert_int_equal(parse(a, arena_printf(a, LIFECYCLE(RULE("%s")), rows[i].rule), &l), S3_OK);
        enum s3_lifecycle_verdict verdict = s3_lifecycle_object(&l, &object, &now, &rule);
        if (verdict != rows[i].verdict)
            fail_msg("row %zu: %d", i, verdict);
        assert_int_equal(rule != NULL, verdict == S3_LIFECYCLE_EXPIRE);
    }
}

/* Calendar and clock: written at, the days, and the first second at which the object expires. */
static void an_age_ends_at_a_midnight(void **unused)
{
    (void)unused;
    enum { FEB_28_2024 = 1709078400, MAR_1_2024 = 1709251200, MAR_1_2023 = 1677628800 };
    static const struct {
        int64_t written_s;
        const char *action;
        int64_t day_s, from_s;
    } at[] = {
        {0, DAYS("1"), DAY, DAY}, /* at a midnight: nothing is rounded */
        {1, DAYS("1"), DAY, 2 * DAY},
        {DAY - 1, DAYS("1"), DAY, 2 * DAY},
        {FEB_28_2024 + NOON, DAYS("1"), DAY, MAR_1_2024}, /* a leap day */
        {MAR_1_2023 - DAY + NOON, DAYS("1"), DAY, MAR_1_2023 + DAY},
        {0, FROM("2024-02-29"), DAY, FEB_28_2024 + DAY},
        {MAR_1_2024, FROM("2024-02-29"), DAY, 0}, /* also what was written later */
        {0, DAYS("36500"), DAY, (int64_t)36500 * DAY},
        {7, DAYS("2"), 5, 20}, /* a short day */
        {10, DAYS("2"), 5, 20},
        {11, DAYS("2"), 5, 25},
    };
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_lifecycle l;
        const struct s3_lifecycle_object object = {.key = "", .modified_s = at[i].written_s};
        struct s3_lifecycle_now now = {.now_s = at[i].from_s, .day_s = at[i].day_s};
        assert_int_equal(
            parse(a, arena_printf(a, LIFECYCLE(RULE(ON FILTER("") "%s")), at[i].action), &l),
            S3_OK);
        if (at[i].from_s == 0)
            now.now_s = at[i].written_s;
        if (s3_lifecycle_object(&l, &object, &now, NULL) != S3_LIFECYCLE_EXPIRE)
            fail_msg("row %zu: not yet", i);
        now.now_s = at[i].from_s - 1;
        if (s3_lifecycle_object(&l, &object, &now, NULL) != S3_LIFECYCLE_KEEP)
            fail_msg("row %zu: too early", i);
    }
}

/* A rule without tags decides although another one would need them. */
static void any_rule_is_enough(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_lifecycle l;
    const struct s3_lifecycle_now now = {.now_s = 90 * DAY, .day_s = DAY};
    const struct s3_lifecycle_object object = {.key = "k"};
    const struct s3_lifecycle_rule *rule = NULL;
    assert_int_equal(parse(a,
                           LIFECYCLE(RULE("<ID>a</ID>" ON FILTER(TAG("t", "")) DAYS("1"))
                                         RULE("<ID>b</ID>" ON FILTER("") DAYS("80"))),
                           &l),
                     S3_OK);
    assert_int_equal(s3_lifecycle_object(&l, &object, &now, &rule), S3_LIFECYCLE_EXPIRE);
    assert_string_equal(rule->id, "b");
}

/* An object "logs/a" of 1000 bytes that was written on day 10 at noon. */
static void what_the_header_says(void **unused)
{
    (void)unused;
    static const struct {
        const char *rules;
        const struct s3_tags *tags;
        const char *text; /* NULL: none */
    } at[] = {
        {RULE("<ID>a</ID>" ON FILTER("") DAYS("3")), NULL,
         "expiry-date=\"Thu, 15 Jan 1970 00:00:00 GMT\", rule-id=\"a\""},
        {RULE("<ID>late</ID>" ON FILTER("") DAYS("9"))
             RULE("<ID>a b\"&amp;\u00e9</ID>" ON PREFIX("logs/") FROM("1970-01-05")),
         NULL, "expiry-date=\"Mon, 05 Jan 1970 00:00:00 GMT\", rule-id=\"a%20b%22%26%C3%A9\""},
        {RULE("<ID>a</ID>" OFF FILTER("") DAYS("3")), NULL, NULL},
        {RULE("<ID>a</ID>" ON FILTER(PREFIX("log/")) DAYS("3")), NULL, NULL},
        {RULE("<ID>a</ID>" ON FILTER(PREFIX("logs/")) ABORT("3")), NULL, NULL},
        {RULE("<ID>a</ID>" ON FILTER("") MARKER("true")), NULL, NULL},
        {RULE("<ID>a</ID>" ON FILTER("<ObjectSizeLessThan>1000</ObjectSizeLessThan>") DAYS("3")),
         NULL, NULL},
        {RULE("<ID>a</ID>" ON FILTER(TAG("colour", "red")) DAYS("3")), &blue, NULL},
        {RULE(ON FILTER(TAG("colour", "red")) DAYS("3")), &red,
         "expiry-date=\"Thu, 15 Jan 1970 00:00:00 GMT\", rule-id=\"\""},
    };
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        _cleanup_buf_ struct buf out = BUF_INIT;
        static const struct s3_tags none = {.count = 0};
        struct s3_lifecycle l;
        struct s3_lifecycle_expiration x;
        const struct s3_lifecycle_object object = {.key = "logs/a",
                                                   .size = 1000,
                                                   .modified_s = 10 * DAY + NOON,
                                                   .tags = at[i].tags != NULL ? at[i].tags : &none};
        assert_int_equal(parse(a, arena_printf(a, LIFECYCLE("%s"), at[i].rules), &l), S3_OK);
        if (s3_lifecycle_expiration(&l, &object, DAY, &x) != (at[i].text != NULL))
            fail_msg("row %zu", i);
        if (at[i].text == NULL)
            continue;
        s3_lifecycle_expiration_text(&x, &out);
        assert_string_equal(buf_str(&out), at[i].text);
    }
}

static void many_rules(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf body = BUF_INIT;
    struct s3_lifecycle l;
    buf_puts(&body, "<LifecycleConfiguration>");
    for (int i = 0; i < S3_LIFECYCLE_RULES_MAX; i++)
        buf_printf(&body, RULE("<ID>r%d</ID>" ON FILTER("") DAYS("1")), i);
    size_t full = body.len;
    buf_puts(&body, "</LifecycleConfiguration>");
    assert_int_equal(parse(a, buf_str(&body), &l), S3_OK);
    assert_int_equal(l.count, S3_LIFECYCLE_RULES_MAX);
    assert_string_equal(l.rules[0].id, "r0");
    assert_string_equal(l.rules[S3_LIFECYCLE_RULES_MAX - 1].id, "r999");
    body.len = full;
    buf_puts(&body, RULE(ON FILTER("") DAYS("1")) "</LifecycleConfiguration>");
    assert_int_equal(parse(a, buf_str(&body), &l), S3_INVALID_REQUEST);
}

static void internal_names_stay(void **unused)
{
    (void)unused;
    static const struct {
        const char *filter;
        bool expires;
    } cases[] = {{FILTER(""), false},
                 {FILTER(PREFIX(".dfc")), false},
                 {FILTER(PREFIX(".dfc-")), true},
                 {FILTER(PREFIX(".dfc-unique/")), true}};
    const struct s3_lifecycle_now now = {.now_s = 9 * DAY, .day_s = DAY};
    const struct s3_lifecycle_object object = {.key = ".dfc-unique/a"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_lifecycle l;
        assert_int_equal(
            parse(a, arena_printf(a, LIFECYCLE(RULE(ON "%s" DAYS("1"))), cases[i].filter), &l),
            S3_OK);
        if ((s3_lifecycle_object(&l, &object, &now, NULL) != S3_LIFECYCLE_KEEP) != cases[i].expires)
            fail_msg("row %zu", i);
    }
}

static void uploads_are_aborted(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_lifecycle l;
    struct s3_lifecycle_now now = {.now_s = 9 * DAY, .day_s = DAY};
    assert_int_equal(parse(a, LIFECYCLE(RULE(ON FILTER(PREFIX("u/")) ABORT("7"))), &l), S3_OK);
    assert_true(s3_lifecycle_aborts(&l, "u/x", DAY + NOON, &now));
    assert_false(s3_lifecycle_aborts(&l, "v/x", DAY + NOON, &now));
    now.now_s--;
    assert_false(s3_lifecycle_aborts(&l, "u/x", DAY + NOON, &now));
}

static void what_is_written_is_what_was_read(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf out = BUF_INIT;
    struct s3_lifecycle l;
    static const char body[] =
        LIFECYCLE(RULE("<ID>a</ID>" FILTER(
            "<And>" PREFIX("p") "<ObjectSizeGreaterThan>1"
                                "</ObjectSizeGreaterThan>" TAG("k", "v") "</And>") ON DAYS("2"))
                      RULE(PREFIX("") OFF FROM("2030-01-31T00:00:00Z") ABORT("1"))
                          RULE(FILTER("") ON ABORT("3")) RULE(FILTER("") ON MARKER("false")));
    assert_int_equal(parse(a, body, &l), S3_OK);
    s3_lifecycle_document(&l, &out);
    const char *inside = strstr(buf_str(&out), "<Rule>");
    assert_non_null(inside);
    assert_string_equal(inside, strstr(body, "<Rule>"));
}

static void documents_that_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *rules;
        enum s3_error error;
    } bad[] = {
        {"", S3_MALFORMED_XML},
        {RULE(ON FILTER("")), S3_MALFORMED_XML},
        {RULE(FILTER("") DAYS("1")), S3_MALFORMED_XML},
        {RULE(ON DAYS("1")), S3_MALFORMED_XML},
        {RULE("<Status>on</Status>" DAYS("1")), S3_MALFORMED_XML},
        {RULE(ON DAYS("1") FROM("2030-01-01")), S3_MALFORMED_XML},
        {RULE(ON DAYS("1") DAYS("1")), S3_MALFORMED_XML},
        {RULE(ON DAYS("1") FILTER("<Tag><Key>a</Key></Tag>")), S3_MALFORMED_XML},
        {RULE(ON DAYS("1") FILTER("text")), S3_MALFORMED_XML},
        {RULE(ON DAYS("1") "<Then>x</Then>"), S3_MALFORMED_XML},
        {RULE(ON DAYS("0")), S3_INVALID_ARGUMENT},
        {RULE(ON DAYS("-1")), S3_INVALID_ARGUMENT},
        {RULE(ON FROM("2030-02-30")), S3_INVALID_ARGUMENT},
        {RULE(ON FROM("2030-01-01T12:00:00Z")), S3_INVALID_ARGUMENT},
        {RULE(ON FROM("soon")), S3_INVALID_ARGUMENT},
        {RULE("<ID>a</ID>" ON FILTER("") DAYS("1")) RULE("<ID>a</ID>" ON DAYS("2")),
         S3_INVALID_ARGUMENT},
        {RULE(ON ABORT("1") FILTER(TAG("a", "b"))), S3_INVALID_REQUEST},
        {RULE(ON DAYS("1") FILTER("<And><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan>"
                                  "<ObjectSizeLessThan>6</ObjectSizeLessThan></And>")),
         S3_INVALID_REQUEST},
        {RULE(ON DAYS("1") FILTER(TAG("aws:a", "b"))), S3_INVALID_TAG},
        {RULE(ON "<Transition><Days>1</Days></Transition>"), S3_NOT_IMPLEMENTED},
        {RULE(ON "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays>"
                 "</NoncurrentVersionExpiration>"),
         S3_NOT_IMPLEMENTED},
        {RULE(ON MARKER("yes")), S3_MALFORMED_XML},
        {RULE(ON MARKER("true") MARKER("true")), S3_MALFORMED_XML},
        {RULE(ON MARKER("true") DAYS("1")), S3_MALFORMED_XML},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_lifecycle l;
        enum s3_error e = parse(a, arena_printf(a, LIFECYCLE("%s"), bad[i].rules), &l);
        if (e != bad[i].error)
            fail_msg("row %zu: %s", i, s3_error_code(e));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_becomes_of_an_object),
        cmocka_unit_test(an_age_ends_at_a_midnight),
        cmocka_unit_test(any_rule_is_enough),
        cmocka_unit_test(what_the_header_says),
        cmocka_unit_test(many_rules),
        cmocka_unit_test(internal_names_stay),
        cmocka_unit_test(uploads_are_aborted),
        cmocka_unit_test(what_is_written_is_what_was_read),
        cmocka_unit_test(documents_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
