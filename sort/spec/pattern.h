/* Patterns of an external key map: many regular expressions that are looked for in a name at once.
 *
 * They compile into one automaton (Thompson's), which is simulated: time grows with the name's
 * length times what has been compiled, whatever the patterns are, and no pattern can take long or
 * much memory.  What is compiled grows with the text, but for {m,n}, whose copies have a limit of
 * their own.  A pattern may match anywhere in the name, byte by byte:
 *
 *     a  \.        the byte; what is punctuation stands for itself after a backslash
 *     .            any byte but a line feed
 *     [a-z_] [^0]  one of, none of; \d \w \s \D \W \S (ASCII) also within
 *     ( ) (?: ) |  groups, alternatives
 *     * + ? {2} {2,} {2,5}      and the same with a '?' behind, which changes nothing here
 *     ^ $          the name's beginning, and its end
 *
 * Everything else is refused with its place: back-references, look-around, named classes, flags. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

#define PATTERNS_MAX 1000      /* in one set */
#define PATTERN_BYTES_MAX 4096 /* of one's text */
#define PATTERN_REPEATS_MAX 1000
#define PATTERNS_STEPS_MAX 65536 /* of the automaton */

/* Any of `text`'s bytes makes it more than a name; a dot does not. */
bool pattern_is(const char *text, size_t len);

struct patterns;

struct patterns *patterns_new(void);
void patterns_free(struct patterns *p);
DEFINE_CLEANUP(struct patterns, patterns_free);
/* E_SPEC where it is no pattern; E_TOO_LARGE where the set is full, or all that was ever added
 * repeats too much.  The set is then as it was. */
int patterns_add(struct patterns *p, const char *text, size_t len, uint32_t value,
                 struct error *err);
size_t patterns_count(const struct patterns *p);
size_t patterns_bytes(const struct patterns *p); /* of memory */

#define PATTERN_NONE UINT32_MAX

/* What one thread needs to look; NULL where the set is empty.  The set does not change any more. */
struct pattern_search;
struct pattern_search *pattern_search_new(const struct patterns *p);
void pattern_search_free(struct pattern_search *s);
/* The values of two patterns that match and differ; PATTERN_NONE for what is not there. */
void pattern_find(struct pattern_search *s, const char *name, size_t len, uint32_t found[2]);
