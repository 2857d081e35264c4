/* SPDX-License-Identifier: MIT */
/* doctor_functions_json.c: what kymo doctor PROGRAM found, for machines: see doctor_functions.h. */
#include "cli/doctor_functions.h"

#include "base/json_out.h"

static void json_build_id(struct ky_json_out *json, const struct ky_functions *functions)
{
	char text[2 * sizeof(functions->build_id) + 1] = "";
	for (uint32_t i = 0; i < functions->build_id_bytes; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", functions->build_id[i]);
	ky_json_out_text(json, "build_id", text[0] ? text : NULL);
}

static void json_reasons(struct ky_json_out *json, const struct ky_doctor_sums *sums)
{
	ky_json_out_begin(json, "left_out", '[');
	for (size_t why = KY_WHY_NONE + 1; why < KY_WHY_COUNT; why++) {
		if (!sums->why[why])
			continue;
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "why", ky_function_why_text((enum ky_function_why)why));
		ky_json_out_uint(json, "count", sums->why[why]);
		ky_json_out_begin(json, "examples", '[');
		for (size_t i = 0; i < KY_DOCTOR_EXAMPLES && sums->examples[why][i]; i++)
			ky_json_out_text(json, NULL, sums->examples[why][i]);
		ky_json_out_end(json, ']');
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void json_all(struct ky_json_out *json, const struct ky_functions *functions)
{
	ky_json_out_begin(json, "functions_left_out", '[');
	for (uint32_t i = 0; i < functions->count; i++) {
		const struct ky_function *function = &functions->functions[i];
		if (function->how != KY_FUNCTION_NOT)
			continue;
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "name", function->name);
		ky_json_out_uint(json, "address", function->address);
		ky_json_out_uint(json, "bytes", function->bytes);
		ky_json_out_text(json, "why", ky_function_why_text(function->why));
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void json_module(struct ky_json_out *json, const struct ky_doctor_module *module, bool all)
{
	const struct ky_doctor_sums *sums = &module->sums;
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_text(json, "path", module->functions->path);
	json_build_id(json, module->functions);
	ky_json_out_uint(json, "functions", sums->count);
	ky_json_out_uint(json, "traced", ky_doctor_traced(sums));
	ky_json_out_uint(json, "named", sums->named);
	ky_json_out_text(json, "names_from", module->functions->names_from);
	ky_json_out_uint(json, "patch", sums->how[KY_FUNCTION_PATCH]);
	ky_json_out_uint(json, "nops", sums->how[KY_FUNCTION_NOPS]);
	ky_json_out_uint(json, "sleds", sums->how[KY_FUNCTION_SLED]);
	ky_json_out_bool(json, "instrumented", module->functions->calls_cyg);
	json_reasons(json, sums);
	if (all)
		json_all(json, module->functions);
	ky_json_out_end(json, '}');
}

void ky_doctor_print_json(const struct ky_doctor_modules *modules, bool all)
{
	struct ky_json_out json = {.file = stdout, .lines = 2};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "program", modules->items[0].functions->path);
	ky_json_out_text(&json, "engine", ky_functrace_engine_name(modules->engine));
	ky_json_out_text(&json, "engine_why", modules->engine_why);
	ky_json_out_uint(&json, "functions", modules->sums.count);
	ky_json_out_uint(&json, "traced", ky_doctor_traced(&modules->sums));
	ky_json_out_real(&json, "percent", ky_doctor_percent(&modules->sums));
	ky_json_out_begin(&json, "modules", '[');
	for (size_t i = 0; i < modules->count; i++)
		json_module(&json, &modules->items[i], all);
	ky_json_out_end(&json, ']');
	ky_json_out_end(&json, '}');
}
