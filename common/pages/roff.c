#include "common/pages/roff.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "common/build.h"

/* A '-' would become a hyphen, which cannot be pasted into a shell; a '.' or a quote at the start
 * of a line would be a request. */
static void put_escaped(struct buf *out, const char *text)
{
    bool starts = true;
    for (; *text != '\0'; text++) {
        if (starts && (*text == '.' || *text == '\''))
            buf_puts(out, "\\&");
        if (*text == '\\')
            buf_puts(out, "\\e");
        else if (*text == '-')
            buf_puts(out, "\\-");
        else
            buf_putc(out, *text);
        starts = *text == '\n';
    }
}

/* The argument of a request: between quotes, so a quote in it is written as a glyph. */
static void put_argument(struct buf *out, const char *text)
{
    buf_putc(out, '"');
    for (; *text != '\0'; text++) {
        const char one[] = {*text, '\0'};
        if (*text == '"')
            buf_puts(out, "\\(dq");
        else
            put_escaped(out, one);
    }
    buf_putc(out, '"');
}

static void put_request(struct buf *out, const char *request, const char *argument)
{
    buf_printf(out, ".%s ", request);
    put_argument(out, argument);
    buf_putc(out, '\n');
}

void roff_head(struct buf *out, const char *name, int section, const char *summary)
{
    buf_puts(out, ".TH ");
    for (const char *p = name; *p != '\0'; p++)
        buf_putc(out, (char)toupper((unsigned char)*p));
    buf_printf(out, " %d \"\" \"dfc %s\" \"dfc\"\n.ad l\n", section, build_release());
    roff_part(out, "NAME");
    put_escaped(out, name);
    buf_puts(out, " \\- ");
    put_escaped(out, summary);
    buf_putc(out, '\n');
}

void roff_part(struct buf *out, const char *title)
{
    put_request(out, "SH", title);
}

void roff_subpart(struct buf *out, const char *title)
{
    put_request(out, "SS", title);
}

void roff_item(struct buf *out, const char *term)
{
    buf_puts(out, ".TP\n");
    put_request(out, "B", term);
}

void roff_paragraph(struct buf *out, const char *text)
{
    buf_puts(out, ".PP\n");
    roff_text(out, text);
}

void roff_text(struct buf *out, const char *text)
{
    put_escaped(out, text);
    buf_putc(out, '\n');
}

void roff_verbatim(struct buf *out, const char *text)
{
    buf_puts(out, ".PP\n.RS 4\n.nf\n");
    roff_text(out, text);
    buf_puts(out, ".fi\n.RE\n");
}
