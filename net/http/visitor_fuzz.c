/* Lists of parameters and headers of strangers: any bytes, one a line. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "net/http/visitor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xstrndup((const char *)data, size);
    const char *lines[LINES];
    char *at = text;
    for (size_t i = 0; i < LINES; i++) {
        lines[i] = at;
        at += strcspn(at, "\n");
        if (*at == '\n')
            *at++ = '\0';
    }
    struct visitor_rules *rules = NULL;
    if (visitor_rules_new(lines[0], lines[1], lines[2], &rules, NULL) != 0)
        return 0;
    const struct visitor v = {.host = lines[3],
                              .origin = lines[4][0] != '\0' ? lines[4] : NULL,
                              .fetch_site = lines[5][0] != '\0' ? lines[5] : NULL,
                              .content_type = lines[6],
                              .sends_json = true};
    struct error err = ERROR_INIT;
    visitor_check(rules, &v, &err);
    visitor_rules_free(rules);
    return 0;
}
