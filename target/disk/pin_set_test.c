/* Pins without links: what a job reads when objects change, move, and go. */
#include "target/testing/store_fixture.h"

#include <fcntl.h>

#include "target/disk/pin_set.h"

enum { SERIES = 0x15 };

static struct pin_set *begin(const char *job)
{
    struct pin_set *set = pin_set_new(object_store_pins(fx.store), BUCKET, job);
    pin_set_begin(set, SERIES);
    return set;
}

static uint64_t pin(struct pin_set *set, const char *name, bool opens)
{
    struct object o = {.fd = -1};
    assert_int_equal(object_pin_in(fx.store, set, BUCKET, name, opens, &o, NULL), 0);
    assert_int_equal(o.fd >= 0, opens);
    if (o.fd >= 0)
        close(o.fd);
    return o.attr.size;
}

static void assert_reads(int fd, const char *text)
{
    char found[16] = "";
    assert_true(read(fd, found, sizeof found - 1) >= 0);
    close(fd);
    assert_string_equal(found, text);
}

/* The link that a name has on either mountpath; -1: it has none. */
static int open_link(const char *job, const char *name)
{
    struct object_path path;
    char link_name[PIN_LINK_NAME];
    int fd = -1;
    object_path_set(&path, BUCKET, name);
    pin_link_name(SERIES, &path, link_name);
    for (int i = 1; i <= 2 && fd < 0; i++) {
        _cleanup_free_ char *file = xprintf("%s/mp%d/.dfc/jobs/%s/%s", fx.dir, i, job, link_name);
        fd = open(file, O_RDONLY);
    }
    return fd;
}

/* As sort/pins.h reads. */
static void assert_pinned(struct pin_set *set, const char *job, const char *name, const char *text)
{
    int fd = -1;
    int code = object_open_pinned(fx.store, set, BUCKET, name, &fd, NULL);
    if (code == E_OBJECT_NOT_FOUND)
        fd = open_link(job, name);
    else
        assert_int_equal(code, 0);
    assert_true(fd >= 0);
    assert_reads(fd, text);
}

static void test_what_stays_has_no_link(void **state)
{
    (void)state;
    struct pin_set *set = begin("arc-1");
    put_text("in", "one");
    put_text("other", "x");
    assert_int_equal(pin(set, "in", false), 3);
    put_text("other", "y"); /* it is none of the set's */
    assert_pinned(set, "arc-1", "in", "one");
    assert_int_equal(open_link("arc-1", "in"), -1);
    assert_int_equal(open_link("arc-1", "other"), -1);
    pin_set_free(set);
}

static void test_what_changes_gets_one_first(void **state)
{
    (void)state;
    const enum durability durabilities[] = {DURABILITY_ASYNC, DURABILITY_SYNC};
    struct pin_set *set = begin("arc-1");
    for (int i = 0; i < 4; i++) {
        const char *name = (const char *[]){"a", "b", "c", "d"}[i];
        put_text(name, "one");
        assert_int_equal(pin(set, name, i >= 2), 3);
        assert_int_equal(put_text_as(name, "three", durabilities[i % 2], NULL), 0);
        assert_pinned(set, "arc-1", name, "one");
        put_text(name, "four"); /* the second change has nothing to keep */
        assert_pinned(set, "arc-1", name, "one");
        assert_int_equal(delete_name(name), 0);
        assert_pinned(set, "arc-1", name, "one");
    }
    pin_set_free(set);
}

static void test_what_goes_gets_one_first(void **state)
{
    (void)state;
    struct pin_set *set = begin("arc-1"), *second = begin("arc-2");
    put_text("deleted", "d");
    put_text("dropped", "e");
    const char *names[] = {"deleted", "dropped"};
    for (int i = 0; i < 2; i++) {
        pin(set, names[i], false);
        pin(second, names[i], false);
    }
    assert_int_equal(delete_name("deleted"), 0);
    const struct version version = version_of("dropped");
    assert_int_equal(object_drop(fx.store, BUCKET, "dropped", &version, NULL), 0);
    assert_text("dropped", NULL);
    assert_pinned(set, "arc-1", "deleted", "d");
    assert_pinned(second, "arc-2", "deleted", "d");
    assert_pinned(set, "arc-1", "dropped", "e");
    assert_pinned(second, "arc-2", "dropped", "e");
    pin_set_free(set);
    pin_set_free(second);
}

static void test_what_is_not_visible_is_not_pinned(void **state)
{
    (void)state;
    struct object o = {.fd = -1};
    struct pin_set *set = begin("arc-1");
    put_text_hidden("hidden", "x", "srt-1");
    put_text("gone", "x");
    assert_int_equal(delete_name("gone"), 0);
    const char *names[] = {"hidden", "gone", "never"};
    for (int i = 0; i < 3; i++) {
        for (int opens = 0; opens < 2; opens++)
            assert_int_equal(object_pin_in(fx.store, set, BUCKET, names[i], opens != 0, &o, NULL),
                             E_OBJECT_NOT_FOUND);
    }
    pin_set_free(set);
}

static void test_after_its_end_a_job_gets_no_link(void **state)
{
    (void)state;
    struct pin_set *set = begin("arc-1");
    put_text("in", "one");
    pin(set, "in", false);
    pin_set_end(set);
    pin_set_end(set);
    assert_true(pin_sets_idle(object_store_pins(fx.store)));
    put_text("in", "two");
    assert_int_equal(open_link("arc-1", "in"), -1);
    int fd = -1;
    assert_int_not_equal(object_open_pinned(fx.store, set, BUCKET, "in", &fd, NULL), 0);
    pin_set_free(set);
}

static void test_a_new_series_forgets_the_earlier(void **state)
{
    (void)state;
    struct pin_set *set = begin("arc-1");
    put_text("in", "one");
    pin(set, "in", false);
    pin_set_begin(set, SERIES + 1);
    put_text("in", "two");
    assert_int_equal(open_link("arc-1", "in"), -1);
    assert_int_equal(pin(set, "in", false), 3);
    assert_pinned(set, "arc-1", "in", "two");
    pin_set_free(set);
}

/* More than the table has room for at first. */
static void test_many(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    struct pin_sets *all = pin_sets_new();
    struct pin_set *set = pin_set_new(all, BUCKET, "arc-1");
    pin_set_begin(set, SERIES);
    for (unsigned i = 0; i < 2 * COUNT; i++) {
        char name[16];
        struct object_path path;
        const struct version version = {.term = 1, .map = 2, .counter = i};
        snprintf(name, sizeof name, "%u", i);
        object_path_set(&path, BUCKET, name);
        if (i < COUNT)
            pin_set_add(set, &path, &version, i == COUNT - 1 ? 8 : 7);
        assert_int_equal(pin_set_has(set, &path, &version), i < COUNT);
        assert_int_equal(pin_set_trusts(set, &path, 7), i < COUNT - 1);
        assert_false(pin_set_has(set, &path, &(struct version){.counter = i}));
        assert_false(pin_set_trusts(set, &path, 8));
    }
    struct object_path first; /* the last one was added with other mountpaths */
    object_path_set(&first, BUCKET, "0");
    assert_false(pin_set_trusts(set, &first, 7));
    pin_set_free(set);
    pin_sets_free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_what_stays_has_no_link),
        store_test(test_what_changes_gets_one_first),
        store_test(test_what_goes_gets_one_first),
        store_test(test_what_is_not_visible_is_not_pinned),
        store_test(test_after_its_end_a_job_gets_no_link),
        store_test(test_a_new_series_forgets_the_earlier),
        store_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
