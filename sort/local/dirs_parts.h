/* What the files of dirs.h share. */
#pragma once

#include <pthread.h>

#include "sort/local/dirs.h"

#define DIRS_HIDDEN ".dfc-sort-" /* the hidden directory's name begins so */

struct dirs_output {
    char *name;
    char *hidden; /* path */
    struct dirs_output *next;
};

/* A directory that was not there. */
struct dirs_made {
    char *path;
    struct dirs_made *before;
};

struct dirs {
    char *in;
    char *out;
    char *hidden;
    char *key_map;          /* or NULL */
    struct dirs_made *made; /* the last one */
    pthread_mutex_t lock;   /* guards what follows */
    struct dirs_output *finished;
    uint64_t next_output;
};

/* May it be a path below one of the two directories?  E_INVALID: see path_flaw(), and DIRS_HIDDEN.
 * from: what makes it, for the message. */
int dirs_check_name(const char *from, const char *name, struct error *err);
