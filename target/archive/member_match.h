/* Which members of an archive are wanted, by their names:
 *
 *   prefix, suffix, substr   the name begins so, ends so, has it somewhere
 *   wdskey                   the key of WebDataset: the name up to the first dot of its base
 *   regexp                   the expression, of PCRE2, is found in the name
 *
 * An expression is a stranger's: its text, the steps for one name, and its memory are bounded.
 * Pure. */
#pragma once

#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"

enum {
    MEMBER_MATCH_BYTES = 1024,   /* of the text, at most */
    MEMBER_MATCH_STEPS = 100000, /* for one name, at most */
    MEMBER_MATCH_KIB = 1024,     /* of memory for one name, at most */
};

struct member_match;

/* `mode`: one of the words above.  E_INVALID. */
int member_match_new(const char *mode, const char *text, struct member_match **out,
                     struct error *err);
void member_match_free(struct member_match *m);
DEFINE_CLEANUP(struct member_match, member_match_free);
/* 1: it is wanted; 0; or E_INVALID: the expression takes too many steps.  One thread at a time. */
int member_match(struct member_match *m, const char *name, size_t len, struct error *err);
