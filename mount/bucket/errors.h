/* What a failed call of libdfc is to a program that uses files. */
#pragma once

#include "api/dfc.h"

int errors_of(const struct dfc_error *err); /* -errno */
/* The same; what is more than a missing name is logged. */
int errors_told(const char *where, const struct dfc_error *err);
