/* Keys for S3, and how AWS's shared file has them.  Where keys come from: aws_source.h.  Pure; keys
 * stand in no message. */
#pragma once

#include <stddef.h>

#include "common/error.h"

/* S3 takes headers of 8 KiB in all. */
enum { AWS_KEY_MAX = 256, AWS_TOKEN_MAX = 8192 };

struct aws_keys {
    char access[AWS_KEY_MAX];
    char secret[AWS_KEY_MAX];
    char token[AWS_TOKEN_MAX]; /* "" : none */
};

/* One of the three out of a text, which may be followed by anything.  `name` is for the message.
 * E_BACKEND_DENIED: it is too long, or has characters that no key has. */
int aws_keys_take(const char *name, const char *value, size_t len, char *out, size_t size,
                  struct error *err);
/* The section of the file's text.  E_NOT_FOUND: it is not there, or has no keys;
 * E_BACKEND_DENIED: half of them, or what are none. */
int aws_keys_parse(const char *text, const char *section, struct aws_keys *out, struct error *err);
void aws_keys_wipe(struct aws_keys *keys);
