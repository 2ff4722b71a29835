/* The last to be asked of a GET that found nothing (miss.h): was there an object, whose file has
 * been removed?  Then it is no 404, but an error of its disk.  What a backend has is read from
 * there. */
#pragma once

#include "target/node/miss.h"

extern const struct miss_source lost_source;
