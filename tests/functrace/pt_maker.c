/* SPDX-License-Identifier: MIT */
/* pt_maker.c: see pt_maker.h. */
#include "pt_maker.h"

#include <intel-pt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct ky_pt_cpu pt_made_cpu = {
	.ctc_numerator = 2, .ctc_denominator = 1, .mtc_period = 3, .nominal_ratio = 10};

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "pt_maker: %s\n", what);
	abort();
}

void pt_made_open(struct pt_made *made, size_t aux_room)
{
	struct pt_config config;
	memset(made, 0, sizeof(*made));
	memset(made->code, 0x90, sizeof(made->code));
	made->aux_room = aux_room;
	made->aux = calloc(1, aux_room);
	must(made->aux, "no memory");
	pt_config_init(&config);
	config.begin = made->aux;
	config.end = made->aux + aux_room;
	made->encoder = pt_alloc_encoder(&config);
	must(made->encoder, "no encoder");
}

void pt_made_close(struct pt_made *made)
{
	pt_free_encoder(made->encoder);
	free(made->aux);
	free(made->text);
}

/* ---- code ---- */

void pt_function(struct pt_made *made, const char *name, uint64_t start, uint64_t bytes)
{
	must(made->functions_count < 16, "too many functions");
	made->functions[made->functions_count++] =
		(struct pt_made_function){.name = name, .start = start, .bytes = bytes};
}

static void put_byte(struct pt_made *made, uint64_t at, unsigned int byte)
{
	must(at - PT_CODE_AT < PT_CODE_BYTES, "code outside");
	made->code[at - PT_CODE_AT] = (uint8_t)byte;
}

uint64_t pt_code(struct pt_made *made, uint64_t at, const char *hex)
{
	unsigned int byte;
	for (int n; sscanf(hex, "%2x%n", &byte, &n) == 1; hex += n)
		put_byte(made, at++, byte);
	return at;
}

uint64_t pt_branch(struct pt_made *made, uint64_t at, const char *opcode, uint64_t to)
{
	at = pt_code(made, at, opcode);
	const uint32_t distance = (uint32_t)(to - (at + 4));
	for (unsigned int i = 0; i < 4; i++)
		put_byte(made, at++, distance >> (8 * i) & 0xff);
	return at;
}

/* ---- packets ---- */

static void put_packet(struct pt_made *made, const struct pt_packet *packet)
{
	const int bytes = pt_enc_next(made->encoder, packet);
	must(bytes > 0, "the encoder refuses");
	made->aux_bytes += (size_t)bytes;
}

static void put_ip(struct pt_made *made, enum pt_packet_type type, uint64_t ip)
{
	struct pt_packet packet = {.type = type};
	packet.payload.ip.ipc = ip ? pt_ipc_sext_48 : pt_ipc_suppressed;
	packet.payload.ip.ip = ip;
	put_packet(made, &packet);
}

static void put_plain(struct pt_made *made, enum pt_packet_type type)
{
	const struct pt_packet packet = {.type = type};
	put_packet(made, &packet);
}

void pt_psb(struct pt_made *made, uint64_t ip, uint64_t tsc)
{
	struct pt_packet mode = {.type = ppt_mode};
	put_plain(made, ppt_psb);
	pt_tsc(made, tsc);
	mode.payload.mode.leaf = pt_mol_exec;
	mode.payload.mode.bits.exec = pt_set_exec_mode(ptem_64bit);
	put_packet(made, &mode);
	if (ip)
		pt_fup(made, ip);
	put_plain(made, ppt_psbend);
}

void pt_tnt(struct pt_made *made, const char *bits)
{
	struct pt_packet packet = {.type = ppt_tnt_8};
	packet.payload.tnt.bit_size = (uint8_t)strlen(bits);
	for (; *bits; bits++)
		packet.payload.tnt.payload = packet.payload.tnt.payload << 1 | (*bits == 't');
	if (packet.payload.tnt.bit_size > 6)
		packet.type = ppt_tnt_64;
	put_packet(made, &packet);
}

void pt_tip(struct pt_made *made, uint64_t ip)
{
	put_ip(made, ppt_tip, ip);
}

void pt_pge(struct pt_made *made, uint64_t ip)
{
	put_ip(made, ppt_tip_pge, ip);
}

void pt_pgd(struct pt_made *made, uint64_t ip)
{
	put_ip(made, ppt_tip_pgd, ip);
}

void pt_fup(struct pt_made *made, uint64_t ip)
{
	put_ip(made, ppt_fup, ip);
}

void pt_ovf(struct pt_made *made)
{
	put_plain(made, ppt_ovf);
}

void pt_tsc(struct pt_made *made, uint64_t tsc)
{
	struct pt_packet packet = {.type = ppt_tsc};
	packet.payload.tsc.tsc = tsc;
	put_packet(made, &packet);
}

void pt_tma(struct pt_made *made, uint16_t ctc)
{
	struct pt_packet packet = {.type = ppt_tma};
	packet.payload.tma.ctc = ctc;
	put_packet(made, &packet);
}

void pt_mtc(struct pt_made *made, uint8_t ctc)
{
	struct pt_packet packet = {.type = ppt_mtc};
	packet.payload.mtc.ctc = ctc;
	put_packet(made, &packet);
}

void pt_cyc(struct pt_made *made, uint64_t cycles)
{
	struct pt_packet packet = {.type = ppt_cyc};
	packet.payload.cyc.value = cycles;
	put_packet(made, &packet);
}

void pt_cbr(struct pt_made *made, uint8_t ratio)
{
	struct pt_packet packet = {.type = ppt_cbr};
	packet.payload.cbr.ratio = ratio;
	put_packet(made, &packet);
}

void pt_pip(struct pt_made *made, uint64_t cr3)
{
	struct pt_packet packet = {.type = ppt_pip};
	packet.payload.pip.cr3 = cr3;
	put_packet(made, &packet);
}

/* ---- decoding ---- */

__attribute__((format(printf, 2, 3))) static void say(struct pt_made *made, const char *format, ...)
{
	char piece[256];
	va_list args;
	if (made->silent)
		return;
	va_start(args, format);
	const int bytes = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	made->text = realloc(made->text, made->text_bytes + (size_t)bytes + 2);
	must(made->text, "no memory");
	if (made->text_bytes)
		made->text[made->text_bytes++] = ' ';
	memcpy(made->text + made->text_bytes, piece, (size_t)bytes + 1);
	made->text_bytes += (size_t)bytes;
}

static void say_time(struct pt_made *made, uint64_t ns)
{
	must(ns >= made->last_ns, "time goes back");
	made->last_ns = ns;
	if (made->times)
		say(made, "%" PRIu64, ns);
}

static bool find(void *context, uint64_t address, struct ky_pt_function *function)
{
	const struct pt_made *made = context;
	for (uint32_t i = 0; i < made->functions_count; i++) {
		const struct pt_made_function *one = &made->functions[i];
		if (address - one->start >= one->bytes)
			continue;
		*function = (struct ky_pt_function){.start = one->of ? one->of : one->start,
						    .from = one->start,
						    .to = one->start + one->bytes,
						    .shown = !one->hidden};
		return true;
	}
	function->shown = true;
	return false;
}

static void on_begin(void *context, uint64_t ns, uint64_t start, bool lost)
{
	struct pt_made *made = context;
	made->begins++;
	made->open++;
	say_time(made, ns);
	for (uint32_t i = 0; i < made->functions_count; i++)
		if (made->functions[i].start == start) {
			say(made, "%s%s{", lost ? "~" : "", made->functions[i].name);
			return;
		}
	say(made, "%s0x%" PRIx64 "{", lost ? "~" : "", start);
}

static void on_gap(void *context, uint64_t ns, const char *what)
{
	struct pt_made *made = context;
	made->open++;
	say_time(made, ns);
	say(made, "%s{", what);
}

static void on_end(void *context, uint64_t ns)
{
	struct pt_made *made = context;
	must(made->open > 0, "an end without a begin");
	made->open--;
	made->ends++;
	say_time(made, ns);
	say(made, "}");
}

static void on_instant(void *context, uint64_t ns, const char *text)
{
	struct pt_made *made = context;
	const bool silent = made->silent;
	say_time(made, ns);
	made->silent = false;
	say(made, "%s", text);
	made->silent = silent;
}

void pt_decode_part(struct pt_made *made, size_t from, size_t bytes, uint64_t since)
{
	struct ky_pt_image image;
	const struct ky_pt_calls calls = {.function = find,
					  .begin = on_begin,
					  .gap = on_gap,
					  .end = on_end,
					  .instant = on_instant,
					  .context = made};
	const struct ky_pt_packets packets = {
		.aux = made->aux + from, .bytes = bytes, .cpu = pt_made_cpu, .since_ns = since};
	free(made->text);
	made->text = NULL;
	made->text_bytes = 0;
	made->last_ns = 0;
	must(ky_pt_image_open(&image, NULL, NULL) == 0, "no image");
	must(ky_pt_image_add(&image, made->code, sizeof(made->code), PT_CODE_AT) == 0, "no code");
	must(ky_pt_decode_packets(&packets, &image, &calls, &made->facts) == 0, "not decoded");
	must(made->open == 0, "something was left open");
	ky_pt_image_close(&image);
}

/* Save an input for the corpus of fuzz_pt: the number of bytes of code, the code, the packets. */
static void save(const struct pt_made *made, const char *folder)
{
	static uint32_t number;
	char path[4096];
	const uint16_t code_bytes = 0xa00;
	snprintf(path, sizeof(path), "%s/%02u", folder, number++);
	FILE *file = made->aux_bytes < 16384 ? fopen(path, "we") : NULL;
	if (!file)
		return;
	fwrite(&code_bytes, sizeof(code_bytes), 1, file);
	fwrite(made->code, 1, code_bytes, file);
	fwrite(made->aux, 1, made->aux_bytes, file);
	fclose(file);
}

const char *pt_decode_text(struct pt_made *made)
{
	const char *folder = getenv("KYMO_TEST_SAVE_PACKETS");
	if (folder)
		save(made, folder);
	pt_decode_part(made, 0, made->aux_bytes, 0);
	return made->text ? made->text : "";
}
