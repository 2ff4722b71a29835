/* What the ledger says of a handle of a file in `uses`: the stamp of the mark
 * of its last bytes (pending.h), 0, or this: bytes of it were lost, and no
 * fsync has told it yet. */
#pragma once

#include <stdint.h>

#define RESTORE_LOST UINT64_MAX
