/* SPDX-License-Identifier: MIT */
/*
 * report_tree.c: kymo report --tree: what was called from where. People see the heaviest branches, indented; programs
 * get flat rows that name their parent, because the depth has no limit.
 */
#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "cli/report.h"
#include "query/filter.h"
#include "query/tree.h"

#include <inttypes.h>

#define INDENT_MAX 100

struct showing {
	const struct ky_report *report;
	const struct ky_tree *tree;
	int64_t all_ns;
	struct ky_cli_table *table;
	bool hidden; /* something was */
};

static bool by_owner(const struct ky_report *report)
{
	return !report->samples && (report->by == KY_BY_THREAD || report->by == KY_BY_PROCESS);
}

static const char *label_of(char *buf, const struct showing *showing, uint32_t node)
{
	const struct ky_report *const report = showing->report;
	const struct ky_tree_node *const at = &showing->tree->nodes[node];
	const bool owner = by_owner(report) && at->depth == 0;
	return ky_cli_by_label(buf, report->trace, owner ? report->by : KY_BY_NAME, at->key);
}

static void print_amount(const struct showing *showing, int64_t amount)
{
	char text[KY_QUANTITY_BYTES];
	if (showing->report->samples)
		ky_cli_table_cell(showing->table,
				  ky_quantity_count(text, amount < 0 ? 0 : (uint64_t)amount));
	else
		ky_cli_table_cell(showing->table, ky_quantity_duration(text, amount));
}

static double share(const struct showing *showing, int64_t ns)
{
	return showing->all_ns ? 100.0 * (double)ns / (double)showing->all_ns : 0;
}

static void print_line(const struct showing *showing, int64_t total, int64_t self, uint64_t count,
		       uint32_t depth, const char *label)
{
	char text[KY_QUANTITY_BYTES], line[INDENT_MAX + 512];
	const int indent = depth * 2 < INDENT_MAX ? (int)(depth * 2) : INDENT_MAX;
	ky_cli_table_format(showing->table, "%.1f %%", share(showing, total));
	print_amount(showing, total);
	print_amount(showing, self);
	ky_cli_table_cell(showing->table, ky_quantity_count(text, count));
	snprintf(line, sizeof(line), "%*s%.500s", indent, "", label);
	ky_cli_table_cell(showing->table, line);
}

/* Print the siblings from node on as one line. */
static void print_rest(struct showing *showing, uint32_t node)
{
	const struct ky_tree_node *const nodes = showing->tree->nodes;
	const uint32_t depth = nodes[node].depth;
	int64_t total = 0, self = 0;
	uint64_t count = 0;
	uint32_t names = 0;
	char text[64];
	for (; node != KY_NONE; node = nodes[node].next, names++) {
		total = ky_add_clamped(total, nodes[node].total_ns);
		self = ky_add_clamped(self, nodes[node].self_ns);
		count += nodes[node].count;
	}
	snprintf(text, sizeof(text), "(%" PRIu32 " more)", names);
	print_line(showing, total, self, count, depth, text);
	showing->hidden = true;
}

static void print_nodes(struct showing *showing)
{
	const struct ky_report *const report = showing->report;
	const struct ky_tree *const tree = showing->tree;
	char text[KY_STATS_LABEL_BYTES];
	for (uint32_t node = tree->first; node != KY_NONE;) {
		const struct ky_tree_node *const at = &tree->nodes[node];
		if (report->limit && at->rank == report->limit && at->next != KY_NONE) {
			print_rest(showing, node);
			node = at->parent == KY_NONE ? KY_NONE
						     : ky_tree_after(tree, at->parent, false);
			continue;
		}
		const bool deeper = !report->depth || at->depth + 1 < report->depth;
		print_line(showing, at->total_ns, at->self_ns, at->count, at->depth,
			   label_of(text, showing, node));
		showing->hidden |= !deeper && at->first != KY_NONE;
		node = ky_tree_after(tree, node, deeper);
	}
}

static void print_text(struct showing *showing)
{
	static const struct ky_cli_column columns[] = {{"share", true, false},
						       {"total", true, false},
						       {"self", true, false},
						       {"count", true, false},
						       {"name", false, true}};
	showing->table = ky_cli_table_new(columns, 5);
	print_nodes(showing);
	ky_cli_table_print(&showing->table, 0);
	if (showing->hidden)
		puts("some is hidden (--limit 0 --depth 0 shows all)");
}

static void print_json(const struct showing *showing)
{
	struct ky_json_out json = {.file = stdout, .lines = 2};
	char text[KY_STATS_LABEL_BYTES];
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "unit", showing->report->samples ? "weight" : "ns");
	ky_info_json_faults(&json, showing->report->trace);
	ky_json_out_begin(&json, "nodes", '[');
	for (uint32_t i = showing->tree->first; i != KY_NONE;
	     i = ky_tree_after(showing->tree, i, true)) {
		const struct ky_tree_node *const node = &showing->tree->nodes[i];
		ky_json_out_begin(&json, NULL, '{');
		ky_json_out_uint(&json, "id", i);
		if (node->parent != KY_NONE)
			ky_json_out_uint(&json, "parent", node->parent);
		ky_json_out_uint(&json, "depth", node->depth);
		ky_json_out_text(&json, "name", label_of(text, showing, i));
		ky_json_out_uint(&json, "count", node->count);
		ky_json_out_int(&json, "total", node->total_ns);
		ky_json_out_int(&json, "self", node->self_ns);
		ky_json_out_end(&json, '}');
	}
	ky_json_out_end(&json, ']');
	ky_json_out_end(&json, '}');
}

static void print_csv(const struct showing *showing)
{
	char text[KY_STATS_LABEL_BYTES];
	puts("id,parent,depth,count,total,self,name");
	for (uint32_t i = showing->tree->first; i != KY_NONE;
	     i = ky_tree_after(showing->tree, i, true)) {
		const struct ky_tree_node *const node = &showing->tree->nodes[i];
		printf("%" PRIu32 ",", i);
		if (node->parent != KY_NONE)
			printf("%" PRIu32, node->parent);
		printf(",%" PRIu32 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",", node->depth,
		       node->count, node->total_ns, node->self_ns);
		ky_report_csv_text(label_of(text, showing, i), '\n');
	}
}

static int make(struct ky_tree *tree, const struct ky_report *report)
{
	if (report->samples)
		return ky_tree_make_samples(tree, report->trace, &report->filter,
					    ky_report_event(report));
	return ky_tree_make(tree, report->trace, by_owner(report) ? report->by : KY_BY_NAME,
			    &report->filter);
}

int ky_report_tree(const struct ky_report *report)
{
	struct ky_tree tree;
	struct showing showing = {.report = report, .tree = &tree};
	const int error = make(&tree, report);
	if (error)
		return error;
	for (uint32_t i = tree.first; i != KY_NONE; i = tree.nodes[i].next)
		showing.all_ns = ky_add_clamped(showing.all_ns, tree.nodes[i].total_ns);
	if (report->output == KY_REPORT_JSON)
		print_json(&showing);
	else if (report->output == KY_REPORT_CSV)
		print_csv(&showing);
	else if (tree.count)
		print_text(&showing);
	const bool none = !tree.count;
	ky_tree_free(&tree);
	return none;
}
