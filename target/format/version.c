#include "target/format/version.h"

#include "common/parse.h"

/* What comes after it is more, too, and a document's number. */
#define NUMBER_MAX ((uint64_t)INT64_MAX / 2)

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int version_compare(const struct version *a, const struct version *b)
{
    int order = compare_u64(a->term, b->term);
    if (order == 0)
        order = compare_u64(a->map, b->map);
    return order != 0 ? order : compare_u64(a->counter, b->counter);
}

struct version version_next(const struct version *old, uint64_t term, uint64_t map, uint64_t floor)
{
    struct version first = {.term = term, .map = map, .counter = floor + 1};
    if (old == NULL || version_compare(old, &first) < 0)
        return first;
    /* Written under a later map than ours, or not for the first time under this one. */
    uint64_t below = old->counter > floor ? old->counter : floor;
    return (struct version){.term = old->term, .map = old->map, .counter = below + 1};
}

const char *version_format(const struct version *v, char out[static VERSION_TEXT_MAX])
{
    snprintf(out, VERSION_TEXT_MAX, "%llu.%llu.%llu", (unsigned long long)v->term,
             (unsigned long long)v->map, (unsigned long long)v->counter);
    return out;
}

/* Cuts the next number off *text, which is left behind the dot that ended it. */
static int parse_part(char **text, uint64_t *out, struct error *err)
{
    char *part = strsep(text, ".");
    if (part == NULL)
        return error_set(err, E_INVALID, "a number is missing");
    int code = parse_u64(part, out, err);
    return code == 0 && *out > NUMBER_MAX ? E_INVALID : code;
}

int version_parse(const char *text, struct version *out, struct error *err)
{
    char copy[VERSION_TEXT_MAX];
    size_t len = strlen(text);
    if (len >= sizeof copy)
        return error_set(err, E_INVALID, "a version has the form 1.7.3");
    memcpy(copy, text, len + 1);
    char *rest = copy;
    struct version v;
    if (parse_part(&rest, &v.term, err) != 0 || parse_part(&rest, &v.map, err) != 0 ||
        parse_part(&rest, &v.counter, err) != 0 || rest != NULL)
        return error_set(err, E_INVALID, "'%s' is not a version: it has the form 1.7.3", text);
    *out = v;
    return 0;
}

bool version_is_after(const struct version *v, uint64_t term, uint64_t map)
{
    return v->term != term ? v->term > term : v->map > map;
}
