#include "plog/name.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

void plog_name(char out[static PLOG_NAME_MAX], const char *id, const char *tail)
{
    snprintf(out, PLOG_NAME_MAX, PLOG_ROOT "%s/%s", id, tail);
}

void plog_name_segment(char out[static PLOG_NAME_MAX], const char *id,
                       const struct plog_segment_name *s)
{
    snprintf(out, PLOG_NAME_MAX, PLOG_ROOT "%s/s/%08x-%016llx-%08x-%016llx-%016llx%s", id, s->epoch,
             (unsigned long long)s->writer, s->n, (unsigned long long)s->end,
             (unsigned long long)s->bytes, s->cuts ? "-t" : "");
}

void plog_name_epoch(char out[static PLOG_NAME_MAX], const char *id, uint32_t epoch)
{
    snprintf(out, PLOG_NAME_MAX, PLOG_ROOT "%s/s/%08x", id, epoch);
}

void plog_name_record(char out[static PLOG_NAME_MAX], const char *id, uint64_t session, bool closed)
{
    snprintf(out, PLOG_NAME_MAX, PLOG_ROOT "%s/o/%016llx%s", id, (unsigned long long)session,
             closed ? ".c" : "");
}

void plog_name_merged(char out[static PLOG_NAME_MAX], const char *id, uint64_t number,
                      uint64_t nonce)
{
    snprintf(out, PLOG_NAME_MAX, PLOG_ROOT "%s/m/%016llx-%016llx", id, (unsigned long long)number,
             (unsigned long long)nonce);
}

/* --- parsing ---------------------------------------------------------------------------------- */

/* A number of exactly `width` digits; what follows, or NULL. */
static const char *take(const char *at, int width, uint64_t *value)
{
    *value = 0;
    for (int i = 0; at != NULL && i < width; i++) {
        const char *digit = at[i] != '\0' ? strchr(digits, at[i]) : NULL;
        if (digit == NULL)
            return NULL;
        *value = *value << 4 | (uint64_t)(digit - digits);
    }
    return at != NULL ? at + width : NULL;
}

static const char *skip(const char *at, const char *text)
{
    const size_t len = strlen(text);
    return at != NULL && strncmp(at, text, len) == 0 ? at + len : NULL;
}

/* What follows PLOG_ROOT<id>/, or NULL. */
static const char *tail_of(const char *name)
{
    uint64_t half;
    return skip(take(take(skip(name, PLOG_ROOT), 16, &half), 16, &half), "/");
}

bool plog_id_valid(const char *id)
{
    uint64_t half;
    const char *end = take(take(id, 16, &half), 16, &half);
    return end != NULL && *end == '\0';
}

bool plog_name_parse_segment(const char *name, struct plog_segment_name *s)
{
    uint64_t epoch, n;
    const char *at = take(skip(tail_of(name), "s/"), 8, &epoch);
    at = take(skip(at, "-"), 16, &s->writer);
    at = take(skip(at, "-"), 8, &n);
    at = take(skip(at, "-"), 16, &s->end);
    at = take(skip(at, "-"), 16, &s->bytes);
    if (at == NULL)
        return false;
    s->epoch = (uint32_t)epoch;
    s->n = (uint32_t)n;
    s->cuts = strcmp(at, "-t") == 0;
    return *at == '\0' || s->cuts;
}

bool plog_name_parse_record(const char *name, uint64_t *session, bool *closed)
{
    const char *at = take(skip(tail_of(name), "o/"), 16, session);
    if (at == NULL)
        return false;
    *closed = strcmp(at, ".c") == 0;
    return *at == '\0' || *closed;
}

bool plog_name_parse_merged(const char *name, uint64_t *number)
{
    uint64_t nonce;
    const char *at = take(skip(tail_of(name), "m/"), 16, number);
    at = take(skip(at, "-"), 16, &nonce);
    return at != NULL && *at == '\0';
}
