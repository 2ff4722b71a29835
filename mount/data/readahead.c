#include "mount/data/readahead.h"

#include <stdbool.h>
#include <stddef.h>

#define WINDOW_FIRST (512u << 10)
#define NEAR_AHEAD (128u << 10) /* of a stream without a window: one request of the kernel */
#define NEAR_BEHIND (1u << 20)  /* of one with a window: requests that were overtaken */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool stream_continues(const struct readahead_stream *s, uint64_t offset)
{
    if (s->used == 0)
        return false;
    uint64_t behind = s->window > 0 ? NEAR_BEHIND : 0;
    uint64_t ahead = s->window > NEAR_AHEAD ? s->window : NEAR_AHEAD;
    return offset + behind >= s->next && offset <= s->next + ahead;
}

static struct readahead_stream *stream_find(struct readahead *r, uint64_t offset)
{
    for (size_t i = 0; i < READAHEAD_STREAMS; i++) {
        if (stream_continues(&r->streams[i], offset))
            return &r->streams[i];
    }
    return NULL;
}

static struct readahead_stream *stream_oldest(struct readahead *r)
{
    struct readahead_stream *oldest = &r->streams[0];
    for (size_t i = 1; i < READAHEAD_STREAMS; i++) {
        if (r->streams[i].used < oldest->used)
            oldest = &r->streams[i];
    }
    return oldest;
}

/* Half a window is still ahead of the reader: no need to ask yet. */
static struct span stream_ask(struct readahead_stream *s, uint64_t file_size)
{
    uint64_t from = s->ahead > s->next ? s->ahead : s->next;
    uint64_t to = least(s->next + s->window, file_size);
    if (from >= to || from - s->next > s->window / 2)
        return (struct span){0};
    s->ahead = to;
    return (struct span){from, to};
}

struct span readahead_read(struct readahead *r, uint64_t offset, uint64_t size, uint64_t file_size,
                           uint64_t most)
{
    uint64_t end = least(offset + size, file_size);
    struct readahead_stream *s = stream_find(r, offset);
    r->turn++;
    r->lone = s == NULL;
    if (s == NULL) {
        s = stream_oldest(r);
        /* The first byte first: most such readers read on. */
        *s = (struct readahead_stream){.next = end, .window = offset == 0 ? WINDOW_FIRST : 0};
    } else if (end > s->next) {
        s->next = end;
        s->window = s->window == 0 ? WINDOW_FIRST : 2 * s->window;
    }
    s->used = r->turn;
    s->window = least(s->window, most);
    return stream_ask(s, file_size);
}
