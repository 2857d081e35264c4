/* SPDX-License-Identifier: MIT */
/*
 * remote_call.c: system calls made by a stopped thread of another process: see remote.h.
 *
 * A thread that was interrupted in a system call has that call's number in orig_rax, and the kernel makes the call
 * again when the thread goes on with its registers as they were. While another call is made orig_rax is -1, so that
 * nothing is made again; when the thread is let go the kernel checks orig_rax once more.
 *
 *   gadget (code)    save flags and registers; the call; signals as before; restore; back
 *   struct record    its arguments, on the thread's own stack, below what the thread may be using there
 *
 * All signals are blocked during the call. The thread is stopped again when the call has been made, and gets its own
 * registers back. If kymo is killed before that, the thread runs through the gadget and goes on where it was: so
 * `back` and rax are such that it makes its own system call again, and the gadget unblocks signals. Any number of
 * threads may be in the gadget. It is never stepped: a thread whose tracer is killed would go on stepping, and die of it.
 *
 * The call that maps memory for the gadget needs one, too: that one is in unused bytes at the end of the vdso, or of a
 * file's code, for as long as the call takes.
 *
 * Free addresses near a module are for the targets of its functions' jumps. Addresses into which a stack or the heap
 * (brk) will grow are avoided: a gap above the heap's start is used only far away from it, one below a stack not at
 * its end.
 */
#include "functrace/remote.h"

#include "process/proc.h"
#include "process/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#define CALL_TIMEOUT_NS UINT64_C(5000000000)
#define STARTING_STOPS_MAX 200 /* system calls before a program has a thread pointer */
/* Stops of the gadget's first call: its entry and its end. */
#define GADGET_STOPS 2

#define RED_ZONE 128u

/* Laid out as the code below expects. */
struct record {
	/* the gadget pushes its registers here; it is there, or cannot be written to */
	uint64_t room[16];
	uint64_t back;    /* at rsp: the address where the thread goes on */
	uint64_t signals; /* at 8: the signals blocked before */
	uint64_t number;  /* at 16 */
	uint64_t words[6];
};
_Static_assert(sizeof(struct record) == 128 + 72, "the code below");

/*
 * rsp is the address of back, and 80 less when all is saved. The end takes the record and the red zone off the stack.
 */
extern const uint8_t ky_remote_gadget_code[], ky_remote_gadget_code_end[];
__asm__(".pushsection .rodata\n"
	".hidden ky_remote_gadget_code\n"
	".hidden ky_remote_gadget_code_end\n"
	".globl ky_remote_gadget_code\n"
	".globl ky_remote_gadget_code_end\n"
	"ky_remote_gadget_code:\n"
	"pushfq\n"
	"push %rax; push %rcx; push %rdx; push %rsi; push %rdi\n"
	"push %r8; push %r9; push %r10; push %r11\n"
	"mov 80+16(%rsp), %rax; mov 80+24(%rsp), %rdi; mov 80+32(%rsp), %rsi\n"
	"mov 80+40(%rsp), %rdx; mov 80+48(%rsp), %r10; mov 80+56(%rsp), %r8\n"
	"mov 80+64(%rsp), %r9; syscall\n"
	"mov $14, %eax; mov $2, %edi; lea 80+8(%rsp), %rsi; xor %edx, %edx\n"
	"mov $8, %r10d; syscall\n" /* rt_sigprocmask(SIG_SETMASK, ...) */
	"pop %r11; pop %r10; pop %r9; pop %r8\n"
	"pop %rdi; pop %rsi; pop %rdx; pop %rcx; pop %rax\n"
	"popfq\n"
	"ret $(72 - 8 + 128)\n"
	"ky_remote_gadget_code_end:\n"
	".popsection\n");

static size_t gadget_code_bytes(void)
{
	return (size_t)(ky_remote_gadget_code_end - ky_remote_gadget_code);
}

/* ---- calls ---- */

int ky_remote_set_gadget(struct ky_remote *remote, uint64_t address)
{
	const int error =
		ky_remote_write(remote, address, ky_remote_gadget_code, gadget_code_bytes());
	if (!error)
		remote->gadget = address;
	return error;
}

/* Return the registers with which a thread in a system call makes it again, as the kernel would restart it. */
static struct user_regs_struct made_again(struct user_regs_struct registers)
{
	const int64_t result = (int64_t)registers.rax;
	if ((int64_t)registers.orig_rax < 0)
		return registers;
	/* -ERESTARTSYS, NOINTR, NOHAND */
	if (result == -512 || result == -513 || result == -514) {
		registers.rax = registers.orig_rax;
		registers.rip -= 2;
	} else if (result == -516) { /* -ERESTART_RESTARTBLOCK */
		registers.rax = SYS_restart_syscall;
		registers.rip -= 2;
	}
	registers.orig_rax = UINT64_MAX;
	return registers;
}

/* Run the gadget until the call has been made. Return its result, or -errno. */
static int64_t run_gadget(pid_t tid)
{
	struct user_regs_struct registers;
	for (int stops = 0; stops < GADGET_STOPS;) {
		int status = 0;
		if (ptrace(PTRACE_SYSCALL, tid, 0, 0))
			return -errno;
		const int error = ky_remote_wait(tid, CALL_TIMEOUT_NS, &status);
		if (error)
			return error;
		if (status >> 16 == 0 && WSTOPSIG(status) != (SIGTRAP | 0x80))
			return -EFAULT;
		/* Otherwise the group was stopped or continued. */
		stops += status >> 16 == 0;
	}
	return ptrace(PTRACE_GETREGS, tid, 0, &registers) ? -errno : (int64_t)registers.rax;
}

static int64_t call_at_gadget(struct ky_remote *remote, struct ky_remote_thread *thread,
			      long number, const uint64_t arguments[6])
{
	struct user_regs_struct registers = made_again(thread->registers);
	struct record record = {.back = registers.rip, .number = (uint64_t)number};
	const uint64_t all = UINT64_MAX, red_zone = registers.rsp - RED_ZONE;
	memcpy(record.words, arguments, sizeof(record.words));
	if (ptrace(PTRACE_GETSIGMASK, thread->tid, sizeof(all), &record.signals))
		return -errno;
	const int error =
		ky_remote_write(remote, red_zone - sizeof(record), &record, sizeof(record));
	if (error)
		return error;
	registers.rip = remote->gadget;
	registers.rsp = red_zone - sizeof(record) + offsetof(struct record, back);
	/*
	 * Keep this order, here and below: the code that unblocks signals is there before they are blocked, and until
	 * they no longer are.
	 */
	if (ptrace(PTRACE_SETREGS, thread->tid, 0, &registers))
		return -errno;
	int64_t result = ptrace(PTRACE_SETSIGMASK, thread->tid, sizeof(all), &all) ? -errno : 0;
	if (result == 0)
		result = run_gadget(thread->tid);
	ptrace(PTRACE_SETSIGMASK, thread->tid, sizeof(all), &record.signals);
	ptrace(PTRACE_SETREGS, thread->tid, 0, &thread->registers);
	return result;
}

/* ---- a place for the first gadget ---- */

/* The last bytes of a mapping, where the gadget is for a moment. */
struct place {
	uint64_t at; /* 0: none */
	bool unused; /* nothing is there */
	uint8_t before[KY_REMOTE_GADGET_BYTES];
};

/* Report whether nothing is there, or what a kymo that was killed has left. */
static bool is_unused(const uint8_t *code)
{
	static const uint8_t nothing[KY_REMOTE_GADGET_BYTES];
	return memcmp(code, nothing, sizeof(nothing)) == 0 ||
	       memcmp(code, ky_remote_gadget_code, gadget_code_bytes()) == 0;
}

/*
 * Find executable memory that ends with unused bytes, as the last page of most files' code does. The vdso is best: every
 * process has it, and it stays. Without any, others' bytes are taken, and are missing if kymo is killed just then.
 */
static struct place find_place(const struct ky_remote *remote)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	struct place found = {0}, place;
	bool best = false;
	(void)ky_proc_maps_open(&maps, remote->pid);
	while (!best && ky_proc_maps_next(&maps, &mapping)) {
		const bool vdso = strcmp(mapping.path, "[vdso]") == 0;
		place.at = mapping.end - KY_REMOTE_GADGET_BYTES;
		if (!(mapping.protection & PROT_EXEC) || mapping.flags != MAP_PRIVATE ||
		    strcmp(mapping.path, "[vsyscall]") == 0 ||
		    ky_remote_read(remote, place.at, place.before, sizeof(place.before)))
			continue;
		place.unused = is_unused(place.before);
		if (!found.at || (place.unused && (vdso || !found.unused)))
			found = place;
		best = vdso && found.unused;
	}
	ky_proc_maps_close(&maps);
	if (found.unused)
		memset(found.before, 0, sizeof(found.before));
	return found;
}

/* Make a call with a gadget that is there only for this call. */
static int64_t call_at_place(struct ky_remote *remote, struct ky_remote_thread *thread, long number,
			     const uint64_t arguments[6])
{
	struct user_regs_struct registers;
	const struct place place = find_place(remote);
	int64_t result = place.at ? ky_remote_set_gadget(remote, place.at) : -ENOEXEC;
	if (result)
		return result;
	result = call_at_gadget(remote, thread, number, arguments);
	/* A thread that could not be stopped again may still be there. */
	if (ptrace(PTRACE_GETREGS, thread->tid, 0, &registers) == 0 &&
	    registers.rip - place.at >= KY_REMOTE_GADGET_BYTES)
		(void)ky_remote_write(remote, place.at, place.before, gadget_code_bytes());
	remote->gadget = 0;
	return result;
}

int64_t ky_remote_call(struct ky_remote *remote, long number, const uint64_t arguments[6])
{
	if (!remote->count)
		return -ESRCH;
	if (remote->sealed)
		return -EPERM;
	/* The registers are those that the caller has set so far: they must be the thread's own by then. */
	struct ky_remote_thread *thread = &remote->threads[0];
	if (thread->changed && ptrace(PTRACE_SETREGS, thread->tid, 0, &thread->registers))
		return -errno;
	thread->changed = false;
	return remote->gadget ? call_at_gadget(remote, thread, number, arguments)
			      : call_at_place(remote, thread, number, arguments);
}

int ky_remote_await_thread_pointer(struct ky_remote *remote)
{
	struct ky_remote_thread *thread = &remote->threads[0];
	for (int stop = 0; !thread->registers.fs_base; stop++) {
		int status = 0;
		if (remote->count != 1 || stop == STARTING_STOPS_MAX)
			return -EINVAL;
		if (ptrace(PTRACE_SYSCALL, thread->tid, 0, 0))
			return -errno;
		const int error = ky_remote_wait(thread->tid, CALL_TIMEOUT_NS, &status);
		if (error)
			return error;
		if (status >> 16 == PTRACE_EVENT_EXEC)
			return -ESTALE;
		if (status >> 16 == 0 && WSTOPSIG(status) != (SIGTRAP | 0x80) &&
		    ky_remote_park(thread, WSTOPSIG(status)))
			return -ESRCH;
		if (ptrace(PTRACE_GETREGS, thread->tid, 0, &thread->registers))
			return -errno;
	}
	return ky_remote_park(thread, 0);
}

/* ---- free addresses ---- */

#define REACH (UINT64_C(0x7fffffff) - (UINT64_C(1) << 20)) /* of a jump, with a margin */
#define LOWEST UINT64_C(0x100000)
#define HIGHEST UINT64_C(0x7fffffff0000)
#define HEAP_GROWS (UINT64_C(1) << 30)
#define STACK_GROWS (UINT64_C(1) << 28)
#define APART UINT64_C(65536) /* a neighbour that runs over its end hits nothing */

struct search {
	uint64_t low, high; /* the range that must contain all of it */
	uint64_t from, to;  /* the module */
	uint64_t bytes;
	uint64_t best, best_distance;
};

static void consider(struct search *search, uint64_t at)
{
	const uint64_t end = at + search->bytes;
	const uint64_t distance = at >= search->to ? at - search->to : search->from - end;
	if (at < search->low || end > search->high || (at < search->to && end > search->from))
		return;
	if (!search->best || distance < search->best_distance) {
		search->best = at;
		search->best_distance = distance;
	}
}

/* Try both ends of a gap, cut to what is within reach. */
static void consider_gap(struct search *search, uint64_t from, uint64_t to)
{
	from = (from > search->low ? from : search->low) + APART;
	to = (to < search->high ? to : search->high) & ~UINT64_C(4095);
	if (to < APART || to - APART < from || to - APART - from < search->bytes)
		return;
	consider(search, (from + 4095) & ~UINT64_C(4095));
	consider(search, (to - APART - search->bytes) & ~UINT64_C(4095));
}

/* Return the start of the heap, even if it does not exist yet; 0: unknown. */
static uint64_t heap_start(pid_t pid)
{
	struct ky_proc_stat stat;
	return ky_proc_stat(pid, 0, &stat) == 0 ? stat.heap_start : 0;
}

/* Try the gap without the part that the heap may grow into. */
static void consider_beside_heap(struct search *search, uint64_t from, uint64_t to, uint64_t heap)
{
	const uint64_t heap_end = heap + HEAP_GROWS;
	if (!heap || heap >= to || heap_end <= from) {
		consider_gap(search, from, to);
		return;
	}
	if (from < heap)
		consider_gap(search, from, heap);
	if (heap_end < to)
		consider_gap(search, heap_end, to);
}

uint64_t ky_remote_find_room(const struct ky_remote *remote, uint64_t from, uint64_t to,
			     uint64_t bytes)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	uint64_t last = LOWEST;
	struct search search = {.low = to > REACH + LOWEST ? to - REACH : LOWEST,
				.high = from + REACH < HIGHEST ? from + REACH : HIGHEST,
				.from = from,
				.to = to,
				.bytes = bytes};
	const uint64_t heap = heap_start(remote->pid);
	if (ky_proc_maps_open(&maps, remote->pid) != 0)
		return 0;
	while (ky_proc_maps_next(&maps, &mapping)) {
		const bool stack = strncmp(mapping.path, "[stack", 6) == 0;
		const uint64_t grows = stack ? STACK_GROWS : 0;
		if (mapping.start > last + grows)
			consider_beside_heap(&search, last, mapping.start - grows, heap);
		last = mapping.end > last ? mapping.end : last;
	}
	ky_proc_maps_close(&maps);
	if (last < HIGHEST)
		consider_beside_heap(&search, last, HIGHEST, heap);
	return search.best;
}

/* ---- descriptors ---- */

/* Open a descriptor by its name in /proc, where the kernel has no pidfd_getfd() or a container forbids it. */
static int open_named(pid_t pid, int number)
{
	char path[64];
	struct stat file;
	struct ky_proc_status owner;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, number);
	const int held = open(path, O_PATH | O_CLOEXEC);
	if (held < 0)
		return -errno;
	/* Opening has kymo's rights, not the process's: it must be a file of the process's user. */
	const bool theirs = fstat(held, &file) == 0 && S_ISREG(file.st_mode) && !file.st_nlink &&
			    ky_proc_status(pid, 0, &owner) == 0 && file.st_uid == owner.user;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	const int fd = theirs ? open(path, O_RDWR | O_CLOEXEC) : -1;
	const int error = theirs ? errno : EPERM;
	close(held);
	return fd < 0 ? -error : fd;
}

/* Duplicate a descriptor of the process, with the rights that it has there. */
static int duplicate(pid_t pid, int number)
{
	const int process = (int)syscall(SYS_pidfd_open, pid, 0);
	if (process < 0)
		return -errno;
	const int fd = (int)syscall(SYS_pidfd_getfd, process, number, 0);
	const int error = errno;
	close(process);
	return fd < 0 ? -error : fd;
}

/* Report whether it is what memfd_create() makes: files of file systems have names, or cannot be sealed. */
static bool is_new_memfd(int fd)
{
	struct stat file;
	const int flags = fcntl(fd, F_GETFL);
	return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_nlink == 0 &&
	       file.st_size == 0 && fcntl(fd, F_GET_SEALS) == 0 && flags >= 0 &&
	       (flags & O_ACCMODE) == O_RDWR;
}

int ky_remote_take_memfd(const struct ky_remote *remote, int number)
{
	int fd = duplicate(remote->pid, number);
	if (fd == -ENOSYS || fd == -EPERM)
		fd = open_named(remote->pid, number);
	if (fd < 0 || is_new_memfd(fd))
		return fd;
	close(fd);
	return -EPERM;
}
