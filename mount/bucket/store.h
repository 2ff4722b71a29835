/* A tree's bucket as a place where writers put objects. */
#pragma once

#include "mount/write/store.h"

struct tree;

struct write_store tree_store(struct tree *t);
