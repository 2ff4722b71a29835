/* Filling a struct dfc_error.  Each returns the result, so that `return failure_set(...)` reads
 * well; err may be NULL. */
#pragma once

#include <stddef.h>

#include "api/dfc.h"
#include "common/error.h"

/* code is an E_* of common/error.h: it gives the stable name. */
int failure_set(struct dfc_error *err, enum dfc_result result, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* A local call failed: DFC_LOCAL and "fmt: strerror". */
int failure_errno(struct dfc_error *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* What a function of common/ reported. */
int failure_common(struct dfc_error *err, enum dfc_result result, const struct error *e);

/* An error reply: its JSON, or what can be said without. */
int failure_reply(struct dfc_error *err, int status, const char *body, size_t len);

enum dfc_result failure_result_of_status(int status);
