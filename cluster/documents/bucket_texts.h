/* What a bucket keeps as its clients wrote it: documents of S3 that its other fields cannot say.
 * The cluster does not look into them.
 *
 *   "texts": {"cors": "<CORSConfiguration …", "tags": "<Tagging …"} */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "common/error.h"

enum bucket_text { BUCKET_TAGS, BUCKET_CORS, BUCKET_LIFECYCLE, BUCKET_TEXTS };

enum { BUCKET_TEXT_MAX = 16 * 1024 }; /* bytes of one */

struct bucket_texts {
    const char *text[BUCKET_TEXTS]; /* NULL: none */
};

const char *bucket_text_name(enum bucket_text which);
/* BUCKET_TEXTS: there is none of this name. */
enum bucket_text bucket_text_find(const char *name);

size_t bucket_texts_bytes(const struct bucket_texts *t);
bool bucket_texts_equal(const struct bucket_texts *a, const struct bucket_texts *b);
/* The same texts, of the arena. */
struct bucket_texts bucket_texts_copy(const struct bucket_texts *t, struct arena *a);

/* NULL: there is no text. */
json_t *bucket_texts_to_json(const struct bucket_texts *t);
/* Replaces the texts that the object has; null takes one away, and an unknown name is passed over.
 * Texts are borrowed from the document.  E_JSON: another type.  E_INVALID: a text that is longer
 * than BUCKET_TEXT_MAX. */
int bucket_texts_patch(json_t *doc, const char *path, struct bucket_texts *t, struct error *err);
