/* The kinds of background jobs, as kinds.def lists them. */
#pragma once

#include <stdbool.h>

struct xaction_kind {
    const char *name;
    const char *label; /* "srt-" */
    bool resumes;
    const char *undone;
    const char *summary;
};

/* NULL where no kind has this name (or it is NULL). */
const struct xaction_kind *xaction_kind_find(const char *name);
