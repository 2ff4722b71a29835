/* The two clocks.  Intervals are measured with clock_ms, never with the wall. */
#pragma once

#include <stdint.h>

uint64_t clock_ms(void);      /* monotonic */
uint64_t clock_us(void);      /* monotonic */
uint64_t clock_boot_ms(void); /* monotonic, and goes on while the machine is suspended */
struct timespec clock_after(uint64_t ms); /* from now on, monotonic: for who waits until then */
int64_t clock_wall_ms(void);              /* Unix time in ms */
/* "2026-11-21T03:04:05Z" and, for HTTP dates, "Sat, 21 Nov 2026 03:04:05 GMT" */
const char *clock_format_rfc3339(int64_t unix_ms, char out[static 32]);
const char *clock_format_http(int64_t unix_s, char out[static 32]);
int clock_parse_http(const char *text, int64_t *unix_s); /* 0 or E_INVALID (RFC 9110 5.6.7) */
/* The same of RFC 3339 5.6, with "Z" or an offset; a fraction of the second is cut off. */
int clock_parse_rfc3339(const char *text, int64_t *unix_s);
