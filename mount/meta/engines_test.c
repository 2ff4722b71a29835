/* One suite over every engine; random commits give the same as in the engine "memory". */
#include "mount/meta/engines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/rng.h"
#include "mount/meta/memory.h"
#include "mount/meta/testing/engines.h"

struct fixture {
    const struct test_engine *engine;
    struct meta *m;
    struct arena *arena;
};

static int setup(void **state)
{
    static struct fixture f;
    struct error err = ERROR_INIT;
    f = (struct fixture){.engine = *state, .arena = arena_new(4096)};
    if (f.engine->open(&f.m, &err) != 0)
        fail_msg("%s", err.message);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    meta_close(f->m);
    f->engine->remove();
    arena_free(f->arena);
    return 0;
}

#define TRY(f, ...)                                        \
    try_commit(f, (const struct meta_step[]){__VA_ARGS__}, \
               sizeof((const struct meta_step[]){__VA_ARGS__}) / sizeof(struct meta_step))

static int try_commit(struct fixture *f, const struct meta_step *steps, size_t count)
{
    struct error err = ERROR_INIT;
    struct meta_commit c = {.steps = steps, .count = count};
    int rc = f->m->ops->commit(f->m, &c, &err);
    assert_true((rc == 0) == (err.message[0] == '\0'));
    assert_true(rc != E_PRECONDITION || c.conflict < count);
    return rc;
}

static struct meta_value value_of(struct fixture *f, struct meta_key key)
{
    struct error err = ERROR_INIT;
    struct meta_item item = {.ask = META_GET, .key = key};
    struct meta_read r = {.arena = f->arena, .items = &item, .count = 1};
    assert_int_equal(f->m->ops->read(f->m, &r, &err), 0);
    return item.value;
}

static const struct meta_key one = {.kind = META_ATTR, .id = 1};
static const struct meta_key two = {.kind = META_ATTR, .id = 2};
static const uint8_t zeros[24];

static struct meta_step put(struct meta_key key, const void *data, size_t size)
{
    return (struct meta_step){.kind = META_PUT, .key = key, .data = data, .size = size};
}

static struct meta_step on(enum meta_step_kind kind, struct meta_key key)
{
    return (struct meta_step){.kind = kind, .key = key};
}

static struct meta_step field(enum meta_step_kind kind, struct meta_key key, size_t offset,
                              int64_t number)
{
    return (struct meta_step){.kind = kind, .key = key, .offset = offset, .number = number};
}

static void what_was_put_is_read(void **state)
{
    struct fixture *f = *state;
    assert_false(value_of(f, one).found);
    assert_int_equal(TRY(f, on(META_EXPECT_ABSENT, one), put(one, "abc", 3)), 0);
    struct meta_value v = value_of(f, one);
    assert_true(v.found);
    assert_int_equal(v.size, 3);
    assert_memory_equal(v.data, "abc", 3);
    assert_int_equal(TRY(f, put(one, NULL, 0)), 0);
    v = value_of(f, one);
    assert_true(v.found);
    assert_int_equal(v.size, 0);
    assert_int_equal(TRY(f, on(META_DELETE, one), on(META_DELETE, two)), 0);
    assert_false(value_of(f, one).found);
}

static void a_commit_is_all_or_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(TRY(f, put(one, "abc", 3)), 0);
    assert_int_equal(TRY(f, put(two, "x", 1), on(META_EXPECT_ABSENT, one)), E_PRECONDITION);
    assert_int_equal(TRY(f, put(one, "x", 1), on(META_EXPECT_PRESENT, two)), E_PRECONDITION);
    assert_false(value_of(f, two).found);
    assert_memory_equal(value_of(f, one).data, "abc", 3);
    /* An add that has nothing to add to. */
    assert_int_equal(TRY(f, put(one, "x", 1), field(META_ADD, two, 0, 1)), E_PRECONDITION);
    assert_int_equal(TRY(f, field(META_ADD, one, 0, 1)), E_PRECONDITION);
    assert_memory_equal(value_of(f, one).data, "abc", 3);
}

static void put_and_set_give_a_new_stamp(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(TRY(f, put(one, zeros, 24)), 0);
    struct meta_step expect = {.kind = META_EXPECT_STAMP, .key = one};
    expect.stamp = value_of(f, one).stamp;
    assert_int_equal(TRY(f, expect, field(META_ADD, one, 8, 5)), 0);
    assert_int_equal(TRY(f, expect, field(META_RAISE, one, 16, 3)), 0);
    assert_int_equal(value_of(f, one).stamp, expect.stamp);
    struct meta_step set = {.kind = META_SET, .key = one, .offset = 1, .data = "xy", .size = 2};
    assert_int_equal(TRY(f, expect, set), 0);
    assert_int_equal(TRY(f, expect, set), E_PRECONDITION);
    struct meta_value v = value_of(f, one);
    assert_memory_equal(v.data, "\0xy\0\0\0\0\0", 8);
    assert_int_equal(meta_field(&v, 8), 5);
    assert_int_equal(meta_field(&v, 16), 3);
    expect.stamp = v.stamp;
    assert_int_equal(TRY(f, expect, put(one, zeros, 24)), 0);
    assert_int_equal(TRY(f, expect, put(one, zeros, 24)), E_PRECONDITION);
    /* Not the one of an earlier value with the same bytes. */
    assert_int_equal(TRY(f, on(META_DELETE, one)), 0);
    assert_int_equal(TRY(f, put(one, zeros, 24)), 0);
    assert_int_equal(TRY(f, expect, put(one, zeros, 24)), E_PRECONDITION);
}

static void fields_count_and_are_compared(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(TRY(f, put(one, zeros, 24)), 0);
    assert_int_equal(TRY(f, field(META_ADD, one, 8, 5), field(META_ADD, one, 8, -7)), 0);
    assert_int_equal(TRY(f, field(META_EXPECT_EQUAL, one, 8, -2)), 0);
    assert_int_equal(TRY(f, field(META_EXPECT_AT_LEAST, one, 8, -2)), 0);
    assert_int_equal(TRY(f, field(META_EXPECT_AT_LEAST, one, 8, -1)), E_PRECONDITION);
    assert_int_equal(TRY(f, field(META_EXPECT_EQUAL, one, 8, 2)), E_PRECONDITION);
    assert_int_equal(TRY(f, field(META_RAISE, one, 8, -5)), 0);
    assert_int_equal(TRY(f, field(META_EXPECT_EQUAL, one, 8, -2)), 0);
    assert_int_equal(TRY(f, field(META_RAISE, one, 8, INT64_MAX)), 0);
    assert_int_equal(TRY(f, field(META_EXPECT_EQUAL, one, 8, INT64_MAX)), 0);
    /* Outside of the value. */
    assert_int_equal(TRY(f, field(META_ADD, one, 17, 1)), E_PRECONDITION);
    assert_int_equal(TRY(f, field(META_EXPECT_EQUAL, one, SIZE_MAX, 0)), E_PRECONDITION);
    assert_int_equal(TRY(f, field(META_EXPECT_EQUAL, two, 0, 0)), E_PRECONDITION);
}

static struct meta_key entry(uint64_t directory, const char *name)
{
    return meta_key_named(META_ENTRY, directory, name, strlen(name));
}

static void put_entry(struct fixture *f, uint64_t directory, const char *name, uint64_t inode)
{
    uint8_t value[16] = {0};
    meta_field_put(value, META_ENTRY_INODE, (int64_t)inode);
    assert_int_equal(TRY(f, put(entry(directory, name), value, sizeof value)), 0);
}

static void an_entry_is_followed(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    put_entry(f, 1, "a", 2);
    put_entry(f, 1, "b", 3);
    assert_int_equal(TRY(f, put(two, "attr", 4)), 0);
    struct meta_item items[] = {
        {.ask = META_FOLLOW, .key = entry(1, "a")},
        {.ask = META_FOLLOW, .key = entry(1, "b")},
        {.ask = META_FOLLOW, .key = entry(1, "c")},
    };
    struct meta_read r = {.arena = f->arena, .items = items, .count = 3};
    assert_int_equal(f->m->ops->read(f->m, &r, &err), 0);
    assert_int_equal(meta_entry_inode(&items[0].value), 2);
    assert_memory_equal(items[0].attr.data, "attr", 4);
    assert_true(items[1].value.found);
    assert_false(items[1].attr.found);
    assert_false(items[2].value.found);
    assert_false(items[2].attr.found);
}

static void pages_have_all_children_once(void **state)
{
    struct fixture *f = *state;
    char name[8];
    for (uint64_t i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "n%02u", (unsigned)i);
        put_entry(f, 7, name, i % 2 == 0 ? 2 : 1);
        put_entry(f, 6 + 2 * (i % 2), name, 2);
    }
    assert_int_equal(TRY(f, put(two, "attr", 4)), 0);
    for (size_t limit = 1; limit < 60; limit += 7) {
        struct meta_item item = {.ask = META_PAGE, .limit = limit};
        item.key = (struct meta_key){.kind = META_ENTRY, .id = 7};
        size_t seen = 0;
        do {
            struct error err = ERROR_INIT;
            struct meta_read r = {.arena = f->arena, .items = &item, .count = 1};
            assert_int_equal(f->m->ops->read(f->m, &r, &err), 0);
            assert_true(item.count <= limit);
            for (size_t i = 0; i < item.count; i++, seen++) {
                snprintf(name, sizeof name, "n%02u", (unsigned)seen);
                assert_int_equal(item.rows[i].key.name_size, 3);
                assert_memory_equal(item.rows[i].key.name, name, 3);
                assert_int_equal(item.rows[i].attr.found, seen % 2 == 0);
                item.key = item.rows[i].key;
                item.after = true;
            }
        } while (item.more);
        assert_int_equal(seen, 50);
    }
}

static void a_queue_gives_what_is_due(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    for (uint64_t at = 10; at < 20; at++)
        assert_int_equal(TRY(f, put(meta_key_number(META_GARBAGE, at, 100 - at), "x", 1)), 0);
    struct meta_item item = {.key.kind = META_GARBAGE, .limit = 100};
    assert_int_equal(f->m->ops->queue(f->m, f->arena, &item, 14, &err), 0);
    assert_int_equal(item.count, 5);
    assert_false(item.more);
    assert_int_equal(item.rows[0].key.id, 10);
    assert_int_equal(item.rows[4].key.sub, 86);
    item.limit = 2;
    assert_int_equal(f->m->ops->queue(f->m, f->arena, &item, 14, &err), 0);
    assert_int_equal(item.count, 2);
    assert_true(item.more);
    assert_int_equal(f->m->ops->queue(f->m, f->arena, &item, 9, &err), 0);
    assert_int_equal(item.count, 0);
}

static void the_clock_is_one(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    int64_t now;
    int64_t before = clock_wall_ms();
    assert_int_equal(f->m->ops->now(f->m, &now, &err), 0);
    assert_true(now >= before - 1000 && now <= clock_wall_ms() + 1000);
}

/* ---- random commits, beside the model ---- */

/* Ids on both sides of what fits into one byte, and the greatest. */
static const uint64_t some_ids[] = {0, 1, 255, 256, 65536, UINT64_MAX};

static struct meta_key random_key(struct rng *r)
{
    static const char *const names[] = {"a", "b", "bb", "\xc3\xa9"};
    const uint64_t id = some_ids[rng_below(r, 6)];
    const char *name = names[rng_below(r, 4)];
    switch (rng_below(r, 5)) {
    case 0:
        return meta_key_point(META_ATTR, id);
    case 1:
        return meta_key_number(META_CHUNK, rng_below(r, 2), id);
    case 2:
        return meta_key_number(META_GARBAGE, id, rng_below(r, 2));
    case 3:
        return meta_key_named(META_XATTR, rng_below(r, 2), name, strlen(name));
    default:
        return entry(rng_below(r, 2), name);
    }
}

static int64_t random_number(struct rng *r)
{
    static const int64_t numbers[] = {
        0, 1, 2, -1, -2, 1LL << 32, INT64_MAX, INT64_MIN, -(1LL << 32), (1LL << 53) + 1};
    return numbers[rng_below(r, sizeof numbers / sizeof *numbers)];
}

static bool touches(const struct meta_step *steps, size_t count, const struct meta_key *key)
{
    for (size_t i = 0; i < count; i++) {
        if ((steps[i].kind == META_PUT || steps[i].kind == META_DELETE) &&
            meta_key_is(&steps[i].key, key))
            return true;
    }
    return false;
}

/* The stamps of two engines differ: a stamp that is expected is the present one, or another. */
static size_t random_steps(struct rng *r, struct meta_step *steps, uint8_t (*data)[24])
{
    size_t count = 1 + rng_below(r, 5);
    for (size_t i = 0; i < count; i++) {
        struct meta_step *s = &steps[i];
        *s = (struct meta_step){.kind = (enum meta_step_kind)rng_below(r, META_RAISE + 1)};
        s->key = random_key(r);
        if (s->kind >= META_SET && touches(steps, i, &s->key))
            s->kind = META_PUT;
        s->offset = rng_below(r, 4) * 8;
        s->number = random_number(r);
        s->stamp = rng_below(r, 8) > 0;
        for (size_t b = 0; b < 24; b += 8)
            meta_field_put(data[i], b, random_number(r));
        s->data = data[i];
        s->size = s->kind == META_PUT ? rng_below(r, 4) * 8 : 8;
    }
    return count;
}

static int commit_random(struct fixture *f, const struct meta_step *steps, size_t count)
{
    struct meta_step own[8];
    for (size_t i = 0; i < count; i++) {
        own[i] = steps[i];
        if (own[i].kind == META_EXPECT_STAMP) {
            uint64_t present = value_of(f, own[i].key).stamp;
            own[i].stamp = steps[i].stamp != 0 ? present : present + 1;
        }
    }
    return try_commit(f, own, count);
}

static void assert_same_value(const struct meta_value *x, const struct meta_value *y)
{
    assert_int_equal(x->found, y->found);
    assert_int_equal(x->size, y->size);
    if (x->size > 0)
        assert_memory_equal(x->data, y->data, x->size);
}

/* A page of one, and one of the other.  Returns whether more follow. */
static bool assert_same_rows(struct fixture *a, struct fixture *b, struct meta_item *from)
{
    struct error err = ERROR_INIT;
    struct meta_item x = *from, y = *from;
    struct meta_read of_a = {.arena = a->arena, .items = &x, .count = 1};
    struct meta_read of_b = {.arena = a->arena, .items = &y, .count = 1};
    assert_int_equal(a->m->ops->read(a->m, &of_a, &err), 0);
    assert_int_equal(b->m->ops->read(b->m, &of_b, &err), 0);
    assert_int_equal(x.count, y.count);
    assert_int_equal(x.more, y.more);
    for (size_t i = 0; i < x.count; i++) {
        assert_true(meta_key_is(&x.rows[i].key, &y.rows[i].key));
        assert_same_value(&x.rows[i].value, &y.rows[i].value);
        assert_same_value(&x.rows[i].attr, &y.rows[i].attr);
        from->key = x.rows[i].key;
        from->after = true;
    }
    return x.more;
}

static void assert_same_pages(struct fixture *a, struct fixture *b)
{
    static const struct meta_key pages[] = {
        {.kind = META_ATTR},
        {.kind = META_CHUNK, .id = 1},
        {.kind = META_XATTR},
        {.kind = META_ENTRY},
        {.kind = META_ENTRY, .id = 1},
        {.kind = META_GARBAGE, .id = 256},
        {.kind = META_GARBAGE, .id = UINT64_MAX},
        {.kind = META_SYMLINK},
    };
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        for (size_t limit = 1; limit < 5; limit++) {
            struct meta_item item = {.ask = META_PAGE, .key = pages[i], .limit = limit};
            while (assert_same_rows(a, b, &item))
                continue;
        }
    }
}

static void assert_same_queues(struct fixture *a, struct fixture *b)
{
    for (size_t i = 0; i < sizeof some_ids / sizeof *some_ids; i++) {
        struct error err = ERROR_INIT;
        struct meta_item x = {.key.kind = META_GARBAGE, .limit = 3}, y = x;
        assert_int_equal(a->m->ops->queue(a->m, a->arena, &x, some_ids[i], &err), 0);
        assert_int_equal(b->m->ops->queue(b->m, a->arena, &y, some_ids[i], &err), 0);
        assert_int_equal(x.count, y.count);
        assert_int_equal(x.more, y.more);
        for (size_t row = 0; row < x.count; row++)
            assert_true(meta_key_is(&x.rows[row].key, &y.rows[row].key));
    }
}

static void assert_same(struct fixture *a, struct fixture *b)
{
    struct rng every;
    rng_seed(&every, 1);
    for (unsigned i = 0; i < 100; i++) {
        struct meta_key key = random_key(&every);
        struct meta_value x = value_of(a, key), y = value_of(b, key);
        assert_same_value(&x, &y);
    }
    assert_same_pages(a, b);
    assert_same_queues(a, b);
}

static void random_commits_give_what_the_model_gives(void **state)
{
    struct fixture *f = *state;
    struct fixture model = {.arena = f->arena};
    struct error err = ERROR_INIT;
    unsigned made = 0, refused = 0;
    struct rng r;
    assert_int_equal(meta_memory_ops.open("", true, &model.m, &err), 0);
    rng_seed(&r, 4711);
    for (unsigned round = 0; round < 3000; round++) {
        struct meta_step steps[8];
        uint8_t data[8][24];
        size_t count = random_steps(&r, steps, data);
        int rc = commit_random(f, steps, count);
        assert_int_equal(rc, commit_random(&model, steps, count));
        made += rc == 0;
        refused += rc != 0;
        if (round % 100 == 0)
            assert_same(f, &model);
        arena_reset(f->arena);
    }
    assert_same(f, &model);
    assert_true(made > 300 && refused > 300);
    meta_close(model.m);
}

#define CASE(test, engine)                                          \
    {                                                               \
#test, test, setup, teardown, (void *)&test_engines[engine] \
    }
#define SUITE(engine)                                                                            \
    CASE(what_was_put_is_read, engine), CASE(a_commit_is_all_or_nothing, engine),                \
        CASE(put_and_set_give_a_new_stamp, engine), CASE(fields_count_and_are_compared, engine), \
        CASE(an_entry_is_followed, engine), CASE(pages_have_all_children_once, engine),          \
        CASE(a_queue_gives_what_is_due, engine), CASE(the_clock_is_one, engine),                 \
        CASE(random_commits_give_what_the_model_gives, engine)

static void a_url_of_no_engine_is_refused(void **state)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(engines_open("file:///tmp/x", true, &m, &err), E_INVALID);
    assert_non_null(strstr(err.message, "memory://"));
    assert_non_null(strstr(err.message, "sqlite3://"));
    assert_int_equal(engines_open("memory://x", true, &m, &err), E_INVALID);
    assert_int_equal(engines_open("rediss://u:secret@h", true, &m, &err), E_INVALID);
    assert_null(strstr(err.message, "secret"));
}

static void a_password_is_not_shown(void **state)
{
    static const char *const urls[][2] = {
        {"redis://:p@w@h:1/0", "redis://***@h:1/0"},
        {"redis://h/0", "redis://h/0"},
        {"postgres://u:p@h/d?sslmode=require", "postgres://***@h/d?sslmode=require"},
        {"postgres://h/d?password=a%20b&user=u", "postgres://h/d?password=***&user=u"},
        {"postgres://h/d?user=u&password=", "postgres://h/d?user=u&password=***"},
        {"postgres://h/d?sslpassword=a&password=b", "postgres://h/d?sslpassword=***&password=***"},
        {"postgres://h/d?password=a&password=b", "postgres://h/d?password=***&password=***"},
        {"postgres://h/d?password=a@b&user=u&password=c", "postgres://***@&user=u&password=***"},
        {"postgres://u:p@h/d?password=a@b", "postgres://***@"},
        {"sqlite3:///a@b.db", "sqlite3:///a@b.db"},
        {"dfc://b", "dfc://b"},
        {"x", "x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        _cleanup_free_ char *shown = engines_shown(urls[i][0]);
        assert_string_equal(shown, urls[i][1]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SUITE(TEST_MEMORY),
        SUITE(TEST_SQLITE),
        cmocka_unit_test(a_url_of_no_engine_is_refused),
        cmocka_unit_test(a_password_is_not_shown),
    };
    const struct CMUnitTest redis[] = {SUITE(TEST_REDIS)};
    const struct CMUnitTest postgres[] = {SUITE(TEST_POSTGRES)};
    const int asked = test_engines_asked(argc, argv);
    if (asked < 0)
        return 77;
    return asked == TEST_REDIS      ? cmocka_run_group_tests(redis, NULL, NULL)
           : asked == TEST_POSTGRES ? cmocka_run_group_tests(postgres, NULL, NULL)
                                    : cmocka_run_group_tests(tests, NULL, NULL);
}
