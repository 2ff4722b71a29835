#include "target/copies/object_bytes.h"

#include "common/mem.h"
#include "io/file.h"
#include "target/format/ec_manifest.h"
#include "target/node/target.h"

enum { PIECE = 256 << 10 };

int object_bytes_attr(const struct object *o, struct attr *out, struct error *err)
{
    *out = o->attr;
    int code = ec_manifest_show(out, err);
    out->slices = NULL;
    return code;
}

static int each_of_file(const struct object *o, ec_take_fn *take, void *ctx, struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(PIECE);
    int code = 0;
    for (uint64_t at = 0; at < o->attr.size && code == 0;) {
        size_t len = o->attr.size - at < PIECE ? (size_t)(o->attr.size - at) : PIECE;
        code = file_pread_full(o->fd, piece, len, at, err);
        if (code == 0)
            code = take(ctx, piece, len, err);
        at += len;
    }
    return code;
}

int object_bytes_each(struct target *t, uint64_t bucket_id, const struct object *o,
                      ec_take_fn *take, void *ctx, struct error *err)
{
    if (o->attr.slices != NULL)
        return t->slices->each(t, bucket_id, o, take, ctx, err);
    return each_of_file(o, take, ctx, err);
}
