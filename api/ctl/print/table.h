/* Text tables: left-aligned columns under capital headers, two spaces between, no lines.
 *
 * Control characters in cells are shown as \xNN: a name must not move the terminal's cursor. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct table;

struct table *table_new(const char *const *headers); /* NULL-terminated; not copied */
void table_free(struct table *t);
/* Cells from left to right; after the last column a new row begins. */
void table_cell(struct table *t, const char *text);
void table_cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_print(const struct table *t, FILE *out, bool headers, bool colour);
size_t table_rows(const struct table *t);

/* For lists that are printed while they arrive: the same, with fixed widths. */
void table_put_clean(FILE *out, const char *text, size_t width);
