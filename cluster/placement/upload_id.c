#include "cluster/placement/upload_id.h"

#include <endian.h>
#include <string.h>

#include "common/base64url.h"

enum { NUMBER = sizeof(uint64_t), ID_BYTES = 2 * NUMBER + UPLOAD_RANDOM };

_Static_assert(BASE64URL_CHARS((int)ID_BYTES) == (int)UPLOAD_ID_CHARS, "the text of all bytes");

const char *upload_id_text(const struct upload_id *id, char out[static UPLOAD_ID_CHARS + 1])
{
    unsigned char bytes[ID_BYTES];
    uint64_t time_ms = htobe64(id->time_ms), seed = htobe64(id->seed);
    memcpy(bytes, &time_ms, NUMBER);
    memcpy(bytes + NUMBER, id->random, UPLOAD_RANDOM);
    memcpy(bytes + NUMBER + UPLOAD_RANDOM, &seed, NUMBER);
    out[base64url_encode(bytes, ID_BYTES, out)] = '\0';
    return out;
}

int upload_id_parse(const char *text, struct upload_id *out, struct error *err)
{
    unsigned char bytes[ID_BYTES];
    if (strlen(text) != UPLOAD_ID_CHARS || !base64url_decode(text, UPLOAD_ID_CHARS, bytes))
        return error_set(err, E_INVALID, "'%.40s' is no id of an upload", text);
    memcpy(&out->time_ms, bytes, NUMBER);
    memcpy(out->random, bytes + NUMBER, UPLOAD_RANDOM);
    memcpy(&out->seed, bytes + NUMBER + UPLOAD_RANDOM, NUMBER);
    out->time_ms = be64toh(out->time_ms);
    out->seed = be64toh(out->seed);
    return 0;
}
