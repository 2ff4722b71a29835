/* The origin of a URL, "scheme://host:port", in one spelling: whoever counts or compares servers by
 * the texts of URLs does it by this one.  Pure.
 *
 *  - scheme and host in small letters, the host without percent escapes and without dots at its end
 *  - IP addresses as inet_ntop writes them: http://127.1 and http://0x7f000001 are http://127.0.0.1
 *  - the port without zeros before it; none where the scheme means it
 *
 * A text without "://" is no URL, and stays as it is.  Two names of one server are two origins: no
 * name is resolved. */
#pragma once

#include <stddef.h>

/* "scheme://host:port", which a URL begins with, is so long. */
size_t origin_len(const char *url);
/* The origin that `url` begins with, in that spelling; malloc'ed. */
char *origin_normal(const char *url);
