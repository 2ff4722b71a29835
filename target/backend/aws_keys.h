/* The keys for S3, found where AWS's own tools look for them:
 *
 *   no profile   AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), else the section
 *                AWS_PROFILE, or "default", of the file
 *   a profile    its section of the file
 *
 * The file is AWS_SHARED_CREDENTIALS_FILE, or ~/.aws/credentials; it is read for every request, so
 * that new keys count at once.  Keys are held no longer than the request is made, and stand in no
 * message. */
#pragma once

#include "common/error.h"

enum { AWS_KEY_MAX = 256, AWS_TOKEN_MAX = 4096 };

struct aws_keys {
    char access[AWS_KEY_MAX];
    char secret[AWS_KEY_MAX];
    char token[AWS_TOKEN_MAX]; /* "" : none */
};

/* E_BACKEND_DENIED, with where it was looked for. */
int aws_keys_load(const char *profile, struct aws_keys *out, struct error *err);
void aws_keys_wipe(struct aws_keys *keys);

/* The section of the file's text.  Pure. */
int aws_keys_parse(const char *text, const char *section, struct aws_keys *out, struct error *err);
