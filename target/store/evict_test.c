/* Which objects go, on a mountpath of tests. */
#include "target/store/evict.h"

#include "target/testing/store_fixture.h"

#include <fcntl.h>

#include "cluster/documents/state_holder.h"
#include "common/clock.h"
#include "target/format/object_path.h"

enum { OWN = 8, KEPT = 9, YOUNG = 10 };

static struct bucket buckets[] = {
    {.id = BUCKET, .name = "cold", .props = {.backend = "http://h"}},
    {.id = KEPT, .name = "kept", .props = {.backend = "http://h", .lru_off = true}},
    {.id = OWN, .name = "own"},
    {.id = YOUNG, .name = "young", .props = {.backend = "http://h", .lru_min_age_ms = 3600 * 1000}},
};

static struct {
    struct state_holder *state;
    struct last_use *last_use;
    struct evictor *evictor;
} ev;

static int setup(void **unused)
{
    static const struct space_limits limits = {.low = 75, .high = 90, .out = 95};
    int rc = fixture_setup_closed(unused);
    if (rc != 0)
        return rc;
    fixture_open_with("1", (struct mountpaths_config){0});
    struct cluster_state *s = state_new("c-test");
    s->bmd.buckets = buckets;
    s->bmd.count = sizeof buckets / sizeof buckets[0];
    ev.state = state_holder_new(s);
    ev.last_use = last_use_new(fx.store);
    const struct evictor_config config = {.store = fx.store,
                                          .state = ev.state,
                                          .last_use = ev.last_use,
                                          .limits = &limits,
                                          .interval_ms = 3600 * 1000};
    return evictor_new(&config, &ev.evictor, NULL);
}

static int teardown(void **unused)
{
    evictor_free(ev.evictor);
    last_use_free(ev.last_use);
    state_holder_free(ev.state);
    return fixture_teardown(unused);
}

#define evict_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static void put_used(uint64_t bucket_id, const char *name, int64_t used_s)
{
    struct object_put_spec spec = spec_of(name, DURABILITY_ASYNC);
    spec.bucket_id = bucket_id;
    assert_int_equal(put_bytes(&spec, "0123456789", 10, NULL), 0);
    object_touch(fx.store, bucket_id, name, used_s);
}

static bool is_there(uint64_t bucket_id, const char *name)
{
    struct object o;
    return object_head(fx.store, bucket_id, name, &o, NULL) == 0;
}

static struct evict_count evict(uint64_t need)
{
    struct evict_count count = {0};
    struct error err = ERROR_INIT;
    const atomic_bool stop = false;
    if (evictor_make_room(ev.evictor, fixture_mp(0), need, &stop, &count, &err) != 0)
        fail_msg("%s", err.message);
    return count;
}

static void the_least_recently_used_go_first(void **unused)
{
    (void)unused;
    put_used(BUCKET, "b", 2000);
    put_used(BUCKET, "d", 4000);
    put_used(BUCKET, "a", 1000);
    put_used(BUCKET, "c", 3000);
    struct evict_count count = evict(15);
    assert_int_equal(count.objects, 2);
    assert_int_equal(count.bytes, 20);
    assert_list("c:10 d:10 ");
    assert_false(is_there(BUCKET, "a"));
    assert_no_leftovers_in("mp1");
}

static void a_read_keeps_an_object(void **unused)
{
    (void)unused;
    put_used(BUCKET, "a", 1000);
    put_used(BUCKET, "b", 2000);
    last_use_note(ev.last_use, BUCKET, "a");
    last_use_write(ev.last_use);
    evict(10);
    assert_list("a:10 ");
}

static void others_are_never_touched(void **unused)
{
    (void)unused;
    put_used(OWN, "own", 1000);
    put_used(KEPT, "kept", 1000);
    put_used(YOUNG, "old", 1000);
    put_used(YOUNG, "young", clock_wall_ms() / 1000);
    struct evict_count count = evict(UINT64_MAX);
    assert_int_equal(count.objects, 1);
    assert_true(is_there(OWN, "own"));
    assert_true(is_there(KEPT, "kept"));
    assert_true(is_there(YOUNG, "young"));
    assert_false(is_there(YOUNG, "old"));
}

static void what_was_used_meanwhile_stays(void **unused)
{
    (void)unused;
    bool gone = true;
    put_used(BUCKET, "a", 2000);
    assert_int_equal(object_evict(fx.store, BUCKET, "a", 1999, &gone, NULL), 0);
    assert_false(gone);
    assert_int_equal(object_evict(fx.store, BUCKET, "a", 2000, &gone, NULL), 0);
    assert_true(gone);
    assert_int_equal(object_evict(fx.store, BUCKET, "a", 2000, &gone, NULL), 0);
    assert_false(gone);
}

/* Its attribute is now that of a newer release. */
static void make_unknown(const char *name)
{
    unsigned char raw[ATTR_ENCODED_MAX];
    struct object_path path;
    object_path_set(&path, BUCKET, name);
    int fd = openat(fixture_mp(0)->obj_fd, path.text, O_RDONLY | O_CLOEXEC);
    ssize_t len = fgetxattr(fd, ATTR_XATTR, raw, sizeof raw);
    assert_true(len > 0);
    raw[0] = 200;
    assert_int_equal(fsetxattr(fd, ATTR_XATTR, raw, (size_t)len, 0), 0);
    close(fd);
}

static void one_that_cannot_go_keeps_no_other(void **unused)
{
    (void)unused;
    put_used(BUCKET, "a", 1000);
    put_used(BUCKET, "b", 2000);
    put_used(BUCKET, "c", 3000);
    make_unknown("a");
    struct evict_count count = {0};
    struct error err = ERROR_INIT;
    const atomic_bool stop = false;
    assert_int_equal(evictor_make_room(ev.evictor, fixture_mp(0), 20, &stop, &count, &err),
                     E_UNSUPPORTED);
    assert_int_equal(count.objects, 1);
    assert_false(is_there(BUCKET, "b"));
    assert_true(is_there(BUCKET, "c"));
}

static void a_hidden_object_stays(void **unused)
{
    (void)unused;
    put_text_hidden("hidden", "x", "srt-1");
    evict(UINT64_MAX);
    fx.committed_job = "srt-1";
    assert_text("hidden", "x");
}

static void versions_do_not_come_again(void **unused)
{
    (void)unused;
    put_used(BUCKET, "a", 1000);
    struct version before = version_of("a");
    evict(UINT64_MAX);
    put_used(BUCKET, "a", 1000);
    struct version after = version_of("a");
    assert_true(version_compare(&after, &before) > 0);
}

static void more_than_one_cursor_sees(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < 300; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%03u", i);
        put_used(BUCKET, name, 1000 + (int64_t)((i * 37) % 300));
    }
    assert_int_equal(evict(2990).objects, 299);
    assert_list("n227:10 "); /* 227 * 37 % 300 = 299: the youngest */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        evict_test(the_least_recently_used_go_first),  evict_test(a_read_keeps_an_object),
        evict_test(others_are_never_touched),          evict_test(what_was_used_meanwhile_stays),
        evict_test(one_that_cannot_go_keeps_no_other), evict_test(a_hidden_object_stays),
        evict_test(versions_do_not_come_again),        evict_test(more_than_one_cursor_sees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
