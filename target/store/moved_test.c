/* What the store does for objects that change owners: earlier_owners.h, rebalance.h. */
#include "target/testing/store_fixture.h"

#include "target/format/object_path.h"
#include "target/store/move.h"
#include "target/store/quarantine.h"

static struct object_held look(const char *name)
{
    struct object_held held;
    struct error err = ERROR_INIT;
    if (object_look(fx.store, BUCKET, name, &held, &err) != 0)
        fail_msg("look at '%s': %s", name, err.message);
    return held;
}

/* As a mover sends it. */
static int put_moved(const char *name, const char *text, const struct object_moved *moved,
                     struct error *err)
{
    struct object_put_spec spec = spec_of(name, DURABILITY_SYNC);
    spec.moved = moved;
    if (moved->tombstone)
        spec.checksum = CHECKSUM_NONE;
    return put_bytes(&spec, text, strlen(text), err);
}

static void assert_version(const struct version *v, uint64_t term, uint64_t map, uint64_t counter)
{
    const struct version want = {term, map, counter};
    assert_int_equal(version_compare(v, &want), 0);
}

static void a_moved_object_keeps_what_it_has(void **unused)
{
    (void)unused;
    const struct object_moved moved = {.version = {1, 7, 3}, .modified_ms = 12345};
    struct error err = ERROR_INIT;
    fx.map = 20;
    assert_int_equal(put_moved("a", "hello", &moved, &err), 0);
    assert_text("a", "hello");
    struct object_held held = look("a");
    assert_true(held.found && held.visible);
    assert_version(&held.version, 1, 7, 3);
    assert_int_equal(held.size, 5);
    assert_int_equal(held.modified_ms, 12345);
    assert_int_equal(put_moved("a", "hello", &moved, &err), E_NOT_MODIFIED); /* sent twice */
    assert_no_leftovers();
}

static void a_mover_never_overwrites_what_is_newer(void **unused)
{
    (void)unused;
    const struct object_moved old = {.version = {1, 7, 3}, .modified_ms = 1};
    struct error err = ERROR_INIT;
    fx.map = 20;
    put_text("a", "newer");
    assert_int_equal(put_moved("a", "old", &old, &err), E_NOT_MODIFIED);
    assert_text("a", "newer");
    assert_int_equal(delete_name("a"), 0);
    assert_int_equal(put_moved("a", "old", &old, &err), E_NOT_MODIFIED);
    assert_text("a", NULL);
}

static void a_tombstone_is_moved_like_an_object(void **unused)
{
    (void)unused;
    const struct object_moved object = {.version = {1, 7, 3}, .modified_ms = 1};
    const struct object_moved tombstone = {
        .version = {1, 8, 1}, .modified_ms = 2, .tombstone = true};
    struct error err = ERROR_INIT;
    struct object o;
    fx.map = 20;
    assert_int_equal(put_moved("a", "bytes", &object, &err), 0);
    assert_int_equal(put_moved("a", "", &tombstone, &err), 0);
    assert_text("a", NULL);
    assert_list("");
    struct object_held held = look("a");
    assert_true(held.found && !held.visible);
    assert_version(&held.version, 1, 8, 1);
    assert_int_equal(object_open_held(fx.store, BUCKET, "a", &o, &err), 0);
    assert_true(attr_is_tombstone(&o.attr));
    close(o.fd);
}

static void a_write_wins_over_what_an_earlier_owner_has(void **unused)
{
    (void)unused;
    const struct object_held earlier = {.found = true, .visible = true, .version = {1, 30, 5}};
    struct object_put_spec spec = spec_of("a", DURABILITY_ASYNC);
    struct error err = ERROR_INIT;
    fx.map = 20; /* older than that, whyever */
    spec.earlier = &earlier;
    assert_int_equal(put_bytes(&spec, "new", 3, &err), 0);
    struct object_held held = look("a");
    assert_true(version_compare(&held.version, &earlier.version) > 0);
}

static int must_exist(void *ctx, const struct attr *current, struct error *err)
{
    *(bool *)ctx = current != NULL;
    return current != NULL ? 0 : error_set(err, E_PRECONDITION, "nothing is there");
}

static void conditions_are_asked_of_the_earlier_object(void **unused)
{
    (void)unused;
    struct object_held earlier = {.found = true, .visible = true, .version = {1, 1, 5}};
    struct object_put_spec spec = spec_of("a", DURABILITY_ASYNC);
    struct error err = ERROR_INIT;
    bool there = false;
    spec.earlier = &earlier;
    spec.condition = (struct object_condition){.check = must_exist, .ctx = &there};
    assert_int_equal(put_bytes(&spec, "new", 3, &err), 0);
    assert_true(there);
    earlier.visible = false; /* it was deleted there: a tombstone ends the search */
    earlier.version.map = 9;
    assert_int_equal(put_bytes(&spec, "new", 3, &err), E_PRECONDITION);
    assert_false(there);
}

static int delete_with(const char *name, const struct object_held *earlier)
{
    struct delete_wait w = {.code = 1};
    object_delete(fx.store, BUCKET, name, DURABILITY_ASYNC, NULL, earlier, delete_done, &w);
    return atomic_load(&w.code);
}

static void what_is_elsewhere_can_be_deleted_here(void **unused)
{
    (void)unused;
    struct object_held earlier = {.found = true, .visible = true, .version = {1, 1, 5}};
    assert_int_equal(delete_with("a", &(struct object_held){.found = false}), E_OBJECT_NOT_FOUND);
    assert_int_equal(delete_with("a", &earlier), 0);
    struct object_held held = look("a");
    assert_true(held.found && !held.visible);
    assert_true(version_compare(&held.version, &earlier.version) > 0);
    assert_int_equal(delete_with("a", &earlier), E_OBJECT_NOT_FOUND); /* it has been, here */
}

static bool owns_nothing(void *ctx, uint64_t bucket_id, const char *name)
{
    (void)ctx;
    (void)bucket_id;
    (void)name;
    return false;
}

static void who_has_lost_a_name_writes_it_no_more(void **unused)
{
    (void)unused;
    struct object_env env = fixture_env;
    struct error err = ERROR_INIT;
    put_text("a", "mine");
    env.owns = owns_nothing;
    object_store_free(fx.store);
    fx.store = object_store_new(&(struct object_store_config){.mountpaths = fx.mountpaths,
                                                              .env = &env,
                                                              .put_buffer_bytes = BUFFER,
                                                              .put_memory_bytes = 1 << 20,
                                                              .grow = FIXTURE_GROW,
                                                              .allocate = FIXTURE_ALLOCATE});
    assert_int_equal(put_text_as("a", "late", DURABILITY_SYNC, &err), E_STALE_MAP);
    assert_int_equal(delete_name("a"), E_STALE_MAP);
    assert_text("a", "mine");
    struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
    struct object_put *put = NULL;
    spec.size = 1 << 20; /* so much that it is asked before the bytes come */
    assert_int_equal(object_put_begin(fx.store, &spec, &put, &err), E_STALE_MAP);
    spec.unnamed = true;
    assert_int_equal(object_put_begin(fx.store, &spec, &put, &err), 0);
    object_put_abort(put);
    assert_no_leftovers();
}

static void only_what_was_sent_is_dropped(void **unused)
{
    (void)unused;
    put_text("a", "first");
    struct version sent = version_of("a");
    put_text("a", "second");
    assert_int_equal(object_drop(fx.store, BUCKET, "a", &sent, NULL), 0);
    assert_text("a", "second");
    sent = version_of("a");
    assert_int_equal(object_drop(fx.store, BUCKET, "a", &sent, NULL), 0);
    assert_false(look("a").found);
    assert_list("");
    assert_int_equal(object_drop(fx.store, BUCKET, "a", &sent, NULL), 0);
}

/* One that had to wait for room could never make any. */
static void a_tombstone_is_taken_where_objects_find_no_room(void **unused)
{
    (void)unused;
    struct object_moved moved = {.version = {1, 8, 1}, .modified_ms = 2};
    struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
    struct object_put *p = NULL;
    struct error err = ERROR_INIT;
    spec.size = UINT64_MAX / 4; /* so much there never is */
    spec.moved = &moved;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, &err), E_NO_SPACE);
    moved.tombstone = true;
    assert_int_equal(object_put_begin(fx.store, &spec, &p, &err), 0);
    object_put_abort(p);
}

static int put_hollow(const char *name, uint64_t counter, uint64_t size, struct error *err)
{
    const struct object_moved moved = {
        .version = {1, 7, counter}, .modified_ms = 9, .hollow = size};
    return put_moved(name, "", &moved, err);
}

/* Where there is no room for its bytes an object is known, and nothing older is there any more. */
static void an_object_is_known_without_its_bytes(void **unused)
{
    (void)unused;
    const struct object_moved first = {.version = {1, 7, 1}, .modified_ms = 1};
    const struct object_moved second = {.version = {1, 7, 2}, .modified_ms = 9};
    struct object o;
    struct error err = ERROR_INIT;
    fx.map = 20;
    assert_int_equal(put_moved("a", "hello", &first, &err), 0);
    assert_int_equal(put_hollow("a", 1, 5, &err), E_NOT_MODIFIED); /* its bytes are here */
    assert_false(look("a").damaged);
    fault_configure("disk.room=ENOSPC", NULL);
    assert_int_equal(put_moved("a", "world!", &second, &err), E_NO_SPACE);
    assert_int_equal(put_hollow("a", 2, 6, &err), 0);
    assert_int_equal(put_hollow("a", 2, 6, &err), E_NOT_MODIFIED);
    struct object_held held = look("a");
    assert_true(held.found && held.visible && held.damaged && held.no_room);
    assert_version(&held.version, 1, 7, 2);
    assert_int_equal(held.size, 6);
    assert_int_equal(object_open(fx.store, BUCKET, "a", &o, &err), E_NO_SPACE);
    fault_configure("", NULL);
    assert_int_equal(put_moved("a", "hello", &first, &err), E_NOT_MODIFIED);
    assert_int_equal(put_moved("a", "world!", &second, &err), 0);
    assert_false(look("a").damaged || look("a").no_room);
    assert_text("a", "world!");
    assert_no_leftovers();
}

/* One that has no bytes. */
static int put_empty(const char *name, const struct object_moved *moved, struct error *err)
{
    struct object_put_spec spec = spec_of(name, DURABILITY_SYNC);
    spec.moved = moved;
    spec.size = 0;
    return put_bytes(&spec, "", 0, err);
}

/* What they would take is kept for tombstones. */
static void known_objects_leave_room_for_tombstones(void **unused)
{
    (void)unused;
    const struct object_moved empty = {.version = {1, 7, 1}, .modified_ms = 1};
    const struct object_moved deleted = {.version = {1, 7, 2}, .modified_ms = 1, .tombstone = true};
    struct error err = ERROR_INIT;
    fx.map = 20;
    assert_int_equal(put_hollow("a", 1, 5, &err), 0);
    fault_configure("disk.kept=ENOSPC", NULL);
    assert_int_equal(put_hollow("b", 1, 5, &err), E_NO_SPACE);
    assert_int_equal(put_empty("b", &empty, &err), E_NO_SPACE);
    assert_false(look("b").found);
    assert_int_equal(put_hollow("a", 2, 5, &err), 0); /* in place of its file */
    struct object_held held = look("a");
    assert_version(&held.version, 1, 7, 2);
    assert_int_equal(put_moved("b", "", &deleted, &err), 0);
    fault_configure("", NULL);
    assert_int_equal(put_hollow("c", 1, 5, &err), 0);
    assert_int_equal(put_empty("d", &empty, &err), 0);
    assert_no_leftovers();
}

struct fence {
    int asked, refused; /* how often; this one is refused */
    struct object_put *kept;
};

static int refuse_once(void *ctx, const struct attr *current, struct error *err)
{
    struct fence *f = ctx;
    (void)current;
    return ++f->asked == f->refused ? error_set(err, E_STALE_MAP, "there is a later map") : 0;
}

static void take_kept(void *ctx, struct object_put *put)
{
    struct fence *f = ctx;
    f->kept = put;
}

/* The fence is asked twice with sync: before the file is synced, and right before the rename. */
static void kept_and_committed_later(enum durability durability, int refused)
{
    const struct object_moved as = {.version = {1, 7, 3}, .modified_ms = 12345};
    struct object_put_spec spec = spec_of("a", durability);
    struct fence f = {.refused = refused};
    const struct object_condition fence = {.check = refuse_once, .kept = take_kept, .ctx = &f};
    struct object_put *put;
    struct error err = ERROR_INIT;
    assert_int_equal(object_put_begin(fx.store, &spec, &put, &err), 0);
    assert_int_equal(object_put_write(put, "hello", 5, &err), 0);
    assert_int_equal(object_put_commit_as_wait(put, &as, &fence, &err), E_STALE_MAP);
    assert_ptr_equal(f.kept, put);
    assert_text("a", NULL);
    assert_int_equal(object_put_commit_as_wait(put, &as, &fence, &err), 0);
    assert_text("a", "hello");
    struct object_held held = look("a");
    assert_version(&held.version, 1, 7, 3);
    assert_no_leftovers();
    assert_int_equal(object_drop(fx.store, BUCKET, "a", &held.version, &err), 0);
}

static void what_a_later_map_refuses_is_kept(void **unused)
{
    (void)unused;
    fx.map = 20;
    kept_and_committed_later(DURABILITY_ASYNC, 1);
    kept_and_committed_later(DURABILITY_SYNC, 1);
    kept_and_committed_later(DURABILITY_SYNC, 2);
}

static void what_is_kept_can_be_given_up(void **unused)
{
    (void)unused;
    const struct object_moved as = {.version = {1, 7, 3}};
    struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
    struct fence f = {.refused = 1};
    const struct object_condition fence = {.check = refuse_once, .kept = take_kept, .ctx = &f};
    struct object_put *put;
    struct error err = ERROR_INIT;
    assert_int_equal(object_put_begin(fx.store, &spec, &put, &err), 0);
    assert_int_equal(object_put_commit_as_wait(put, &as, &fence, &err), E_STALE_MAP);
    object_put_abort(f.kept);
    assert_text("a", NULL);
    assert_no_leftovers();
}

/* A copy between mountpaths of two file systems keeps the mark, and is no damage. */
static void a_hollow_object_keeps_its_mark_on_another_mountpath(void **unused)
{
    (void)unused;
    static const char mark[] = "rpr-1 7-0123-45";
    struct mountpath *from[30];
    struct error err = ERROR_INIT;
    char name[16], mp3[80];
    unsigned moved = 0;
    for (unsigned i = 0; i < 30; i++) {
        struct object_path place;
        snprintf(name, sizeof name, "o%u", i);
        assert_int_equal(put_hollow(name, 1, 5, &err), 0);
        from[i] = fixture_pick(name);
        object_path_set(&place, BUCKET, name);
        _cleanup_free_ char *path = xprintf("%s/.dfc/obj/%s", from[i]->path, place.text);
        if (i % 2 == 0)
            assert_int_equal(setxattr(path, QUARANTINE_XATTR, mark, strlen(mark), 0), 0);
    }
    snprintf(mp3, sizeof mp3, "%s/mp3", fx.dir);
    assert_int_equal(mountpaths_attach(fx.mountpaths, mp3, NULL), 0);
    const uint64_t damaged = metric_value(metric_get(M_checksum_errors_total, NULL));
    assert_int_equal(fault_configure("resilver.rename=EXDEV", NULL), 0);
    for (unsigned i = 0; i < 30; i++) {
        enum object_move_result result;
        uint64_t bytes;
        struct object_path place;
        char got[64] = "";
        snprintf(name, sizeof name, "o%u", i);
        if (fixture_pick(name) == from[i])
            continue;
        moved |= 1U << i % 2;
        assert_int_equal(object_move(fx.store, BUCKET, name, from[i], &result, &bytes, &err), 0);
        assert_int_equal(result, MOVE_DONE);
        object_path_set(&place, BUCKET, name);
        _cleanup_free_ char *path = xprintf("%s/.dfc/obj/%s", fixture_pick(name)->path, place.text);
        assert_true(getxattr(path, QUARANTINE_XATTR, got, sizeof got - 1) > 0);
        assert_string_equal(got, i % 2 == 0 ? mark : QUARANTINE_NO_ROOM);
    }
    fault_configure(NULL, NULL);
    assert_int_equal(moved, 3); /* of both kinds */
    assert_int_equal(metric_value(metric_get(M_checksum_errors_total, NULL)), damaged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(a_moved_object_keeps_what_it_has),
        store_test(a_mover_never_overwrites_what_is_newer),
        store_test(a_tombstone_is_moved_like_an_object),
        store_test(a_write_wins_over_what_an_earlier_owner_has),
        store_test(conditions_are_asked_of_the_earlier_object),
        store_test(what_is_elsewhere_can_be_deleted_here),
        store_test(who_has_lost_a_name_writes_it_no_more),
        store_test(only_what_was_sent_is_dropped),
        store_test(what_a_later_map_refuses_is_kept),
        store_test(what_is_kept_can_be_given_up),
        store_test(an_object_is_known_without_its_bytes),
        store_test(known_objects_leave_room_for_tombstones),
        store_test(a_hollow_object_keeps_its_mark_on_another_mountpath),
        store_test(a_tombstone_is_taken_where_objects_find_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
