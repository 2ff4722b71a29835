/* Objects that a job hides, shows, takes back, finds again or pins. */
#include "target/testing/store_fixture.h"

#include <fcntl.h>

static void test_hidden_objects_are_reserved_and_not_there(void **state)
{
    (void)state;
    put_text("real", "r");
    put_text_hidden("out", "hidden", "srt-1");
    assert_text("out", NULL);
    assert_list("real:1 ");
    assert_int_equal(delete_name("out"), E_OBJECT_NOT_FOUND);
    struct error err = ERROR_INIT;
    assert_int_equal(put_text_as("out", "x", DURABILITY_ASYNC, &err), E_OBJECT_RESERVED);
    assert_non_null(strstr(err.message, "srt-1"));
    struct object_put_spec spec = spec_of("out", DURABILITY_ASYNC);
    spec.job_id = "srt-2";
    assert_int_equal(put_bytes(&spec, "x", 1, NULL), E_OBJECT_RESERVED);
    spec.name = "real";
    assert_int_equal(put_bytes(&spec, "x", 1, NULL), E_OBJECT_EXISTS);
    put_text_hidden("out", "again", "srt-1"); /* the job may repeat itself */
    fixture_close();
    fixture_open();
    assert_text("out", NULL);
    assert_list("real:1 ");
    assert_no_leftovers();
}

static void test_commit_shows_all_at_once_and_unmark_makes_it_last(void **state)
{
    (void)state;
    put_text_hidden("o1", "1", "srt-1");
    put_text_hidden("o2", "2", "srt-1");
    put_text_hidden("x1", "3", "srt-2");
    fx.committed_job = "srt-1";
    assert_text("o1", "1");
    assert_list("o1:1 o2:1 ");
    put_text("o2", "new"); /* visible, so it can be replaced; the mark goes with the old one */
    for (int again = 0; again < 2; again++) {
        assert_int_equal(object_unmark(fx.store, BUCKET, "o1", "srt-1", NULL), 0);
        assert_int_equal(object_unmark(fx.store, BUCKET, "o2", "srt-1", NULL), 0);
        assert_int_equal(object_unmark(fx.store, BUCKET, "x1", "srt-1", NULL), 0);
        assert_int_equal(object_unmark(fx.store, BUCKET, "nothing", "srt-1", NULL), 0);
    }
    assert_int_equal(object_store_sync(fx.store, NULL), 0);
    fx.committed_job = NULL;
    assert_text("o1", "1");
    assert_text("o2", "new");
    assert_text("x1", NULL);
    assert_list("o1:1 o2:3 ");
    fixture_close();
    fixture_forget_markers();
    fixture_open(); /* from the files */
    assert_list("o1:1 o2:3 ");
}

static void test_discard_gives_back_what_was_there(void **state)
{
    (void)state;
    put_text("buried", "old");
    assert_int_equal(delete_name("buried"), 0);
    put_text_hidden("buried", "1", "srt-1");
    put_text_hidden("buried", "2", "srt-1"); /* it still knows of the tombstone */
    put_text_hidden("fresh", "1", "srt-1");
    put_text_hidden("other", "1", "srt-2");
    const char *const names[] = {"buried", "fresh", "other", "nothing"};
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(object_discard(fx.store, BUCKET, names[i], "srt-1", NULL), 0);
    }
    assert_list("");
    put_text("fresh", "f");
    assert_int_equal(version_of("fresh").counter, 1); /* nothing was left of it */
    put_text("buried", "b");
    assert_true(version_of("buried").counter > 3); /* above the tombstone's */
    fx.committed_job = "srt-2";
    assert_list("buried:1 fresh:1 other:1 ");
    assert_no_leftovers();
}

/* Several owners do so, each by itself, under whatever state it knows then.  The next write is
 * greater on all of them, also by an earlier one. */
static void test_what_is_buried_again_has_no_version_of_its_own(void **state)
{
    (void)state;
    struct object hidden;
    struct object_held held;
    put_text("buried", "old");
    assert_int_equal(delete_name("buried"), 0);
    fx.map = 10;
    put_text_hidden("buried", "1", "srt-1");
    assert_int_equal(object_open_marked(fx.store, BUCKET, "buried", "srt-1", &hidden, NULL), 0);
    const struct version version = hidden.attr.version;
    close(hidden.fd);
    fx.map = 20;
    assert_int_equal(object_discard(fx.store, BUCKET, "buried", "srt-1", NULL), 0);
    assert_int_equal(object_look(fx.store, BUCKET, "buried", &held, NULL), 0);
    assert_true(held.found && !held.visible);
    assert_int_equal(version_compare(&held.version, &version), 0);
    fx.map = 11;
    put_text("buried", "new");
    const struct version later = version_of("buried");
    assert_true(version_compare(&later, &version) > 0);
    assert_true(version_compare(&later, &(struct version){.term = fx.term, .map = 20}) < 0);
    assert_no_leftovers();
}

/* The other owners may have more than what was there: no new version is made. */
static void test_what_is_forsaken_buries_nothing(void **state)
{
    (void)state;
    put_text("buried", "old");
    assert_int_equal(delete_name("buried"), 0);
    put_text_hidden("buried", "1", "srt-1");
    assert_int_equal(object_forsake(fx.store, BUCKET, "buried", "srt-2", NULL), 0);
    fx.committed_job = "srt-1";
    assert_list("buried:1 ");
    fx.committed_job = NULL;
    assert_int_equal(object_forsake(fx.store, BUCKET, "buried", "srt-1", NULL), 0);
    assert_list("");
    put_text("buried", "b");
    assert_int_equal(version_of("buried").counter, 1); /* nothing was left of it */
    assert_no_leftovers();
}

struct collected {
    char text[4096];
    int fail_after;
};

static int collect(void *ctx, const char *name, struct error *err)
{
    struct collected *c = ctx;
    if (c->fail_after-- == 0)
        return error_set(err, E_ABORTED, "enough");
    size_t used = strlen(c->text);
    snprintf(c->text + used, sizeof c->text - used, "%s ", name);
    return object_discard(fx.store, BUCKET, name, "srt-1", err);
}

static void test_marked_names_are_found_while_they_go(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 30; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%02u", i);
        put_text_hidden(name, "x", i % 3 == 0 ? "srt-2" : "srt-1");
    }
    struct collected c = {.fail_after = 5};
    assert_int_equal(object_each_marked(fx.store, BUCKET, "srt-1", collect, &c, NULL), E_ABORTED);
    c.fail_after = 100;
    assert_int_equal(object_each_marked(fx.store, BUCKET, "srt-1", collect, &c, NULL), 0);
    assert_int_equal(strlen(c.text), 20 * 4); /* each of them once */
    fx.committed_job = "srt-2";
    _cleanup_free_ char *left = list_text();
    assert_int_equal(strlen(left), 10 * 6);
}

static void test_a_pin_keeps_its_version(void **state)
{
    (void)state;
    put_text("in", "one");
    struct object o;
    _cleanup_free_ char *path = NULL, *none = NULL;
    assert_int_equal(object_pin(fx.store, BUCKET, "in", "srt-1", "0", &path, &o, NULL), 0);
    assert_string_equal(o.attr.name, "in");
    close(o.fd);
    put_text("in", "two");
    assert_int_equal(delete_name("in"), 0);
    char text[4] = "";
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, text, 3), 3);
    close(fd);
    assert_string_equal(text, "one");
    assert_int_equal(object_pin(fx.store, BUCKET, "in", "srt-1", "1", &none, &o, NULL),
                     E_OBJECT_NOT_FOUND);
    put_text_hidden("hidden", "x", "srt-1");
    assert_int_equal(object_pin(fx.store, BUCKET, "hidden", "srt-1", "1", &none, &o, NULL),
                     E_OBJECT_NOT_FOUND);
    put_text("in", "three");
    free(steal(path));
    assert_int_equal(object_pin(fx.store, BUCKET, "in", "srt-1", "0", &path, &o, NULL), 0);
    assert_int_equal(o.attr.size, 5); /* the link was replaced */
    close(o.fd);
    assert_int_equal(object_remove_job_files(fx.store, "srt-1", NULL), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_text("in", "three");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_hidden_objects_are_reserved_and_not_there),
        store_test(test_commit_shows_all_at_once_and_unmark_makes_it_last),
        store_test(test_discard_gives_back_what_was_there),
        store_test(test_what_is_buried_again_has_no_version_of_its_own),
        store_test(test_what_is_forsaken_buries_nothing),
        store_test(test_marked_names_are_found_while_they_go),
        store_test(test_a_pin_keeps_its_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
