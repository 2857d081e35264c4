/* SPDX-License-Identifier: MIT */
/* output.c: begin, write and finish files, even when the disk is full or the descriptor is gone. */
#include "sink/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (512u << 10)

/*
 * Report whether fd is still ours. Programs close descriptors that they do not know (all from 3 on, when they become a
 * daemon), and the next file they open gets the number: we must neither write to it nor close it.
 */
static bool is_ours(const struct ky_output *output)
{
	struct stat status;
	return output->fd >= 0 && fstat(output->fd, &status) == 0 &&
	       status.st_dev == output->device && status.st_ino == output->inode;
}

static void remember(struct ky_output *output)
{
	struct stat status;
	if (fstat(output->fd, &status) != 0)
		return;
	output->device = status.st_dev;
	output->inode = status.st_ino;
}

static int write_fd(void *context, const void *data, size_t bytes)
{
	struct ky_output *output = context;
	const int error = is_ours(output) ? ky_path_write(output->fd, data, bytes) : -EBADF;
	if (error == 0)
		output->file_bytes += bytes;
	return error;
}

static int push_bytes(struct ky_out *out, const void *data, size_t bytes)
{
	struct ky_output *output = out->context;
	if (output->gzip)
		return ky_gzip_write(output->gzip, data, bytes, KY_GZIP_MORE, write_fd, output);
	return write_fd(output, data, bytes);
}

int ky_output_init(struct ky_output *output, int format)
{
	memset(output, 0, sizeof(*output));
	output->fd = -1;
	output->format = ky_format_by_id(format);
	output->compressed = format == KYMO_FORMAT_JSON_GZ || format == KYMO_FORMAT_FXT_GZ;
	if (!output->format)
		return KYMO_EFORMAT;
	int error = output->compressed ? ky_gzip_load() : 0;
	if (format == KYMO_FORMAT_KYMO)
		(void)ky_zstd_load(); /* without it the file is stored uncompressed */
	if (error == 0)
		error = ky_out_init(&output->out, BUFFER_BYTES);
	output->out.push = push_bytes;
	output->out.context = output;
	return error;
}

static void close_writer(struct ky_output *output)
{
	if (output->writer)
		output->format->close(output->writer);
	output->writer = NULL;
	ky_gzip_close(&output->gzip);
	output->out.used = 0;
}

static void abandon(struct ky_output *output);

void ky_output_free(struct ky_output *output)
{
	abandon(output);
	ky_out_free(&output->out);
}

static int begin(struct ky_output *output, const struct ky_trace_info *info)
{
	output->total_bytes += output->file_bytes;
	output->file_bytes = 0;
	output->out.used = 0;
	output->out.error = 0;
	remember(output);
	int error = output->compressed ? ky_gzip_open(&output->gzip, 0) : 0;
	if (error == 0)
		error = output->format->open(&output->writer, &output->out, info);
	if (error)
		abandon(output);
	else
		output->files++;
	return error;
}

int ky_output_begin(struct ky_output *output, const char *path, bool replacing,
		    const struct ky_trace_info *info)
{
	output->replacing = replacing;
	if (replacing) {
		const int error = ky_path_replace(&output->replacement, path);
		if (error)
			return error;
		output->fd = output->replacement.fd;
		strncpy(output->path, path, sizeof(output->path) - 1);
	} else {
		output->fd = ky_path_open(path, info->pid, output->path, sizeof(output->path));
		if (output->fd < 0) {
			const int error = output->fd;
			output->fd = -1;
			return error;
		}
	}
	return begin(output, info);
}

uint64_t ky_output_identity(const struct ky_output *output)
{
	return ky_path_identity(output->device, output->inode);
}

/* Perfetto's packets and FXT's records follow one another; JSON's list goes on; the others have one end. */
int ky_output_resume(struct ky_output *output, const char *path, uint64_t identity,
		     const struct ky_trace_info *info)
{
	static const char json_end[] = "\n]\n";
	const bool json = output->format->id == KYMO_FORMAT_JSON;
	if (output->compressed || output->format->id == KYMO_FORMAT_KYMO)
		return -ENOTSUP;
	output->replacing = false;
	output->fd = ky_path_reopen(path, info->pid, identity, json ? json_end : "", output->path,
				    sizeof(output->path));
	if (output->fd < 0) {
		const int error = output->fd;
		output->fd = -1;
		return error;
	}
	const int error = begin(output, info);
	if (error == 0 && json) /* the list's "[" */
		output->out.data[0] = ',';
	return error;
}

/*
 * Reopen a pipe, so that O_NONBLOCK is set for us alone and not for everybody who shares the descriptor: a pipe without a
 * reader must not hold up the end of the program. Return a negative value on failure.
 */
static int reopen_pipe(int fd)
{
	struct stat status;
	char name[32];
	if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode))
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

int ky_output_duplicate(int fd)
{
	const int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	const int pipe = reopen_pipe(fd);
	if (pipe > STDERR_FILENO)
		return pipe;
	const int own = fcntl(pipe < 0 ? fd : pipe, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	const int error = -errno;
	if (pipe >= 0)
		close(pipe);
	return own < 0 ? error : own;
}

int ky_output_begin_fd(struct ky_output *output, int fd, const struct ky_trace_info *info)
{
	output->replacing = false;
	output->path[0] = '\0';
	output->fd = fd;
	return begin(output, info);
}

void ky_output_push(struct ky_output *output, bool all)
{
	if (!output->writer || (!all && !ky_output_is_full(output)))
		return;
	if (all && output->format->flush)
		output->format->flush(output->writer);
	ky_out_push(&output->out);
	if (!all || !output->gzip || output->out.error)
		return;
	output->out.error = ky_gzip_write(output->gzip, NULL, 0, KY_GZIP_SYNC, write_fd, output);
}

/*
 * Close the descriptor; a close that fails (a full disk over the network) is an error, too. A child forked at the same
 * time finds the number or not, but never one that is closed already: the signal fence orders the store before the close.
 */
static int close_file(struct ky_output *output)
{
	const bool ours = is_ours(output);
	const int fd = output->fd;
	__atomic_store_n(&output->fd, -1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return ours && close(fd) != 0 && errno != EINTR ? -errno : 0;
}

/* The same with a file that replaces another, if keep is set. */
static int close_replacement(struct ky_output *output, bool keep)
{
	const bool ours = is_ours(output);
	__atomic_store_n(&output->fd, -1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!ours)
		output->replacement.fd = -1;
	if (ours && keep)
		return ky_path_replace_finish(&output->replacement);
	ky_path_replace_abandon(&output->replacement);
	return ours ? 0 : -EBADF;
}

int ky_output_finish(struct ky_output *output, uint64_t lost)
{
	if (!output->writer)
		return 0;
	output->format->finish(output->writer, lost);
	ky_out_push(&output->out);
	int error = output->out.error;
	if (error == 0 && output->gzip)
		error = ky_gzip_write(output->gzip, NULL, 0, KY_GZIP_FINISH, write_fd, output);
	close_writer(output);
	const int close_error =
		output->replacing ? close_replacement(output, error == 0) : close_file(output);
	output->replacing = false;
	return error ? error : close_error;
}

/* Drop a file that could not be written; a stream keeps what was written. */
static void abandon(struct ky_output *output)
{
	close_writer(output);
	if (output->replacing && output->fd >= 0)
		close_replacement(output, false);
	else
		close_file(output);
	output->replacing = false;
}

void ky_output_forget(struct ky_output *output)
{
	if (is_ours(output))
		close(output->fd);
	output->fd = -1;
}
