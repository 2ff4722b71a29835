/* The head of an HTTP/1.1 response, as far as a load generator has to know it: pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct response {
    unsigned status;
    size_t head_bytes; /* the status line to the empty line, included */
    uint64_t content_length;
    bool has_length;
    bool chunked;
    bool close;           /* the server says that it ends the connection */
    const char *location; /* inside the parsed text; NULL where there is none */
    size_t location_len;
};

enum response_result { RESPONSE_MALFORMED = -1, RESPONSE_INCOMPLETE = 0, RESPONSE_COMPLETE = 1 };

enum response_result response_parse(const char *text, size_t len, struct response *out);

/* "http://HOST:PORT/PATH" (or without the port: 80) cut into its parts, which point into `url`.
 * False for anything else. */
struct url_parts {
    const char *host;
    size_t host_len;
    uint16_t port;
    const char *path; /* from the slash; len 0 where the URL ends after the authority */
    size_t path_len;
};
bool url_split(const char *url, size_t len, struct url_parts *out);
