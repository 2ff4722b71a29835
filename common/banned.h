/* Calls that have no safe use here are compile errors.  Included before everything else
 * by the build (-include), so that no file can forget it.
 *
 * Use instead: snprintf or buf_printf for the string builders, parse_u64 (common/parse.h) for the
 * ato* family, strtok_r for strtok, localtime_r/gmtime_r for their static twins. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets
#pragma GCC poison atoi atol atoll atof strtok
#pragma GCC poison localtime gmtime ctime asctime
