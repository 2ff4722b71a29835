#include "api/ctl/job_kind.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name, *shown;
} renamed[] = {{"mirror", "trim_copies"}};

enum { RENAMED = sizeof renamed / sizeof *renamed };

const char *job_kind_renamed(const char *given)
{
    for (size_t i = 0; given != NULL && i < RENAMED; i++) {
        if (strcmp(renamed[i].name, given) == 0)
            return renamed[i].shown;
    }
    return NULL;
}

const char *job_kind_shown(const char *name)
{
    const char *shown = job_kind_renamed(name);
    return shown != NULL ? shown : name;
}

const char *job_kind_asked(const char *given)
{
    for (size_t i = 0; given != NULL && i < RENAMED; i++) {
        if (strcmp(renamed[i].shown, given) == 0)
            return renamed[i].name;
    }
    return given;
}
