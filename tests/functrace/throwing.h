/* SPDX-License-Identifier: MIT */
/* throwing.h: functions in C++ that throw, for test_agent_throw.c to hook. */
#ifndef KY_TESTS_THROWING_H
#define KY_TESTS_THROWING_H

#include "hookable.h"

#ifdef __cplusplus
extern "C" {
#endif

#define THROWING_DEPTH 50

/* from so many frames further down, each with something to destroy */
HOOKABLE int throw_at(int depth);
HOOKABLE int throw_again(int depth);
HOOKABLE int plain(int n);
HOOKABLE int count_frames(int depth); /* that backtrace() sees */
/* Throw, catch, and check what was destroyed, `times` times. Return how often that went well. */
int throw_often(int times);

#ifdef __cplusplus
}
#endif
#endif
