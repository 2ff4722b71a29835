/* The image that a command names. */
#pragma once

#include "api/ctl/ctl.h"
#include "api/ctl/names/name.h"
#include "vdisc/client/image.h"

/* What "dfc://BUCKET/NAME.vdsc" names, for object_name_done() in any case.  An exit code, as of all
 * that follow; a failure was reported. */
int vdisc_name(struct ctl *ctl, const char *name, struct object_name *out);
int vdisc_open_named(struct ctl *ctl, const char *name, struct vdisc **v);
/* The table alone; a damaged one is EXIT_PARTIAL, as an extent that differs is. */
int vdisc_open_to_verify(struct ctl *ctl, const char *name, struct vdisc **v);
/* What a function of the reader returned. */
int vdisc_fail(const struct ctl *ctl, const struct vdisc *v, const struct error *e,
               const char *what);
/* A path of the image; it must be of this kind. */
int vdisc_find(struct ctl *ctl, const struct vdisc *v, const char *path, struct iso_found *out);

struct iso_volume;
/* Starts the job `burn` (vdisc_job.c), once what both kinds of burns want is checked. */
int vdisc_burn_job(struct ctl *ctl, const struct args *args, const struct object_name *to,
                   const struct iso_volume *volume);
