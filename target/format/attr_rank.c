#include "target/format/attr_rank.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "target/format/ec_manifest.h"

enum { PAIRS_SHIFT = 48 };
#define TYPE_OF_NONE "application/octet-stream" /* what users see where no type was given */

static_assert(ATTR_META_PAIRS_MAX + 1 < 1 << (62 - PAIRS_SHIFT),
              "a rank is a whole number in JSON");

/* The order of the pairs does not matter to anybody. */
static uint64_t hash_pairs(const struct attr *a, uint64_t *count)
{
    uint64_t sum = 0;
    size_t pos = 0, begin = 0;
    const char *name, *value;
    for (; attr_meta_next(a, &pos, &name, &value); begin = pos) {
        sum += XXH3_64bits(a->meta + begin, pos - begin);
        ++*count;
    }
    return sum;
}

uint64_t attr_rank(const struct attr *a)
{
    struct attr shown = *a;
    if (attr_is_tombstone(a))
        return 0;
    (void)ec_manifest_show(&shown, NULL); /* one that is damaged: GET says so */
    const char *type = shown.content_type != NULL ? shown.content_type : TYPE_OF_NONE;
    uint64_t count = strcmp(type, TYPE_OF_NONE) != 0;
    const uint64_t parts[] = {
        hash_pairs(a, &count),
        shown.size,
        shown.checksum.type,
        XXH3_64bits(shown.checksum.bytes, checksum_size(shown.checksum.type)),
        XXH3_64bits(type, strlen(type)),
    };
    uint64_t hash = XXH3_64bits(parts, sizeof parts);
    return count << PAIRS_SHIFT | (hash & ((UINT64_C(1) << PAIRS_SHIFT) - 1)) | 1;
}

int attr_content_compare(uint64_t size, const struct checksum_value *sum, uint64_t other_size,
                         const struct checksum_value *other_sum)
{
    bool has = sum->type != CHECKSUM_NONE, other_has = other_sum->type != CHECKSUM_NONE;
    if (has != other_has)
        return has ? 1 : -1;
    if (size != other_size)
        return size > other_size ? 1 : -1;
    if (sum->type != other_sum->type)
        return sum->type > other_sum->type ? 1 : -1;
    return memcmp(sum->bytes, other_sum->bytes, checksum_size(sum->type));
}
