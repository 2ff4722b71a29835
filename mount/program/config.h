/* Settings of a volume by flags, of `format` and `config`. */
#pragma once

#include "mount/volume/format.h"

struct options;

/* Those that were given; the others stay. */
void config_take(const struct options *o, struct volume_format *f);
