/* The engines that a suite runs over, each empty. */
#pragma once

#include "mount/meta/meta.h"

enum { TEST_MEMORY, TEST_SQLITE, TEST_REDIS, TEST_POSTGRES, TEST_ENGINES };

struct test_engine {
    const char *name;
    int (*open)(struct meta **out, struct error *err); /* of sqlite3 again: a second handle */
    void (*remove)(void);                              /* what open made, after close */
};

extern const struct test_engine test_engines[TEST_ENGINES];

/* Which of them a program's suite is to run over: its argument is "redis" or "postgres", that
 * engine alone, or absent, those that need no server: TEST_MEMORY.  Negative: the server is not
 * installed, which was said. */
int test_engines_asked(int argc, char **argv);

const char *test_sqlite_path(void); /* while it is open */
