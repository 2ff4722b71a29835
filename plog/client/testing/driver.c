/* A writer or reader of one plog that a test commands, a line each:
 *
 *     driver ENDPOINT BUCKET NAME
 *
 *     open FLAGS SEGMENT_BYTES     read OFFSET SIZE      stat           unlink
 *     token SEGMENT_BYTES TOKEN    share
 *     write OFFSET SIZE BYTE       renew                 close          recover LEASE_MS
 *     truncate LENGTH              sync                  drop
 *
 * The reply is a line: "ok", with what the call gives, or "error RESULT MESSAGE". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/dfc.h"
#include "common/mem.h"
#include "plog/client/dfc_plog.h"

enum { WORDS = 4, LINE = 4096 };

struct driver {
    struct dfc_client *client;
    const char *bucket, *name;
    struct dfc_plog *plog;
    uint64_t words[WORDS];
    const char *line;
    struct dfc_error err;
};

static int drive_open(struct driver *d)
{
    const struct dfc_plog_options o = {
        .flags = (unsigned)d->words[0], .mode = 0644, .segment_bytes = d->words[1]};
    return dfc_plog_open(d->client, d->bucket, d->name, &o, &d->plog, &d->err);
}

static int drive_token(struct driver *d)
{
    char token[LINE] = "";
    const struct dfc_plog_options o = {.segment_bytes = d->words[0]};
    (void)sscanf(d->line, "%*s %*s %4095s", token);
    return dfc_plog_open_token(d->client, token, &o, &d->plog, &d->err);
}

static int drive_share(struct driver *d)
{
    char token[DFC_PLOG_TOKEN_MAX];
    const int rc = dfc_plog_share(d->plog, token, &d->err);
    if (rc == DFC_OK)
        printf("ok %s\n", token);
    return rc;
}

static int drive_write(struct driver *d)
{
    char *data = xmalloc(d->words[1] + 1);
    memset(data, (int)d->words[2], d->words[1]);
    const int rc = dfc_plog_write(d->plog, data, d->words[1], d->words[0], &d->err);
    free(data);
    return rc;
}

static int drive_truncate(struct driver *d)
{
    return dfc_plog_truncate(d->plog, d->words[0], &d->err);
}

static int drive_sync(struct driver *d)
{
    return dfc_plog_sync(d->plog, &d->err);
}

/* The bytes as runs of equal ones: "ok COUNTxBYTE COUNTxBYTE …". */
static int drive_read(struct driver *d)
{
    unsigned char *data = xmalloc(d->words[1] + 1);
    size_t got;
    const int rc = dfc_plog_read(d->plog, data, d->words[1], d->words[0], &got, &d->err);
    if (rc == DFC_OK)
        printf("ok");
    for (size_t i = 0, run = 0; rc == DFC_OK && i < got; i++) {
        run++;
        if (i + 1 == got || data[i + 1] != data[i]) {
            printf(" %zux%u", run, data[i]);
            run = 0;
        }
    }
    if (rc == DFC_OK)
        printf("\n");
    free(data);
    return rc;
}

static int drive_renew(struct driver *d)
{
    dfc_plog_renew(d->plog);
    return DFC_OK;
}

static int drive_stat(struct driver *d)
{
    struct dfc_plog_stat s;
    const int rc = dfc_plog_stat(d->plog, &s, &d->err);
    if (rc == DFC_OK)
        printf("ok %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s.size, s.stored, s.segments,
               s.sessions);
    return rc;
}

static int drive_close(struct driver *d)
{
    const int rc = dfc_plog_close(d->plog, &d->err);
    if (rc == DFC_OK)
        d->plog = NULL;
    return rc;
}

static int drive_drop(struct driver *d)
{
    dfc_plog_drop(d->plog);
    d->plog = NULL;
    return DFC_OK;
}

static int drive_unlink(struct driver *d)
{
    return dfc_plog_unlink(d->client, d->bucket, d->name, &d->err);
}

static int drive_recover(struct driver *d)
{
    bool busy;
    const int rc = dfc_plog_recover(d->client, d->bucket, d->name, d->words[0], &busy, &d->err);
    if (rc == DFC_OK)
        printf("ok %d\n", busy);
    return rc;
}

static const struct {
    const char *verb;
    int words;
    int (*run)(struct driver *d);
    bool needs_plog, replies; /* replies: it prints its own line */
} verbs[] = {
    {"open", 2, drive_open, false, false},      {"write", 3, drive_write, true, false},
    {"read", 2, drive_read, true, true},        {"truncate", 1, drive_truncate, true, false},
    {"sync", 0, drive_sync, true, false},       {"renew", 0, drive_renew, true, false},
    {"stat", 0, drive_stat, true, true},        {"close", 0, drive_close, true, false},
    {"drop", 0, drive_drop, true, false},       {"unlink", 0, drive_unlink, false, false},
    {"recover", 1, drive_recover, false, true}, {"token", 1, drive_token, false, false},
    {"share", 0, drive_share, true, true},
};

static void obey(struct driver *d, const char *line)
{
    char verb[32];
    int at = 0;
    d->line = line;
    if (sscanf(line, "%31s%n", verb, &at) != 1)
        verb[0] = '\0';
    const int words = sscanf(line + at, "%" SCNu64 " %" SCNu64 " %" SCNu64, &d->words[0],
                             &d->words[1], &d->words[2]);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verb, verbs[i].verb) != 0)
            continue;
        if ((verbs[i].words > 0 && words < verbs[i].words) ||
            (verbs[i].needs_plog && d->plog == NULL))
            break;
        const int rc = verbs[i].run(d);
        if (rc != DFC_OK)
            printf("error %d %s\n", rc, d->err.message);
        else if (!verbs[i].replies)
            printf("ok\n");
        return;
    }
    printf("error 0 what is '%s'?\n", verb);
}

int main(int argc, char **argv)
{
    char line[LINE];
    if (argc != 4) {
        fprintf(stderr, "driver ENDPOINT BUCKET NAME\n");
        return 2;
    }
    struct driver d = {.bucket = argv[2], .name = argv[3]};
    const struct dfc_client_options o = {.endpoints = argv[1]};
    if (dfc_client_open(&o, &d.client, &d.err) != DFC_OK) {
        fprintf(stderr, "%s\n", d.err.message);
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        obey(&d, line);
        fflush(stdout);
    }
    dfc_plog_drop(d.plog);
    dfc_client_close(d.client);
    return 0;
}
