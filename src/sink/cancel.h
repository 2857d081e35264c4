/* SPDX-License-Identifier: MIT */
/*
 * cancel.h: pthread_cancel() must not reach a thread that is inside the library: it would leave a
 * lock behind, and the end of the process would wait for it for ever.
 */
#ifndef KY_SINK_CANCEL_H
#define KY_SINK_CANCEL_H

#include <pthread.h>

/* Holds off cancellation of the calling thread; what it returns is for ky_cancel_restore(). */
static inline int ky_cancel_hold(void)
{
	int before;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void ky_cancel_restore(int before)
{
	pthread_setcancelstate(before, NULL);
}

#endif
