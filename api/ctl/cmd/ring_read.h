/* What the commands of rings share: the status, and all samples of a generation. */
#pragma once

#include <jansson.h>

#include "api/ctl/ctl.h"
#include "ring/frame.h"
#include "ring/head.h"

struct dfc_error;

/* Says that it failed; the exit code. */
int ring_fail(const struct ctl *ctl, const struct dfc_error *err, const char *verb,
              const char *ring);
/* EXIT_OK: the caller releases both. */
int ring_ask(struct ctl *ctl, const char *ring, json_t **doc, struct ring_head *head);

struct ring_walk {
    struct ctl *ctl;
    const char *ring;
    /* EXIT_OK goes on.  The sample's head and payload are good. */
    int (*sample)(void *ctx, uint64_t index, const char *bytes, const struct frame *f);
    /* Samples that are lost, or whose bytes are damaged (why). */
    int (*lost)(void *ctx, uint64_t index, uint64_t count, const char *why);
    void *ctx;
};
/* Each sample of the generation, in the order of its indexes. */
int ring_walk(const struct ring_walk *w, const struct ring_generation *g);
