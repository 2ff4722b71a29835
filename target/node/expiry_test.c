/* Which objects and uploads the rules of a bucket expire. */
#include "target/node/expiry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/clock.h"

#define DOCUMENT(rules) "<LifecycleConfiguration>" rules "</LifecycleConfiguration>"
#define RULE(status, action) \
    "<Rule><Filter><Prefix>old/</Prefix></Filter><Status>" status "</Status>" action "</Rule>"
#define DAYS(n) "<Expiration><Days>" n "</Days></Expiration>"
#define ABORT(n)                                              \
    "<AbortIncompleteMultipartUpload><DaysAfterInitiation>" n \
    "</DaysAfterInitiation></AbortIncompleteMultipartUpload>"

enum { DAY_MS = 86400000 };

static const struct s3_lifecycle_now day_12 = {.now_s = 12 * 86400, .day_s = 86400};

static struct bucket bucket_of(const char *text)
{
    struct bucket b = {.id = 7, .props = BUCKET_PROPS_DEFAULT};
    b.texts.text[BUCKET_LIFECYCLE] = text;
    return b;
}

static struct expiry *rules_of(const char *text)
{
    struct bucket b = bucket_of(text);
    struct error err = ERROR_INIT;
    struct expiry *x;
    assert_int_equal(expiry_read(&b, &x, &err), 0);
    return x;
}

static void without_such_rules_there_are_none(void **unused)
{
    (void)unused;
    char backend[] = "s3://elsewhere";
    struct bucket cold = bucket_of(DOCUMENT(RULE("Enabled", DAYS("1"))));
    struct error err = ERROR_INIT;
    struct expiry *x;
    assert_null(rules_of(NULL));
    assert_null(rules_of(DOCUMENT(RULE("Disabled", DAYS("1")))));
    assert_null(rules_of(DOCUMENT(RULE("Enabled", ABORT("1")))));
    cold.props.backend = backend;
    assert_int_equal(expiry_read(&cold, &x, &err), 0);
    assert_null(x);
}

static void a_document_of_another_release(void **unused)
{
    (void)unused;
    struct bucket b = bucket_of(DOCUMENT("<Rule><Later/></Rule>"));
    struct error err = ERROR_INIT;
    struct expiry *x;
    assert_int_equal(expiry_read(&b, &x, &err), E_CORRUPT);
    assert_null(x);
    assert_false(expiry_aborts(&b, "old/a", 0, &day_12));
}

/* By the index, and by the attribute: the same. */
static void which_objects(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        int64_t modified_ms;
        bool takes;
    } rows[] = {
        {"old/a", 0, true},
        {"old/", 0, true},
        {"old", 0, false},
        {"new/a", 0, false},
        {"old/a", (int64_t)10 * DAY_MS, true},
        {"old/a", (int64_t)10 * DAY_MS + 1, false}, /* a fraction of a second makes none older */
        {"old/a", (int64_t)900 * DAY_MS, false},    /* of a clock that was ahead */
    };
    struct expiry *x = rules_of(DOCUMENT(RULE("Enabled", DAYS("2"))));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct index_record record = {.size = 1, .modified_ms = rows[i].modified_ms};
        const struct attr attr = {
            .name = rows[i].name, .size = 1, .modified_ms = rows[i].modified_ms};
        if (expiry_may_take(x, rows[i].name, &record, &day_12) != rows[i].takes ||
            expiry_takes(x, rows[i].name, &attr, &day_12) != rows[i].takes)
            fail_msg("row %zu", i);
    }
    assert_false(expiry_may_take(x, "old/a", &(struct index_record){.tombstone = true}, &day_12));
    assert_false(expiry_may_take(x, "old/a", &(struct index_record){.job = "srt-1"}, &day_12));
    expiry_free(x);
}

/* What is in slices has the size that users see. */
static void of_slices(void **unused)
{
    (void)unused;
    static const char text[] =
        DOCUMENT("<Rule><Filter><ObjectSizeGreaterThan>1000000</ObjectSizeGreaterThan></Filter>"
                 "<Status>Enabled</Status>" DAYS("1") "</Rule>");
    struct expiry *x = rules_of(text);
    struct attr a = {.name = "o",
                     .slices = "1:2:1:65536:1048576:00000000000000f3:xxh3:0123456789abcdef"};
    assert_true(expiry_takes(x, "o", &a, &day_12));
    a.slices = "1:2:1:65536:1000:00000000000000f3:xxh3:0123456789abcdef";
    assert_false(expiry_takes(x, "o", &a, &day_12));
    a.slices = "9:";
    assert_false(expiry_takes(x, "o", &a, &day_12)); /* of a newer release: not known */
    expiry_free(x);
}

static void tags_are_those_of_the_attribute(void **unused)
{
    (void)unused;
    static const char text[] =
        DOCUMENT("<Rule><Filter><Tag><Key>keep</Key><Value>no</Value></Tag></Filter>"
                 "<Status>Enabled</Status>" DAYS("1") "</Rule>");
    static const struct {
        const char *meta;
        size_t len;
        bool takes;
    } rows[] = {
        {NULL, 0, false},
        {"colour\0red", 11, false},
        {"entity-tags\0keep=no", 20, true},
        {"entity-tags\0a=b&keep=no", 24, true},
        {"entity-tags\0keep=yes", 21, false},
        {"entity-tags\0keep=no&keep=no", 28, false}, /* damaged: none */
    };
    struct expiry *x = rules_of(text);
    assert_true(expiry_reads_tags(x));
    assert_true(expiry_may_take(x, "o", &(struct index_record){.size = 1}, &day_12));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct attr a = {.name = "o", .meta = rows[i].meta, .meta_len = rows[i].len};
        if (expiry_takes(x, "o", &a, &day_12) != rows[i].takes)
            fail_msg("row %zu", i);
    }
    expiry_free(x);
    x = rules_of(DOCUMENT(RULE("Enabled", DAYS("2"))));
    assert_false(expiry_reads_tags(x));
    expiry_free(x);
}

static void changed_rules_are_others(void **unused)
{
    (void)unused;
    struct bucket b = bucket_of(DOCUMENT(RULE("Enabled", DAYS("2"))));
    struct error err = ERROR_INIT;
    struct expiry *x;
    assert_int_equal(expiry_read(&b, &x, &err), 0);
    assert_true(expiry_is_of(x, &b));
    b.texts.text[BUCKET_LIFECYCLE] = DOCUMENT(RULE("Enabled", DAYS("3")));
    assert_false(expiry_is_of(x, &b));
    b.texts.text[BUCKET_LIFECYCLE] = NULL;
    assert_false(expiry_is_of(x, &b));
    expiry_free(x);
}

static void uploads(void **unused)
{
    (void)unused;
    struct bucket b = bucket_of(DOCUMENT(RULE("Enabled", ABORT("2"))));
    struct bucket none = bucket_of(NULL);
    assert_true(expiry_aborts(&b, "old/a", (int64_t)10 * DAY_MS, &day_12));
    assert_false(expiry_aborts(&b, "old/a", (int64_t)10 * DAY_MS + 1, &day_12));
    assert_false(expiry_aborts(&b, "new/a", 0, &day_12));
    assert_false(expiry_aborts(&none, "old/a", 0, &day_12));
}

static void the_clock(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    const struct s3_lifecycle_now now = expiry_now(s);
    assert_int_equal(now.day_s, 86400);
    assert_in_range(now.now_s, 1, clock_wall_ms() / 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_such_rules_there_are_none),
        cmocka_unit_test(a_document_of_another_release),
        cmocka_unit_test(which_objects),
        cmocka_unit_test(of_slices),
        cmocka_unit_test(tags_are_those_of_the_attribute),
        cmocka_unit_test(changed_rules_are_others),
        cmocka_unit_test(uploads),
        cmocka_unit_test(the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
