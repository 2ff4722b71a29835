#include "target/node/header_lines.h"

#include <stdarg.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/mem.h"
#include "net/http/http.h"
#include "target/node/reply.h"

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

void header_lines_printf(struct header_lines *h, const char *format, ...)
{
    va_list args;
    _cleanup_buf_ struct buf line = BUF_INIT;
    va_start(args, format);
    buf_vprintf(&line, format, args);
    va_end(args);
    header_lines_add(h, arena_strdup(h->arena, buf_str(&line)));
}

void header_lines_meta(struct header_lines *h, const char *name, const char *value)
{
    const char *full = arena_printf(h->arena, OBJECT_META_PREFIX "%s", name);
    header_lines_add(h, http_header_line(h->arena, full, value));
}

void header_lines_checksum(struct header_lines *h, const struct checksum_value *sum)
{
    char hex[2 * CHECKSUM_MAX + 1];
    if (sum->type == CHECKSUM_NONE)
        return;
    checksum_hex(sum, hex);
    header_lines_printf(h, "Dfc-Checksum-Type: %s", checksum_name(sum->type));
    header_lines_printf(h, "Dfc-Checksum-Value: %s", hex);
}

void header_lines_end(struct header_lines *h)
{
    free(h->lines);
    arena_free(h->arena);
}
