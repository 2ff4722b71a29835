/* Grants from bytes: they are refused with a sentence, or survive their own JSON form, and each is
 * covered by itself.  Of a document with "bucket" and "key": what a grant gives there, one of the
 * grants that cover it gives, too.  So a user who may give only what they have gives no more. */
#include "cluster/access/grant.h"

#include <assert.h>
#include <string.h>

#include "common/jsonx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const struct grants *g)
{
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct grants again = {0}, copy;
    _cleanup_json_ json_t *doc = json_pack("{s:o}", "grants", grants_to_json(g));
    int r = grants_from_json(doc, "again", a, &again, NULL);
    assert(r == 0 && grants_equal(g, &again));
    (void)r;
    grants_copy(g, a, &copy);
    assert(grants_equal(g, &copy));
}

static bool some_gives(const struct grants *g, enum right right, const char *bucket,
                       const char *key)
{
    bool gives = false;
    for (size_t i = 0; i < g->count; i++)
        gives |= grant_gives(&g->items[i], right, bucket, key, strlen(key));
    return gives;
}

/* The first grant, and the others that may cover it. */
static void check_cover(const struct grants *g, const char *bucket, const char *key)
{
    const struct grants others = {g->count - 1, g->items + 1};
    const struct grants first = {1, g->items};
    assert(grants_cover(&first, &g->items[0]));
    if (!grants_cover(&others, &g->items[0]))
        return;
    for (enum right r = RIGHT_ANY + 1; r < RIGHTS; r++)
        assert(!some_gives(&first, r, bucket, key) || some_gives(&others, r, bucket, key));
}

static void check(json_t *doc, const struct grants *g)
{
    const char *bucket = json_string_value(json_object_get(doc, "bucket"));
    const char *key = json_string_value(json_object_get(doc, "key"));
    check_round_trip(g);
    if (g->count > 0 && (bucket == NULL || strpbrk(bucket, "*?") == NULL))
        check_cover(g, bucket, key != NULL ? key : "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct grants g = {0};
    struct error err = ERROR_INIT;
    if (json_parse((const char *)data, size, &doc, NULL) != 0)
        return 0;
    if (grants_from_json(doc, "user", a, &g, &err) == 0)
        check(doc, &g);
    else
        assert(err.code != 0 && err.message[0] != '\0');
    return 0;
}
