/* SPDX-License-Identifier: MIT */
/* doctor_functions_json.c: what kymo doctor PROGRAM found, for machines: see doctor_functions.h. */
#include "cli/doctor_functions.h"

#include "cli/cli_json.h"

static void json_build_id(struct ky_cli_json *json, const struct ky_functions *functions)
{
	char text[2 * sizeof(functions->build_id) + 1] = "";
	for (uint32_t i = 0; i < functions->build_id_bytes; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", functions->build_id[i]);
	ky_cli_json_text(json, "build_id", text[0] ? text : NULL);
}

static void json_reasons(struct ky_cli_json *json, const struct ky_doctor_sums *sums)
{
	ky_cli_json_begin(json, "left_out", '[');
	for (size_t why = KY_WHY_NONE + 1; why < KY_WHY_COUNT; why++) {
		if (!sums->why[why])
			continue;
		ky_cli_json_begin(json, NULL, '{');
		ky_cli_json_text(json, "why", ky_function_why_text((enum ky_function_why)why));
		ky_cli_json_uint(json, "count", sums->why[why]);
		ky_cli_json_begin(json, "examples", '[');
		for (size_t i = 0; i < KY_DOCTOR_EXAMPLES && sums->examples[why][i]; i++)
			ky_cli_json_text(json, NULL, sums->examples[why][i]);
		ky_cli_json_end(json, ']');
		ky_cli_json_end(json, '}');
	}
	ky_cli_json_end(json, ']');
}

static void json_all(struct ky_cli_json *json, const struct ky_functions *functions)
{
	ky_cli_json_begin(json, "functions_left_out", '[');
	for (uint32_t i = 0; i < functions->count; i++) {
		const struct ky_function *function = &functions->functions[i];
		if (function->how != KY_FUNCTION_NOT)
			continue;
		ky_cli_json_begin(json, NULL, '{');
		ky_cli_json_text(json, "name", function->name);
		ky_cli_json_uint(json, "address", function->address);
		ky_cli_json_uint(json, "bytes", function->bytes);
		ky_cli_json_text(json, "why", ky_function_why_text(function->why));
		ky_cli_json_end(json, '}');
	}
	ky_cli_json_end(json, ']');
}

static void json_module(struct ky_cli_json *json, const struct ky_doctor_module *module, bool all)
{
	const struct ky_doctor_sums *sums = &module->sums;
	ky_cli_json_begin(json, NULL, '{');
	ky_cli_json_text(json, "path", module->functions->path);
	json_build_id(json, module->functions);
	ky_cli_json_uint(json, "functions", sums->count);
	ky_cli_json_uint(json, "traced", ky_doctor_traced(sums));
	ky_cli_json_uint(json, "named", sums->named);
	ky_cli_json_text(json, "names_from", module->functions->names_from);
	ky_cli_json_uint(json, "patch", sums->how[KY_FUNCTION_PATCH]);
	ky_cli_json_uint(json, "nops", sums->how[KY_FUNCTION_NOPS]);
	ky_cli_json_uint(json, "sleds", sums->how[KY_FUNCTION_SLED]);
	ky_cli_json_bool(json, "instrumented", module->functions->calls_cyg);
	json_reasons(json, sums);
	if (all)
		json_all(json, module->functions);
	ky_cli_json_end(json, '}');
}

void ky_doctor_print_json(const struct ky_doctor_modules *modules, bool all)
{
	struct ky_cli_json json = {.to = stdout, .lines = 2};
	ky_cli_json_begin(&json, NULL, '{');
	ky_cli_json_text(&json, "program", modules->items[0].functions->path);
	ky_cli_json_text(&json, "engine", ky_functrace_engine_name(modules->engine));
	ky_cli_json_text(&json, "engine_why", modules->engine_why);
	ky_cli_json_uint(&json, "functions", modules->sums.count);
	ky_cli_json_uint(&json, "traced", ky_doctor_traced(&modules->sums));
	ky_cli_json_real(&json, "percent", ky_doctor_percent(&modules->sums));
	ky_cli_json_begin(&json, "modules", '[');
	for (size_t i = 0; i < modules->count; i++)
		json_module(&json, &modules->items[i], all);
	ky_cli_json_end(&json, ']');
	ky_cli_json_end(&json, '}');
}
