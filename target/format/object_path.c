#include "target/format/object_path.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/parse.h"

void object_path_set(struct object_path *p, uint64_t bucket_id, const char *name)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSeed(name, strlen(name), bucket_id));
    char hash[33];
    format_hex(canonical.digest, sizeof canonical.digest, hash);
    int dir_len =
        snprintf(p->text, sizeof p->text, "%llu/%.2s", (unsigned long long)bucket_id, hash);
    snprintf(p->text + dir_len, sizeof p->text - (size_t)dir_len, "/%s", hash);
    p->dir_len = (uint8_t)dir_len;
    p->fan = canonical.digest[0];
}
