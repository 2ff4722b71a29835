/* Exit codes of dfcctl; docs and `dfcctl help` show the same table.
 *
 * A script decides by them, so they are fixed.  4 is a request that matched nothing, apart from 3,
 * a name that does not exist: a typo in a prefix must not pass for an empty result.  7 is a refusal
 * (401, 403), apart from 1: repeating the command does not help, other rights do. */
#pragma once

#include "api/dfc.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NOT_FOUND = 3,
    EXIT_NOTHING = 4,
    EXIT_UNREACHABLE = 5,
    EXIT_PARTIAL = 6,
    EXIT_DENIED = 7,
    EXIT_INTERRUPTED = 130,
};

struct exit_row {
    int code;
    const char *meaning;
};
extern const struct exit_row exit_rows[]; /* ends with a row without meaning */

int exit_of_result(int result); /* enum dfc_result */
int exit_of_code(int code);     /* of a struct error */
int exit_of_error(const struct dfc_error *err);
