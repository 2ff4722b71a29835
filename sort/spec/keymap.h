/* An external key map: which output shards each record goes to.
 *
 * It is a text of lines, each a key, the separator, and a format of names; or, where the first byte
 * that is not white space is a '{', JSON of formats with their keys:
 *
 *     cat_0 <TAB> cats-%04d.tar            {"cats-%04d.tar": ["cat_0", "cat_1"],
 *     cat_1 <TAB> cats-%04d.tar             "dogs-%04d.tar": ["dog_.*"]}
 *     dog_.* <TAB> dogs-%04d.tar
 *
 * A key is a record's name, or a pattern (sort/spec/pattern.h): which of them `ekm_keys` says, by
 * default the key itself.  A record goes where its name stands as a key; else where the patterns
 * say that are found in it, which must agree.  With key_rule first_dot an exact key may have an
 * extension, which is dropped as a member's is.
 *
 * It comes in pieces of any size, is never held as a whole, and takes the bytes of its keys and
 * some 15 more for each.  Formats are numbered in the order of their first appearance: these are
 * the groups by which rows are ordered first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "sort/spec/spec.h"

#define KEYMAP_FORMATS_MAX 65536
#define KEYMAP_KEY_MAX 65535 /* bytes, as a record's name */

struct keymap;

struct keymap_config {
    const struct sort_spec *spec; /* outlives the map's filling */
    uint64_t memory_bytes;
    void (*warn)(void *ctx, const char *text); /* of malformed lines, where the request wants it */
    void *ctx;
};

struct keymap *keymap_new(const struct keymap_config *config);
void keymap_free(struct keymap *m);
DEFINE_CLEANUP(struct keymap, keymap_free);
/* E_SPEC for what is malformed, where the request does not put up with it, with the line or byte;
 * E_NOMEM past the memory. */
int keymap_feed(struct keymap *m, const void *data, size_t len, struct error *err);
int keymap_finish(struct keymap *m, struct error *err);

uint64_t keymap_checksum(const struct keymap *m); /* of all bytes that came */
uint64_t keymap_keys(const struct keymap *m);
uint64_t keymap_bytes(const struct keymap *m); /* of memory */
uint32_t keymap_formats(const struct keymap *m);
const struct name_template *keymap_template(const struct keymap *m, uint32_t format);

/* What one thread needs to look records up; the map does not change any more. */
struct keymap_search;
struct keymap_search *keymap_search_new(const struct keymap *m);
void keymap_search_free(struct keymap_search *s);
/* 1 and the format, 0 where there is none, E_SPEC where patterns disagree. */
int keymap_find(struct keymap_search *s, const char *name, size_t len, uint32_t *format,
                struct error *err);
