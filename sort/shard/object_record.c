#include "sort/shard/object_record.h"

#include <string.h>

#include "sort/shard/tar_header.h"
#include "sort/shard/tar_make.h"

enum { MODE = 0644 };

/* All names begin with what is left out. */
static int member_path(const struct sort_spec *spec, const char *name, struct buf *out,
                       struct error *err)
{
    const char *rest = name + (spec->member_strip != NULL ? strlen(spec->member_strip) : 0);
    const char *slash = spec->member_bare ? strrchr(rest, '/') : NULL;
    if (slash != NULL)
        rest = slash + 1;
    if (*rest == '\0')
        return error_set(err, E_SPEC, "object '%s/%s': nothing is left of its name for the member",
                         spec->input_bucket, name);
    buf_clear(out);
    if (spec->member_prepend != NULL)
        buf_puts(out, spec->member_prepend);
    buf_puts(out, rest);
    return 0;
}

static void add_piece(struct object_record *r, bool is_inline, uint64_t offset, uint64_t length)
{
    if (length > 0)
        r->pieces[r->count++] =
            (struct record_piece){.is_inline = is_inline, .offset = offset, .length = length};
    r->size += length;
}

int object_record_make(struct object_record *r, const struct sort_spec *spec, const char *name,
                       uint64_t size, int64_t modified_s, struct error *err)
{
    static const char zeros[TAR_BLOCK];
    int rc = member_path(spec, name, &r->path, err);
    if (rc != 0)
        return rc;
    const struct tar_made made = {.path = r->path.data,
                                  .path_len = r->path.len,
                                  .type = '0',
                                  .size = size,
                                  .mode = MODE,
                                  .mtime = modified_s};
    buf_clear(&r->inlines);
    tar_make_headers(&r->inlines, &made);
    r->count = 0;
    r->size = 0;
    size_t headers = r->inlines.len;
    size_t padding = (size_t)(tar_padded(size) - size);
    buf_append(&r->inlines, zeros, padding);
    add_piece(r, true, 0, headers);
    add_piece(r, false, 0, size);
    add_piece(r, true, headers, padding);
    return 0;
}

void object_record_done(struct object_record *r)
{
    buf_done(&r->path);
    buf_done(&r->inlines);
}
