/* "Name: value" lines of one call to another node (http_call.headers).
 *
 *   struct header_lines h;
 *   header_lines_begin(&h);
 *   header_lines_printf(&h, "Dfc-Tag: %s", tag) … h.lines
 *   header_lines_end(&h); */
#pragma once

#include <stddef.h>

#include "common/arena.h"
#include "common/checksum.h"

struct header_lines {
    struct arena *arena; /* of the lines */
    const char **lines;  /* NULL-terminated once there is one */
    size_t count, room;
};

void header_lines_begin(struct header_lines *h);
/* The line lives as long as the arena, or longer. */
void header_lines_add(struct header_lines *h, const char *line);
void header_lines_printf(struct header_lines *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "Dfc-Meta-name: value" (reply.h). */
void header_lines_meta(struct header_lines *h, const char *name, const char *value);
/* What the bytes must have; nothing where there is no checksum. */
void header_lines_checksum(struct header_lines *h, const struct checksum_value *sum);
void header_lines_end(struct header_lines *h);
