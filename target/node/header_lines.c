#include "target/node/header_lines.h"

#include <stdlib.h>

#include "common/mem.h"

void header_lines_begin(struct header_lines *h)
{
    *h = (struct header_lines){.arena = arena_new(1024)};
}

void header_lines_add(struct header_lines *h, const char *line)
{
    if (h->count + 1 >= h->room) {
        h->room = h->room > 0 ? 2 * h->room : 16;
        h->lines = xrealloc(h->lines, h->room * sizeof *h->lines);
    }
    h->lines[h->count++] = line;
    h->lines[h->count] = NULL;
}

void header_lines_end(struct header_lines *h)
{
    free(h->lines);
    arena_free(h->arena);
}
