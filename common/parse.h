/* Text to numbers and back, strictly: the whole text must match, overflow is an error.
 * All return 0 or E_INVALID with a sentence that names the text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/utf8.h"

int parse_u64(const char *text, uint64_t *out, struct error *err);
int parse_i64(const char *text, int64_t *out, struct error *err);
int parse_double(const char *text, double *out, struct error *err);
/* "10", "64k", "10KB", "10KiB", "1.5MiB", "2G": every unit is a power of 1024, upper or lower
 * case (the convention of AIStore and GNU dd); no unit is bytes. */
int parse_size(const char *text, uint64_t *out_bytes, struct error *err);
/* "250ms", "10s", "1.5h", "5m", "7d"; a bare number is milliseconds.  Here and in sizes a fraction
 * is rounded down, and the smallest unit takes none. */
int parse_duration_ms(const char *text, uint64_t *out_ms, struct error *err);
/* true|yes|on|1 and false|no|off|0 */
int parse_bool(const char *text, bool *out, struct error *err);
/* Percent-decoding.  `out` needs len + 1 bytes; NUL bytes and bad escapes are E_INVALID.
 * Returns the decoded length or an error. */
int64_t parse_url_unescape(const char *text, size_t len, char *out, struct error *err);

/* "1.5 GiB", "312 KiB", "17 B" into out; returns out. */
const char *format_size(uint64_t bytes, char out[static 16]);
/* "250ms", "1.2s", "3m05s", "2h10m", "9d03h", "30d": cut, not rounded */
const char *format_duration(uint64_t ms, char out[static 16]);
void format_hex(const void *bytes, size_t len, char *out);                   /* 2*len+1 bytes */
int parse_hex(const char *text, void *bytes, size_t len, struct error *err); /* exactly 2*len */
