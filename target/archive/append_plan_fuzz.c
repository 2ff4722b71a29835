/* Any bytes are an archive and a body, or are refused.  A plan has pieces of what there is.  They
 * make an archive again.
 *
 * The input: a byte of flags, two of the old archive's length, the archive, the body. */
#include "target/archive/append_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sort/shard/zip_tail.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FLAG_TAR_BODY = 1, FLAG_OVERWRITE = 2, FLAG_ZIP = 4, HEAD = 3 };

struct bytes {
    const unsigned char *data;
    size_t len;
};

static int read_bytes(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    const struct bytes *b = ctx;
    (void)err;
    assert(offset <= b->len && len <= b->len - offset);
    memcpy(out, b->data + offset, len);
    return 0;
}

static int go_on(void *ctx, struct error *err)
{
    (void)ctx, (void)err;
    return 0;
}

static void put_together(const struct append_plan *p, const struct bytes *old,
                         const struct bytes *body, struct buf *out)
{
    for (size_t i = 0; i < append_plan_count(p); i++) {
        const struct splice *s = append_plan_at(p, i);
        const struct bytes bytes = {(const unsigned char *)p->bytes.data, p->bytes.len};
        const struct bytes *from = s->from == SPLICE_OLD    ? old
                                   : s->from == SPLICE_BODY ? body
                                                            : &bytes;
        assert(s->length > 0 && s->offset <= from->len && s->length <= from->len - s->offset);
        assert(s->from != SPLICE_OLD || (i == 0 && s->offset == 0));
        buf_append(out, from->data + s->offset, (size_t)s->length);
    }
    assert(out->len == p->size);
}

static int count_member(void *ctx, const struct tar_member *m, struct error *err)
{
    (void)m, (void)err;
    ++*(size_t *)ctx;
    return 0;
}

static void check_tar(struct bytes *made)
{
    size_t count = 0;
    uint64_t end;
    struct error err = ERROR_INIT;
    const struct tar_source source = {
        .read = read_bytes, .ctx = made, .size = made->len, .shard = "made"};
    int code = tar_tail_find(&source, count_member, &count, &end, &err);
    assert(code == 0 && count > 0 && end == made->len - 1024);
}

static void check_zip(struct bytes *made)
{
    struct zip_tail tail;
    struct error err = ERROR_INIT;
    const struct zip_source source = {
        .read = read_bytes, .ctx = made, .size = made->len, .shard = "made"};
    int code = zip_tail_find(&source, &tail, &err);
    assert(code == 0 && tail.entries > 0);
    const struct buf directory = {.data = (char *)(uintptr_t)made->data + tail.begin,
                                  .len = (size_t)(tail.end - tail.begin)};
    size_t at = 0;
    struct zip_row row;
    for (uint64_t i = 0; i < tail.entries; i++, at += row.len) {
        code = zip_row_at(&source, &tail, &directory, at, &row, &err);
        assert(code == 0);
    }
}

static void plan(unsigned flags, struct bytes *old, const struct bytes *body, int fd)
{
    struct append_plan p;
    struct error err = ERROR_INIT;
    const struct append_input in = {
        .format = (flags & FLAG_ZIP) != 0 ? APPEND_ZIP : APPEND_TAR,
        .old = {.read = read_bytes, .ctx = old, .size = old->len, .shard = "old"},
        .body = {.fd = fd,
                 .size = body->len,
                 .member = (flags & FLAG_TAR_BODY) != 0 ? NULL : "the/member",
                 .now_s = 1700000000,
                 .memory_max = 1 << 20,
                 .go_on = go_on},
        .overwrite = (flags & FLAG_OVERWRITE) != 0};
    if (append_plan_make(&in, &p, &err) != 0) {
        assert(err.code != 0 && err.code != E_INTERNAL);
        return;
    }
    _cleanup_buf_ struct buf out = BUF_INIT;
    put_together(&p, old, body, &out);
    struct bytes made = {(const unsigned char *)out.data, out.len};
    if (in.format == APPEND_ZIP)
        check_zip(&made);
    else
        check_tar(&made);
    append_plan_done(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return 0;
    const size_t rest = size - HEAD, wanted = (size_t)data[1] << 8 | data[2];
    struct bytes old = {data + HEAD, wanted < rest ? wanted : rest};
    const struct bytes body = {data + HEAD + old.len, rest - old.len};
    int fd = memfd_create("body", MFD_CLOEXEC);
    if (fd < 0 || write(fd, body.data, body.len) != (ssize_t)body.len)
        abort();
    plan(data[0], &old, &body, fd);
    close(fd);
    return 0;
}
