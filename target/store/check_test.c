/* A file that is not what was stored is found, moved aside, and replaced by what is sent with the
 * same version. */
#include "target/testing/store_fixture.h"

#include <fcntl.h>

#include "io/reader.h"
#include "target/format/object_path.h"
#include "target/store/quarantine.h"

static const char bytes[] = "hello, world";

static char *file_of(const char *name)
{
    struct object_path place;
    object_path_set(&place, BUCKET, name);
    return xprintf("%s/.dfc/obj/%s", fixture_pick(name)->path, place.text);
}

static void flip_byte(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "J", 1, 0), 1);
    close(fd);
}

static void cut(const char *path)
{
    assert_int_equal(truncate(path, 3), 0);
}

static void take_attribute(const char *path)
{
    assert_int_equal(removexattr(path, ATTR_XATTR), 0);
}

static void take_file(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static void put_strangers_there(const char *path)
{
    put_text("b", "another");
    _cleanup_free_ char *other = file_of("b");
    assert_int_equal(rename(other, path), 0);
}

static bool is_lacking(const char *name)
{
    bool lacking = false;
    struct error err = ERROR_INIT;
    if (object_check(fx.store, BUCKET, name, &lacking, &err) != 0)
        fail_msg("check '%s': %s", name, err.message);
    return lacking;
}

static struct object_held held(const char *name)
{
    struct object_held out;
    assert_int_equal(object_look(fx.store, BUCKET, name, &out, NULL), 0);
    return out;
}

static int send_again(const struct version *v, const char *text)
{
    const struct object_moved moved = {.version = *v, .modified_ms = 1};
    struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
    struct error err = ERROR_INIT;
    spec.moved = &moved;
    return put_bytes(&spec, text, strlen(text), &err);
}

/* Those on both mountpaths. */
static uint64_t quarantined(void)
{
    uint64_t all = 0, here;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(quarantine_count(fixture_mp(i), &here, NULL), 0);
        all += here;
    }
    return all;
}

static void damage_is_found_and_mended(void (*damage)(const char *path), uint64_t aside)
{
    put_text("a", bytes);
    struct version v = version_of("a");
    _cleanup_free_ char *path = file_of("a");
    assert_false(is_lacking("a"));
    damage(path);
    assert_true(is_lacking("a"));
    assert_int_equal(quarantined(), aside);
    assert_true(is_lacking("a")); /* and once more */
    assert_int_equal(quarantined(), aside);
    assert_false(held("a").found && !held("a").damaged);
    assert_int_equal(send_again(&v, bytes), 0);
    assert_false(is_lacking("a"));
    assert_true(held("a").found && !held("a").damaged);
    assert_text("a", bytes);
    assert_int_equal(send_again(&v, bytes), E_NOT_MODIFIED);
    assert_no_leftovers();
}

/* Of `a`; -1: nothing is. */
static ssize_t left(char *out, size_t size)
{
    int fd;
    uint64_t bytes_left;
    struct reader *reader;
    int code = object_open_left(fx.store, BUCKET, "a", &fd, &bytes_left, &reader, NULL);
    reader_unref(reader);
    if (code != 0) {
        assert_int_equal(code, E_OBJECT_NOT_FOUND);
        return -1;
    }
    ssize_t len = pread(fd, out, size, 0);
    assert_int_equal(len, bytes_left);
    close(fd);
    return len;
}

/* In its place, in quarantine, and no more when a good one has come. */
static void what_is_left_can_be_read(void **unused)
{
    (void)unused;
    char got[sizeof bytes];
    assert_int_equal(left(got, sizeof got), -1);
    put_text("a", bytes);
    struct version v = version_of("a");
    _cleanup_free_ char *path = file_of("a");
    cut(path);
    ssize_t len = left(got, sizeof got);
    assert_true(len >= 0 && (size_t)len < strlen(bytes));
    assert_memory_equal(got, bytes, (size_t)len);
    assert_true(is_lacking("a"));
    assert_int_equal(quarantined(), 1);
    assert_int_equal(left(got, sizeof got), len);
    assert_memory_equal(got, bytes, (size_t)len);
    assert_int_equal(send_again(&v, bytes), 0);
    assert_int_equal(left(got, sizeof got), strlen(bytes));
}

static void a_flipped_byte(void **unused)
{
    (void)unused;
    damage_is_found_and_mended(flip_byte, 1);
}

static void a_cut_file(void **unused)
{
    (void)unused;
    damage_is_found_and_mended(cut, 1);
}

static void a_lost_attribute(void **unused)
{
    (void)unused;
    damage_is_found_and_mended(take_attribute, 1);
}

static void a_removed_file(void **unused)
{
    (void)unused;
    damage_is_found_and_mended(take_file, 0);
}

static void another_objects_file(void **unused)
{
    (void)unused;
    damage_is_found_and_mended(put_strangers_there, 1);
}

static int send_hollow(const struct version *v, uint64_t size)
{
    const struct object_moved moved = {.version = *v, .modified_ms = 1, .hollow = size};
    struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
    struct error err = ERROR_INIT;
    spec.moved = &moved;
    return put_bytes(&spec, "", 0, &err);
}

/* Without room for a good copy: the name is known, and the damaged file stays in quarantine, where
 * the mark says that it lies. */
static void damage_is_known_without_a_good_copy(bool checked_before)
{
    char got[sizeof bytes];
    put_text("a", bytes);
    struct version v = version_of("a");
    _cleanup_free_ char *path = file_of("a");
    take_attribute(path);
    assert_int_equal(index_delete(fixture_pick("a")->index, BUCKET, "a", NULL), 0);
    if (checked_before)
        assert_true(is_lacking("a"));
    assert_int_equal(send_hollow(&v, strlen(bytes)), 0);
    struct object_held held_now = held("a");
    assert_true(held_now.damaged && !held_now.no_room);
    assert_int_equal(version_compare(&held_now.version, &v), 0);
    assert_int_equal(quarantined(), 1);
    assert_int_equal(left(got, sizeof got), strlen(bytes));
    assert_memory_equal(got, bytes, strlen(bytes));
    assert_int_equal(send_again(&v, bytes), 0);
    assert_text("a", bytes);
    assert_no_leftovers();
}

static void a_stub_stays_known_as_damaged(void **unused)
{
    (void)unused;
    damage_is_known_without_a_good_copy(true);
}

static void a_damaged_file_goes_aside_first(void **unused)
{
    (void)unused;
    damage_is_known_without_a_good_copy(false);
}

static void a_cut_file_makes_way_without_a_check(void **unused)
{
    (void)unused;
    put_text("a", bytes);
    struct version v = version_of("a");
    _cleanup_free_ char *path = file_of("a");
    cut(path);
    struct object_held held_now = held("a");
    assert_true(held_now.damaged);
    assert_int_equal(version_compare(&held_now.version, &v), 0);
    assert_int_equal(send_again(&v, bytes), 0);
    assert_text("a", bytes);
}

static void what_was_never_there_or_was_deleted_lacks_nothing(void **unused)
{
    (void)unused;
    assert_false(is_lacking("a"));
    put_text("a", bytes);
    assert_int_equal(delete_name("a"), 0);
    assert_false(is_lacking("a"));
    put_text("a", "");
    assert_false(is_lacking("a"));
    assert_int_equal(quarantined(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(what_is_left_can_be_read),
        store_test(a_flipped_byte),
        store_test(a_cut_file),
        store_test(a_lost_attribute),
        store_test(a_removed_file),
        store_test(another_objects_file),
        store_test(a_stub_stays_known_as_damaged),
        store_test(a_damaged_file_goes_aside_first),
        store_test(a_cut_file_makes_way_without_a_check),
        store_test(what_was_never_there_or_was_deleted_lacks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
