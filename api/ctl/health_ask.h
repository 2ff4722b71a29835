/* How the cluster is: what its overview says, and what has to be asked for beside it. */
#pragma once

#include "api/ctl/ctl.h"

/* health_judge()'s verdict on this overview. */
json_t *health_ask(struct ctl *ctl, json_t *overview);
