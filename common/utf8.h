/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that `text` begins with, or 0 where it begins with none.  NUL is a
 * character here. */
size_t utf8_sequence(const char *text, size_t len);
uint32_t utf8_character(const char *text, size_t sequence); /* of so many bytes, above 0 */
bool utf8_valid(const char *text, size_t len);              /* NUL counts as invalid */
