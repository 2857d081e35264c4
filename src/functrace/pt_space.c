/* SPDX-License-Identifier: MIT */
/* pt_space.c: see pt_space.h. */
#include "functrace/pt_space.h"

#include "base/array.h"
#include "base/file.h"
#include "process/proc_maps.h"
#include "process/program_file.h"

#include <errno.h>
#include <fcntl.h>
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- the image ---- */

#define PAGE 4096u
#define COPY_BYTES (256u << 10)

int ky_pt_image_open(struct ky_pt_image *image, ky_pt_image_read_fn read, void *context)
{
	*image = (struct ky_pt_image){.read = read, .context = context};
	image->fd = memfd_create("kymo-pt-image", MFD_CLOEXEC);
	return image->fd < 0 ? -errno : 0;
}

void ky_pt_image_close(struct ky_pt_image *image)
{
	pt_image_free(image->image);
	KY_ARRAY_FREE(image->sections, image->room);
	if (image->fd >= 0)
		close(image->fd);
	*image = (struct ky_pt_image){.fd = -1};
}

/* Check that there is room for more bytes. Return 0 or -errno. */
static int check_room(struct ky_pt_image *image, uint64_t bytes)
{
	if (!bytes)
		return -EINVAL;
	if (bytes > KY_PT_IMAGE_MAX || image->used > KY_PT_IMAGE_MAX - bytes)
		return -EFBIG;
	return KY_ARRAY_GROW(image->sections, image->room, image->count + 1) ? 0 : -ENOMEM;
}

static bool covers(const struct ky_pt_section *new_one, const struct ky_pt_section *old)
{
	return old->address >= new_one->address &&
	       old->address - new_one->address <= new_one->bytes &&
	       old->bytes <= new_one->bytes - (old->address - new_one->address);
}

/*
 * Count a section, and drop those that it hides: a library may be loaded and unloaded any number of times. Numbers
 * stay.
 */
static void count_section(struct ky_pt_image *image, const struct ky_pt_section *section)
{
	for (uint32_t i = 0; i < image->count; i++)
		if (covers(section, &image->sections[i]))
			image->sections[i].hidden = true;
	image->sections[image->count++] = *section;
	pt_image_free(image->image);
	image->image = NULL;
}

static void count_new(struct ky_pt_image *image, uint64_t bytes, uint64_t address)
{
	const struct ky_pt_section section = {
		.address = address, .bytes = bytes, .at = image->used};
	image->used += (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	count_section(image, &section);
}

int ky_pt_image_add(struct ky_pt_image *image, const void *code, uint64_t bytes, uint64_t address)
{
	int error = check_room(image, bytes);
	if (error == 0)
		error = ky_file_pwrite_all(image->fd, code, bytes, image->used);
	if (error == 0)
		count_new(image, bytes, address);
	return error;
}

/* Return how many bytes were copied, or -errno. */
static int64_t copy(const struct ky_pt_image *image, int fd, uint64_t offset, uint64_t bytes)
{
	uint64_t done = 0;
	uint8_t *piece = malloc(COPY_BYTES);
	int error = piece ? 0 : -ENOMEM;
	while (done < bytes && error == 0) {
		const uint64_t wanted = bytes - done < COPY_BYTES ? bytes - done : COPY_BYTES;
		const ssize_t got = pread(fd, piece, (size_t)wanted, (off_t)(offset + done));
		if (got <= 0) {
			error = got < 0 ? -errno : 0;
			break;
		}
		error = ky_file_pwrite_all(image->fd, piece, (uint64_t)got, image->used + done);
		done += (uint64_t)got;
	}
	free(piece);
	return error ? error : (int64_t)done;
}

/* Add bytes of a file from an offset on, as many of them as it has. Return 0 or -errno. */
static int add_file(struct ky_pt_image *image, int fd, uint64_t offset, uint64_t bytes,
		    uint64_t address)
{
	const int error = check_room(image, bytes);
	if (error)
		return error;
	const int64_t got = copy(image, fd, offset, bytes);
	if (got <= 0)
		return got < 0 ? (int)got : -ENODATA;
	count_new(image, (uint64_t)got, address);
	return 0;
}

/* Add the bytes of an earlier section of that number, mapped at another address. Return 0 or -errno. */
static int add_again(struct ky_pt_image *image, uint32_t section, uint64_t address)
{
	if (section >= image->count)
		return -EINVAL;
	struct ky_pt_section again = image->sections[section];
	again.address = address;
	again.hidden = false;
	if (!KY_ARRAY_GROW(image->sections, image->room, image->count + 1))
		return -ENOMEM;
	count_section(image, &again);
	return 0;
}

static int read_elsewhere(uint8_t *data, size_t bytes, const struct pt_asid *asid, uint64_t address,
			  void *context)
{
	const struct ky_pt_image *image = context;
	(void)asid;
	const int got = image->read(image->context, address, data, bytes);
	return got > 0 ? got : -pte_nomap;
}

struct pt_image *ky_pt_image_get(struct ky_pt_image *image)
{
	char path[64];
	if (image->image)
		return image->image;
	image->image = pt_image_alloc(NULL);
	if (!image->image)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", image->fd);
	for (uint32_t i = 0; i < image->count; i++) {
		const struct ky_pt_section *section = &image->sections[i];
		if (section->hidden)
			continue;
		/* A section that libipt does not take is unknown code: decoding reports it where it is met. */
		(void)pt_image_add_file(image->image, path, section->at, section->bytes, NULL,
					section->address);
	}
	if (image->read)
		pt_image_set_callback(image->image, read_elsewhere, image);
	return image->image;
}

/* ---- code in no file ---- */

static int read_process(void *context, uint64_t address, void *data, size_t bytes)
{
	const struct ky_pt_space *space = context;
	struct iovec here = {.iov_base = data, .iov_len = bytes};
	struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
	if (!space->live)
		return -1;
	return (int)process_vm_readv(space->pid, &here, 1, &there, 1, 0);
}

/* ---- modules ---- */

static void forget_module(struct ky_pt_module *module)
{
	if (module->fd >= 0)
		close(module->fd);
	free(module->path);
	ky_functions_free(&module->functions);
	free(module->offsets);
	free(module->sites);
	free(module->wanted);
}

/* Return the number of the file's module, made if it is new; or -errno. */
static int64_t find_module(struct ky_pt_space *space, const struct ky_proc_mapping *mapping, int fd)
{
	for (uint32_t i = 0; i < space->modules_count; i++)
		if (space->modules[i].device == mapping->device &&
		    space->modules[i].inode == mapping->inode)
			return i;
	if (!KY_ARRAY_GROW(space->modules, space->modules_room, space->modules_count + 1))
		return -ENOMEM;
	char *path = strdup(mapping->path);
	const int own = path ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (own < 0) {
		const int error = path ? -errno : -ENOMEM;
		free(path);
		return error;
	}
	space->modules[space->modules_count] = (struct ky_pt_module){
		.device = mapping->device, .inode = mapping->inode, .fd = own, .path = path};
	return space->modules_count++;
}

/* ---- mappings ---- */

/* Add the code of a range to the image: from the file, or as it was when the same bytes were mapped before. */
static int add_code(struct ky_pt_space *space, const struct ky_address_range *range, int fd)
{
	const struct ky_pt_code code = {.module = range->module,
					.section = space->image.count,
					.offset = range->offset,
					.bytes = range->end - range->start};
	for (uint32_t i = 0; i < space->codes_count; i++) {
		const struct ky_pt_code *one = &space->codes[i];
		if (one->module == code.module && one->offset == code.offset &&
		    one->bytes == code.bytes)
			return add_again(&space->image, one->section, range->start);
	}
	const int error = add_file(&space->image, fd, code.offset, code.bytes, range->start);
	if (!error)
		(void)KY_ARRAY_ADD(space->codes, space->codes_count, space->codes_room, code);
	return error;
}

/* Add a mapping. The descriptor stays the caller's. */
static int add_mapping(struct ky_pt_space *space, const struct ky_proc_mapping *from, int fd)
{
	const int64_t module = find_module(space, from, fd);
	if (module < 0)
		return (int)module;
	const struct ky_address_range range = {.start = from->start,
					       .end = from->end,
					       .offset = from->offset,
					       .module = (uint32_t)module};
	const int error = add_code(space, &range, fd);
	return ky_address_space_put(&space->mapped, &range) ? error : -ENOMEM;
}

/* Report whether a mapping is there already, and nothing newer covers its start. */
static bool is_known(const struct ky_pt_space *space, const struct ky_proc_mapping *mapping)
{
	const struct ky_address_range *range =
		ky_address_space_find(&space->mapped, mapping->start);
	return range && range->start == mapping->start && range->end == mapping->end &&
	       range->offset == mapping->offset &&
	       space->modules[range->module].device == mapping->device &&
	       space->modules[range->module].inode == mapping->inode;
}

/* Add a mapping of a file as the process has it, unless it is known. Return 0 or -errno. */
static int take_mapping(struct ky_pt_space *space, const struct ky_proc_mapping *mapping)
{
	if (is_known(space, mapping))
		return 0;
	const int fd = ky_proc_maps_open_file(space->pid, mapping);
	if (fd < 0)
		return fd;
	const int error = add_mapping(space, mapping, fd);
	close(fd);
	return error;
}

/* Skip mappings whose file is missing: decoding reports them where their code is met. */
int ky_pt_space_look(struct ky_pt_space *space)
{
	struct ky_program_map map;
	const int error = ky_program_map_read(&map, space->pid);
	if (error)
		return error;
	for (uint32_t i = 0; i < map.count; i++)
		(void)take_mapping(space, &map.mappings[i]);
	ky_pt_space_vdso(space);
	ky_program_map_free(&map);
	return 0;
}

int ky_pt_space_open(struct ky_pt_space *space, pid_t pid, const struct ky_selection *selection)
{
	*space = (struct ky_pt_space){.pid = pid, .selection = selection, .live = true};
	return ky_pt_image_open(&space->image, read_process, space);
}

void ky_pt_space_close(struct ky_pt_space *space)
{
	for (uint32_t i = 0; i < space->modules_count; i++)
		forget_module(&space->modules[i]);
	KY_ARRAY_FREE(space->modules, space->modules_room);
	KY_ARRAY_FREE(space->codes, space->codes_room);
	ky_address_space_free(&space->mapped);
	ky_pt_image_close(&space->image);
	*space = (struct ky_pt_space){.image.fd = -1};
}

int ky_pt_space_map(struct ky_pt_space *space, const struct ky_proc_mapping *mapping)
{
	/* "//anon" and "[vdso]" are not files. */
	const bool is_file = mapping->path[0] == '/' && mapping->path[1] != '/';
	return is_file ? take_mapping(space, mapping) : -ENOENT;
}

/* ---- functions ---- */

/* Read the offset of each segment of code in the file. */
static bool read_offsets(struct ky_pt_module *module)
{
	struct ky_program_file *file;
	const struct ky_functions *functions = module->functions;
	module->offsets = calloc(functions->code_count + 1u, sizeof(*module->offsets));
	module->sites = calloc(functions->count + 1u, sizeof(*module->sites));
	module->wanted = calloc(functions->count + 1u, sizeof(*module->wanted));
	if (!module->offsets || !module->sites || !module->wanted ||
	    ky_program_file_open(&file, module->fd) != 0)
		return false;
	for (uint32_t i = 0; i < functions->code_count; i++)
		if (!ky_program_file_offset(file, functions->code[i].from, &module->offsets[i]))
			module->offsets[i] = UINT64_MAX;
	ky_program_file_close(&file);
	return true;
}

/* Return the functions, read once; NULL: unreadable. */
static const struct ky_functions *functions_of(struct ky_pt_module *module)
{
	char message[KY_MESSAGE_BYTES];
	if (module->fd < 0)
		return module->functions;
	if (ky_functions_read(&module->functions, module->fd, module->path, true, message) != 0)
		module->functions = NULL;
	else if (!read_offsets(module))
		ky_functions_free(&module->functions);
	close(module->fd);
	module->fd = -1;
	return module->functions;
}

/* Find the address that the file has for it; false: it is not its code. */
static bool to_file(const struct ky_pt_module *module, const struct ky_address_range *range,
		    uint64_t address, uint64_t *own)
{
	const uint64_t offset = address - range->start + range->offset;
	for (uint32_t i = 0; i < module->functions->code_count; i++)
		if (offset - module->offsets[i] < module->functions->code[i].bytes &&
		    module->offsets[i] != UINT64_MAX) {
			*own = module->functions->code[i].from + (offset - module->offsets[i]);
			return true;
		}
	return false;
}

/* Return the function, its module, and the distance of its file's addresses from the process's. */
static const struct ky_function *look_up(struct ky_pt_space *space, uint64_t address,
					 struct ky_pt_module **module, uint64_t *bias)
{
	const struct ky_address_range *range = ky_address_space_find(&space->mapped, address);
	uint64_t own;
	*module = range ? &space->modules[range->module] : NULL;
	if (!range || !functions_of(*module) || !to_file(*module, range, address, &own))
		return NULL;
	*bias = address - own;
	return ky_functions_over((*module)->functions, own);
}

/* Report whether it is selected. Asked once: the selection's patterns take longer than all the rest. */
static bool is_wanted(const struct ky_pt_space *space, const struct ky_pt_module *module,
		      const struct ky_function *function)
{
	uint8_t *wanted = &module->wanted[function - module->functions->functions];
	if (!space->selection)
		return true;
	if (!*wanted)
		*wanted = ky_selection_wants(space->selection, module->functions, function) ? 1 : 2;
	return *wanted == 1;
}

bool ky_pt_space_function(struct ky_pt_space *space, uint64_t address,
			  struct ky_pt_function *function)
{
	struct ky_pt_module *module;
	uint64_t bias;
	if (address - space->vdso < space->vdso_bytes) {
		*function = (struct ky_pt_function){.start = space->vdso,
						    .from = space->vdso,
						    .to = space->vdso + space->vdso_bytes,
						    .shown = true};
		return true;
	}
	const struct ky_function *found = look_up(space, address, &module, &bias);
	/*
	 * Show code of no file by its address (JITs); nameless code of a file consists of stubs and parts of functions.
	 */
	*function = (struct ky_pt_function){.shown = !module};
	if (!found)
		return false;
	*function = (struct ky_pt_function){.start = bias + found->address,
					    .from = bias + found->address,
					    .to = bias + found->address + found->bytes,
					    .shown = is_wanted(space, module, found)};
	return true;
}

const struct ky_function *ky_pt_space_named(struct ky_pt_space *space, uint64_t start,
					    struct ky_pt_module **module)
{
	uint64_t bias;
	const struct ky_function *found = look_up(space, start, module, &bias);
	return found && found->address + bias == start ? found : NULL;
}

/* ---- the vDSO ---- */

#define VDSO_BYTES_MAX (64u << 10)

static bool find_range(pid_t pid, uint64_t *from, uint64_t *to)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	bool found = false;
	(void)ky_proc_maps_open(&maps, pid);
	while (!found && ky_proc_maps_next(&maps, &mapping))
		found = strcmp(mapping.path, "[vdso]") == 0 &&
			mapping.end - mapping.start <= VDSO_BYTES_MAX;
	if (found) {
		*from = mapping.start;
		*to = mapping.end;
	}
	ky_proc_maps_close(&maps);
	return found;
}

/*
 * Read the code; where another process's memory is forbidden, kymo's own: it is the same for all processes of the
 * same kind.
 */
static bool read_code(pid_t pid, uint64_t from, uint8_t *code, size_t bytes)
{
	struct iovec here = {.iov_base = code, .iov_len = bytes};
	struct iovec there = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes)
		return true;
	const uint64_t own = getauxval(AT_SYSINFO_EHDR);
	uint64_t own_from, own_to;
	if (!own || !find_range(getpid(), &own_from, &own_to) || own_to - own_from != bytes)
		return false;
	memcpy(code, (const void *)(uintptr_t)own_from, bytes);
	return true;
}

void ky_pt_space_vdso(struct ky_pt_space *space)
{
	uint64_t from, to;
	if (!find_range(space->pid, &from, &to) || from == space->vdso)
		return;
	const size_t bytes = (size_t)(to - from);
	uint8_t *code = malloc(bytes);
	if (code && read_code(space->pid, from, code, bytes) &&
	    ky_pt_image_add(&space->image, code, bytes, from) == 0) {
		space->vdso = from;
		space->vdso_bytes = bytes;
	}
	free(code);
}
