/* What those services answer that have keys for S3 (aws_question.h).  Pure; fuzzed.
 *
 *   STS                   XML: <AssumeRoleWithWebIdentityResponse>…<Credentials>
 *   a container's agent   JSON: AccessKeyId, SecretAccessKey, Token, Expiration
 *   the metadata service  a token and a role's name, as plain texts; the same JSON with a Code
 *
 * Keys without an end, or that have ended by this node's clock, are errors.  No secret stands in a
 * message: of an answer that is no good only its words for a failure do, printable and cut. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "target/backend/aws_keys.h"

enum { AWS_ROLE_MAX = 129, AWS_SESSION_MAX = 1024 };

/* *end_ms: of their life.  E_BACKEND; E_BACKEND_DENIED where it says that there are none. */
int aws_answer_xml(const char *body, size_t len, int64_t now_ms, struct aws_keys *out,
                   int64_t *end_ms, struct error *err);
int aws_answer_json(const char *body, size_t len, int64_t now_ms, struct aws_keys *out,
                    int64_t *end_ms, struct error *err);
/* E_BACKEND. */
int aws_answer_session(const char *body, size_t len, char out[static AWS_SESSION_MAX],
                       struct error *err);
/* The first line.  E_BACKEND_DENIED: there is no role. */
int aws_answer_role(const char *body, size_t len, char out[static AWS_ROLE_MAX], struct error *err);
/* "AccessDenied: Not authorized …" of an answer that is a failure, in XML or JSON; else nothing. */
void aws_answer_words(const char *body, size_t len, struct buf *out);
/* Do these words say that the next answer may be better? */
bool aws_answer_is_passing(const char *words);
