#include "cluster/props/quota.h"

#include "common/parse.h"

enum { NEAR_PERCENT = 90 };

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

struct quota_amount quota_plus(struct quota_amount a, struct quota_amount b)
{
    return (struct quota_amount){plus(a.objects, b.objects), plus(a.bytes, b.bytes)};
}

struct quota_amount quota_minus(struct quota_amount a, struct quota_amount b)
{
    return (struct quota_amount){minus(a.objects, b.objects), minus(a.bytes, b.bytes)};
}

struct quota_amount quota_growth(uint64_t bytes, bool replaces, uint64_t old_bytes)
{
    return (struct quota_amount){.objects = !replaces,
                                 .bytes = replaces ? minus(bytes, old_bytes) : bytes};
}

static bool exceeds(uint64_t limit, uint64_t used, uint64_t growth)
{
    return limit > 0 && growth > 0 && plus(used, growth) > limit;
}

enum quota_verdict quota_judge(const struct bucket_props *p, struct quota_amount used,
                               struct quota_amount growth)
{
    if (exceeds(p->quota_bytes, used.bytes, growth.bytes))
        return QUOTA_BYTES_USED;
    return exceeds(p->quota_objects, used.objects, growth.objects) ? QUOTA_OBJECTS_USED
                                                                   : QUOTA_FITS;
}

static enum quota_use use_of(uint64_t limit, uint64_t used)
{
    if (limit == 0)
        return QUOTA_FREE;
    if (used >= limit)
        return QUOTA_OVER;
    return (double)used * 100 >= (double)limit * NEAR_PERCENT ? QUOTA_NEAR : QUOTA_FREE;
}

enum quota_use quota_use(const struct bucket_props *p, struct quota_amount used)
{
    enum quota_use bytes = use_of(p->quota_bytes, used.bytes);
    enum quota_use objects = use_of(p->quota_objects, used.objects);
    return bytes > objects ? bytes : objects;
}

const char *quota_use_name(enum quota_use use)
{
    static const char *const names[QUOTA_USES] = {"free", "near", "over"};
    return names[use];
}

void quota_put_use(const struct bucket_props *p, struct quota_amount used, struct buf *out)
{
    char has[16], may[16];
    if (p->quota_objects > 0)
        buf_printf(out, "%llu of %llu objects", (unsigned long long)used.objects,
                   (unsigned long long)p->quota_objects);
    if (p->quota_bytes > 0)
        buf_printf(out, "%s%s of %s", p->quota_objects > 0 ? ", " : "",
                   format_size(used.bytes, has), format_size(p->quota_bytes, may));
}
