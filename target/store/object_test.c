#include "target/testing/store_fixture.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include "target/format/object_path.h"

static void test_what_was_put_is_read(void **state)
{
    (void)state;
    static const char meta[] = "owner\0alice\0";
    struct object_put_spec spec = spec_of("a/b", DURABILITY_SYNC);
    spec.size = 5;
    spec.content_type = "text/plain";
    spec.meta = meta;
    spec.meta_len = sizeof meta - 1;
    assert_int_equal(put_bytes(&spec, "hello", 5, NULL), 0);
    assert_text("a/b", "hello");
    struct object o;
    assert_int_equal(object_head(fx.store, BUCKET, "a/b", &o, NULL), 0);
    assert_string_equal(o.attr.name, "a/b");
    assert_string_equal(o.attr.content_type, "text/plain");
    assert_int_equal(o.attr.meta_len, sizeof meta - 1);
    assert_memory_equal(o.attr.meta, meta, sizeof meta - 1);
    assert_int_equal(o.attr.size, 5);
    assert_int_equal(o.attr.flags, ATTR_DURABLE);
    assert_true(o.attr.modified_ms > 1700000000000);
    assert_int_equal(o.attr.version.counter, 1);
    assert_text("a", NULL);
    assert_text("a/", NULL);
    assert_list("a/b:5 ");
    assert_no_leftovers();
}

static void test_names_that_hurt_file_systems_are_names(void **state)
{
    (void)state;
    char longest[ATTR_NAME_MAX + 1];
    memset(longest, 'x', sizeof longest - 1);
    longest[ATTR_NAME_MAX] = '\0';
    const char *const names[] = {"a",    "a/b",  "a/", "..",  "../../x", "/",
                                 ".dfc", "a//b", "ü",  "%2e", longest};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_text(names[i], names[i]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_text(names[i], names[i]);
    struct object_put_spec spec = spec_of("", DURABILITY_ASYNC);
    assert_int_equal(put_bytes(&spec, "x", 1, NULL), E_NAME);
    assert_no_leftovers();
}

static void test_every_write_has_a_greater_version(void **state)
{
    (void)state;
    put_text("a", "1");
    struct version first = version_of("a");
    put_text("a", "2");
    struct version second = version_of("a");
    assert_true(version_compare(&second, &first) > 0);
    fx.map = 9;
    assert_int_equal(delete_name("a"), 0);
    assert_text("a", NULL);
    fx.map = 8; /* a map that is older than the tombstone's */
    put_text("a", "3");
    struct version third = version_of("a");
    assert_int_equal(third.map, 9);
    assert_int_equal(third.counter, 2);
    assert_text("a", "3");
}

static void test_delete_leaves_a_tombstone(void **state)
{
    (void)state;
    assert_int_equal(delete_name("a"), E_OBJECT_NOT_FOUND);
    put_text("a", "1");
    put_text("b", "22");
    assert_int_equal(delete_as("a", DURABILITY_SYNC, NULL), 0);
    assert_int_equal(delete_name("a"), E_OBJECT_NOT_FOUND);
    assert_text("a", NULL);
    assert_list("b:2 ");
    fixture_close();
    fixture_open();
    assert_text("a", NULL);
    assert_list("b:2 ");
    assert_no_leftovers();
}

static void fill(char *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (char)('a' + i % 23);
    out[len] = '\0';
}

/* Pieces of one size until `len`: around the buffer's size in every way. */
static void put_in_pieces(const char *name, const char *text, size_t len, size_t piece,
                          uint64_t announced)
{
    struct object_put_spec spec = spec_of(name, DURABILITY_ASYNC);
    struct object_put *p;
    spec.size = announced;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
    for (size_t at = 0; at < len; at += piece)
        assert_int_equal(object_put_write(p, text + at, len - at < piece ? len - at : piece, NULL),
                         0);
    assert_int_equal(object_put_commit_wait(p, NULL), 0);
    assert_text(name, text);
}

static void test_pieces_of_any_size_make_the_same_object(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,          1,          BUFFER - 1,     BUFFER,
                                   BUFFER + 1, 3 * BUFFER, 3 * BUFFER + 17};
    static char text[3 * BUFFER + 18];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t k = 1; k < sizeof sizes / sizeof *sizes; k++) {
            fill(text, sizes[i]);
            put_in_pieces("a", text, sizes[i], sizes[k] == 1 ? 7 : sizes[k], sizes[i]);
            put_in_pieces("a", text, sizes[i], sizes[k] == 1 ? 7 : sizes[k], OBJECT_SIZE_UNKNOWN);
        }
    }
    assert_no_leftovers();
}

static void test_buffers_stay_within_their_memory(void **state)
{
    (void)state;
    static char text[5000 + 1];
    fill(text, 5000);
    struct object_put *puts[400]; /* 400 buffers of 4 KiB would be more than the 1 MiB allowed */
    for (unsigned i = 0; i < 400; i++) {
        char name[16];
        snprintf(name, sizeof name, "o%03u", i);
        struct object_put_spec spec = spec_of(name, DURABILITY_ASYNC);
        assert_int_equal(object_put_begin(fx.store, &spec, &puts[i], NULL), 0);
        assert_int_equal(object_put_write(puts[i], text, 100, NULL), 0);
    }
    for (unsigned i = 0; i < 400; i++) {
        assert_int_equal(object_put_write(puts[i], text + 100, 4900, NULL), 0);
        assert_int_equal(object_put_commit_wait(puts[i], NULL), 0);
    }
    assert_text("o000", text);
    assert_text("o399", text);
}

static void test_wrong_lengths_store_nothing(void **state)
{
    (void)state;
    put_text("a", "old");
    struct object_put_spec spec = spec_of("a", DURABILITY_ASYNC);
    spec.size = 4;
    struct error err = ERROR_INIT;
    assert_int_equal(put_bytes(&spec, "hello", 5, &err), E_LENGTH);
    assert_int_equal(put_bytes(&spec, "hel", 3, &err), E_LENGTH);
    assert_non_null(strstr(err.message, "3 of the announced 4"));
    struct object_put *p;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
    assert_int_equal(object_put_write(p, "he", 2, NULL), 0);
    object_put_abort(p); /* the client went away */
    assert_text("a", "old");
    assert_no_leftovers();
}

static void test_wrong_checksums_store_nothing(void **state)
{
    (void)state;
    struct object_put_spec spec = spec_of("a", DURABILITY_ASYNC);
    struct checksum_value sum;
    spec.expect = &sum;
    struct error err = ERROR_INIT;
    /* The same type as the bucket's, and another one, which is computed beside it. */
    assert_int_equal(checksum_parse(CHECKSUM_MD5, "5d41402abc4b2a76b9719d911017c592", &sum, NULL),
                     0);
    assert_int_equal(put_bytes(&spec, "hellO", 5, &err), E_CHECKSUM);
    assert_text("a", NULL);
    assert_int_equal(put_bytes(&spec, "hello", 5, &err), 0);
    spec.checksum = CHECKSUM_MD5;
    assert_int_equal(put_bytes(&spec, "hello", 5, &err), 0);
    assert_int_equal(put_bytes(&spec, "hellO", 5, &err), E_CHECKSUM);
    assert_non_null(strstr(err.message, "5d41402abc4b2a76b9719d911017c592"));
    assert_text("a", "hello");
    spec.checksum = CHECKSUM_NONE;
    assert_int_equal(put_bytes(&spec, "hellO", 5, &err), E_CHECKSUM);
    assert_int_equal(put_bytes(&spec, "hello", 5, &err), 0);
    assert_no_leftovers();
}

static int refuse_unless_new(void *ctx, const struct attr *current, struct error *err)
{
    unsigned *calls = ctx;
    (*calls)++;
    return current == NULL ? 0 : error_set(err, E_PRECONDITION, "exists");
}

static void count_seen(void *ctx)
{
    unsigned *seen = ctx;
    (*seen) += 1000;
}

/* Asked twice, at the stamp and at the rename; what follows from its being seen follows once, and
 * not where it is refused the second time. */
static void test_what_is_refused_is_not_said_to_be_seen(void **state)
{
    (void)state;
    unsigned calls = 0;
    const struct object_moved as = {.version = {.term = 1, .map = 1, .counter = 7}};
    const struct object_condition condition = {
        .check = refuse_unless_new, .seen = count_seen, .ctx = &calls};
    struct object_put_spec spec = spec_of("b", DURABILITY_SYNC);
    struct object_put *p;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
    assert_int_equal(object_put_commit_as_wait(p, &as, &condition, NULL), 0);
    assert_int_equal(calls, 1002);
    calls = 0;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
    assert_int_equal(object_put_commit_as_wait(p, &as, &condition, NULL), E_NOT_MODIFIED);
    assert_int_equal(calls, 0);
}

static void test_conditions_hold_at_the_rename(void **state)
{
    (void)state;
    unsigned calls = 0;
    struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
    spec.condition = (struct object_condition){.check = refuse_unless_new, .ctx = &calls};
    struct object_put *p;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
    assert_int_equal(object_put_write(p, "slow", 4, NULL), 0);
    put_text("a", "fast"); /* between its beginning and its end */
    assert_int_equal(object_put_commit_wait(p, NULL), E_PRECONDITION);
    assert_text("a", "fast");
    unsigned before = calls;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), E_PRECONDITION); /* early */
    assert_int_equal(calls, before + 1);
    assert_int_equal(delete_name("a"), 0);
    assert_int_equal(put_bytes(&spec, "new", 3, NULL), 0);
    assert_text("a", "new");
    assert_no_leftovers();
}

/* Two writers begin; the one that ends later wins and has the greater version. */
static void test_the_later_of_two_writers_wins(void **state)
{
    (void)state;
    for (int durability = DURABILITY_SYNC; durability <= DURABILITY_ASYNC; durability++) {
        struct object_put_spec spec = spec_of("a", (enum durability)durability);
        struct object_put *one, *two;
        assert_int_equal(object_put_begin(fx.store, &spec, &one, NULL), 0);
        assert_int_equal(object_put_begin(fx.store, &spec, &two, NULL), 0);
        assert_int_equal(object_put_write(one, "one", 3, NULL), 0);
        assert_int_equal(object_put_write(two, "two", 3, NULL), 0);
        assert_int_equal(object_put_commit_wait(two, NULL), 0);
        struct version second = version_of("a");
        assert_int_equal(object_put_commit_wait(one, NULL), 0);
        struct version third = version_of("a");
        assert_text("a", "one");
        assert_true(version_compare(&third, &second) > 0);
    }
    assert_no_leftovers();
}

/* --- damage ----------------------------------------------------------------------------------- */

/* The path of an object's file, wherever it is. */
static char *file_path(const char *name)
{
    struct object_path p;
    object_path_set(&p, BUCKET, name);
    struct mountpath *mp = fixture_pick(name);
    return xprintf("%s/.dfc/obj/%s", mp->path, p.text);
}

static void test_damage_is_an_error_and_put_heals_it(void **state)
{
    (void)state;
    struct object o;
    struct error err = ERROR_INIT;
    put_text("a", "hello");
    _cleanup_free_ char *path = file_path("a");
    assert_int_equal(truncate(path, 3), 0);
    assert_int_equal(object_open(fx.store, BUCKET, "a", &o, &err), E_CORRUPT);
    assert_non_null(strstr(err.message, "3 bytes, not 5"));
    put_text("a", "again");
    assert_text("a", "again");
    assert_int_equal(removexattr(path, ATTR_XATTR), 0);
    assert_int_equal(object_open(fx.store, BUCKET, "a", &o, &err), E_CORRUPT);
    assert_int_equal(delete_name("a"), 0); /* it is there, and unwanted */
    assert_text("a", NULL);
    put_text("a", "again");
    assert_int_equal(setxattr(path, ATTR_XATTR, "\1garbage", 8, 0), 0);
    assert_int_equal(object_open(fx.store, BUCKET, "a", &o, &err), E_CORRUPT);
    assert_int_equal(put_text_as("a", "again", DURABILITY_SYNC, NULL), 0);
    assert_text("a", "again");
    /* What a newer release wrote is no damage, and not ours to replace. */
    assert_int_equal(setxattr(path, ATTR_XATTR, "\2new form", 9, 0), 0);
    assert_int_equal(object_open(fx.store, BUCKET, "a", &o, &err), E_UNSUPPORTED);
    assert_int_equal(put_text_as("a", "x", DURABILITY_SYNC, NULL), E_UNSUPPORTED);
    assert_no_leftovers();
}

/* Its attribute is gone, and with it its version; a client may still have that as an entity tag. */
static void test_a_version_over_damage_is_a_new_one(void **state)
{
    (void)state;
    for (int durability = DURABILITY_SYNC; durability <= DURABILITY_ASYNC; durability++) {
        for (unsigned i = 0; i < 3; i++)
            put_text("a", "again and again");
        struct version old = version_of("a");
        _cleanup_free_ char *path = file_path("a");
        assert_int_equal(removexattr(path, ATTR_XATTR), 0);
        assert_int_equal(put_text_as("a", "new", (enum durability)durability, NULL), 0);
        struct version new = version_of("a");
        assert_true(version_compare(&new, &old) > 0);
        put_text("a", "next"); /* and so it goes on */
        assert_int_equal(version_of("a").counter, new.counter + 1);
    }
    fixture_close();
    fixture_open();
    put_text("b", "another");
    assert_true(version_of("b").counter > VERSION_FLOOR_STEP);
}

static void test_two_names_with_one_hash_do_not_mix(void **state)
{
    (void)state;
    put_text("a", "hello");
    _cleanup_free_ char *path = file_path("a");
    struct attr other = {.name = "other", .size = 5};
    unsigned char raw[ATTR_ENCODED_MAX];
    size_t len;
    assert_int_equal(attr_encode(&other, raw, &len, NULL), 0);
    assert_int_equal(setxattr(path, ATTR_XATTR, raw, len, 0), 0);
    struct object o;
    assert_int_equal(object_open(fx.store, BUCKET, "a", &o, NULL), E_OBJECT_NOT_FOUND);
    struct object_held held;
    struct error err = ERROR_INIT;
    assert_int_equal(object_look(fx.store, BUCKET, "a", &held, &err), 0);
    assert_false(held.found);
    assert_int_equal(err.code, 0); /* what is no failure leaves none */
    assert_int_equal(put_text_as("a", "x", DURABILITY_SYNC, NULL), E_HASH_COLLISION);
    assert_int_equal(delete_name("a"), E_HASH_COLLISION);
    assert_int_equal(getxattr(path, ATTR_XATTR, raw, sizeof raw), (int)len); /* untouched */
    assert_no_leftovers();
}

static void test_a_destroyed_bucket_takes_no_late_put(void **state)
{
    (void)state;
    for (int durability = DURABILITY_SYNC; durability <= DURABILITY_ASYNC; durability++) {
        struct object_put_spec spec = spec_of("a", (enum durability)durability);
        struct object_put *p;
        assert_int_equal(object_put_begin(fx.store, &spec, &p, NULL), 0);
        assert_int_equal(object_put_write(p, "late", 4, NULL), 0);
        for (size_t i = 0; i < fixture_set()->count; i++) {
            struct mountpath *mp = fixture_mp(i);
            atomic_bool stop = false;
            assert_int_equal(mountpath_trash_bucket(mp, BUCKET, NULL), 0);
            assert_int_equal(mountpath_empty_trash(mp, &stop, NULL), 0);
        }
        assert_int_equal(object_put_commit_wait(p, NULL), E_BUCKET_NOT_FOUND);
        assert_text("a", NULL);
        assert_list("");
        assert_no_leftovers();
        assert_int_equal(count_in("mp1", "trash"), 0);
    }
}

static void test_space_is_left_for_tombstones(void **state)
{
    (void)state;
    struct object_put_spec spec = spec_of("a", DURABILITY_ASYNC);
    struct object_put *p;
    struct error err = ERROR_INIT;
    spec.size = UINT64_MAX / 4; /* announced: refused before a byte comes */
    assert_int_equal(object_put_begin(fx.store, &spec, &p, &err), E_NO_SPACE);
    assert_non_null(strstr(err.message, fx.dir));
    assert_no_leftovers();
}

/* --- what somebody has removed ---------------------------------------------------------------- */

static void remove_file_of(const char *name)
{
    struct object_path place;
    char path[300];
    object_path_set(&place, BUCKET, name);
    snprintf(path, sizeof path, "%s/.dfc/obj/%s", fixture_pick(name)->path, place.text);
    assert_int_equal(unlink(path), 0);
}

static int explained(const char *name)
{
    bool seems = object_seems_lost(fx.store, BUCKET, name);
    int code = object_explain_miss(fx.store, BUCKET, name, NULL);
    assert_int_equal(seems, code == E_CORRUPT);
    return code;
}

static void test_a_file_that_was_removed_is_told_from_what_never_was(void **state)
{
    (void)state;
    put_text("a", "text");
    put_text("gone", "text");
    put_text_hidden("hidden", "text", "job-1");
    assert_int_equal(delete_name("gone"), 0);
    struct mountpath *mp = fixture_pick("a");
    uint64_t errors = metric_value(mp->errors);
    remove_file_of("a");
    remove_file_of("gone");
    remove_file_of("hidden");
    assert_int_equal(explained("a"), E_CORRUPT);
    assert_true(mp->suspect);
    assert_int_equal(metric_value(mp->errors), errors + 1);
    assert_int_equal(explained("gone"), E_OBJECT_NOT_FOUND);
    assert_int_equal(explained("hidden"), E_OBJECT_NOT_FOUND);
    assert_int_equal(explained("never"), E_OBJECT_NOT_FOUND);
    assert_int_equal(atomic_load(&mp->io_errors), 0); /* one lost object takes no disk out */
}

/* No index tells what a name is, and its files cannot be believed any more. */
static void test_a_miss_on_a_mountpath_in_pieces_is_no_404(void **state)
{
    (void)state;
    put_text("a", "text");
    struct mountpath *mp = fixture_pick("a");
    struct error why;
    error_set(&why, E_IO, "for the test");
    index_set_stale(mp->index, &why);
    assert_int_equal(explained("never"), E_OBJECT_NOT_FOUND);
    assert_false(mp->suspect);
    assert_int_equal(unlinkat(mp->root_fd, "format.json", 0), 0);
    remove_file_of("a");
    assert_int_equal(explained("a"), E_CORRUPT);
    assert_true(mp->suspect);
}

static void test_what_was_removed_can_be_deleted_and_put(void **state)
{
    (void)state;
    put_text("a", "text");
    put_text("b", "text");
    struct version before = version_of("b");
    remove_file_of("a");
    remove_file_of("b");
    assert_list("a:4 b:4 ");
    assert_int_equal(delete_name("a"), 0);
    assert_int_equal(delete_name("a"), E_OBJECT_NOT_FOUND);
    put_text("b", "other");
    struct version after = version_of("b");
    assert_true(version_compare(&after, &before) > 0); /* its entity tag does not come again */
    assert_text("a", NULL);
    assert_text("b", "other");
    assert_list("b:5 ");
    assert_int_equal(explained("a"), E_OBJECT_NOT_FOUND);
}

static void test_a_removed_tombstone_gives_no_version_twice(void **state)
{
    (void)state;
    put_text("a", "text");
    struct version before = version_of("a");
    assert_int_equal(delete_name("a"), 0);
    remove_file_of("a");
    put_text("a", "text");
    struct version after = version_of("a");
    assert_true(after.counter > before.counter + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_what_was_put_is_read),
        store_test(test_names_that_hurt_file_systems_are_names),
        store_test(test_every_write_has_a_greater_version),
        store_test(test_delete_leaves_a_tombstone),
        store_test(test_pieces_of_any_size_make_the_same_object),
        store_test(test_buffers_stay_within_their_memory),
        store_test(test_wrong_lengths_store_nothing),
        store_test(test_wrong_checksums_store_nothing),
        store_test(test_conditions_hold_at_the_rename),
        store_test(test_what_is_refused_is_not_said_to_be_seen),
        store_test(test_the_later_of_two_writers_wins),
        store_test(test_damage_is_an_error_and_put_heals_it),
        store_test(test_a_version_over_damage_is_a_new_one),
        store_test(test_two_names_with_one_hash_do_not_mix),
        store_test(test_a_destroyed_bucket_takes_no_late_put),
        store_test(test_space_is_left_for_tombstones),
        store_test(test_a_file_that_was_removed_is_told_from_what_never_was),
        store_test(test_a_miss_on_a_mountpath_in_pieces_is_no_404),
        store_test(test_what_was_removed_can_be_deleted_and_put),
        store_test(test_a_removed_tombstone_gives_no_version_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
