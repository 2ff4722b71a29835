/* The kinds of background jobs, as kinds.def lists them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct xaction_kind {
    const char *name;  /* in documents and between nodes */
    const char *shown; /* for users: "trim_copies", where the name is "mirror" */
    const char *label; /* "srt-" */
    bool resumes;
    bool again;
    bool bare;
    const char *undone;
    const char *summary;
};

/* NULL where no kind has this name (or it is NULL). */
const struct xaction_kind *xaction_kind_find(const char *name);
/* Of a request: by either name. */
const struct xaction_kind *xaction_kind_asked(const char *text);
/* In the order of kinds.def; NULL behind the last one. */
const struct xaction_kind *xaction_kind_at(size_t i);
