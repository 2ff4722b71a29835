/* What a target's /metrics says of its disks and objects, brought up to date when somebody looks.
 */
#pragma once

struct target;

void gauges_update(struct target *t);
