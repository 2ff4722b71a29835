#include "mount/group/entities.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct entity *take(struct group_entities *t, const char *key, const char *etag,
                           uint64_t size)
{
    return group_entities_take(t, entity_new(key, etag, "xxh3:1", size));
}

static void what_is_alike_is_one(void **unused)
{
    (void)unused;
    int home;
    struct group_entities *t = group_entities_new(10);
    struct entity *a = take(t, "a", "\"1\"", 5);
    struct entity *again = take(t, "a", "\"1\"", 5);
    struct entity *others[] = {take(t, "b", "\"1\"", 5), take(t, "a", "\"2\"", 5),
                               take(t, "a", "\"1\"", 6), NULL};
    struct entity *elsewhere = entity_new("a", "\"1\"", "xxh3:1", 5);
    elsewhere->home = &home;
    others[3] = group_entities_take(t, elsewhere);
    assert_ptr_equal(a, again);
    for (unsigned i = 0; i < 4; i++) {
        assert_ptr_not_equal(a, others[i]);
        entity_unref(others[i]);
    }
    entity_unref(a);
    entity_unref(again);
    group_entities_free(t);
}

static void the_one_used_longest_ago_leaves(void **unused)
{
    (void)unused;
    char key[16];
    struct group_entities *t = group_entities_new(3);
    struct entity *a = take(t, "a", "\"1\"", 5);
    struct entity *b = take(t, "b", "\"1\"", 5);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "k%u", i);
        entity_unref(take(t, key, "\"1\"", 5));
        struct entity *used = take(t, "a", "\"1\"", 5);
        assert_ptr_equal(used, a);
        entity_unref(used);
    }
    struct entity *other = take(t, "b", "\"1\"", 5);
    assert_ptr_not_equal(other, b);
    entity_unref(a);
    entity_unref(b);
    entity_unref(other);
    group_entities_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_alike_is_one),
        cmocka_unit_test(the_one_used_longest_ago_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
