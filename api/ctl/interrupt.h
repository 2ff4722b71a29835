/* SIGINT and SIGTERM cancel the client's calls, so that temporary files go and messages come; the
 * second one ends the program at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct dfc_client;

void interrupt_install(struct dfc_client *client); /* NULL: nothing to cancel any more */
bool interrupted(void);
/* Waits; false when interrupted before or meanwhile. */
bool interrupt_pause(uint64_t ms);
