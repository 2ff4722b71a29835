/* Patterns of names (globs): one rule for ls, get, rm and cp.
 *
 *   *      any text, also with slashes; the name before it narrows what is listed
 *   ?      one character, of UTF-8
 *   [0-9]  one character of several; [!0-9] one of the others; [[:digit:]] one of ASCII's
 *   \      before a sign takes the sign as it is
 *
 * A key without '*', '?' and '[' is a name: a backslash in it is one of its characters. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/dfc.h"

/* Of get and rm; printf. */
#define PATTERN_NOT_RECURSIVE                                                                   \
    "'%s' is a pattern: '*' matches slashes, too; leave --recursive out, or write '\\' before " \
    "each "                                                                                     \
    "of '*', '?' and '[' that is part of a name"

/* ---- pure ---- */

bool glob_is(const char *key);                            /* has a sign without an escape */
char *glob_prefix(const char *pattern);                   /* of all names that match */
bool glob_matches(const char *pattern, const char *name); /* the whole name */
char *glob_name(const char *key);                         /* of no pattern: without escapes */
char *glob_escape(const char *name);                      /* the key that names it; has a sign */
bool glob_only_prefix(const char *pattern);               /* one '*', at its end */

/* ---- listing: one page in memory ---- */

struct glob_list {
    const char *pattern; /* the caller's */
    struct dfc_list *list;
    uint64_t matched; /* so far */
};

int glob_open(struct dfc_client *client, const char *bucket, const char *pattern,
              struct glob_list *out, struct dfc_error *err);
/* 1 and the next entry, 0 at the end, or an enum dfc_result below 0. */
int glob_next(struct glob_list *g, const struct dfc_entry **entry, struct dfc_error *err);
void glob_close(struct glob_list *g);
