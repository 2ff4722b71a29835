#include "mount/volume/check/findings.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct check_finding *check_add(struct check *c, enum check_kind kind, uint64_t id)
{
    if (c->count == c->room) {
        c->room = 2 * c->room + 16;
        c->findings = xrealloc(c->findings, c->room * sizeof *c->findings);
    }
    c->findings[c->count] = (struct check_finding){.kind = kind, .id = id};
    return &c->findings[c->count++];
}

void check_add_counter(struct check *c, enum check_kind kind, uint64_t id, int64_t is,
                       int64_t should)
{
    if (is == should)
        return;
    struct check_finding *f = check_add(c, kind, id);
    f->is = is;
    f->should = should;
}

void check_add_names(struct check *c, enum check_kind kind, uint64_t id, uint64_t stamp, int64_t is,
                     int64_t should)
{
    const size_t before = c->count;
    check_add_counter(c, kind, id, is, should);
    if (c->count > before)
        c->findings[before].stamp = stamp;
}

char *check_text(const struct check_finding *f)
{
    static const char *const texts[] = {
#define CHECK(name, repair, text) text,
#include "mount/volume/check/check.def"
#undef CHECK
    };
    const bool of_slice = f->kind >= CHECK_SHARED && f->kind <= CHECK_GARBAGE;
    const bool of_quota = f->kind >= CHECK_QUOTA_GONE && f->kind <= CHECK_QUOTA_BYTES_LEFT;
    const bool of_volume = f->kind >= CHECK_USE_INODES && f->kind <= CHECK_USE_BYTES_LEFT;
    _cleanup_free_ char *what = of_volume ? xstrdup("volume")
                                          : xprintf("%s %llu",
                                                    of_slice   ? "slice"
                                                    : of_quota ? "quota"
                                                               : "inode",
                                                    (unsigned long long)f->id);
    if (f->name[0] != '\0')
        return xprintf("%s: %s: '%s' in directory %llu", what, texts[f->kind], f->name,
                       (unsigned long long)f->other);
    if (f->is != f->should)
        return xprintf("%s: %s: %lld, and should be %lld", what, texts[f->kind], (long long)f->is,
                       (long long)f->should);
    return xprintf("%s: %s", what, texts[f->kind]);
}

static bool is_of_many(enum check_kind kind)
{
    return (kind >= CHECK_QUOTA_GONE && kind <= CHECK_QUOTA_OF) || kind == CHECK_SHARED ||
           kind == CHECK_USE_INODES || kind == CHECK_USE_BYTES;
}

/* A count of many files changes with each of them.  A look reads it after the files, so the
 * difference may be the same twice, as with a steady writer, or with a clone in each look.  Only
 * numbers that rest are damage. */
static bool is_at_rest(const struct check_finding *a, const struct check_finding *b)
{
    return !is_of_many(a->kind) || (a->is == b->is && a->should == b->should);
}

/* A name that comes, goes or moves gives its inode a new stamp.  So a look that read the attribute
 * at one moment and the names at others has found damage only if the stamp stays. */
static bool is_same(const struct check_finding *a, const struct check_finding *b)
{
    return a->kind == b->kind && a->id == b->id && a->other == b->other && a->stamp == b->stamp &&
           a->should - a->is == b->should - b->is && is_at_rest(a, b) &&
           strcmp(a->name, b->name) == 0;
}

void check_keep_common(struct check *c, const struct check *again)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        for (size_t k = 0; k < again->count; k++) {
            if (!is_same(&c->findings[i], &again->findings[k]))
                continue;
            c->findings[kept++] = again->findings[k];
            break;
        }
    }
    c->count = kept;
}

void check_keep_quotas(struct check *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (c->findings[i].kind >= CHECK_QUOTA_GONE && c->findings[i].kind <= CHECK_QUOTA_OF)
            c->findings[kept++] = c->findings[i];
    }
    c->count = kept;
}

void check_done(struct check *c)
{
    free(c->findings);
    free(c->slices);
    *c = (struct check){0};
}
