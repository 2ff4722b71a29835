#include "common/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void distances(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        size_t distance;
    } rows[] = {{"", "", 0},
                {"a", "", 1},
                {"abc", "abc", 0},
                {"abc", "acb", 1},
                {"kitten", "sitting", 3},
                {"objct", "object", 1},
                {"stauts", "status", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(suggest_distance(rows[i].a, rows[i].b), rows[i].distance);
        assert_int_equal(suggest_distance(rows[i].b, rows[i].a), rows[i].distance);
    }
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(suggest_distance(longer, "x"), 63);
}

static void the_nearest_that_is_near(void **state)
{
    (void)state;
    static const char *const words[] = {"prefix", "limit", "partial", "id"};
    static const struct {
        const char *word, *nearest;
    } rows[] = {
        {"prefx", "prefix"}, {"prefix", "prefix"}, {"Limit", "limit"}, {"partail", "partial"},
        {"di", "id"},        {"max-keys", NULL},   {"", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct suggestion best = SUGGESTION_INIT;
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            suggest(&best, rows[i].word, words[w]);
        assert_true((best.text == NULL) == (rows[i].nearest == NULL));
        if (best.text != NULL)
            assert_string_equal(best.text, rows[i].nearest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances),
        cmocka_unit_test(the_nearest_that_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
