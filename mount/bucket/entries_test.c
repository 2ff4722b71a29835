#include "mount/bucket/entries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a directory shows of a list: "name" or "name/" each, sorted, joined by spaces. */
static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t pop_all(struct entries *d, char **names, size_t count)
{
    struct entry e;
    while (entries_pop(d, &e)) {
        size_t len = strlen(e.name);
        names[count] = malloc(len + 2);
        snprintf(names[count++], len + 2, "%s%s", e.name, e.is_directory ? "/" : "");
        entry_done(&e);
    }
    return count;
}

static uint64_t expect(const char *prefix, const char *const *keys, const char *shown)
{
    struct entries d = {0};
    char *names[64];
    char text[4096] = "";
    size_t count = 0;
    for (size_t i = 0; keys[i] != NULL; i++) {
        size_t len = strlen(keys[i]);
        bool folded = keys[i][len - 1] == '/' && strcmp(keys[i], prefix) != 0;
        const struct dfc_entry e = {.name = keys[i], .version = "1", .is_prefix = folded};
        entries_push(&d, prefix, &e);
        count = pop_all(&d, names, count);
    }
    entries_end(&d);
    count = pop_all(&d, names, count);
    qsort(names, count, sizeof *names, compare);
    for (size_t i = 0; i < count; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s", i > 0 ? " " : "", names[i]);
        free(names[i]);
    }
    assert_string_equal(text, shown);
    uint64_t hidden = d.hidden;
    entries_done(&d);
    return hidden;
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_directory_hides_the_object_of_its_name(void **state)
{
    (void)state;
    assert_int_equal(expect("", KEYS("a", "a/"), "a/"), 1);
    assert_int_equal(expect("", KEYS("a", "a-", "a-b", "a.txt", "a/", "a0"), "a- a-b a.txt a/ a0"),
                     1);
    assert_int_equal(expect("", KEYS("a", "a-", "a-/", "a/", "b"), "a-/ a/ b"), 2);
    assert_int_equal(expect("", KEYS("a", "a-", "a--", "a--/", "a-b"), "a a- a--/ a-b"), 1);
    assert_int_equal(expect("d/", KEYS("d/", "d/a", "d/a!", "d/a/"), "a! a/"), 1);
}

static void other_objects_are_shown(void **state)
{
    (void)state;
    assert_int_equal(expect("", KEYS("a"), "a"), 0);
    assert_int_equal(expect("", KEYS("a", "a0", "b/"), "a a0 b/"), 0);
    assert_int_equal(expect("", KEYS("a", "aa/", "b"), "a aa/ b"), 0);
    assert_int_equal(expect("", KEYS("a", "a\xc3\xb6/", "b"), "a a\xc3\xb6/ b"), 0);
    assert_int_equal(expect("", KEYS("a", "a-/", "a.b/"), "a a-/ a.b/"), 0);
}

static void names_that_cannot_be_are_counted(void **state)
{
    (void)state;
    assert_int_equal(expect("", KEYS(".", "../", "/", "a"), "a"), 3);
    assert_int_equal(expect("a/", KEYS("a/", "a//", "a/b"), "b"), 1);
}

static void a_list_that_ends_early_loses_nothing(void **state)
{
    (void)state;
    struct entries d = {0};
    const struct dfc_entry e = {.name = "a", .version = "1"};
    struct entry out;
    entries_push(&d, "", &e);
    assert_false(entries_pop(&d, &out)); /* held back */
    entries_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_hides_the_object_of_its_name),
        cmocka_unit_test(other_objects_are_shown),
        cmocka_unit_test(names_that_cannot_be_are_counted),
        cmocka_unit_test(a_list_that_ends_early_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
