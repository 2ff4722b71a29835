/* The head of a request or of a reply, as RFC 9112 has it, and strictly: lines end with CRLF, names
 * are tokens, nothing is folded, no control characters.  What a lenient reader and a strict one
 * would see differently is how requests are smuggled, so it is refused.  Pure; fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Headers of one request.  Nodes send each pair of an object's metadata as one; ATTR_META_PAIRS_MAX
 * (682) of them may be stored. */
enum { HEAD_FIELDS_MAX = 1024 };

struct head_field {
    const char *name;
    const char *value; /* without the blanks around it */
};

struct head {
    const char *method; /* of a request … */
    const char *target;
    int status; /* … or 100 to 599, of a reply */
    int minor;  /* HTTP/1.minor: 0 or 1 */
    size_t count;
    struct head_field fields[HEAD_FIELDS_MAX];
};

/* The length of the head that `text` begins with, its empty last line included; 0 while its end has
 * not come.  *scanned (at first 0) remembers how far the search has come, for the next call with
 * more text.  A head whose lines end otherwise than in CRLF has an end, too, and is then refused.
 */
size_t head_end(const char *text, size_t len, size_t *scanned);

/* Can a head begin like this?  What speaks another protocol (TLS) may wait for an answer before it
 * sends anything that ends a line. */
bool head_may_begin(char first);

/* Parses text[0..len), which head_end() has delimited.  The text is written to: the head's strings
 * are pieces of it, ended with NUL.  0, or a code of error.def. */
int head_parse(char *text, size_t len, struct head *out, struct error *err);
/* The same of a reply's. */
int head_parse_reply(char *text, size_t len, struct head *out, struct error *err);
/* The first header of this name, in any case; NULL: there is none. */
const char *head_find(const struct head *head, const char *name);
/* The length that the headers say: *length, -1 where the body comes in chunks or none is said.
 * E_INVALID: two that differ, one beside chunks, no number, or another coding than chunks. */
int head_length(const struct head *head, int64_t *length, bool *chunked, struct error *err);
