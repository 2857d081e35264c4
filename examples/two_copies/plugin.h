/* SPDX-License-Identifier: MIT */
/* plugin.h: what main.c expects of a plug-in. */
#ifndef PLUGIN_H
#define PLUGIN_H

/* The sum of the numbers from 1 to amount. */
__attribute__((visibility("default"))) int plugin_work(int amount);

#endif /* PLUGIN_H */
