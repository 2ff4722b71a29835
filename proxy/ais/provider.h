/* The SDK's name of where a bucket's objects come from.  Every bucket is of the provider "ais"; a
 * bucket with a backend may also be called by the backend's: the SDK prefetches and evicts no
 * others.  Pure. */
#pragma once

#include <stdbool.h>

#include "cluster/documents/bmd.h"

/* May the bucket be called so?  "" is any. */
bool provider_fits(const struct bucket *b, const char *provider);
