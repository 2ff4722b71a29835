/* The body of a reply as it comes on a line: so many bytes as the head has said, or chunks. */
#pragma once

#include "net/direct/line.h"
#include "net/syntax/chunk.h"

enum {
    /* Beside those of line.h: */
    DIRECT_BODY_END = -3,         /* it is over */
    DIRECT_BODY_COPY = LINE_COPY, /* the next bytes come by direct_body_read() */
};

struct direct_body {
    struct line *line;
    size_t at; /* of line->in: what comes before is used */
    bool chunked;
    struct chunks chunks;
    uint64_t left; /* bytes, where they do not come in chunks */
    uint64_t received;
};

/* > 0 bytes, LINE_EMPTY, LINE_CUT (also where chunks are malformed) or DIRECT_BODY_END. */
ssize_t direct_body_read(struct direct_body *b, char *out, size_t max);
/* The same into a socket that does not block; also LINE_FULL or DIRECT_BODY_COPY. */
ssize_t direct_body_splice(struct direct_body *b, int to, size_t max);
/* It has ended, and nothing was read behind its end. */
bool direct_body_is_over(const struct direct_body *b);
