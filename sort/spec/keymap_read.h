/* The two forms of an external key map (keymap.c's own), read as their bytes come. */
#pragma once

#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/template.h"

/* What a reader hands each key to; the place is for messages ("line 7"). */
struct keymap_entry {
    const char *key, *format;
    size_t key_len, format_len;
    uint64_t line; /* 0: JSON */
};

struct keymap_sink {
    int (*add)(void *ctx, const struct keymap_entry *e, struct error *err);
    /* A line that is none; an error where the request does not put up with it. */
    int (*malformed)(void *ctx, uint64_t line, const char *why, struct error *err);
    void *ctx;
};

/* Lines: what is blank does not count, a carriage return before the feed neither. */
struct keymap_lines {
    const char *separator;
    struct buf line; /* so far */
    bool too_long;
    uint64_t number;
};

int keymap_lines_feed(struct keymap_lines *l, const char *data, size_t len,
                      const struct keymap_sink *to, struct error *err);
int keymap_lines_finish(struct keymap_lines *l, const struct keymap_sink *to, struct error *err);
void keymap_lines_done(struct keymap_lines *l);

/* JSON: one object of arrays of strings, nothing else. */
struct keymap_json {
    int state;
    struct buf format, text; /* the text that is being read */
    bool in_text;
    int escape;    /* digits of \u that are to come, or 5 right behind the backslash */
    unsigned code; /* of \u so far */
    unsigned high; /* a surrogate that waits for its second half */
    bool too_long;
    uint64_t offset;
};

int keymap_json_feed(struct keymap_json *j, const char *data, size_t len,
                     const struct keymap_sink *to, struct error *err);
int keymap_json_finish(struct keymap_json *j, struct error *err);
void keymap_json_done(struct keymap_json *j);
