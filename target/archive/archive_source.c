#include "target/archive/archive_source.h"

#include <string.h>

#include "io/file.h"
#include "io/reader.h"
#include "target/format/ec_manifest.h"
#include "target/node/target.h"

enum {
    AHEAD_BYTES = 1 << 20, /* of an object in slices, where headers are close together */
};

static int take(void *ctx, const void *data, size_t len, struct error *err)
{
    struct archive_source *s = ctx;
    (void)err;
    buf_append(&s->piece, data, len);
    return 0;
}

/* Wide where it goes on close by; a jump over large contents reads no more than is asked for. */
static int read_slices(struct archive_source *s, size_t len, uint64_t offset, struct error *err)
{
    const uint64_t size = s->object->attr.size, end = s->at + s->piece.len;
    const bool near = offset <= end + AHEAD_BYTES;
    uint64_t wanted = near && len < AHEAD_BYTES ? AHEAD_BYTES : len;
    if (wanted > size - offset)
        wanted = size - offset;
    struct ec_bad bad;
    buf_clear(&s->piece);
    s->at = offset;
    int code = ec_source_range(&s->slices, offset, wanted, take, s, &bad, err);
    ec_source_report(&s->slices, &bad);
    if (code == 0 && s->piece.len < len)
        code = error_set(err, E_LENGTH, "the object is shorter than its size says");
    return code;
}

int archive_source_read(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    struct archive_source *s = ctx;
    const struct object *o = s->object;
    if (o->attr.slices == NULL)
        return s->reader != NULL ? reader_pread(s->reader, o->fd, out, len, offset, err)
                                 : file_pread_full(o->fd, out, len, offset, err);
    if (len > o->attr.size || offset > o->attr.size - len)
        return error_set(err, E_LENGTH, "the object ends before");
    bool has = offset >= s->at && offset + len <= s->at + s->piece.len;
    int code = has ? 0 : read_slices(s, len, offset, err);
    if (code == 0)
        memcpy(out, s->piece.data + (offset - s->at), len);
    return code;
}

int archive_source_open(struct archive_source *s, struct error *err)
{
    s->slices = (struct ec_reading){.target = s->target,
                                    .state = state_current(s->target->state),
                                    .bucket_id = s->bucket_id,
                                    .name = s->object->attr.name};
    const char *manifest = s->object->attr.slices;
    return manifest != NULL ? ec_manifest_parse(manifest, &s->slices.manifest, err) : 0;
}

void archive_source_close(struct archive_source *s)
{
    state_unref(s->slices.state);
    buf_done(&s->piece);
}

int archive_source_explain(const struct archive_source *s, int code, struct error *err)
{
    const char *name = s->object->attr.name;
    if (code == E_SHARD_CORRUPT)
        return error_recode(err, E_ARCHIVE_DAMAGED, "archive '%s'", name);
    if (code == E_SHARD_UNSUPPORTED)
        return error_recode(err, E_NOT_ARCHIVE, "no member of object '%s' can be read", name);
    return code;
}
