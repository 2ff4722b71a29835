/* The memory of one stripe: a block with room for its check for each slice, aligned for the code.
 */
#pragma once

#include "ec/layout.h"

struct ec_stripe;

struct ec_stripe *ec_stripe_new(const struct ec_layout *l);
void ec_stripe_free(struct ec_stripe *s);
unsigned char *const *ec_stripe_blocks(const struct ec_stripe *s); /* k + m of them */
