#include "s3/testing/request_text.h"

#include <string.h>

enum { HEADERS_MAX = 64 };

/* The next line, which *text leaves behind; "" at the end. */
static char *next_line(char **text)
{
    char *line = *text, *end = line + strcspn(line, "\n");
    *text = *end == '\n' ? end + 1 : end;
    *end = '\0';
    return line;
}

struct s3_request request_text(struct arena *arena, const char *text, size_t len)
{
    char *at = arena_strndup(arena, text, len);
    struct s3_field *headers = arena_alloc(arena, HEADERS_MAX * sizeof headers[0]);
    struct s3_request r = {.headers = headers};
    r.method = next_line(&at);
    r.path = next_line(&at);
    r.query = next_line(&at);
    while (*at != '\0' && r.header_count < HEADERS_MAX) {
        char *line = next_line(&at), *colon = strchr(line, ':');
        if (colon != NULL)
            *colon = '\0';
        headers[r.header_count++] = (struct s3_field){line, colon != NULL ? colon + 1 : ""};
    }
    return r;
}
