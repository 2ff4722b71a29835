/* What a PostgreSQL server keeps and runs for a volume.
 *
 *     dfc_kv(k, v)                  keys and stamped values, as mount/meta/kv.h has them
 *     dfc_volume(format, number)    one row: the format, and the number of transactions
 *     dfc_run(place, run, number)   server processes, each with the number at its begin
 *
 * They are in the first schema of the connection's search_path. */
#pragma once

enum { POSTGRES_FORMAT = 1 };

extern const char *const postgres_schema[]; /* makes what is missing; ends with NULL */
extern const char postgres_settings[];      /* of a connection: one statement */
extern const char postgres_new_settings[];  /* the same, of those that older servers lack */

#define POSTGRES_BEGIN_READ "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

enum postgres_statement {
    POSTGRES_HELLO,  /* known run, its last number → format, run, number, kept */
    POSTGRES_NOW,    /* → ms */
    POSTGRES_GET,    /* key → value */
    POSTGRES_FOLLOW, /* key → value, attribute */
    POSTGRES_PAGE,   /* after, before, limit → rows of key, value */
    POSTGRES_LIST,   /* as PAGE, of entries → rows of key, value, attribute */
    POSTGRES_NUMBER, /* no other connection commits until the transaction's end → number */
    POSTGRES_COMMIT, /* stamp, kinds, keys, data, offsets, numbers → -1, or a step */
    POSTGRES_STATEMENTS,
};

extern const char *const postgres_statements[POSTGRES_STATEMENTS];
