/* Comma-separated values (RFC 4180), in pieces as they arrive.
 *
 * Lines end with LF or CRLF; a field in double quotes may have commas, line ends, and quotes as "".
 * An empty line is passed over. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

#define CSV_FIELDS_MAX 16
#define CSV_ROW_MAX (64u << 10) /* bytes */

struct csv;

/* Sees each row; the fields are its own until it returns.  line: the row's first, from 1. */
typedef int csv_row(void *context, uint64_t line, const char *const *fields, size_t count,
                    struct error *err);

struct csv *csv_new(csv_row *row, void *context);
/* E_INVALID, with the line, or what row() fails with. */
int csv_feed(struct csv *c, const void *bytes, size_t len, struct error *err);
int csv_end(struct csv *c, struct error *err); /* a last line may have no end */
void csv_free(struct csv *c);
DEFINE_CLEANUP(struct csv, csv_free);
