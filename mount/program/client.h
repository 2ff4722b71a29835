/* The client of libdfc that the options describe, and what its errors are as exit codes. */
#pragma once

#include <stdint.h>

struct dfc_client;
struct options;

/* An exit code; calls: at once, besides those for data. */
int client_open(const struct options *o, const char *ca_file, unsigned calls,
                struct dfc_client **client);
uint32_t client_tries(const struct options *o); /* of one call */
int client_exit_of(int result);                 /* of enum dfc_result */
/* The same of a code of error.def. */
int client_exit_of_code(int code);
