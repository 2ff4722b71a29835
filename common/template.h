/* Templates for object names: the three notations that AIStore's users know, and a plain prefix.
 *
 *     bash    "shard-{00000..00999}.tar", "s-{0..100..2}-{00..31}": from the first number to the
 *             second, which is included where the step (default 1) meets it.  Zeros pad to the
 *             digits of the shorter of the two numbers, as written: {01..100} gives 01 to 100,
 *             {1..02} gives 1 and 2
 *     at      "shard-@0999.tar", "s-@31-gap-@100": from 0 to the number, which is included; zeros
 *             pad to its digits, as written: @0999 gives 0000 to 0999
 *     fmt     "shard-%06d.tar": from 0 without an end; %06d pads to six digits, %d does not pad
 *     prefix  anything without one of these; a '*' at the end is dropped
 *
 * The first notation found, in this order, is the template's; the others' characters are then
 * literal.  Several ranges count like an odometer, the last fastest; fmt has one range only.
 *
 * Every name stands for one index: where two ranges touch, or have only digits between them, at
 * most one of them may make numbers of different lengths ("{0..11}{0..11}" would make "111"
 * twice and is refused; "{00..11}{0..11}" is fine).
 *
 * Parse errors are E_SPEC with the place in the text: braces that do not pair, no number, numbers
 * from 2^63 on, first > second, step 0, '@' or '%' without its number or 'd', a second '%', more
 * than TEMPLATE_RANGES_MAX ranges, zeros to more than TEMPLATE_WIDTH_MAX digits, a product of 2^64
 * - 1 names or more, a text longer than TEMPLATE_TEXT_MAX. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"

enum template_kind { TEMPLATE_PREFIX, TEMPLATE_BASH, TEMPLATE_AT, TEMPLATE_FMT };

enum { TEMPLATE_TEXT_MAX = 4096, TEMPLATE_RANGES_MAX = 16, TEMPLATE_WIDTH_MAX = 255 };

struct name_template; /* immutable, shareable between threads */

int template_parse(const char *text, struct name_template **out, struct error *err);
/* One name, with whatever characters it has: nothing in it is a notation. */
struct name_template *template_literal(const char *name);
void template_free(struct name_template *t);
DEFINE_CLEANUP(struct name_template, template_free);
enum template_kind template_kind(const struct name_template *t);
/* Number of names; UINT64_MAX for fmt, 0 for prefix. */
uint64_t template_count(const struct name_template *t);
/* Appends the i-th name.  i must be below the count. */
void template_name(const struct name_template *t, uint64_t i, struct buf *out);
/* The inverse: the index of `name`, or UINT64_MAX where the template does not make it.  Takes time
 * in the length of the name, whatever the count. */
uint64_t template_index(const struct name_template *t, const char *name);
/* The literal text before the first range (for prefix scans). */
const char *template_prefix(const struct name_template *t);
const char *template_text(const struct name_template *t); /* as it was parsed */
