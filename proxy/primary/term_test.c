#include "proxy/primary/term.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct cluster_state *state_at(const char *cluster, uint64_t term, uint64_t version,
                                      uint64_t term_version)
{
    struct cluster_state *s = state_new(cluster);
    s->term = term;
    s->version = version;
    s->term_version = term_version;
    return s;
}

static void a_term_begins_upon_what_leads_on(void **unused)
{
    (void)unused;
    static const struct {
        const char *holds, *found; /* clusters; NULL: no documents */
        uint64_t term, version;    /* that it holds; found is 5.20 of a term that began with 18 */
        int code;
    } rows[] = {
        {"", NULL, 0, 0, 0},
        {"", "c", 0, 0, 0},
        {"c", "c", 5, 20, 0},
        {"c", "c", 4, 17, 0},
        {"c", "c", 4, 18, E_STALE_MAP}, /* put back, or another one's term in between is lost */
        {"c", "c", 6, 21, E_STALE_MAP},
        {"c", NULL, 5, 20, E_WRONG_CLUSTER}, /* emptied */
        {"c", "d", 5, 20, E_WRONG_CLUSTER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cluster_state *now = state_at(rows[i].holds, rows[i].term, rows[i].version, 0);
        struct cluster_state *found =
            rows[i].found != NULL ? state_at(rows[i].found, 5, 20, 18) : NULL;
        assert_int_equal(term_check_base(now, found, "/dfc", NULL), rows[i].code);
        state_unref(now);
        state_unref(found);
    }
}

static void terms_only_grow(void **unused)
{
    (void)unused;
    struct cluster_state *base = state_at("c", 5, 20, 18);
    const struct node self = {.id = "p1"};
    assert_int_equal(term_begin(base, &self, 9, false, 1).term, 9);
    assert_int_equal(term_begin(base, &self, 3, false, 1).term, 6);
    assert_true(term_begin(base, &self, 3, true, 1).term >= (uint64_t)1 << 44);
    state_unref(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_term_begins_upon_what_leads_on),
        cmocka_unit_test(terms_only_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
