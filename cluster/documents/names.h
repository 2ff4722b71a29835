/* What buckets, objects and nodes may be called.  A bucket's and a node's name go into URLs, file
 * names and metric labels, so they are plain; an object's name is the user's and may be nearly
 * anything. */
#pragma once

#include <stddef.h>

#include "common/error.h"

int bucket_name_check(const char *name, struct error *err);
/* 1..1024 bytes of UTF-8 without NUL.  Nothing else is special: "..", "/", "a//b" are names. */
int object_name_check(const char *name, size_t len, struct error *err);
int node_id_check(const char *id, struct error *err);
int node_join_check(const char *join, struct error *err); /* URLs of --join, none, one or several */
