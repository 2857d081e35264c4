/* SPDX-License-Identifier: MIT */
/* loadgen.h: the second process; see loadgen.c. */
#ifndef DEMO_LOADGEN_H
#define DEMO_LOADGEN_H

#include "client.h"
#include "options.h"

/* What the load generator's process does with its life. Returns its exit code. */
int loadgen_main(struct client *client, const struct options *options);

#endif /* DEMO_LOADGEN_H */
