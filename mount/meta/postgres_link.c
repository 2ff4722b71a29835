#include "mount/meta/postgres_link.h"

#include <assert.h>
#include <endian.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"

struct postgres_link {
    PGconn *conn;
    unsigned timeout_ms;
};

/* ---- errors ---- */

static const struct {
    const char *state; /* what an SQLSTATE begins with */
    int code;          /* E_NOT_READY: the server did nothing, and may do it later */
} states[] = {
    {"08", E_NET},           {"57P", E_NOT_READY},       {"53300", E_NOT_READY},
    {"25006", E_NOT_READY},  {"40", E_NOT_READY},        {"55P03", E_NOT_READY},
    {"57014", E_NOT_READY},  {"53100", E_NO_SPACE},      {"53200", E_NOMEM},
    {"28", E_ACCESS_DENIED}, {"42501", E_ACCESS_DENIED}, {"XX001", E_CORRUPT},
    {"XX002", E_CORRUPT},    {"42P01", E_CORRUPT},       {"42883", E_CORRUPT},
};

/* The first line: what follows are hints and places. */
static int say(struct error *err, int code, const char *message)
{
    return error_set(err, code, "the PostgreSQL server: %.*s", (int)strcspn(message, "\n"),
                     message[0] != '\0' ? message : "the connection was closed");
}

/* What ends the connection may do so behind a commit. */
static int server_error(const PGresult *result, struct error *err)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    int code = E_IO;
    for (size_t i = 0; i < sizeof states / sizeof *states && state != NULL; i++) {
        if (strncmp(state, states[i].state, strlen(states[i].state)) == 0)
            code = states[i].code;
    }
    if (severity == NULL || strcmp(severity, "ERROR") != 0)
        code = E_IN_DOUBT;
    return say(err, code, PQresultErrorMessage(result));
}

/* ---- open and close ---- */

/* Of the schema's script: that a table is there. */
static void ignore_notice(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

/* The library's message would quote a password whose '%' is none of an escape. */
static int check_url(const char *url, struct error *err)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    if (options == NULL)
        return error_set(
            err, E_INVALID,
            "the URL of the PostgreSQL server cannot be read: write '%%', '/', '@' and "
            "':' of a password as %%25, %%2F, %%40 and %%3A");
    PQconninfoFree(options);
    return 0;
}

int postgres_link_open(const char *url, unsigned timeout_ms, struct postgres_link **out,
                       struct error *err)
{
    char seconds[16];
    snprintf(seconds, sizeof seconds, "%u", (timeout_ms + 999) / 1000);
    const char *const names[] = {"connect_timeout", "password", "fallback_application_name",
                                 "dbname", NULL};
    const char *const values[] = {seconds, getenv("DFC_META_PASSWORD"), "dfc-mount", url, NULL};
    _cleanup_(postgres_link_closep)
    struct postgres_link *l = xcalloc(1, sizeof *l);
    l->timeout_ms = timeout_ms;
    if (check_url(url, err) != 0)
        return E_INVALID;
    l->conn = PQconnectdbParams(names, values, 1); /* the URL, last, wins */
    if (l->conn == NULL)
        return error_set(err, E_NOMEM, "connection to the PostgreSQL server");
    if (PQstatus(l->conn) != CONNECTION_OK)
        return say(err, E_NET, PQerrorMessage(l->conn));
    PQsetNoticeProcessor(l->conn, ignore_notice, NULL);
    *out = steal(l);
    return 0;
}

void postgres_link_close(struct postgres_link *l)
{
    if (l == NULL)
        return;
    PQfinish(l->conn);
    free(l);
}

bool postgres_link_is_idle(const struct postgres_link *l)
{
    struct pollfd at = {.fd = PQsocket(l->conn), .events = POLLIN};
    return PQstatus(l->conn) == CONNECTION_OK && poll(&at, 1, 0) == 0;
}

int postgres_link_script(struct postgres_link *l, const char *const *script, struct error *err)
{
    int rc = 0;
    for (; *script != NULL && rc == 0; script++) {
        PGresult *result = PQexec(l->conn, *script);
        const ExecStatusType status = PQresultStatus(result);
        if (result == NULL)
            rc = say(err, E_NET, PQerrorMessage(l->conn));
        else if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
            rc = server_error(result, err);
        PQclear(result);
    }
    return rc;
}

/* ---- a round trip ---- */

static int in_doubt(const struct postgres_link *l, struct error *err)
{
    return say(err, E_IN_DOUBT, PQerrorMessage(l->conn));
}

/* Until the next result is there, or all is sent that is to be sent. */
static int pump(struct postgres_link *l, uint64_t end_ms, struct error *err)
{
    int left;
    while ((left = PQflush(l->conn)) == 1 || PQisBusy(l->conn)) {
        struct pollfd at = {.fd = PQsocket(l->conn), .events = POLLIN};
        const uint64_t now = clock_ms();
        if (left == 1)
            at.events |= POLLOUT;
        if (now >= end_ms || poll(&at, 1, (int)(end_ms - now)) == 0)
            return error_set(err, E_IN_DOUBT, "the PostgreSQL server does not answer for %u s",
                             l->timeout_ms / 1000);
        if ((at.revents & ~POLLOUT) != 0 && PQconsumeInput(l->conn) == 0)
            return in_doubt(l, err);
        if (left < 0)
            break;
    }
    return left < 0 ? in_doubt(l, err) : 0;
}

static int next_result(struct postgres_link *l, uint64_t end_ms, PGresult **out, struct error *err)
{
    *out = NULL;
    int rc = pump(l, end_ms, err);
    if (rc == 0)
        *out = PQgetResult(l->conn);
    if (rc == 0 && PQstatus(l->conn) != CONNECTION_OK && *out == NULL)
        rc = in_doubt(l, err);
    return rc;
}

/* A statement's result, and the NULL behind it. */
static int take(struct postgres_link *l, uint64_t end_ms, PGresult **out, struct error *err)
{
    PGresult *end = NULL;
    int rc = next_result(l, end_ms, out, err);
    if (rc != 0)
        return rc;
    const ExecStatusType status = PQresultStatus(*out);
    if (*out == NULL)
        return in_doubt(l, err);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        return server_error(*out, err);
    rc = next_result(l, end_ms, &end, err);
    if (end != NULL) {
        PQclear(end);
        return error_set(err, E_IN_DOUBT, "the PostgreSQL server sent two results for a statement");
    }
    return rc;
}

static bool send(struct postgres_link *l, const struct postgres_ask *ask)
{
    const char *values[POSTGRES_PARAMS];
    int sizes[POSTGRES_PARAMS], binary[POSTGRES_PARAMS];
    char name[16];
    assert(ask->count <= POSTGRES_PARAMS);
    if (ask->text != NULL)
        return PQsendQueryParams(l->conn, ask->text, 0, NULL, NULL, NULL, NULL, 1) == 1;
    for (size_t i = 0; i < ask->count; i++) {
        values[i] = ask->params[i].data != NULL ? ask->params[i].data : "";
        sizes[i] = (int)ask->params[i].size;
        binary[i] = 1;
    }
    snprintf(name, sizeof name, "dfc%d", (int)ask->statement);
    return PQsendQueryPrepared(l->conn, name, (int)ask->count, values, sizes, binary, 1) == 1;
}

static int begin(struct postgres_link *l, struct error *err)
{
    if (PQpipelineStatus(l->conn) != PQ_PIPELINE_OFF)
        return 0;
    if (PQsetnonblocking(l->conn, 1) != 0 || PQenterPipelineMode(l->conn) != 1)
        return say(err, E_NET, PQerrorMessage(l->conn));
    return 0;
}

static int end(struct postgres_link *l, uint64_t end_ms, struct error *err)
{
    PGresult *sync = NULL;
    int rc = next_result(l, end_ms, &sync, err);
    if (rc == 0 && PQresultStatus(sync) != PGRES_PIPELINE_SYNC)
        rc = in_doubt(l, err);
    PQclear(sync);
    return rc;
}

int postgres_link_run(struct postgres_link *l, struct postgres_ask *asks, size_t count,
                      struct error *err)
{
    const uint64_t end_ms = clock_ms() + l->timeout_ms;
    int rc = begin(l, err);
    if (rc != 0)
        return rc;
    bool sent = true;
    for (size_t i = 0; i < count && sent; i++)
        sent = send(l, &asks[i]);
    if (!sent || PQpipelineSync(l->conn) != 1)
        return in_doubt(l, err);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = take(l, end_ms, &asks[i].result, err);
    return rc != 0 ? rc : end(l, end_ms, err);
}

int postgres_link_prepare(struct postgres_link *l, struct error *err)
{
    const uint64_t end_ms = clock_ms() + l->timeout_ms;
    int rc = begin(l, err);
    bool sent = rc == 0;
    for (int i = 0; i < POSTGRES_STATEMENTS && sent; i++) {
        char name[16];
        snprintf(name, sizeof name, "dfc%d", i);
        sent = PQsendPrepare(l->conn, name, postgres_statements[i], 0, NULL) == 1;
    }
    if (rc == 0 && (!sent || PQpipelineSync(l->conn) != 1))
        rc = in_doubt(l, err);
    for (int i = 0; i < POSTGRES_STATEMENTS && rc == 0; i++) {
        PGresult *result = NULL;
        rc = take(l, end_ms, &result, err);
        PQclear(result);
    }
    return rc != 0 ? rc : end(l, end_ms, err);
}

void postgres_asks_done(struct postgres_ask *asks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        PQclear(asks[i].result);
}

int64_t postgres_number(const PGresult *result, int row, int column)
{
    uint64_t big = 0;
    uint32_t small = 0;
    const char *cell = PQgetvalue(result, row, column);
    switch (PQgetlength(result, row, column)) {
    case sizeof big:
        memcpy(&big, cell, sizeof big);
        return (int64_t)be64toh(big);
    case sizeof small:
        memcpy(&small, cell, sizeof small);
        return (int32_t)be32toh(small);
    default:
        return cell[0]; /* a boolean */
    }
}
