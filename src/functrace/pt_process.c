/* SPDX-License-Identifier: MIT */
/* pt_process.c: see pt_process.h. */
#include "functrace/pt_process.h"
#include "base/file.h"

#include "kymo/kymo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_ROOM 65536u /* in the drum's heap; unused room takes no memory */
#define OWN_MODULE "pt"       /* the category of events that are not functions */

/* The thread whose packets are being written. */
struct telling {
	struct ky_pt_process *process;
	pid_t tid;
};

/* ---- sites ---- */

/*
 * Return the site, or a nameless one: an end belongs to the beginning before it, so no beginning may be left out
 * because it has no site.
 */
static uint32_t or_nameless(const struct ky_pt_process *process, int kind, uint32_t site)
{
	if (site)
		return site;
	return kind == KYMO_KIND_INSTANT ? process->nameless_instant : process->nameless;
}

static uint32_t new_site(struct ky_pt_process *process, int kind, const char *text)
{
	return ky_made_drum_site(&process->drum, kind, OWN_MODULE, text, text, NULL, 0);
}

static uint32_t text_site(struct ky_pt_process *process, int kind, const char *text)
{
	for (uint32_t i = 0; i < process->texts_count; i++)
		if (process->texts[i].kind == kind && strcmp(process->texts[i].text, text) == 0)
			return process->texts[i].site;
	char *copy = process->texts_count < KY_PT_TEXTS_MAX ? strdup(text) : NULL;
	if (!copy)
		return or_nameless(process, kind, 0);
	const uint32_t site = or_nameless(process, kind, new_site(process, kind, text));
	process->texts[process->texts_count++] =
		(struct ky_pt_text){.text = copy, .kind = kind, .site = site};
	return site;
}

/* Return the site of code in no file: it is named by the address of its entry. */
static uint32_t place_site(struct ky_pt_process *process, uint64_t address)
{
	char name[32];
	bool made;
	uint32_t *site = ky_u64_map_find(&process->places, address);
	if (site)
		return *site;
	if (process->places.table.count >= KY_PT_PLACES_MAX ||
	    !(site = ky_u64_map_add(&process->places, address, &made)))
		return process->nameless;
	snprintf(name, sizeof(name), "0x%" PRIx64, address);
	*site = or_nameless(process, KYMO_KIND_BEGIN,
			    ky_made_drum_site(&process->drum, KYMO_KIND_BEGIN, "[code in no file]",
					      name, name, NULL, 0));
	return *site;
}

static uint32_t function_site(struct ky_pt_process *process, uint64_t start)
{
	struct ky_pt_module *module;
	const struct ky_function *function = ky_pt_space_named(&process->space, start, &module);
	if (!function && start == process->space.vdso)
		return text_site(process, KYMO_KIND_BEGIN, "[vdso]");
	if (!function)
		return place_site(process, start);
	uint32_t *site = &module->sites[function - module->functions->functions];
	if (!*site)
		*site = ky_made_drum_site(&process->drum, KYMO_KIND_BEGIN,
					  ky_file_name(module->path), function->name,
					  function->linked, function->file, function->line);
	return or_nameless(process, KYMO_KIND_BEGIN, *site);
}

/* ---- writing ---- */

static bool on_function(void *context, uint64_t address, struct ky_pt_function *function)
{
	const struct telling *telling = context;
	return ky_pt_space_function(&telling->process->space, address, function);
}

static void on_begin(void *context, uint64_t ns, uint64_t start, bool lost)
{
	const struct telling *telling = context;
	(void)lost;
	ky_made_drum_begin(&telling->process->drum, telling->tid, ns,
			   function_site(telling->process, start));
}

static void on_gap(void *context, uint64_t ns, const char *what)
{
	const struct telling *telling = context;
	ky_made_drum_begin(&telling->process->drum, telling->tid, ns,
			   text_site(telling->process, KYMO_KIND_BEGIN, what));
}

static void on_end(void *context, uint64_t ns)
{
	const struct telling *telling = context;
	ky_made_drum_end_span(&telling->process->drum, telling->tid, ns);
}

static void on_instant(void *context, uint64_t ns, const char *text)
{
	const struct telling *telling = context;
	ky_made_drum_instant(&telling->process->drum, telling->tid, ns,
			     text_site(telling->process, KYMO_KIND_INSTANT, text));
}

static void sum_up(struct ky_pt_facts *all, const struct ky_pt_facts *one)
{
	all->blocks += one->blocks;
	all->instructions += one->instructions;
	all->synced += one->synced;
	all->errors += one->errors;
	all->overflows += one->overflows;
	if (!all->from_ns || (one->from_ns && one->from_ns < all->from_ns))
		all->from_ns = one->from_ns;
	if (one->to_ns > all->to_ns)
		all->to_ns = one->to_ns;
}

int ky_pt_process_write(struct ky_pt_process *process, pid_t tid_inside,
			const struct ky_pt_packets *packets, uint64_t *until_ns)
{
	struct telling telling = {.process = process, .tid = tid_inside};
	const struct ky_pt_calls calls = {.function = on_function,
					  .begin = on_begin,
					  .gap = on_gap,
					  .end = on_end,
					  .instant = on_instant,
					  .context = &telling};
	struct ky_pt_facts facts;
	const int error = ky_pt_decode_packets(packets, &process->space.image, &calls, &facts);
	sum_up(&process->facts, &facts);
	*until_ns = facts.to_ns;
	return error;
}

int ky_pt_process_open(struct ky_pt_process *process, pid_t pid,
		       const struct ky_pt_process_options *options)
{
	*process = (struct ky_pt_process){.pid = pid};
	const struct ky_made_drum_options drum = {.pid = options->pid_inside,
						  .fd = -1,
						  .functions = FUNCTIONS_ROOM,
						  .layer = KY_DRUM_FUNCTIONS,
						  .ring_bytes = options->ring_bytes,
						  .total_bytes = options->total_bytes};
	int error = ky_pt_space_open(&process->space, pid, options->selection);
	if (error)
		return error;
	error = ky_made_drum_open(&process->drum, &drum);
	if (error) {
		ky_pt_space_close(&process->space);
		return error;
	}
	process->nameless = new_site(process, KYMO_KIND_BEGIN, "[no room for its name]");
	process->nameless_instant = new_site(process, KYMO_KIND_INSTANT, "[decode error]");
	return 0;
}

void ky_pt_process_close(struct ky_pt_process *process)
{
	ky_pt_space_close(&process->space);
	ky_made_drum_close(&process->drum);
	for (uint32_t i = 0; i < process->texts_count; i++)
		free(process->texts[i].text);
	process->texts_count = 0;
	ky_u64_map_free(&process->places);
}
