/* Layers of entries against a model: the paths of each layer, one layer after another. */
#include "vdisc/layers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/rng.h"

#define ENTRIES 40

/* The model: what is in the image after the layers 0 … last; one layer at a time. */
static bool below(const char *path, const char *directory)
{
    size_t len = strlen(directory);
    return strncmp(path, directory, len) == 0 && path[len] == '/';
}

static void apply_one(const struct layer_entry *e, size_t count, int layer, bool *in)
{
    for (size_t i = 0; i < count; i++) { /* what this layer hides of those before */
        if (e[i].layer != layer)
            continue;
        for (size_t k = 0; k < count; k++) {
            if (e[k].layer >= layer)
                continue;
            bool same = strcmp(e[k].path, e[i].path) == 0;
            bool gone = same || (!e[i].directory && below(e[k].path, e[i].path));
            bool was_file = !e[i].removal && !e[k].directory && below(e[i].path, e[k].path);
            if (gone || was_file)
                in[k] = false;
        }
        in[i] = !e[i].removal;
    }
}

static void model(const struct layer_entry *e, size_t count, bool *in)
{
    memset(in, 0, count * sizeof *in);
    for (int layer = 0; layer < 3; layer++)
        apply_one(e, count, layer, in);
}

static size_t make(struct layer_entry *e, char texts[][16], struct rng *r)
{
    size_t count = 0;
    for (size_t i = 0; i < ENTRIES; i++) {
        char *text = texts[count];
        unsigned depth = 1 + (unsigned)rng_below(r, 3);
        for (unsigned d = 0; d < depth; d++)
            snprintf(text + (d > 0 ? 2 * d - 1 : 0), 3, d > 0 ? "/%c" : "%c",
                     "ab-"[rng_below(r, 3)]);
        struct layer_entry n = {.path = text, .layer = (uint8_t)(2 * rng_below(r, 2))};
        n.directory = rng_below(r, 3) == 0;
        if (rng_below(r, 6) == 0)
            n = (struct layer_entry){.path = text, .layer = 1, .removal = true};
        bool fits = true;
        for (size_t k = 0; k < count; k++) /* a layer itself has no contradiction */
            fits = fits && (e[k].layer != n.layer ||
                            (strcmp(e[k].path, text) != 0 &&
                             (e[k].directory || e[k].removal || !below(text, e[k].path)) &&
                             (n.directory || n.removal || !below(e[k].path, text))));
        if (fits)
            e[count++] = n;
    }
    return count;
}

static void test_layers_are_as_one_after_another(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5000; seed++) {
        struct layer_entry e[ENTRIES];
        char texts[ENTRIES][16];
        bool keep[ENTRIES], wanted[ENTRIES];
        struct rng r;
        rng_seed(&r, seed);
        size_t count = make(e, texts, &r);
        model(e, count, wanted);
        layers_apply(e, count, keep);
        for (size_t i = 0; i < count; i++) {
            if (keep[i] != wanted[i])
                fail_msg("seed %llu: '%s' of layer %d: kept %d", (unsigned long long)seed,
                         e[i].path, e[i].layer, keep[i]);
        }
    }
}

static void test_a_removal_of_nothing_is_found(void **state)
{
    (void)state;
    bool keep[3];
    struct layer_entry e[] = {{.path = "a/b"},
                              {.path = "a", .layer = 1, .removal = true},
                              {.path = "b", .layer = 1, .removal = true}};
    assert_int_equal(layers_apply(e, 3, keep), 2);
    assert_int_equal(layers_apply(e, 2, keep), SIZE_MAX);
    assert_false(keep[0]);
    e[2] = (struct layer_entry){.path = "a/c", .layer = 2};
    assert_int_equal(layers_apply(e, 3, keep), SIZE_MAX);
    assert_true(keep[2]);
    e[0].layer = 2; /* what a higher layer has is not removed */
    assert_int_equal(layers_apply(e, 2, keep), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_are_as_one_after_another),
        cmocka_unit_test(test_a_removal_of_nothing_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
