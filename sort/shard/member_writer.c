/* Members become a tar, which is the archive or goes to the format's encoder. */
#include "sort/shard/member_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "common/mem.h"
#include "sort/shard/tar_header.h"

enum { FORMAT_EXTENSION_MAX = 40 }; /* a longer one is none */

struct member_writer {
    const struct shard_format_ops *format;
    struct sink to;
    void *encoder;       /* NULL: the tar is the archive */
    uint64_t size, left; /* of the member at hand */
    struct buf headers;
};

/* What an encoder puts aside is small: the directory of a zip. */
static int memory_file(void *ctx, int *fd, struct error *err)
{
    (void)ctx;
    *fd = memfd_create("dfc-archive", MFD_CLOEXEC);
    return *fd < 0 ? error_errno(err, errno, "memory for the directory of an archive") : 0;
}

static const struct sort_env memory_env = {.open_work_file = memory_file};

bool member_writer_takes(const struct shard_format_ops *format)
{
    return !format->read_only && format->record == NULL;
}

#define MEMBER_FORMATS ".tar, .tar.gz, .tar.zst, .tar.lz4 or .zip"

int member_writer_format(const char *extension, const char *name,
                         const struct shard_format_ops **out, struct error *err)
{
    char dotted[FORMAT_EXTENSION_MAX];
    const char *found = extension == NULL ? format_extension_of(name) : extension;
    if (found != NULL)
        snprintf(dotted, sizeof dotted, "%s%s", *found == '.' ? "" : ".", found);
    *out = found != NULL ? format_of_extension(dotted) : NULL;
    if (*out != NULL && member_writer_takes(*out))
        return 0;
    if (extension != NULL)
        return error_set(err, E_INVALID, "format '%.32s' cannot be written: it must be %s",
                         extension, MEMBER_FORMATS);
    return error_set(err, E_INVALID, "'%.128s' does not end with %s: give the format", name,
                     MEMBER_FORMATS);
}

int member_writer_new(const struct shard_format_ops *format, struct sink to,
                      struct member_writer **out, struct error *err)
{
    assert(member_writer_takes(format));
    _cleanup_(member_writer_freep)
    struct member_writer *w = xcalloc(1, sizeof *w);
    w->format = format;
    w->to = to;
    const struct format_output output = {.sink = to, .env = &memory_env};
    int rc = format->encoder_new != NULL ? format->encoder_new(&output, &w->encoder, err) : 0;
    if (rc == 0)
        *out = steal(w);
    return rc;
}

static int put(void *ctx, const void *tar, size_t len, struct error *err)
{
    struct member_writer *w = ctx;
    return w->encoder != NULL ? w->format->write(w->encoder, tar, len, err)
                              : w->to.write(w->to.ctx, tar, len, err);
}

static struct sink tar_of(struct member_writer *w)
{
    return (struct sink){.write = put, .ctx = w};
}

int member_writer_begin(struct member_writer *w, const struct tar_made *m, struct error *err)
{
    assert(w->left == 0);
    buf_clear(&w->headers);
    tar_make_headers(&w->headers, m);
    w->size = w->left = m->size;
    return put(w, w->headers.data, w->headers.len, err);
}

int member_writer_data(struct member_writer *w, const void *data, size_t len, struct error *err)
{
    assert(len <= w->left);
    int rc = put(w, data, len, err);
    w->left -= len;
    return rc != 0 || w->left > 0 || len == 0 ? rc : tar_put_padding(tar_of(w), w->size, err);
}

int member_writer_finish(struct member_writer *w, struct error *err)
{
    assert(w->left == 0);
    int rc = w->format->keeps_end_mark ? tar_put_end(tar_of(w), err) : 0;
    return rc != 0 || w->encoder == NULL ? rc : w->format->finish(w->encoder, err);
}

void member_writer_free(struct member_writer *w)
{
    if (w == NULL)
        return;
    if (w->encoder != NULL)
        w->format->encoder_free(w->encoder);
    buf_done(&w->headers);
    free(w);
}
