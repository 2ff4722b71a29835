/* Manual pages, as man(7) of groff and mandoc read them.
 *
 *     roff_head(&b, "dfcctl", 1, "use and look after a dfc cluster");
 *     roff_part(&b, "DESCRIPTION");
 *     roff_item(&b, "--help");           a term in bold; its text follows
 *     roff_text(&b, "shows the help");   any text: nothing in it is taken for a request
 *
 * Pure: the same tables give the same bytes.  A text is UTF-8. */
#pragma once

#include "common/buf.h"

/* The heading and the part NAME.  The section is 1 to 8. */
void roff_head(struct buf *out, const char *name, int section, const char *summary);
void roff_part(struct buf *out, const char *title);    /* .SH */
void roff_subpart(struct buf *out, const char *title); /* .SS */
void roff_item(struct buf *out, const char *term);     /* .TP */
void roff_paragraph(struct buf *out, const char *text);
void roff_text(struct buf *out, const char *text);     /* flows, and ends its line */
void roff_verbatim(struct buf *out, const char *text); /* keeps its lines, indented */
