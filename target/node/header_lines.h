/* "Name: value" lines of one call to another node (http_call.headers).
 *
 *   struct header_lines h;
 *   header_lines_begin(&h);
 *   header_lines_add(&h, arena_printf(h.arena, …)) … h.lines
 *   header_lines_end(&h); */
#pragma once

#include <stddef.h>

#include "common/arena.h"

struct header_lines {
    struct arena *arena; /* of the lines */
    const char **lines;  /* NULL-terminated once there is one */
    size_t count, room;
};

void header_lines_begin(struct header_lines *h);
/* The line lives as long as the arena, or longer. */
void header_lines_add(struct header_lines *h, const char *line);
void header_lines_end(struct header_lines *h);
