/* Errors: a negative code from error.def plus one sentence of context.
 *
 * A function that can fail returns 0 or a negative code and fills the `struct error *err` that is
 * its last parameter.  The one who first sees the fault sets it; each caller that can say more
 * wraps it, outward:
 *
 *     return error_errno(err, errno, "write '%s'", path);     // write '/d2/x': No space left …
 *     ...
 *     return error_wrap(err, "put '%s/%s'", bucket, object);  // put 'b/o': write '/d2/x': …
 *
 * `err` may be NULL where a caller does not care for the words.  Libraries return errors, daemons
 * log them, once.  One table (error.def) maps a code to its HTTP status and its stable name. */
#pragma once

#include <stdarg.h>

struct buf;

enum error_code {
    E_OK = 0,
    E_FIRST_ = -10000, /* rows count upward from here, so that a code is never an errno */
#define ERROR(id, http, code, sentence) id,
#include "common/error.def"
#undef ERROR
    E_END_,
};

struct error {
    int code;          /* 0 or one of enum error_code */
    char message[512]; /* cut, never overrun */
};

#define ERROR_INIT ((struct error){0})

/* Set, replacing what was there.  Returns `code`, so that `return error_set(...)` reads well. */
int error_set(struct error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Set from an errno value: ENOSPC/EDQUOT -> E_NO_SPACE, ENOMEM -> E_NOMEM, the rest E_IO; the
 * message is "fmt: strerror".  Returns the code. */
int error_errno(struct error *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "fmt: " before the message.  Returns err's code (E_INTERNAL when err is NULL or empty). */
int error_wrap(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As error_wrap, but gives the error another code as well. */
int error_recode(struct error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* 0, and nothing in err, where the code is one that is no failure here; else the code. */
int error_forgive(struct error *err, int code, int forgiven);

const char *error_name(int code);      /* "bucket_not_found"; "ok" for 0, "internal" if unknown */
const char *error_text(int code);      /* the sentence of the table */
int error_status(int code);            /* HTTP status; 200 for 0, 500 if unknown */
int error_from_name(const char *name); /* the code, or 0 where no row has this name */
void errors_markdown(struct buf *out); /* table for docs/, in the order of the HTTP status */
