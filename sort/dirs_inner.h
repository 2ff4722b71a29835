/* What the files of dirs.h share. */
#pragma once

#include <pthread.h>

#include "sort/dirs.h"

#define DIRS_HIDDEN ".dfc-sort-" /* the hidden directory's name begins so */

struct dirs_output {
    char *name;
    char *hidden; /* path */
    struct dirs_output *next;
};

struct dirs {
    char *in;
    char *out;
    char *hidden;
    char *key_map; /* or NULL */
    bool made_out;
    pthread_mutex_t lock; /* guards what follows */
    struct dirs_output *finished;
    uint64_t next_output;
};
