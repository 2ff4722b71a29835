/* base64url without padding (RFC 4648 section 5).  One text stands for the bytes: where spare bits
 * are not zero, or a character is foreign, it is none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Characters of `len` bytes, without an end. */
#define BASE64URL_CHARS(len) (((len)*4 + 2) / 3)

/* Writes BASE64URL_CHARS(len) characters and no NUL; returns how many. */
size_t base64url_encode(const void *data, size_t len, char *out);
/* Writes chars * 3 / 4 bytes.  False: the text is none that base64url_encode() writes. */
bool base64url_decode(const char *text, size_t chars, void *out);
