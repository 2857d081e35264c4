/* SPDX-License-Identifier: MIT */
/* kernel_instance.h: tracefs, the instance of this capture, and who removes it when kymo is killed. */
#ifndef KY_CAPTURE_KERNEL_INSTANCE_H
#define KY_CAPTURE_KERNEL_INSTANCE_H

#include "capture/fail.h"

#include <sys/types.h>

struct tracefs_instance;

/* Find tracefs, never mounting it, and set it in libtracefs. Return 0, or -errno and what to do. */
int ky_kernel_instance_tracefs(char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Make an instance with tracing off. Return 0, or -errno with a message. */
int ky_kernel_instance_make(struct tracefs_instance **instance,
			    char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Remove it. No file of it may be open. NULL is allowed. */
void ky_kernel_instance_remove(struct tracefs_instance **instance);
/* Write a value to a file of it. Return 0, or -errno with a message, which may be NULL. */
int ky_kernel_instance_set(struct tracefs_instance *instance, const char *file, const char *value,
			   char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Remove the instances that killed kymos left; return how many. */
uint32_t ky_kernel_instance_clean(void);
/* Count them, for `kymo doctor`, which removes nothing. */
uint32_t ky_kernel_instance_left_over(void);

/* A process that removes the instance when kymo is killed. */
struct ky_kernel_instance_guard {
	pid_t pid; /* 0: none */
	int fd;    /* its end tells the guard that kymo is gone */
};

/* Start a guard. If no process can be made, the next kymo removes the instance. */
void ky_kernel_instance_guard_start(struct ky_kernel_instance_guard *guard,
				    struct tracefs_instance *instance);
/* End it, after the instance was removed. */
void ky_kernel_instance_guard_end(struct ky_kernel_instance_guard *guard);

#endif
