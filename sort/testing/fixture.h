/* Tars for tests, made block by block, so that every detail can be got wrong. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "sort/shard/catalog.h"
#include "sort/shard/record.h"

/* A header with a right checksum: ustar, mode 0644, mtime 1700000000.  path has at most 100 bytes.
 */
void fixture_header(struct buf *tar, const char *path, char type, uint64_t size, const char *link);
void fixture_seal(unsigned char *block); /* the checksum again, after a change */
void fixture_contents(struct buf *tar, const void *data, size_t len); /* and padding */
void fixture_file(struct buf *tar, const char *path, const char *text);
void fixture_pax_record(struct buf *records, const char *key, const char *value);
void fixture_pax(struct buf *tar, char type, const struct buf *records); /* 'x' or 'g' */
void fixture_long(struct buf *tar, char type, const char *text);         /* 'L' or 'K' */
void fixture_end(struct buf *tar);                                       /* two zero blocks */
int fixture_fd(const struct buf *tar);                                   /* a file in memory */
/* The table's records, as the shard's in the catalog. */
void fixture_catalog(struct catalog *c, uint32_t shard, const struct record_table *t);
