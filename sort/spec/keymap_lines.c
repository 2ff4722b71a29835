#include <string.h>

#include "sort/spec/keymap.h"
#include "sort/spec/keymap_read.h"

/* The longest that can be right. */
#define LINE_MAX_BYTES (KEYMAP_KEY_MAX + TEMPLATE_TEXT_MAX + 256)

/* Where the separator is; NULL where it is not there, or not once only. */
static const char *find_separator(const struct keymap_lines *l, const char *line, size_t len)
{
    size_t sep_len = strlen(l->separator);
    const char *found = memmem(line, len, l->separator, sep_len);
    if (found == NULL)
        return NULL;
    const char *rest = found + sep_len;
    size_t rest_len = len - (size_t)(rest - line);
    return memmem(rest, rest_len, l->separator, sep_len) == NULL ? found : NULL;
}

static int line_end(struct keymap_lines *l, const struct keymap_sink *to, struct error *err)
{
    const char *line = buf_str(&l->line);
    size_t len = l->line.len;
    bool too_long = l->too_long;
    l->number++;
    l->too_long = false;
    if (len > 0 && line[len - 1] == '\r')
        len--;
    if (too_long)
        return to->malformed(to->ctx, l->number, "it is too long", err);
    if (len == 0 || strspn(line, " \t\r") >= len)
        return 0;
    const char *separator = find_separator(l, line, len);
    if (separator == NULL)
        return to->malformed(
            to->ctx, l->number,
            "it does not have a key, one separator (ekm_file_sep) and an output template", err);
    const char *format = separator + strlen(l->separator);
    const struct keymap_entry e = {.key = line,
                                   .key_len = (size_t)(separator - line),
                                   .format = format,
                                   .format_len = len - (size_t)(format - line),
                                   .line = l->number};
    return to->add(to->ctx, &e, err);
}

static void line_append(struct keymap_lines *l, const char *data, size_t len)
{
    if (l->line.len + len > LINE_MAX_BYTES)
        l->too_long = true;
    else if (!l->too_long)
        buf_append(&l->line, data, len);
}

int keymap_lines_feed(struct keymap_lines *l, const char *data, size_t len,
                      const struct keymap_sink *to, struct error *err)
{
    int rc = 0;
    while (rc == 0 && len > 0) {
        const char *feed = memchr(data, '\n', len);
        size_t part = feed != NULL ? (size_t)(feed - data) : len;
        line_append(l, data, part);
        if (feed == NULL)
            return 0;
        rc = line_end(l, to, err);
        buf_clear(&l->line);
        data += part + 1;
        len -= part + 1;
    }
    return rc;
}

int keymap_lines_finish(struct keymap_lines *l, const struct keymap_sink *to, struct error *err)
{
    return l->line.len > 0 || l->too_long ? line_end(l, to, err) : 0;
}

void keymap_lines_done(struct keymap_lines *l)
{
    buf_done(&l->line);
}
