/* api/testing/mock_cluster.py as a child of a test; one at a time.  $DFC_MOCK names the script. */
#pragma once

#include "common/buf.h"

extern char mock_endpoint[64];

/* For cmocka_run_group_tests(). */
int mock_start(void **state);
int mock_stop(void **state);

/* A call to the mock itself; body and reply may be NULL. */
void mock_steer(const char *method, const char *path, const char *body, struct buf *reply);
/* A JSON list of steps. */
void mock_plan(const char *steps);
/* How often `text` stands in the log of requests. */
unsigned mock_logged(const char *text);
