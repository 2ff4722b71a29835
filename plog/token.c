#include "plog/token.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "common/base64url.h"
#include "common/parse.h"

static const char kind[] = "dfcplog", release[] = "1.";

enum {
    CHECK = 0,
    ID = 8,
    SESSION = 24,
    EPOCH = 32,
    NAMES = 36,
    BYTES_MAX = NAMES + PLOG_TOKEN_BUCKET + 1 + PLOG_TOKEN_OBJECT,
};

static uint64_t check_of(const unsigned char *bytes, size_t len)
{
    return htobe64(XXH3_64bits(bytes + ID, len - ID));
}

void plog_token_print(const struct plog_token *t, char text[static PLOG_TOKEN_MAX])
{
    unsigned char bytes[BYTES_MAX];
    const uint64_t session = htobe64(t->session);
    const uint32_t epoch = htobe32(t->epoch);
    const size_t bucket = strlen(t->bucket) + 1, object = strlen(t->object);
    const size_t len = NAMES + bucket + object;
    (void)parse_hex(t->id, bytes + ID, SESSION - ID, NULL);
    memcpy(bytes + SESSION, &session, sizeof session);
    memcpy(bytes + EPOCH, &epoch, sizeof epoch);
    memcpy(bytes + NAMES, t->bucket, bucket);
    memcpy(bytes + NAMES + bucket, t->object, object);
    const uint64_t check = check_of(bytes, len);
    memcpy(bytes + CHECK, &check, sizeof check);
    const int at = snprintf(text, PLOG_TOKEN_MAX, "%s%s", kind, release);
    text[(size_t)at + base64url_encode(bytes, len, text + at)] = '\0';
}

static int damaged(struct error *err)
{
    return error_set(err, E_INVALID,
                     "the text is no token of a plog, or is damaged: pass the whole text that "
                     "dfc_plog_share() gave");
}

/* The names: text with one NUL in it. */
static bool read_names(const char *at, size_t len, struct plog_token *t)
{
    const char *end = memchr(at, '\0', len);
    if (end == NULL)
        return false;
    const size_t bucket = (size_t)(end - at), object = len - bucket - 1;
    if (bucket == 0 || bucket > PLOG_TOKEN_BUCKET || object == 0 || object > PLOG_TOKEN_OBJECT ||
        memchr(end + 1, '\0', object) != NULL)
        return false;
    memcpy(t->bucket, at, bucket);
    memcpy(t->object, end + 1, object);
    return true;
}

int plog_token_parse(const char *text, struct plog_token *t, struct error *err)
{
    unsigned char bytes[BYTES_MAX + 3];
    uint64_t check, session;
    uint32_t epoch;
    *t = (struct plog_token){.epoch = 0};
    if (strncmp(text, kind, strlen(kind)) != 0)
        return damaged(err);
    text += strlen(kind);
    if (strncmp(text, release, strlen(release)) != 0 && text[0] >= '2' && text[0] <= '9')
        return error_set(err, E_UNSUPPORTED, "the token of a plog is of a later release");
    if (strncmp(text, release, strlen(release)) != 0)
        return damaged(err);
    text += strlen(release);
    const size_t chars = strnlen(text, PLOG_TOKEN_MAX), len = chars * 3 / 4;
    if (len <= NAMES || len > BYTES_MAX || !base64url_decode(text, chars, bytes))
        return damaged(err);
    memcpy(&check, bytes + CHECK, sizeof check);
    memcpy(&session, bytes + SESSION, sizeof session);
    memcpy(&epoch, bytes + EPOCH, sizeof epoch);
    if (check != check_of(bytes, len) || !read_names((const char *)bytes + NAMES, len - NAMES, t))
        return damaged(err);
    format_hex(bytes + ID, SESSION - ID, t->id);
    t->session = be64toh(session);
    t->epoch = be32toh(epoch);
    return 0;
}
