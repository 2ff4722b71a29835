/* What the server's and the client's side of HTTP share: methods, ranges, conditions, dates.
 * Pure functions; fuzzed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct arena;

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_PUT,
    HTTP_POST,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_PATCH,
    HTTP_OTHER, /* a method that only a route for any method takes */
    HTTP_ANY,   /* of a route: every method */
};

const char *http_method_name(enum http_method m);
enum http_method http_method_parse(const char *name);
const char *http_status_text(int status); /* "Not Found"; "Status" for one without a name */

/* Whether a comma-separated list of words ("keep-alive, Upgrade") has this one, in any case. */
bool http_list_has(const char *list, const char *word);

/* The line of a header for http_call.headers; of the arena.  An empty value is sent, too: libcurl
 * drops "Name:" and sends "Name;" as a header without a value. */
const char *http_header_line(struct arena *a, const char *name, const char *value);

/* RFC 9110 section 14: one range of bytes.  Several ranges, another unit or a malformed header
 * mean "no range" (the whole object, 200), as the RFC allows. */
struct http_range {
    uint64_t offset;
    uint64_t length;
};
enum http_range_result { HTTP_RANGE_NONE, HTTP_RANGE_OK, HTTP_RANGE_UNSATISFIABLE };
enum http_range_result http_range_parse(const char *header, uint64_t size, struct http_range *out);

/* RFC 9110 section 13.2.2: the four conditional headers against an object.  Each header may be
 * NULL.  Result: 0 go on, E_NOT_MODIFIED, or E_PRECONDITION.  `etag` is the object's, quotes
 * included ("\"7\""), or several that it has, separated by commas; NULL: no such object.  Dates
 * that cannot be read are ignored, as the RFC wants; a tag that a client sent
 * without its quotes is taken as if it had them. */
struct http_conditions {
    const char *if_match;
    const char *if_none_match;
    const char *if_modified_since;
    const char *if_unmodified_since;
};
int http_conditions_check(const struct http_conditions *c, enum http_method method,
                          const char *etag, int64_t modified_s);
/* RFC 9110 section 13.1.5: whether a Range applies.  True without the header, and with the object's
 * own strong tag.  Never with a date: it would have to be a strong validator, that is, we would
 * have to know that the object did not change twice within that second (section 8.8.2.2); and a
 * client that has a tag, as all of ours do, must not send one. */
bool http_if_range_holds(const char *if_range, const char *etag);
