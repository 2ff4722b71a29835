#include "mount/meta/testing/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mount/meta/engines.h"
#include "mount/meta/testing/server.h"

static int open_memory(struct meta **out, struct error *err)
{
    return engines_open("memory://", true, out, err);
}

static void remove_nothing(void)
{
}

/* ---- SQLite, in a directory of its own ---- */

static char directory[64];

const char *test_sqlite_path(void)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/meta.db", directory);
    return path;
}

static int open_sqlite(struct meta **out, struct error *err)
{
    char url[128];
    if (directory[0] == '\0') {
        snprintf(directory, sizeof directory, "/tmp/dfc-meta-test.XXXXXX");
        if (mkdtemp(directory) == NULL)
            return error_set(err, E_IO, "no directory for the test");
    }
    snprintf(url, sizeof url, "sqlite3://%s", test_sqlite_path());
    return engines_open(url, true, out, err);
}

static void remove_sqlite(void)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", test_sqlite_path(), ends[i]);
        unlink(path);
    }
    rmdir(directory);
    directory[0] = '\0';
}

/* ---- servers ---- */

static int open_server(struct server *server, struct meta **out, struct error *err)
{
    server_start(server);
    return engines_open(server_url(server), true, out, err);
}

static int open_redis(struct meta **out, struct error *err)
{
    return open_server(&redis_server, out, err);
}

static void remove_redis(void)
{
    server_remove(&redis_server);
}

static int open_postgres(struct meta **out, struct error *err)
{
    return open_server(&postgres_server, out, err);
}

static void remove_postgres(void)
{
    server_remove(&postgres_server);
}

const struct test_engine test_engines[TEST_ENGINES] = {
    [TEST_MEMORY] = {"memory", open_memory, remove_nothing},
    [TEST_SQLITE] = {"sqlite3", open_sqlite, remove_sqlite},
    [TEST_REDIS] = {"redis", open_redis, remove_redis},
    [TEST_POSTGRES] = {"postgres", open_postgres, remove_postgres},
};

int test_engines_asked(int argc, char **argv)
{
    const struct server *server = argc > 1 ? server_named(argv[1]) : NULL;
    if (server == NULL)
        return TEST_MEMORY;
    if (!server_is_installed(server)) {
        printf("skipped: there is no server %s\n", server->name);
        return -1;
    }
    return server == &redis_server ? TEST_REDIS : TEST_POSTGRES;
}
