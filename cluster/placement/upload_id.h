/* The id of an upload in parts: when it began, 96 random bits, and the seed of the target where it
 * began.  Every node thus finds that target without a table.  An id is no proof of any right.
 *
 * Its text is base64url of 28 bytes: the time (big-endian, so that ids of later uploads are
 * greater as bytes), the random bits, the seed. */
#pragma once

#include <stdint.h>

#include "common/error.h"

enum { UPLOAD_RANDOM = 12, UPLOAD_ID_CHARS = 38 };

struct upload_id {
    uint64_t time_ms;
    unsigned char random[UPLOAD_RANDOM];
    uint64_t seed;
};

const char *upload_id_text(const struct upload_id *id, char out[static UPLOAD_ID_CHARS + 1]);
/* E_INVALID: no text that upload_id_text() writes. */
int upload_id_parse(const char *text, struct upload_id *out, struct error *err);
