/* Names are found by bucket and text, in crowded slots, too; each entry is walked once. */
#include "target/store/name_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/mem.h"

struct item {
    struct name_entry entry;
    char name[16];
    unsigned walked;
};

enum { ITEMS = 1000 };

static void fill(struct name_table *t, struct item *items)
{
    for (size_t i = 0; i < ITEMS; i++) {
        items[i] = (struct item){.walked = 0};
        snprintf(items[i].name, sizeof items[i].name, "name-%zu", i / 2);
        name_table_add(t, &items[i].entry, 1 + i % 2, items[i].name);
    }
}

static void assert_finds_all(size_t slots)
{
    struct name_table t;
    struct item *items = xcalloc(ITEMS, sizeof *items);
    name_table_init(&t, slots);
    fill(&t, items);
    for (size_t i = 0; i < ITEMS; i++) {
        struct name_entry *e = name_table_find(&t, 1 + i % 2, items[i].name);
        assert_ptr_equal(e, &items[i]);
        assert_null(name_table_same(e));
        assert_int_equal(e->slot, name_table_slot(&t, e->bucket_id, e->name));
    }
    assert_null(name_table_find(&t, 3, "name-1"));
    assert_null(name_table_find(&t, 1, "name-"));
    name_table_done(&t);
    free(items);
}

static void test_names_of_two_buckets_are_two(void **state)
{
    (void)state;
    assert_finds_all(4096);
}

static void test_crowded_slots_find_all(void **state)
{
    (void)state;
    assert_finds_all(1);
    assert_finds_all(7);
}

static void test_removed_entries_are_not_found_and_the_others_are(void **state)
{
    (void)state;
    struct name_table t;
    struct item *items = xcalloc(ITEMS, sizeof *items);
    name_table_init(&t, 16);
    fill(&t, items);
    for (size_t i = 0; i < ITEMS; i += 3)
        name_table_remove(&t, &items[i].entry);
    for (size_t i = 0; i < ITEMS; i++) {
        const void *e = name_table_find(&t, 1 + i % 2, items[i].name);
        assert_ptr_equal(e, i % 3 == 0 ? NULL : &items[i]);
    }
    name_table_done(&t);
    free(items);
}

static void test_entries_of_one_name_are_found_from_the_last_on(void **state)
{
    (void)state;
    struct name_table t;
    struct item a = {.walked = 0}, other = {.walked = 0}, b = {.walked = 0};
    name_table_init(&t, 1);
    name_table_add(&t, &a.entry, 1, "x");
    name_table_add(&t, &other.entry, 1, "y");
    name_table_add(&t, &b.entry, 1, "x");
    struct name_entry *e = name_table_find(&t, 1, "x");
    assert_ptr_equal(e, &b);
    assert_ptr_equal(name_table_same(e), &a);
    assert_null(name_table_same(&a.entry));
    name_table_remove(&t, &b.entry);
    assert_ptr_equal(name_table_find(&t, 1, "x"), &a);
    name_table_done(&t);
}

static void test_a_walk_meets_each_entry_once(void **state)
{
    (void)state;
    struct name_table t;
    struct item *items = xcalloc(ITEMS, sizeof *items);
    name_table_init(&t, 300);
    assert_null(name_table_next(&t, NULL));
    fill(&t, items);
    for (struct name_entry *e = NULL; (e = name_table_next(&t, e)) != NULL;)
        ((struct item *)e)->walked++;
    for (size_t i = 0; i < ITEMS; i++)
        assert_int_equal(items[i].walked, 1);
    name_table_done(&t);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_two_buckets_are_two),
        cmocka_unit_test(test_crowded_slots_find_all),
        cmocka_unit_test(test_removed_entries_are_not_found_and_the_others_are),
        cmocka_unit_test(test_entries_of_one_name_are_found_from_the_last_on),
        cmocka_unit_test(test_a_walk_meets_each_entry_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
