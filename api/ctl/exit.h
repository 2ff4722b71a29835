/* Exit codes of dfcctl; docs and `dfcctl help` show the same table. */
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
