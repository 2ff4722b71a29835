/* Which objects are garbage: two clients of a small volume. */
#include "mount/volfs/gc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/mem.h"
#include "mount/meta/memory.h"
#include "mount/volfs/objects.h"
#include "mount/volume/ids.h"
#include "mount/volume/testing/clients.h"
#include "mount/volume/trees/trees.h"

enum { OLD_MS = 1000, OLDER_MS = 2000, NEW_MS = 3000, BYTES = 8 };

static uint64_t new_slice(struct volume *v)
{
    uint64_t slice;
    assert_int_equal(volume_new_slice(v, &slice), 0);
    return slice;
}

static void name_slice(struct volume *v, uint64_t ino, uint64_t slice)
{
    const struct volume_piece p = {.length = BYTES, .slice = slice, .size = BYTES};
    assert_int_equal(volume_write(v, ino, &p, 1, 0, NULL), 0);
}

static struct gc *begin(void)
{
    struct gc *gc;
    struct error err = ERROR_INIT;
    const struct gc_options options = {.older_ms = OLDER_MS};
    const struct volume_format format = small_format();
    assert_int_equal(gc_new(f.m, &format, &options, &gc, &err), 0);
    return gc;
}

static void show(struct gc *gc, uint64_t slice, int64_t modified_ms)
{
    _cleanup_free_ char *key = objects_key("v", slice, 0, BYTES);
    gc_object(gc, key, BYTES, modified_ms);
}

static void look(struct gc *gc)
{
    struct error err = ERROR_INIT;
    if (gc_look(gc, &err) != 0)
        fail_msg("%s", err.message);
}

static void expect_garbage(struct gc *gc, size_t index, uint64_t slice)
{
    _cleanup_free_ char *got = gc_garbage(gc, index);
    _cleanup_free_ char *wanted = objects_key("v", slice, 0, BYTES);
    assert_non_null(got);
    assert_string_equal(got, wanted);
}

static void only_what_no_commit_names_is_garbage(void **state)
{
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    uint64_t gone = make(VOLUME_ROOT, "y", S_IFREG | 0644);
    uint64_t named = new_slice(f.a), lost = new_slice(f.a), hidden = new_slice(f.a);
    uint64_t unlinked = new_slice(f.a), young = new_slice(f.a);
    name_slice(f.a, ino, hidden);
    name_slice(f.a, ino, named);
    name_slice(f.a, gone, unlinked);
    const struct volume_set cut = {.fields = VOLUME_SET_LENGTH};
    uint64_t third = make(VOLUME_ROOT, "z", S_IFREG | 0644), queued = new_slice(f.a);
    name_slice(f.a, third, queued);
    assert_int_equal(volume_setattr(f.a, third, &cut, NULL), 0);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "y"), 0);
    uint64_t living = new_slice(f.b); /* its session goes on */
    volume_close(f.a);
    f.a = NULL;
    struct gc *gc = begin();
    const uint64_t all[] = {queued, named, lost, hidden, unlinked, living};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        show(gc, all[i], OLD_MS);
    show(gc, young, NEW_MS);
    show(gc, living + 100000, OLD_MS); /* of a session that has begun meanwhile */
    gc_object(gc, "v/b/01/0000000000000001_0_08", BYTES, OLD_MS);
    gc_object(gc, "w/b/01/0000000000000001_0_8", BYTES, OLD_MS);
    look(gc);
    const struct gc_tally *t = gc_tally(gc);
    expect_garbage(gc, 0, lost);
    assert_null(gc_garbage(gc, 1));
    assert_int_equal(t->objects, 10);
    assert_int_equal(t->garbage, 1);
    assert_int_equal(t->garbage_bytes, BYTES);
    assert_int_equal(t->young, 1);
    assert_int_equal(t->living, 2);
    assert_int_equal(t->foreign, 2);
    assert_int_equal(t->queued, 1);
    assert_int_equal(t->due, 0);
    gc_free(gc);
    advance(GRACE_MS + 1);
    gc = begin();
    look(gc);
    assert_int_equal(gc_tally(gc)->due, 1);
    gc_free(gc);
}

/* A range of a session that goes on is given up when the client says so. */
static void settled_ranges_are_looked_at(void **state)
{
    uint64_t first = new_slice(f.a), last = first;
    (void)state;
    while (last < first + IDS_SLICE_RANGE)
        last = new_slice(f.a);
    assert_int_equal(volume_settled(f.a, first + IDS_SLICE_RANGE - 1), 0);
    struct gc *gc = begin();
    show(gc, first, OLD_MS);
    look(gc);
    assert_int_equal(gc_tally(gc)->living, 1);
    gc_free(gc);
    assert_int_equal(volume_settled(f.a, volume_next_slice(f.a)), 0);
    gc = begin();
    show(gc, first, OLD_MS);
    show(gc, last, OLD_MS);
    look(gc);
    assert_int_equal(gc_tally(gc)->living, 1);
    expect_garbage(gc, 0, first);
    gc_free(gc);
}

static void many_files_are_looked_at(void **state)
{
    enum { FILES = 700 };
    uint64_t slices[FILES], first = 0;
    (void)state;
    for (unsigned i = 0; i < FILES; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        slices[i] = new_slice(f.a);
        first = i == 0 ? slices[0] : first;
        name_slice(f.a, make(VOLUME_ROOT, name, S_IFREG | 0644), slices[i]);
    }
    uint64_t lost = new_slice(f.a);
    volume_close(f.a);
    f.a = NULL;
    struct gc *gc = begin();
    show(gc, lost, OLD_MS);
    for (unsigned i = FILES; i-- > 0;)
        show(gc, slices[i], OLD_MS);
    look(gc);
    expect_garbage(gc, 0, lost);
    assert_int_equal(gc_tally(gc)->garbage, 1);
    gc_free(gc);
}

/* ---- clones meanwhile ---- */

enum { MOMENTS = 4 };
static const enum meta_kind moments[MOMENTS] = {META_CHUNK, META_SHARED, META_GARBAGE, META_KINDS};

/* An engine, and what a client does before the first question about a kind.  META_KINDS: never. */
struct race {
    struct meta meta; /* first */
    enum meta_kind clone, cut, end;
    uint64_t source, copy;
    bool asked[META_KINDS];
};

static void cut_file(uint64_t ino)
{
    const struct volume_set set = {.fields = VOLUME_SET_LENGTH};
    assert_int_equal(volume_setattr(f.a, ino, &set, NULL), 0);
}

static void clone_source(struct race *r)
{
    const struct volume_caller root = {0};
    struct volume_tally tally = {0};
    struct volume_inode copy;
    assert_int_equal(volume_clone(f.a, r->source, VOLUME_ROOT, "copy", &root, &tally), 0);
    assert_int_equal(volume_lookup(f.a, VOLUME_ROOT, "copy", &copy), 0);
    r->copy = copy.ino;
}

static void go_on_before(struct race *r, enum meta_kind kind)
{
    if (r->asked[kind])
        return;
    r->asked[kind] = true;
    if (r->clone == kind)
        clone_source(r);
    if (r->cut == kind)
        cut_file(r->source);
    if (r->end == kind && r->copy != 0)
        cut_file(r->copy);
}

static int race_read(struct meta *m, struct meta_read *read, struct error *err)
{
    go_on_before((struct race *)m, read->items[0].key.kind);
    return f.m->ops->read(f.m, read, err);
}

static int race_queue(struct meta *m, struct arena *arena, struct meta_item *item, uint64_t until,
                      struct error *err)
{
    go_on_before((struct race *)m, item->key.kind);
    return f.m->ops->queue(f.m, arena, item, until, err);
}

static int race_now(struct meta *m, int64_t *unix_ms, struct error *err)
{
    (void)m;
    return f.m->ops->now(f.m, unix_ms, err);
}

static void expect_kept(enum meta_kind clone, enum meta_kind cut, enum meta_kind end)
{
    static const struct meta_ops ops = {.read = race_read, .queue = race_queue, .now = race_now};
    struct race race = {.meta.ops = &ops, .clone = clone, .cut = cut, .end = end};
    const struct gc_options options = {.older_ms = OLDER_MS};
    const struct volume_format format = small_format();
    struct error err = ERROR_INIT;
    struct gc *gc;
    assert_int_equal(clients_setup(NULL), 0);
    struct volume *gone = clients_open(NULL);
    uint64_t slice = new_slice(gone);
    race.source = make(VOLUME_ROOT, "source", S_IFREG | 0644);
    name_slice(gone, race.source, slice);
    volume_close(gone);
    assert_int_equal(gc_new(&race.meta, &format, &options, &gc, &err), 0);
    show(gc, slice, OLD_MS);
    look(gc);
    if (gc_tally(gc)->garbage > 0)
        fail_msg("clone before %d, cut before %d, end before %d", clone, cut, end);
    assert_int_equal(gc_tally(gc)->living, 0);
    gc_free(gc);
    clients_teardown(NULL);
}

/* A clone that the walk over files misses, of a file that it finds cut. */
static void clones_meanwhile_keep_their_slices(void **state)
{
    (void)state;
    for (unsigned clone = 0; clone < MOMENTS; clone++) {
        for (unsigned cut = 0; cut < MOMENTS; cut++) {
            for (unsigned end = 0; end < MOMENTS; end++)
                expect_kept(moments[clone], moments[cut], moments[end]);
        }
    }
}

/* ---- the lease ---- */

static bool leases(struct volume *v)
{
    bool held;
    assert_int_equal(volume_lease(v, 10000, &held), 0);
    return held;
}

static void one_client_has_the_lease(void **state)
{
    (void)state;
    assert_true(leases(f.a));
    assert_false(leases(f.b));
    advance(9000);
    assert_true(leases(f.a)); /* for longer */
    advance(9000);
    assert_false(leases(f.b));
    advance(1000);
    assert_true(leases(f.b));
    assert_false(leases(f.a));
    volume_close(f.b);
    f.b = NULL;
    assert_true(leases(f.a)); /* the session of the other has ended */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_what_no_commit_names_is_garbage, clients_setup,
                                        clients_teardown),
        cmocka_unit_test_setup_teardown(settled_ranges_are_looked_at, clients_setup,
                                        clients_teardown),
        cmocka_unit_test_setup_teardown(many_files_are_looked_at, clients_setup, clients_teardown),
        cmocka_unit_test(clones_meanwhile_keep_their_slices),
        cmocka_unit_test_setup_teardown(one_client_has_the_lease, clients_setup, clients_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
