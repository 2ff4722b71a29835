#include "api/ctl/node_wait.h"

#include "api/ctl/ctl.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/stop_check.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"

enum { LOOK_MS = 500 };

int node_wait_moved(struct ctl *ctl, const char *id, const char *state, uint64_t timeout_ms)
{
    uint64_t began = clock_ms();
    bool seen = false, done = false;
    for (;;) {
        _cleanup_json_ json_t *overview = NULL;
        struct error err = ERROR_INIT;
        int code = ctl_cluster(ctl, NULL, &overview);
        if (code != EXIT_OK)
            return code;
        if (stop_moved(overview, id, state, &seen, &done, &err) != 0)
            return ctl_fail_common(ctl, &err, EXIT_FAILED);
        if (done)
            return EXIT_OK;
        if (timeout_ms > 0 && clock_ms() - began > timeout_ms) {
            ctl_remark(ctl, "dfcctl: objects are still being moved: see 'dfcctl job ls --kind "
                            "rebalance'");
            return EXIT_UNREACHABLE; /* as job wait says that the time ran out */
        }
        if (!interrupt_pause(LOOK_MS))
            return EXIT_INTERRUPTED;
    }
}
