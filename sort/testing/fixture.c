#include "sort/testing/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sort/shard/tar_header.h"

static void put(unsigned char *block, size_t offset, const char *text)
{
    memcpy(block + offset, text, strlen(text));
}

void fixture_seal(unsigned char *block)
{
    memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
}

void fixture_header(struct buf *tar, const char *path, char type, uint64_t size, const char *link)
{
    unsigned char block[TAR_BLOCK] = {0};
    char number[24];
    if (strlen(path) > 100)
        abort();
    put(block, 0, path);
    put(block, 100, "0000644");
    put(block, 108, "0001750");
    put(block, 116, "0001750");
    snprintf(number, sizeof number, "%011llo", (unsigned long long)size);
    put(block, 124, number);
    put(block, 136, "14524765400");
    block[156] = (unsigned char)type;
    put(block, 157, link);
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    fixture_seal(block);
    buf_append(tar, block, sizeof block);
}

void fixture_contents(struct buf *tar, const void *data, size_t len)
{
    static const char zeros[TAR_BLOCK];
    buf_append(tar, data, len);
    buf_append(tar, zeros, (size_t)(tar_padded(len) - len));
}

void fixture_file(struct buf *tar, const char *path, const char *text)
{
    fixture_header(tar, path, '0', strlen(text), "");
    fixture_contents(tar, text, strlen(text));
}

void fixture_pax_record(struct buf *records, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3; /* space, '=', newline */
    size_t len = rest + 1;
    char digits[24];
    while (rest + (size_t)snprintf(digits, sizeof digits, "%zu", len) != len)
        len++;
    buf_printf(records, "%zu %s=%s\n", len, key, value);
}

void fixture_pax(struct buf *tar, char type, const struct buf *records)
{
    fixture_header(tar, "pax", type, records->len, "");
    fixture_contents(tar, records->data, records->len);
}

void fixture_long(struct buf *tar, char type, const char *text)
{
    fixture_header(tar, "././@LongLink", type, strlen(text) + 1, "");
    fixture_contents(tar, text, strlen(text) + 1);
}

void fixture_end(struct buf *tar)
{
    static const char zeros[2 * TAR_BLOCK];
    buf_append(tar, zeros, sizeof zeros);
}

int fixture_fd(const struct buf *tar)
{
    int fd = memfd_create("fixture", MFD_CLOEXEC);
    if (fd < 0 || (tar->len > 0 && write(fd, tar->data, tar->len) != (ssize_t)tar->len))
        abort();
    return fd;
}

void fixture_catalog(struct catalog *c, uint32_t shard, const struct record_table *t)
{
    struct catalog_writer w;
    struct buf found = BUF_INIT;
    catalog_writer_init(&w, c, shard);
    for (size_t i = 0; i < record_table_count(t); i++) {
        buf_clear(&found);
        record_table_pieces(t, i, &found);
        const struct record_piece *pieces = (const void *)found.data;
        if (catalog_writer_add(&w, pieces, found.len / sizeof *pieces, record_table_inline(t)->data,
                               NULL) != 0)
            abort();
    }
    if (catalog_writer_finish(&w, NULL) != 0)
        abort();
    catalog_writer_done(&w);
    buf_done(&found);
}
