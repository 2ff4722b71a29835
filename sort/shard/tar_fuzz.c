/* Any bytes are an archive or are refused; of an archive, every piece lies within the file, in
 * order, and what the records are made of is what the members were. */
#include "sort/shard/tar.h"

#include <assert.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sort/shard/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t check_member(const struct tar_member *m, uint64_t *end, uint64_t size)
{
    uint64_t bytes = 0;
    assert(m->path_len > 0 && m->path_len <= TAR_PATH_MAX);
    assert(m->piece_count >= 1 && m->piece_count <= TAR_PIECES_MAX);
    assert(m->contents_offset <= size && m->contents_size <= size - m->contents_offset);
    for (unsigned i = 0; i < m->piece_count; i++) {
        const struct tar_piece *p = &m->pieces[i];
        assert(p->length > 0 && p->length % 512 == 0);
        bytes += p->length;
        if (p->inline_data != NULL)
            continue;
        assert(p->offset >= *end && p->offset + p->length <= size);
        *end = p->offset + p->length;
    }
    return bytes;
}

static uint64_t record_bytes(const struct record_table *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < record_table_count(t); i++) {
        _cleanup_(buf_done)
        struct buf found = BUF_INIT;
        record_table_pieces(t, i, &found);
        const struct record_piece *p = (const void *)found.data;
        for (size_t n = 0; n < found.len / sizeof *p; n++) {
            assert(!p[n].is_inline || p[n].offset + p[n].length <= record_table_inline(t)->len);
            sum += p[n].length;
        }
    }
    return sum;
}

static void scan(int fd, size_t size)
{
    _cleanup_(tar_scan_freep)
    struct tar_scan *s = tar_scan_new(fd, size, "fuzz");
    _cleanup_(record_table_freep)
    struct record_table *t = record_table_new("fuzz", SORT_KEY_FIRST_DOT, SORT_IGNORE, 1 << 26);
    struct tar_member m;
    struct error err = ERROR_INIT;
    uint64_t end = 0;
    uint64_t bytes = 0;
    bool any_replaced = false;
    int rc;
    while ((rc = tar_scan_next(s, &m, &err)) > 0) {
        bool replaced;
        bytes += check_member(&m, &end, size);
        rc = record_table_add(t, &m, &replaced, &err);
        assert(rc == 0);
        any_replaced |= replaced;
    }
    assert(rc == 0 || rc == E_SHARD_CORRUPT || rc == E_SHARD_UNSUPPORTED);
    rc = record_table_finish(t, &err);
    assert(rc == 0 || rc == E_SHARD_UNSUPPORTED);
    assert(any_replaced || record_bytes(t) == bytes);
}

struct text {
    const unsigned char *data;
    size_t size;
};

static int read_text(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    const struct text *t = ctx;
    assert(offset <= t->size && len <= t->size - offset); /* it reads no further than the size */
    memcpy(out, t->data + offset, len);
    (void)err;
    return 0;
}

/* As an index of members is made: sparse members are given, too. */
static void scan_places(const void *data, size_t size)
{
    struct text text = {.data = data, .size = size};
    _cleanup_(tar_scan_freep)
    struct tar_scan *s = tar_scan_new(-1, size, "fuzz");
    struct tar_member m;
    struct error err = ERROR_INIT;
    uint64_t end = 0;
    int rc;
    tar_scan_source(s, read_text, &text);
    tar_scan_sparse(s);
    while ((rc = tar_scan_next(s, &m, &err)) > 0)
        check_member(&m, &end, size);
    assert(rc == 0 || rc == E_SHARD_CORRUPT || rc == E_SHARD_UNSUPPORTED);
}

static void try_file(const void *data, size_t size)
{
    static int fd = -1;
    scan_places(data, size);
    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size)
        scan(fd, size);
}

static void seal(unsigned char *block)
{
    memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < 512; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_file(data, size);
    _cleanup_(buf_done)
    struct buf sealed = BUF_INIT;
    buf_append(&sealed, data, size);
    for (size_t at = 0; at + 512 <= size; at += 512) {
        if (memcmp(sealed.data + at + 257, "ustar", 5) == 0)
            seal((unsigned char *)sealed.data + at);
    }
    try_file(sealed.data, size);
    return 0;
}
