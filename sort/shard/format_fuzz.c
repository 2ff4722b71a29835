/* Any bytes are a shard of a format or are refused; what is one is a tar that can be scanned to its
 * end, and what an encoder makes of that tar is again a shard.  The first byte chooses the format.
 */
#include "sort/shard/format.h"

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sort/shard/contents.h"
#include "sort/shard/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TAR_MAX (8 * 1024 * 1024)

static int file_of(const void *data, size_t len)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || (len > 0 && pwrite(fd, data, len, 0) != (ssize_t)len))
        abort();
    return fd;
}

static int work_file(void *ctx, int *fd, struct error *err)
{
    (void)ctx;
    (void)err;
    *fd = file_of(NULL, 0);
    return 0;
}

static const struct sort_env env = {.open_work_file = work_file};

/* As contents.h does: a bound to what may come out. */
static int bounded_write(void *ctx, const void *data, size_t len, struct error *err)
{
    struct buf *out = ctx;
    if (out->len + len > TAR_MAX)
        return error_set(err, E_SHARD_CORRUPT, "too large");
    buf_append(out, data, len);
    return 0;
}

static int decode(const struct shard_format_ops *f, const void *data, size_t len, struct buf *tar)
{
    int fd = file_of(data, len);
    struct error err = ERROR_INIT;
    const struct format_input in = {.fd = fd, .size = len, .shard = "fuzz"};
    int rc = f->decode(&in, (struct sink){.write = bounded_write, .ctx = tar}, &err);
    assert(rc == 0 || rc == E_SHARD_CORRUPT || rc == E_SHARD_UNSUPPORTED);
    close(fd);
    return rc;
}

/* The records as the scanner gives them go through the encoder. */
static void encode(const struct shard_format_ops *f, const struct buf *tar)
{
    _cleanup_(buf_done)
    struct buf file = BUF_INIT;
    const struct format_output out = {.sink = sink_buf(&file), .env = &env};
    void *encoder = NULL;
    int fd = file_of(tar->data, tar->len);
    struct tar_scan *s = tar_scan_new(fd, tar->len, "fuzz");
    struct tar_member m;
    int rc = f->encoder_new(&out, &encoder, NULL);
    assert(rc == 0);
    while ((rc = tar_scan_next(s, &m, NULL)) > 0) {
        if (m.type == '5')
            continue;
        if (f->record != NULL && f->record(encoder, NULL) != 0)
            break;
        for (unsigned i = 0; i < m.piece_count; i++) {
            const struct tar_piece *p = &m.pieces[i];
            const void *from = p->inline_data != NULL ? p->inline_data : tar->data + p->offset;
            rc = f->write(encoder, from, p->length, NULL);
            assert(rc == 0 || rc == E_SHARD_UNSUPPORTED || rc == E_CORRUPT);
            if (rc != 0)
                goto out;
        }
    }
    if (rc == 0 && f->finish(encoder, NULL) == 0 && f->record == NULL) {
        _cleanup_(buf_done)
        struct buf again = BUF_INIT;
        rc = decode(f, file.data != NULL ? file.data : "", file.len, &again);
        assert(rc == 0 || again.len + 4 * 1024 * 1024 > TAR_MAX);
    }
out:
    f->encoder_free(encoder);
    tar_scan_free(s);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const extensions[] = {
        ".tgz", ".tar.zst", ".tar.lz4", ".zip", ".msgpack", ".tfrecord", ".txz", ".tbz2", ".cpio"};
    if (size == 0)
        return 0;
    const struct shard_format_ops *f = format_of_extension(extensions[data[0] % 9]);
    _cleanup_(buf_done)
    struct buf tar = BUF_INIT;
    if (decode(f, data + 1, size - 1, &tar) == 0 && !f->read_only)
        encode(f, &tar);
    return 0;
}
