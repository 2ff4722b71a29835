/* What a handle reads next: pure.
 *
 * A handle has a few streams, so that programs that read at several places of a file at once are
 * followed at each of them.  A read continues a stream if it begins near the stream's end: the
 * kernel sends the parts of one large read in any order.  The window of a stream doubles with each
 * read that continues it, up to `most`.  Reads at random places never get a window. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define READAHEAD_STREAMS 4

struct span {
    uint64_t from, to; /* empty: from == to */
};

struct readahead {
    struct readahead_stream {
        uint64_t next;   /* behind the last byte that was read */
        uint64_t ahead;  /* behind the last byte that was asked for */
        uint64_t window; /* 0: one read came, nothing is known */
        uint64_t used;   /* turn of the last read; 0: the stream is free */
    } streams[READAHEAD_STREAMS];
    uint64_t turn;
    bool lone; /* the last read continues none before it */
};

/* A read of [offset, offset + size) of a file of file_size bytes has come.  Returns what to fetch
 * besides it. */
struct span readahead_read(struct readahead *r, uint64_t offset, uint64_t size, uint64_t file_size,
                           uint64_t most);
