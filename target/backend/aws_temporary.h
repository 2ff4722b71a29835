/* Keys for S3 for a request: those that stand somewhere (aws_source.h), or those that end, which
 * are asked for (aws_question.h), read (aws_answer.h) and kept for all buckets (kept.h).
 *
 * Threads: any; it blocks where somebody has to be asked. */
#pragma once

#include "common/error.h"
#include "target/backend/aws_source.h"

struct aws_temporary;
struct exchange_env;

struct aws_temporary *aws_temporary_new(void);
void aws_temporary_free(struct aws_temporary *t); /* NULL is fine */

/* The caller wipes *out, also after an error.  refused: those that have ended, as S3 says (kept.h),
 * or NULL.  *source: whose they are.  E_BACKEND_DENIED without keys; the errors of a backend, with
 * who was asked. */
int aws_temporary_get(struct aws_temporary *t, const struct exchange_env *env, const char *profile,
                      const struct aws_keys *refused, struct aws_keys *out, enum aws_source *source,
                      struct error *err);
