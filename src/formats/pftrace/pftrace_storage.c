/* SPDX-License-Identifier: MIT */
/*
 * pftrace_storage.c: ftrace events of storage: commands to UFS devices, and the statistics of f2fs file systems.
 * Names of tracks are Perfetto's.
 */
#include "formats/pftrace/pftrace_reader.h"

/* ---- UFS ---- */

static const struct {
	uint8_t code;
	const char *name;
} ufs_commands[] = {
	{0, "TEST UNIT READY"},
	{3, "REQUEST SENSE"},
	{4, "FORMAT UNIT"},
	{8, "READ (6)"},
	{10, "WRITE (6)"},
	{18, "INQUIRY"},
	{27, "START STOP UNIT"},
	{29, "SEND DIAGNOSTIC"},
	{37, "READ CAPACITY (10)"},
	{40, "READ (10)"},
	{42, "WRITE (10)"},
	{47, "VERIFY"},
	{52, "PRE-FETCH (10)"},
	{53, "SYNCHRONIZE CACHE (10)"},
	{59, "WRITE BUFFER"},
	{60, "READ BUFFER"},
	{66, "UNMAP"},
	{85, "MODE SELECT (10)"},
	{90, "MODE SENSE (10)"},
	{136, "READ (16)"},
	{138, "WRITE (16)"},
	{144, "PRE-FETCH (16)"},
	{145, "SYNCHRONIZE CACHE (16)"},
	{158, "READ CAPACITY (16)"},
	{160, "REPORT LUNS"},
	{162, "SECURITY PROTOCOL IN"},
	{181, "SECURITY PROTOCOL OUT"},
};

static uint32_t ufs_name(struct ky_pf *pf, uint32_t code, uint32_t group)
{
	const char *name = "UNDEFINED";
	for (size_t i = 0; i < sizeof(ufs_commands) / sizeof(*ufs_commands); i++)
		if (ufs_commands[i].code == code)
			name = ufs_commands[i].name;
	return group ? ky_pf_name(pf, "%s (GID=0x%x)", name, group) : ky_string_z(pf->trace, name);
}

static void ufs_command(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			const struct ky_pf_parts *parts)
{
	const uint32_t doorbell = (uint32_t)parts->values[2], tag = (uint32_t)parts->values[7];
	const bool ends = parts->values[10] != 0;
	const int waiting = doorbell ? __builtin_popcount(doorbell) : parts->values[10] != 1;
	ky_pf_put(pf, event->ts, "ufs_command_count",
		  ky_string_z(pf->trace, "io.ufs.command.count"), waiting);
	const uint32_t track = ky_pf_slice_track(
		pf, "ufs_command_tag", ky_pf_name(pf, "io.ufs.command.tag[%03u]", tag), tag);
	if (ends)
		ky_put_end(pf->trace, event->ts, track, 0, 0, 0);
	else
		ky_put_begin(pf->trace, event->ts, track, 0,
			     ufs_name(pf, (uint32_t)parts->values[5], (uint32_t)parts->values[9]),
			     0);
}

/* The counter goes up as the clock does: off, asked to go off, asked to go on, on. */
static void ufs_clock(struct ky_pf *pf, const struct ky_pf_ftrace *event,
		      const struct ky_pf_parts *parts)
{
	static const uint8_t levels[] = {0, 3, 1, 2};
	const uint64_t state = parts->values[2];
	ky_pf_put(pf, event->ts, "ufs_clkgating",
		  ky_string_z(pf->trace, "io.ufs.clkgating (OFF:0/REQ_OFF/REQ_ON/ON:3)"),
		  state < sizeof(levels) ? levels[state] : 0);
}

/* ---- f2fs ---- */

#define F2FS_FIELDS 32u

struct f2fs_counter {
	const char *name;
	uint8_t field;
};

static const struct f2fs_counter f2fs_amounts[] = {
	{"write_app_total", 8},   {"write_app_direct", 3}, {"write_app_buffered", 1},
	{"write_app_mapped", 5},  {"write_fs_data", 14},   {"write_fs_node", 22},
	{"write_fs_meta", 20},    {"write_gc_data", 17},   {"write_gc_node", 18},
	{"write_cp_data", 11},    {"write_cp_node", 13},   {"write_cp_meta", 12},
	{"read_app_total", 7},    {"read_app_direct", 4},  {"read_app_buffered", 2},
	{"read_app_mapped", 6},   {"read_fs_data", 16},    {"read_fs_gdata", 19},
	{"read_fs_cdata", 10},    {"read_fs_node", 23},    {"read_fs_meta", 21},
	{"other_fs_discard", 15},
};
static const struct f2fs_counter f2fs_latencies[] = {
	{"read_data_peak", 3},         {"read_data_avg", 1},         {"read_data_cnt", 2},
	{"read_node_peak", 22},        {"read_node_avg", 20},        {"read_node_cnt", 21},
	{"read_meta_peak", 13},        {"read_meta_avg", 11},        {"read_meta_cnt", 12},
	{"write_sync_data_peak", 9},   {"write_sync_data_avg", 7},   {"write_sync_data_cnt", 8},
	{"write_sync_node_peak", 28},  {"write_sync_node_avg", 26},  {"write_sync_node_cnt", 27},
	{"write_sync_meta_peak", 19},  {"write_sync_meta_avg", 17},  {"write_sync_meta_cnt", 18},
	{"write_async_data_peak", 6},  {"write_async_data_avg", 4},  {"write_async_data_cnt", 5},
	{"write_async_node_peak", 25}, {"write_async_node_avg", 23}, {"write_async_node_cnt", 24},
	{"write_async_meta_peak", 16}, {"write_async_meta_avg", 14}, {"write_async_meta_cnt", 15},
};

/* More fields than other events have: they are read here. */
static void f2fs(struct ky_pf *pf, const struct ky_pf_ftrace *event, const char *type,
		 uint32_t device_field, const struct f2fs_counter *counters, size_t count)
{
	uint64_t values[F2FS_FIELDS] = {0};
	struct ky_proto_in in = ky_proto_open(event->all);
	struct ky_proto_field field;
	while (ky_proto_next(&in, &field))
		if (field.id < F2FS_FIELDS)
			values[field.id] = field.value;
	const unsigned device = (unsigned)values[device_field];
	for (size_t i = 0; i < count; i++)
		ky_pf_put(pf, event->ts, type,
			  ky_pf_name(pf, "%s.[%u:%u].%s", type, device >> 8 & 0xff, device & 0xff,
				     counters[i].name),
			  (double)values[counters[i].field]);
}

bool ky_pf_storage_event(struct ky_pf *pf, const struct ky_pf_ftrace *event,
			 const struct ky_pf_parts *parts)
{
	switch (event->id) {
	case 406: /* ufshcd_command */
		ufs_command(pf, event, parts);
		return true;
	case 407: /* ufshcd_clk_gating */
		ufs_clock(pf, event, parts);
		return true;
	case 419: /* f2fs_iostat */
		f2fs(pf, event, "f2fs_iostat", 9, f2fs_amounts,
		     sizeof(f2fs_amounts) / sizeof(*f2fs_amounts));
		return true;
	case 420: /* f2fs_iostat_latency */
		f2fs(pf, event, "f2fs_iostat_latency", 10, f2fs_latencies,
		     sizeof(f2fs_latencies) / sizeof(*f2fs_latencies));
		return true;
	default:
		return false;
	}
}
