/* What is written here before its backend has it: it stays until that has been said of its version.
 */
#include "target/testing/store_fixture.h"

#include "common/fault.h"

#include <pthread.h>

#include "target/store/move.h"

static struct object_held look(const char *name)
{
    struct object_held held;
    struct error err = ERROR_INIT;
    if (object_look(fx.store, BUCKET, name, &held, &err) != 0)
        fail_msg("look at '%s': %s", name, err.message);
    return held;
}

static void put_pending(const char *name, const char *text)
{
    struct object_put_spec spec = spec_of(name, DURABILITY_SYNC);
    struct error err = ERROR_INIT;
    spec.pending = true;
    if (put_bytes(&spec, text, strlen(text), &err) != 0)
        fail_msg("put '%s': %s", name, err.message);
}

static int bury(const char *name, const struct object_held *earlier)
{
    struct delete_wait w = {.code = 1};
    object_bury(fx.store, BUCKET, name, NULL, earlier, NULL, delete_done, &w);
    while (atomic_load(&w.code) == 1)
        usleep(100);
    return atomic_load(&w.code);
}

static bool uploaded(const char *name, const struct version *version, const char *etag)
{
    bool done;
    struct error err = ERROR_INIT;
    if (object_uploaded(fx.store, BUCKET, name, version, etag, &done, &err) != 0)
        fail_msg("uploaded '%s': %s", name, err.message);
    return done;
}

static bool evicted(const char *name)
{
    bool gone;
    assert_int_equal(object_evict(fx.store, BUCKET, name, INT64_MAX, &gone, NULL), 0);
    return gone;
}

/* What the index says of it. */
static bool is_pending_in_index(const char *name)
{
    struct index_record rec;
    char job[ATTR_JOB_MAX + 1];
    assert_int_equal(index_find(fixture_pick(name)->index, BUCKET, name, &rec, job, NULL), 1);
    return rec.pending;
}

static void assert_pending(const char *name, bool pending)
{
    assert_int_equal(look(name).pending, pending);
    assert_int_equal(is_pending_in_index(name), pending);
}

static void what_is_pending_is_not_evicted(void **unused)
{
    (void)unused;
    put_pending("a", "new");
    assert_pending("a", true);
    assert_false(evicted("a"));
    struct version v = version_of("a");
    assert_true(uploaded("a", &v, "\"tag\""));
    assert_pending("a", false);
    assert_text("a", "new");
    struct object o;
    assert_int_equal(object_head(fx.store, BUCKET, "a", &o, NULL), 0);
    assert_int_equal(version_compare(&v, &o.attr.version), 0);
    size_t pos = 0;
    const char *name, *value;
    assert_true(attr_meta_next(&o.attr, &pos, &name, &value));
    assert_string_equal(name, OBJECT_BACKEND_SENT);
    assert_true(attr_meta_next(&o.attr, &pos, &name, &value));
    assert_string_equal(name, OBJECT_BACKEND_ETAG);
    assert_string_equal(value, "\"tag\"");
    assert_true(evicted("a"));
    assert_false(uploaded("a", &v, ""));
}

static void a_later_write_is_pending_still(void **unused)
{
    (void)unused;
    put_pending("a", "first");
    struct version first = version_of("a");
    put_pending("a", "second");
    assert_false(uploaded("a", &first, ""));
    assert_pending("a", true);
    first = version_of("a");
    assert_true(uploaded("a", &first, ""));
    assert_false(uploaded("a", &first, ""));
}

static void a_tombstone_stays_while_it_is_pending(void **unused)
{
    (void)unused;
    put_text("a", "old");
    assert_int_equal(bury("a", NULL), 0);
    assert_text("a", NULL);
    assert_pending("a", true);
    assert_int_equal(object_forget_tombstone(fx.store, BUCKET, "a", INT64_MAX, NULL), 0);
    struct object_held held = look("a");
    assert_true(held.found && !held.visible);
    assert_true(uploaded("a", &held.version, "\"none\""));
    assert_int_equal(object_forget_tombstone(fx.store, BUCKET, "a", INT64_MAX, NULL), 0);
    assert_false(look("a").found);
}

static void what_only_the_backend_has_can_be_buried(void **unused)
{
    (void)unused;
    const struct object_held there = {.found = true, .visible = true};
    assert_int_equal(bury("a", NULL), E_OBJECT_NOT_FOUND);
    assert_int_equal(bury("a", &there), 0);
    assert_pending("a", true);
}

static void what_comes_from_the_backend_yields(void **unused)
{
    (void)unused;
    struct object_put_spec spec = spec_of("a", DURABILITY_ASYNC);
    spec.yields = true;
    assert_int_equal(put_bytes(&spec, "theirs", 6, NULL), 0);
    put_pending("a", "ours");
    assert_int_equal(put_bytes(&spec, "theirs", 6, NULL), E_PRECONDITION);
    assert_text("a", "ours");
    assert_int_equal(bury("a", NULL), 0);
    assert_int_equal(put_bytes(&spec, "theirs", 6, NULL), E_PRECONDITION);
    assert_text("a", NULL);
    assert_no_leftovers();
}

static void it_is_known_from_the_files(void **unused)
{
    (void)unused;
    put_pending("a", "one");
    put_text("b", "two");
    assert_int_equal(bury("b", NULL), 0);
    put_text("c", "three");
    fixture_close();
    fixture_forget_markers();
    fixture_open();
    assert_pending("a", true);
    assert_pending("b", true);
    assert_pending("c", false);
}

static void it_moves_with_the_object(void **unused)
{
    (void)unused;
    const struct object_moved moved = {.version = {1, 7, 3}, .modified_ms = 5, .pending = true};
    struct object_put_spec spec = spec_of("a", DURABILITY_SYNC);
    spec.moved = &moved;
    assert_int_equal(put_bytes(&spec, "moved", 5, NULL), 0);
    assert_pending("a", true);
    assert_true(uploaded("a", &moved.version, ""));
}

static void a_pending_tombstone_is_listed_to_who_asks(void **unused)
{
    (void)unused;
    struct list_request req = {.bucket_id = BUCKET,
                               .prefix = "",
                               .delimiter = "",
                               .start_after = "",
                               .limit = 1000,
                               .pending = true};
    struct list_page page;
    put_text("a", "1");
    put_text("b", "2");
    assert_int_equal(delete_name("a"), 0);
    assert_int_equal(bury("b", NULL), 0);
    assert_list("");
    assert_int_equal(list_page(fx.store, &req, &page, NULL), 0);
    assert_int_equal(page.entry_count, 1);
    assert_string_equal(page.entries[0].name, "b");
    assert_true(page.entries[0].record.tombstone);
    list_page_done(&page);
}

/* --- on its way to another mountpath ---------------------------------------------------------- */

enum { MOVED = 30 };

struct move_thread {
    pthread_t thread;
    atomic_bool over;
    const char *name;
    struct mountpath *from;
    int code;
    enum object_move_result result;
};

static void *move_main(void *arg)
{
    struct move_thread *m = arg;
    uint64_t bytes;
    m->code = object_move(fx.store, BUCKET, m->name, m->from, &m->result, &bytes, NULL);
    atomic_store(&m->over, true);
    return NULL;
}

/* Is there a copy that has its attribute, and not its name yet? */
static bool is_copied(const struct mountpath *to)
{
    char path[400], raw[ATTR_ENCODED_MAX];
    bool copied = false;
    snprintf(path, sizeof path, "%s/.dfc/tmp", to->path);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *e; !copied && (e = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/.dfc/tmp/%s", to->path, e->d_name);
        copied = e->d_type == DT_REG && getxattr(path, ATTR_XATTR, raw, sizeof raw) > 0;
    }
    closedir(dir);
    return copied;
}

/* False: the copy had its name before. */
static bool upload_overtakes_move(const char *name, struct mountpath *from, unsigned delay_ms)
{
    struct move_thread m = {.name = name, .from = from};
    const struct version version = version_of(name);
    char faults[80];
    snprintf(faults, sizeof faults, "resilver.rename=EXDEV,disk.sync=delay:%u", delay_ms);
    assert_int_equal(fault_configure(faults, NULL), 0);
    assert_int_equal(pthread_create(&m.thread, NULL, move_main, &m), 0);
    while (!is_copied(fixture_pick(name)) && !atomic_load(&m.over))
        usleep(100);
    assert_true(uploaded(name, &version, "\"tag\""));
    bool overtaken = is_copied(fixture_pick(name));
    assert_int_equal(pthread_join(m.thread, NULL), 0);
    assert_int_equal(m.code, 0);
    assert_int_equal(m.result, MOVE_DONE);
    return overtaken;
}

/* The copy has no mark that no index knows of. */
static void it_is_uploaded_while_it_moves(void **unused)
{
    (void)unused;
    struct mountpath *from[MOVED];
    char name[16], path[80];
    for (unsigned i = 0; i < MOVED; i++) {
        snprintf(name, sizeof name, "o%u", i);
        put_pending(name, "new");
        from[i] = fixture_pick(name);
    }
    snprintf(path, sizeof path, "%s/mp3", fx.dir);
    assert_int_equal(mountpaths_attach(fx.mountpaths, path, NULL), 0);
    bool overtaken = false;
    unsigned delay_ms = 20;
    for (unsigned i = 0; i < MOVED && !overtaken; i++) {
        snprintf(name, sizeof name, "o%u", i);
        if (fixture_pick(name) == from[i])
            continue;
        overtaken = upload_overtakes_move(name, from[i], delay_ms);
        assert_text(name, "new");
        assert_pending(name, false);
        delay_ms *= 2;
    }
    assert_true(overtaken);
}

/* By then it may lie elsewhere than where it was opened for its upload. */
static void the_file_that_loses_its_mark_is_synced(void **unused)
{
    (void)unused;
    bool done;
    put_pending("a", "new");
    struct version v = version_of("a");
    assert_int_equal(fault_configure("disk.sync=EIO", NULL), 0);
    int code = object_uploaded(fx.store, BUCKET, "a", &v, "", &done, NULL);
    fault_configure(NULL, NULL);
    assert_int_equal(code, E_IO);
    assert_pending("a", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(what_is_pending_is_not_evicted),
        store_test(a_later_write_is_pending_still),
        store_test(a_tombstone_stays_while_it_is_pending),
        store_test(what_only_the_backend_has_can_be_buried),
        store_test(what_comes_from_the_backend_yields),
        store_test(it_is_known_from_the_files),
        store_test(it_moves_with_the_object),
        store_test(a_pending_tombstone_is_listed_to_who_asks),
        store_test(it_is_uploaded_while_it_moves),
        store_test(the_file_that_loses_its_mark_is_synced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
