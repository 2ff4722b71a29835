/* Errors of S3: a row of error.def, and a sentence of context.
 *
 * A function of this folder that can fail returns S3_OK or another enum s3_error, and fills the
 * `struct s3_failure *why` that is its last parameter; `why` may be NULL.  The rest of the program
 * fails with codes of common/error.def; s3_error_of() gives what S3 says for one. */
#pragma once

struct buf;

enum s3_error {
    S3_OK,
#define S3_ERROR(name, code, http, message) S3_##name,
#include "s3/error.def"
#undef S3_ERROR
    S3_ERRORS,
};

struct s3_failure {
    enum s3_error error;
    char message[256]; /* cut, never overrun */
};

/* Sets it; `fmt` NULL: the message of the table.  Returns `error`. */
enum s3_error s3_fail(struct s3_failure *why, enum s3_error error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

const char *s3_error_code(enum s3_error error);    /* "NoSuchKey" */
const char *s3_error_message(enum s3_error error); /* the sentence of the table */
int s3_error_status(enum s3_error error);          /* 200 for S3_OK */
/* Of a code of common/error.def; S3_OK for 0.  A code without a row of its own is SlowDown or
 * InternalError where its status is 500 or more, else InvalidRequest. */
enum s3_error s3_error_of(int code);

/* <Error>: code, message, the path of the request, its id. */
void s3_error_document(const struct s3_failure *why, const char *resource, const char *request_id,
                       struct buf *out);
