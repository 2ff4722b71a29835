/* Random operations on the whole store against a model of it: a small array of what each name
 * should be.  The names are few, so that everything happens to each of them; restarts are mixed
 * in, with and without the indexes' markers.  A failure prints the seed. */
#include "target/testing/store_fixture.h"

#include "common/rng.h"

enum { NAMES = 12, STEPS = 1500, SEEDS = 4 };

enum model_state { ABSENT, TOMBSTONE, VISIBLE, HIDDEN, HIDDEN_OVER_TOMBSTONE };

struct model {
    char name[ATTR_NAME_MAX + 1];
    enum model_state state;
    char text[32];
    struct version version; /* the greatest that was seen */
};

static struct model models[NAMES]; /* sorted by name */
static struct rng rng;

static const char *seen_text(const struct model *m)
{
    return m->state == VISIBLE ? m->text : NULL;
}

static bool is_hidden(const struct model *m)
{
    return m->state == HIDDEN || m->state == HIDDEN_OVER_TOMBSTONE;
}

static void check(struct model *m)
{
    assert_text(m->name, seen_text(m));
    if (m->state != VISIBLE)
        return;
    struct version v = version_of(m->name);
    assert_true(version_compare(&v, &m->version) >= 0);
    m->version = v;
}

static enum durability random_durability(void)
{
    return rng_below(&rng, 2) ? DURABILITY_SYNC : DURABILITY_ASYNC;
}

static void random_text(char out[static 32])
{
    size_t len = rng_below(&rng, 31);
    for (size_t i = 0; i < len; i++)
        out[i] = (char)('a' + rng_below(&rng, 26));
    out[len] = '\0';
}

static void do_put(struct model *m)
{
    char text[32];
    random_text(text);
    int want = is_hidden(m) ? E_OBJECT_RESERVED : 0;
    assert_int_equal(put_text_as(m->name, text, random_durability(), NULL), want);
    if (want != 0)
        return;
    struct version v = version_of(m->name);
    if (m->state != ABSENT)
        assert_true(version_compare(&v, &m->version) > 0);
    m->state = VISIBLE;
    m->version = v;
    snprintf(m->text, sizeof m->text, "%s", text);
}

static void do_delete(struct model *m)
{
    int want = m->state == VISIBLE ? 0 : E_OBJECT_NOT_FOUND;
    assert_int_equal(delete_as(m->name, random_durability(), NULL), want);
    if (want == 0)
        m->state = TOMBSTONE;
}

static void do_hidden_put(struct model *m)
{
    char text[32];
    random_text(text);
    struct object_put_spec spec = spec_of(m->name, random_durability());
    spec.job_id = "srt-1";
    int want = m->state == VISIBLE ? E_OBJECT_EXISTS : 0;
    assert_int_equal(put_bytes(&spec, text, strlen(text), NULL), want);
    if (want != 0)
        return;
    if (!is_hidden(m))
        m->state = m->state == TOMBSTONE ? HIDDEN_OVER_TOMBSTONE : HIDDEN;
    snprintf(m->text, sizeof m->text, "%s", text);
}

static void do_discard(struct model *m)
{
    assert_int_equal(object_discard(fx.store, BUCKET, m->name, "srt-1", NULL), 0);
    if (is_hidden(m))
        m->state = m->state == HIDDEN ? ABSENT : TOMBSTONE;
}

/* The job commits, all its marks are taken off, and it may begin again. */
static void do_commit(struct model *m)
{
    (void)m;
    fx.committed_job = "srt-1";
    for (size_t i = 0; i < NAMES; i++) {
        if (is_hidden(&models[i]))
            models[i].state = VISIBLE;
        check(&models[i]);
    }
    for (size_t i = 0; i < NAMES; i++)
        assert_int_equal(object_unmark(fx.store, BUCKET, models[i].name, "srt-1", NULL), 0);
    fx.committed_job = NULL;
}

static void do_restart(struct model *m)
{
    (void)m;
    fixture_close();
    if (rng_below(&rng, 2))
        fixture_forget_markers();
    fixture_open();
}

static void do_new_map(struct model *m)
{
    (void)m;
    fx.map += rng_below(&rng, 3);
}

static void check_list(void)
{
    _cleanup_buf_ struct buf want = BUF_INIT;
    for (size_t i = 0; i < NAMES; i++) {
        if (models[i].state == VISIBLE)
            buf_printf(&want, "%s:%zu ", models[i].name, strlen(models[i].text));
    }
    assert_list(buf_str(&want));
}

static const struct {
    void (*fn)(struct model *m);
    unsigned weight;
} operations[] = {{do_put, 40},   {do_delete, 25}, {do_hidden_put, 15}, {do_discard, 10},
                  {do_commit, 2}, {do_restart, 2}, {do_new_map, 6}};

static void random_step(void)
{
    uint64_t at = rng_below(&rng, 100);
    struct model *m = &models[rng_below(&rng, NAMES)];
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (at < operations[i].weight) {
            operations[i].fn(m);
            break;
        }
        at -= operations[i].weight;
    }
    check(m);
    if (rng_below(&rng, 10) == 0)
        check_list();
}

static int model_compare(const void *a, const void *b)
{
    return strcmp(((const struct model *)a)->name, ((const struct model *)b)->name);
}

static void make_models(void)
{
    memset(models, 0, sizeof models);
    for (size_t i = 0; i < NAMES; i++) {
        /* Half of them long, alike in their first 600 bytes. */
        if (i % 2 == 0)
            memset(models[i].name, 'x', 600);
        size_t used = strlen(models[i].name);
        snprintf(models[i].name + used, sizeof models[i].name - used, "n%zu", i);
    }
    qsort(models, NAMES, sizeof *models, model_compare);
}

static void test_random_operations(void **state)
{
    const char *given = getenv("DFC_SEED");
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t now = given != NULL ? strtoull(given, NULL, 10) : seed;
        print_message("seed %llu\n", (unsigned long long)now);
        rng_seed(&rng, now);
        assert_int_equal(fixture_setup(state), 0);
        make_models();
        for (unsigned i = 0; i < STEPS; i++)
            random_step();
        check_list();
        assert_no_leftovers();
        assert_int_equal(fixture_teardown(state), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_operations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
