#include "target/backend/failure.h"

#include <string.h>

#include "common/backoff.h"
#include "common/clock.h"
#include "common/parse.h"

static const struct {
    int status, code;
    bool passing;
} rows[] = {
    {400, E_BACKEND, false},        {401, E_BACKEND_DENIED, false},
    {403, E_BACKEND_DENIED, false}, {404, E_OBJECT_NOT_FOUND, false},
    {408, E_BACKEND_TIMEOUT, true}, {410, E_OBJECT_NOT_FOUND, false},
    {412, E_PRECONDITION, false},   {416, E_RANGE, false},
    {429, E_BACKEND_BUSY, true},    {500, E_BACKEND, true},
    {502, E_BACKEND, true},         {503, E_BACKEND_BUSY, true},
    {504, E_BACKEND_TIMEOUT, true},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static size_t row_of(int status)
{
    size_t i = 0;
    while (i < ROWS && rows[i].status != status)
        i++;
    return i;
}

int failure_of_status(int status, const char *words, const char *region, struct error *err)
{
    size_t row = row_of(status);
    int code = row < ROWS ? rows[row].code : E_BACKEND;
    if (code == E_OBJECT_NOT_FOUND && strncmp(words, "NoSuchBucket", 12) == 0)
        code = E_BACKEND; /* a mistake in the bucket's properties, not in the name */
    if (region != NULL)
        return error_set(err, E_BACKEND,
                         "the backend answered with status %d: the bucket is in "
                         "region '%.64s'",
                         status, region);
    return error_set(err, code, "the backend answered with status %d%s%s", status,
                     *words != '\0' ? ": " : "", words);
}

int failure_of_transport(int code, const char *why, struct error *err)
{
    if (code == E_CANCELLED)
        return error_set(err, E_NOT_READY, "this node is stopping");
    if (code == E_TIMEOUT)
        return error_set(err, E_BACKEND_TIMEOUT, "the backend did not answer in time");
    return error_set(err, code == E_ADDRESS ? code : E_BACKEND,
                     "the backend could not be asked: %s", why);
}

bool failure_is_passing(int status, int transport_code)
{
    if (transport_code != 0)
        return transport_code == E_NET || transport_code == E_TIMEOUT;
    size_t row = row_of(status);
    return row < ROWS && rows[row].passing;
}

bool failure_is_of_ended_keys(int status, const char *words, bool is_elsewhere)
{
    static const char *const codes[] = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired"};
    if (status != 400 && status != 401 && status != 403)
        return false;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        const size_t len = strlen(codes[i]);
        if (strncmp(words, codes[i], len) == 0 && (words[len] == '\0' || words[len] == ':'))
            return true;
    }
    return status == 400 && *words == '\0' && !is_elsewhere;
}

uint64_t failure_retry_after_ms(const char *header, int64_t now_ms)
{
    uint64_t seconds;
    int64_t at;
    if (header == NULL)
        return 0;
    if (parse_u64(header, &seconds, NULL) == 0)
        return seconds < UINT64_MAX / 1000 ? seconds * 1000 : UINT64_MAX;
    if (clock_parse_http(header, &at) == 0 && at * 1000 > now_ms)
        return (uint64_t)(at * 1000 - now_ms);
    return 0;
}

bool failure_wait(const struct failure_rules *rules, unsigned done, uint64_t retry_after_ms,
                  uint64_t luck, uint64_t *wait_ms)
{
    if (done > rules->retries || retry_after_ms > rules->backoff_max_ms)
        return false;
    const struct backoff rule = {.first_ms = rules->backoff_ms, .max_ms = rules->backoff_max_ms};
    uint64_t wait = backoff_jitter(backoff_ms(&rule, done), luck);
    *wait_ms = wait > retry_after_ms ? wait : retry_after_ms;
    return true;
}
